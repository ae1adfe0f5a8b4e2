"""What of an exchange replay goes by: what was asked, what was answered, and what of both is different at each run anyway.

As one value, about which ignore rules are written: the members of `params` stand at its root, what came back in `result` or
`error`. So `$.arguments.path` is what a tool was asked for, `$.result.content` what it brought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...transcript.mcp.codes import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    RELATED_TASK,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from ...transcript.model import HTTP_REDIRECTS, Exchange, Kind, Message
from ...wire.json_spans import members
from ..compare.ignore import pruned
from ..json.canonical import Reading, canonical, read, reading

if TYPE_CHECKING:
    from ..compare.ignore import Ignore

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


def params_reading(request: Message) -> Reading:
    """What a request, or a notification, asks: its `params`. None are the same as empty ones."""
    found = reading(params_bytes(request) or b"{}")
    _drop_empty_meta(found.value)
    return found


def params_value(request: Message) -> Any:
    """The same without what is odd about its spelling, which takes half the time."""
    value = read(params_bytes(request) or b"{}")
    _drop_empty_meta(value)
    return value


def _drop_empty_meta(params: Any) -> None:
    if isinstance(params, dict) and params.get("_meta") == {}:
        del params["_meta"]  # it says as much as none


def params_bytes(request: Message) -> bytes:
    """The same as the bytes that were sent, by which equal questions are told fast."""
    return bytes(members(request.raw).get("params", b""))


def answer_reading(exchange: Exchange) -> Reading:
    """What came back: an object with `result`, `error` or, where HTTP gave no message, `status`; empty where nothing did."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        status = _refusal(exchange)
        return Reading({"status": status} if status else {})
    found = reading(bytes(members(response.raw).get(name, b"{}")))
    return Reading({name: found.value}, found.repeated)


def answer_bytes(exchange: Exchange) -> bytes:
    """The same as the bytes that were sent, by which equal answers are told fast."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        return b"%d" % _refusal(exchange)
    return name.encode() + bytes(members(response.raw).get(name, b""))


def match_digest(sender: str, method: str, params: Any, ignore: Ignore) -> bytes:
    """The digest by which an equal question is found: who asks, the method, and what of its params counts."""
    from hashlib import sha256

    text = f"{sender} {method} {canonical(pruned(params, ignore))}"
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _refusal(exchange: Exchange) -> int:
    """The HTTP status that stands for an answer; 0 where there is none."""
    status = 0 if exchange.transaction is None else exchange.transaction.status
    return status if status >= HTTP_REDIRECTS else 0
