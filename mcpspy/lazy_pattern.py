"""Regular expressions that are compiled when they are first used.

Compiling one takes 0.1 ms, and a look at a small capture imports a hundred, of which it uses a third.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return a pattern that is compiled when a method of it is first used."""

else:

    class lazy_pattern:  # noqa: N801 - it is called as a function
        """A pattern that takes each method from the compiled one when it is first used, and keeps it."""

        def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name: str) -> Any:
            method = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, method)
            return method
