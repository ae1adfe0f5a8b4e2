"""The warden: a process that ends the server if we are killed, where the system does not, as Linux does for PR_SET_PDEATHSIG."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import SIGKILL
    from typing import NoReturn
else:
    from _signal import SIGKILL

_MAX_FDS = 256
"""More descriptors than we have open when the server is started."""


def guard(pid: int) -> int:
    """Start the warden of a process that we have started. Return a descriptor: a byte that is written to it ends the warden.

    The warden is nobody's child, so that it is not taken for something that the server started; and in a session of its own, so
    that no signal for us reaches it. Raises: OSError: if no descriptors or processes are left.
    """
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        _become_warden(pid, reading)
    os.close(reading)
    os.waitpid(between, 0)
    return writing


def _become_warden(pid: int, reading: int) -> NoReturn:
    try:
        if os.fork() == 0:
            os.setsid()
            os.dup2(reading, 0)
            os.closerange(1, _MAX_FDS)
            if not os.read(0, 1):
                os.kill(pid, SIGKILL)
    finally:
        os._exit(0)
