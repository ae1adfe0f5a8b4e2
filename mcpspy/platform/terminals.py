"""The terminal that a process belongs to."""

import os
import sys


def keys_reach_us() -> bool:
    """Return whether the terminal sends the signals of its keys to our group. A client that draws its own screen turns them off.

    On Windows nothing else sends signals.
    """
    if sys.platform == "win32":
        return True
    import termios

    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(fd) == os.getpgrp() and bool(termios.tcgetattr(fd)[3] & termios.ISIG)
    except (OSError, termios.error):
        return False
    finally:
        os.close(fd)
