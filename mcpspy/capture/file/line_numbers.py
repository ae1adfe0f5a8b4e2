"""On which line of a capture's file its records stand. Record 7 is line 8, unless lines were lost or came in between.

Refuses to check what it reads: `reader` does.
"""

import re
from collections.abc import Container
from os import PathLike, fspath

_number = re.compile(rb'\s*\{\s*"n"\s*:\s*(\d{1,18})\b').match


def lines_of(path: str | PathLike[str], numbers: Container[int]) -> dict[int, int]:
    """The line of each of these records, the first line being 1; those that do not stand there are left out. Raises: OSError."""
    found: dict[int, int] = {}
    with open(fspath(path), "rb") as file:
        for at, line in enumerate(file, 1):
            said = _number(line, 0, 64)
            if said is not None and (number := int(said[1])) in numbers:
                found.setdefault(number, at)
    return found
