"""What of an exchange replay goes by: what was asked, what was answered, and what of both is different at each run anyway.

As one value, about which ignore rules are written: the members of `params` stand at its root, what came back in `result` or
`error`. So `$.arguments.path` is what a tool was asked for, `$.result.content` what it brought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..transcript.mcp_codes import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from ..transcript.model import HTTP_REDIRECTS, Exchange, Kind, Message
from ..wire.slices import Slice, members
from .canonical import Reading, canonical, reading
from .difference import pruned

if TYPE_CHECKING:
    from .ignore import Ignore

VOLATILE_META: Final = (
    PROGRESS_TOKEN, PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, SERVER_INFO, SUBSCRIPTION_ID, RELATED_TASK, "traceparent",
    "tracestate", "baggage",
)  # fmt: skip
"""What `_meta` says of who speaks and of which message of this run it is about."""

VOLATILE: Final = (
    *(f"$.._meta['{key}']" for key in VOLATILE_META),
    "$.requestState", "$.result.requestState",
    "$.cursor", "$.result.nextCursor",
    "$.taskId", "$.result.taskId", "$.result.task.taskId",
    "$.result.createdAt", "$.result.lastUpdatedAt", "$.result.task.createdAt", "$.result.task.lastUpdatedAt",
    "$.elicitationId",
)  # fmt: skip
"""Ignore rules for what a peer makes up anew at each run, as far as the specification says so."""

_ANSWERS: Final = {Kind.RESULT: "result", Kind.ERROR: "error"}


def asked(request: Message) -> Reading:
    """What a request, or a notification, asks: its `params`. None are the same as empty ones."""
    found = _member(request, "params")
    if isinstance(found.value, dict) and found.value.get("_meta") == {}:
        del found.value["_meta"]  # it says as much as none
    return found


def answered(exchange: Exchange) -> Reading:
    """What came back: an object with `result`, `error` or, where HTTP gave no message, `status`; empty where nothing did."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        status = _refusal(exchange)
        return Reading({"status": status} if status else {})
    found = _member(response, name)
    return Reading({name: found.value}, found.repeated)


def answer_bytes(exchange: Exchange) -> bytes:
    """The same as the bytes that were sent, by which equal answers are told fast."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        return b"%d" % _refusal(exchange)
    return name.encode() + bytes(members(response.raw).get(name, b""))


def question_key(sender: str, method: str, params: Any, ignore: Ignore) -> bytes:
    """The digest by which an equal question is found: who asks, the method, and what of its params counts."""
    from hashlib import sha256

    text = f"{sender} {method} {canonical(pruned(params, ignore))}"
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _refusal(exchange: Exchange) -> int:
    """The HTTP status that stands for an answer; 0 where there is none."""
    status = 0 if exchange.transaction is None else exchange.transaction.status
    return status if status >= HTTP_REDIRECTS else 0


def _member(message: Message, name: str) -> Reading:
    found: Slice | None = members(message.raw).get(name)
    return Reading({}) if found is None else reading(bytes(found))
