"""Where the program starts: `hetero-bfs`, or `python -m hetero_bfs`."""

import os
import signal
import sys

# Until the command line takes signals, Ctrl-C is to end the process, as other programs have it,
# and not to be an exception in whatever is imported just then.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# No search uses BLAS, whose threads take address space, and a SIGINT where they find none.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hetero_bfs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
