"""The way that messages take through an HTTP tap, in every Python that a test starts with this folder on its path.

PYTHONPATH=tests/ways MCPSPY_TESTED_WAY=general pytest tests/live/http     # never the short way of mcpspy/live/http/usual.py
PYTHONPATH=tests/ways MCPSPY_TESTED_WAY=short pytest tests/live/http       # from a head's second message on
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "mcpspy.live.http.usual"
SETTINGS: dict[str, dict[str, object]] = {"general": {"IS_ON": False}, "short": {"MIN_SIGHTS": 1}}


class Setter:
    """A finder of one module, which it sets once it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def load_and_set(module: ModuleType) -> None:
            load(module)
            vars(module).update(SETTINGS[os.environ["MCPSPY_TESTED_WAY"]])

        spec.loader.exec_module = load_and_set  # type: ignore[method-assign]
        return spec


if os.environ.get("MCPSPY_TESTED_WAY"):
    sys.meta_path.insert(0, Setter())
