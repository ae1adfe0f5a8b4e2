"""Functions of the C library, called through the part of ctypes that is written in C.

`ctypes` itself costs 3 ms of start-up (CPython 3.11). A missing function is no error: the caller does without.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_BYTES = 1 << 25

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def c_function(name: str) -> Callable[..., int] | None:
    """Return the C library's function of this name, for integers and bytes; None if there is none."""
    try:
        from _ctypes import call_function, dlopen, dlsym

        address = dlsym(dlopen(None, 0), name)  # type: ignore[arg-type]  # None is the program itself, as for ctypes.CDLL
    except (ImportError, OSError):
        return None
    return lambda *arguments: call_function(address, arguments)


def keep_freed_memory() -> None:
    """Have the allocator keep memory that large messages leave free, instead of returning it and fetching it for each read.

    Zeroing new pages took two thirds of the time of a large message: 2.3 ms per MiB with glibc's thresholds, 0.9 with these
    (reads of 512 KiB, Linux 6, glibc 2.36).
    """
    mallopt = c_function("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
