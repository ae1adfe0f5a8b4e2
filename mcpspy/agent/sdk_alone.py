"""The import of the official SDK without what its packages import for others: the client, the server of its own kind, web servers.

The packages `mcp` and `mcp.server` are entered without their contents, which are imported if somebody asks for them after all. Models
of messages are built when the first message of their kind comes: a session uses few of some hundred. Both halve the time of a start.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

PACKAGES: Final = ("mcp", "mcp.server")


@contextmanager
def alone() -> Iterator[None]:
    """Import the SDK within this. Does nothing where it is imported already. Raises: ModuleNotFoundError."""
    if PACKAGES[0] in sys.modules:
        yield
        return
    from pydantic import BaseModel

    for name in PACKAGES:
        _enter(name)
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


def _enter(name: str) -> None:
    """Put a package into the table of modules. Its contents are imported when somebody asks for a name of it."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package, loader = module_from_spec(spec), spec.loader

    def whole(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, wanted)

    package.__dict__["__getattr__"] = whole
    sys.modules[name] = package
    parent, _, last = name.rpartition(".")
    if parent:
        sys.modules[parent].__dict__[last] = package
