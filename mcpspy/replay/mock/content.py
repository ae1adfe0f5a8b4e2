"""Content of an exchange as replay compares it: its params, its answer, and ignore rules for what differs at each run anyway.

Ignore rules are written about one value: the members of `params` are at its root, and the answer is in `result` or `error`. So
`$.arguments.path` is an argument of a tool, and `$.result.content` its content.
"""

from __future__ import annotations

from typing import Any, Final

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
from ..compare.ignore import Ignore, without_ignored
from ..json_values import Reading, canonical, read, reading

VOLATILE_META: Final = (
    PROGRESS_TOKEN, PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, SERVER_INFO, SUBSCRIPTION_ID, RELATED_TASK, "traceparent",
    "tracestate", "baggage",
)  # fmt: skip
"""Members of `_meta` that name a client or a server, or refer to another message of the same run."""

VOLATILE: Final = (
    *(f"$.._meta['{key}']" for key in VOLATILE_META),
    "$.requestState", "$.result.requestState",
    "$.cursor", "$.result.nextCursor",
    "$.taskId", "$.result.taskId", "$.result.task.taskId",
    "$.result.createdAt", "$.result.lastUpdatedAt", "$.result.task.createdAt", "$.result.task.lastUpdatedAt",
    "$.elicitationId",
)  # fmt: skip
"""Ignore rules for values that, by the specification, are new at each run."""

_ANSWERS: Final = {Kind.RESULT: "result", Kind.ERROR: "error"}


def params_reading(request: Message) -> Reading:
    """Read the `params` of a request or a notification. Missing params are the same as empty ones."""
    params = reading(params_bytes(request) or b"{}")
    _drop_empty_meta(params.value)
    return params


def params_value(request: Message) -> Any:
    """Read the same without noting repeated members, in half the time."""
    value = read(params_bytes(request) or b"{}")
    _drop_empty_meta(value)
    return value


def _drop_empty_meta(params: Any) -> None:
    if isinstance(params, dict) and params.get("_meta") == {}:
        del params["_meta"]  # the same as none


def params_bytes(request: Message) -> bytes:
    """Return the bytes of `params` as they were sent: the fast way to tell that two requests are equal."""
    return bytes(members(request.raw).get("params", b""))


def answer_reading(exchange: Exchange) -> Reading:
    """Read the answer: an object with `result`, `error` or, if HTTP brought no message, `status`; empty without an answer."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        status = refusal_status(exchange)
        return Reading({"status": status} if status else {})
    answer = reading(bytes(members(response.raw).get(name, b"{}")))
    return Reading({name: answer.value}, answer.repeated)


def answer_bytes(exchange: Exchange) -> bytes:
    """Return the bytes of the answer as they were sent: the fast way to tell that two answers are equal."""
    response = exchange.response
    name = None if response is None else _ANSWERS.get(response.kind)
    if response is None or name is None:
        return b"%d" % refusal_status(exchange)
    return name.encode() + bytes(members(response.raw).get(name, b""))


def match_digest(sender: str, method: str, params: Any, ignore: Ignore) -> bytes:
    """Return the digest that equal requests share: of the sender, the method, and the params that the rules leave."""
    from hashlib import sha256

    text = f"{sender} {method} {canonical(without_ignored(params, ignore))}"
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def refusal_status(exchange: Exchange) -> int:
    """Return the HTTP status of a refusal or redirect that is the only answer; 0 if there is none."""
    status = 0 if exchange.transaction is None else exchange.transaction.status
    return status if status >= HTTP_REDIRECTS else 0
