"""Which API a request is for, by its path and its body; the prompt in it, and who puts its answer together.

Refuses to know how each API spells them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from . import chat, messages, responses
from .json_values import members, value
from .model import Prompt

if TYPE_CHECKING:
    from ..http.head import Head
    from .model import Answer, Api

MAX_REMEMBERED: Final = 16
"""So many prompts are remembered: a view asks for one several times, and a megabyte takes milliseconds to read."""

_PATHS: Final[dict[str, Api]] = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}


class Assembler(Protocol):
    """Puts an answer together. Whatever comes, it does not raise."""

    id: str

    def whole(self, body: Any, at_ns: int) -> None:
        """A body of JSON."""

    def feed(self, named: str, data: bytes, at_ns: int) -> bool:
        """An event with this type. Whether it brought content."""

    def refused(self, why: str) -> None:
        """HTTP answered with an error."""

    def close(self, *, is_cut: bool) -> None:
        """Nothing more comes; `is_cut`: though something should."""

    @property
    def answer(self) -> Answer:
        """As far as it came."""


def api_of(head: Head, payload: bytes) -> Api | None:
    """The API that a request asks for an answer; None for one that asks for something else, as a list of models.

    A path says it; under another path, what a prompt of chat completions or messages has: a model, and messages. Two paths look like
    prompts and are none that is read here: Ollama's own API, and messages that are put into a thread, which no model answers.
    """
    if head.method != "POST":
        return None
    path = head.target.partition("?")[0].rstrip("/")
    if path.endswith("/api/chat") or (path.endswith("/messages") and "/threads/" in path):
        return None
    for end, api in _PATHS.items():
        if path.endswith(end):
            return api
    if b'"messages"' not in payload or b'"model"' not in payload or path.endswith(("/count_tokens", "/batches")):
        return None
    body = members(value(payload))
    if not (isinstance(body.get("messages"), list) and isinstance(body.get("model"), str)):
        return None
    return "messages" if head.get("anthropic-version") else "chat"


@lru_cache(maxsize=MAX_REMEMBERED)
def prompt(api: Api, payload: bytes) -> Prompt:
    """The prompt in the body of a request. One that cannot be read has a `flaw`."""
    if not payload:
        return Prompt(flaw="the request was not recorded, or is empty")
    body = value(payload)
    if not isinstance(body, dict):
        return Prompt(flaw="the request is no JSON object")
    match api:
        case "chat":
            return chat.prompt(body)
        case "responses":
            return responses.prompt(body)
        case "messages":
            return messages.prompt(body)


def assembler(api: Api) -> Assembler:
    """Who puts together what this API answers."""
    match api:
        case "chat":
            return chat.ChatAssembler()
        case "responses":
            return responses.ResponsesAssembler()
        case "messages":
            return messages.MessagesAssembler()
