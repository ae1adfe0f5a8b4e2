"""The terminal that a process belongs to."""

import os
import termios


def keys_reach_us() -> bool:
    """Return whether the terminal sends the signals of its keys to our group. A client that draws its own screen turns them off."""
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
