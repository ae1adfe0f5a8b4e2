"""Files that are replaced in one step, so that a query that fails leaves an older result as it was."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def replaced(path: str | None) -> Iterator[str | None]:
    """Yield where to write what is to be at `path`: beside it, if that can be. None, for standard output, stays None.

    Raises: OSError: if it cannot be written.
    """
    if path is None or not _can_be_replaced(path):
        yield path
        return
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}"
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is None or error.filename not in (temporary, None):
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _can_be_replaced(path: str) -> bool:
    """Return whether a path names a file that can be replaced, or none yet: no device, and no file in a folder of others."""
    return not os.path.exists(path) or (os.path.isfile(path) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK))
