"""Functions of `speedups.c` in the place of those in Python, where it was built. `MCPSPY_PURE=1` leaves it out.

A function in Python is the reference of the one in C that has its name: tests/test_speedups.py holds them against each other.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

speedups: object = None
if os.environ.get("MCPSPY_PURE") != "1":
    try:
        from . import speedups  # type: ignore[no-redef]  # only a build with a C compiler has it
    except ImportError:
        pass

VERSION_SUFFIX = ", with speedups in C" if speedups is not None else ""
"""The words about them after the version."""


def compiled(function: Function) -> Function:
    """Return the function in C that has the name of `function`, or `function`."""
    in_c: Function = getattr(speedups, function.__name__, function)
    return in_c
