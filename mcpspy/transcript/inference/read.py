"""Which API a request is for, by its path and its body, and the prompt in it. Refuses to know how each API spells one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from . import chat
from .nouns import Prompt
from .reading import value

if TYPE_CHECKING:
    from .nouns import Api

MAX_REMEMBERED: Final = 16
"""So many prompts are remembered: a view asks for one several times, and a megabyte takes 10 ms to read."""


@lru_cache(maxsize=MAX_REMEMBERED)
def prompt(api: Api, payload: bytes) -> Prompt:
    """The prompt in the body of a request. One that cannot be read has a `flaw`."""
    if not payload:
        return Prompt(flaw="the request was not recorded")
    body: Any = value(payload)
    if not isinstance(body, dict):
        return Prompt(flaw="the request is no JSON object")
    match api:
        case "chat":
            return chat.prompt(body)
        case "responses" | "messages":
            return Prompt(flaw=f"{api} cannot be read yet")
