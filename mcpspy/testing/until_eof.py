"""Runs a command line of mcpspy until standard input ends: `python -m mcpspy.testing.until_eof mock …`.

Whoever starts a server for a test holds the other end of that pipe, so that the server ends with it, however it is killed.
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
