"""The parameters of the command that runs.

Click keeps them in its context; here they are for commands that run without click, and for those by click alike.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_parameters: dict[str, Any] = {}


def invoke(command: Callable[..., None], values: Mapping[str, Any]) -> None:
    """Call a command with these parameters."""
    _parameters.update(values)
    try:
        command(**values)
    finally:
        _parameters.clear()


def parameters() -> Mapping[str, Any]:
    """Return the parameters of the command that runs; empty if none does."""
    context = _click_context()
    return _parameters if context is None else context.params


def _click_context() -> Any:
    click = sys.modules.get("click")
    return None if click is None else click.get_current_context(silent=True)
