"""Entry point of the program: `hetero-bfs`, or `python -m hetero_bfs`."""

import os
import signal
import sys

# Until the command line handles signals, Ctrl-C ends the process. Otherwise it would raise an
# exception in the middle of an import.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# No search uses BLAS. Its threads take address space, and without enough of it they raise SIGINT.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hetero_bfs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
