"""The command that runs: its parameters, and what is done when it is over.

Click keeps both in its context; here they are for commands that run without click, and for those by click alike.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_parameters: dict[str, Any] = {}
_at_end: list[Callable[[], None]] = []


def invoke(command: Callable[..., None], values: Mapping[str, Any]) -> None:
    """Call a command with these parameters, then what it left to be called at its end."""
    _parameters.update(values)
    try:
        command(**values)
    finally:
        _parameters.clear()
        while _at_end:
            _at_end.pop()()


def parameters() -> Mapping[str, Any]:
    """Return the parameters of the command that runs; empty if none does."""
    context = _click_context()
    return _parameters if context is None else context.params


def call_at_end(action: Callable[[], None]) -> None:
    """Call something when the command that runs is over."""
    context = _click_context()
    if context is None:
        _at_end.append(action)
    else:
        context.call_on_close(action)


def _click_context() -> Any:
    click = sys.modules.get("click")
    return None if click is None else click.get_current_context(silent=True)
