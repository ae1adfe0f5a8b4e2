"""The three model APIs: which of them a request is for, and the functions that read its prompt and assemble its answer.

How each of them spells its bodies and events is in `chat`, `responses` and `messages`.
"""

from functools import lru_cache
from typing import Any, Final, Protocol

from ..http.head import Head
from . import chat, messages, responses
from .drafts import AnswerDraft
from .json_values import json_value, members
from .prompt import Answer, Api, Prompt

MAX_REMEMBERED: Final = 16
"""Number of prompts that are remembered: a view reads each several times, and a megabyte takes milliseconds."""

_PATHS: Final[dict[str, Api]] = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}


class Assembler(Protocol):
    """An answer under construction, fed a body or events. No method raises, whatever comes."""

    @property
    def draft(self) -> AnswerDraft:
        """The answer without its turns."""

    def feed_body(self, body: Any, at_ns: int) -> None:
        """Take in a body of JSON that is not a stream."""

    def feed(self, event_type: str, data: bytes, at_ns: int) -> bool:
        """Take in an event. Returns True if it brought content."""

    def close(self, *, is_cut: bool) -> None:
        """End the stream; `is_cut`: before its framing ended."""

    @property
    def answer(self) -> Answer:
        """The answer, as far as it was received."""


def api_of(head: Head, payload: bytes) -> Api | None:
    """Decide which API a request asks for an answer; None for another request, such as one for a list of models.

    The path decides. Under an unknown path, a body with a model and messages is a prompt of chat completions or messages. Two paths
    look like prompts and are not read here: Ollama's own API, and messages put into a thread, which no model answers.
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
    body = members(json_value(payload))
    if not (isinstance(body.get("messages"), list) and isinstance(body.get("model"), str)):
        return None
    return "messages" if head.get("anthropic-version") else "chat"


@lru_cache(maxsize=MAX_REMEMBERED)
def prompt(api: Api, payload: bytes) -> Prompt:
    """Read the prompt in the body of a request. A prompt that cannot be read has a `flaw`."""
    if not payload:
        return Prompt(flaw="the request was not recorded, or is empty")
    body = json_value(payload)
    if not isinstance(body, dict):
        return Prompt(flaw="the request is not a JSON object")
    match api:
        case "chat":
            return chat.prompt(body)
        case "responses":
            return responses.prompt(body)
        case "messages":
            return messages.prompt(body)


def assembler(api: Api) -> Assembler:
    """Make the assembler for the answers of this API."""
    match api:
        case "chat":
            return chat.ChatAssembler()
        case "responses":
            return responses.ResponsesAssembler()
        case "messages":
            return messages.MessagesAssembler()
