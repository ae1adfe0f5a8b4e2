"""The import of msgspec without modules that it imports and that nobody here needs: a sixth of the start of `mcpspy show`.

Without typing_extensions msgspec takes the same from `typing`, which is enough for our classes; uuid wants the name of the system
alone from platform; of textwrap msgspec uses what prints a JSON schema. Whoever imports these modules later gets them as they are.
"""

import os
import sys
from types import ModuleType


class _System(ModuleType):
    """As much of platform as uuid takes."""

    @staticmethod
    def system() -> str:
        return os.uname().sysname


class _Textwrap(ModuleType):
    """textwrap, which is imported when something of it is used."""

    def __getattr__(self, name: str) -> object:
        import textwrap

        return getattr(textwrap, name)


def import_msgspec() -> None:
    """Import msgspec, unless it has been imported."""
    if "msgspec" in sys.modules:
        return
    stand_ins: dict[str, ModuleType | None] = {"typing_extensions": None, "textwrap": _Textwrap("textwrap")}
    if hasattr(os, "uname"):  # on Windows uuid does not ask
        stand_ins["platform"] = _System("platform")
    ours = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(ours)  # type: ignore[arg-type]  # None makes an import fail
    try:
        import msgspec  # noqa: F401
    finally:
        for name in ours:
            del sys.modules[name]
