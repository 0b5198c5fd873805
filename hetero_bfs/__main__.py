"""`python -m hetero_bfs` is the command `hetero-bfs`."""

import sys

from hetero_bfs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
