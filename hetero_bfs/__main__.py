"""Where the program starts: `hetero-bfs`, or `python -m hetero_bfs`."""

import signal
import sys

# Until the command line takes signals, Ctrl-C is to end the process, as other programs have it,
# and not to be an exception in whatever is imported just then.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from hetero_bfs.cli import main

if __name__ == "__main__":
    sys.exit(main())
