"""A command line of mcpspy that ends when standard input does: `python -m mcpspy.testing.until_eof mock …`.

The process that starts a server for a test holds the other end of that pipe, so the server ends with it, even if it is killed.
"""

import os
import signal
import sys
from _thread import start_new_thread

from ..__main__ import main


def _wait() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    start_new_thread(_wait, ())
    sys.exit(main())
