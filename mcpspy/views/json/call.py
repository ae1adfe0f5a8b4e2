"""One call as JSON for programs: docs/json.md describes every field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..text.json_text import SCHEMA, RawJson, as_json, payload
from .diff import comparison_json

if TYPE_CHECKING:
    from ...replay.client.outgoing import Effect
    from ...replay.compare.compare import Comparison
    from ...transcript.model import Exchange


class SentCall(Protocol):
    """The outcome of a call; see `cli.call.result.CallResult`."""

    @property
    def target(self) -> dict[str, Any]: ...
    @property
    def live(self) -> Exchange | None: ...
    @property
    def why(self) -> str: ...
    @property
    def comparison(self) -> Comparison | None: ...
    @property
    def path(self) -> str: ...
    @property
    def row(self) -> int | None: ...
    @property
    def status(self) -> int: ...


def call_json(request: Exchange, recorded: Exchange | None, sent: SentCall) -> str:
    """Return the outcome of a call: `recorded` is the one that it repeats, if it repeats one."""
    live = sent.live
    answer = None if live is None else live.response
    members: dict[str, Any] = {
        "schema": SCHEMA,
        "exit": sent.status,
        "target": sent.target,
        "method": request.method,
        "name": request.target,
        "outcome": None if live is None or answer is None else live.outcome.value,
        "took_ns": None if live is None else live.duration_ns,
        "answer": None if answer is None else payload(answer.raw.strip(b"\r\n")),
        "why": sent.why or None,
        "capture": sent.path or None,
        "row": sent.row,
        "recorded": None if recorded is None else _recorded(recorded),
        "comparison": None if sent.comparison is None else RawJson(comparison_json(sent.comparison).rstrip("\n")),
    }
    return as_json(members) + "\n"


def planned_call_json(request: Exchange, data: bytes, effect: Effect, redacted: str) -> str:
    """Return what would be sent."""
    members: dict[str, Any] = {"schema": SCHEMA, "method": request.method, "name": request.target, "effect": effect.value}
    return as_json(members | {"redacted": redacted or None, "request": payload(data)}) + "\n"


def _recorded(exchange: Exchange) -> dict[str, Any]:
    return {"row": exchange.row, "outcome": exchange.outcome.value, "took_ns": exchange.duration_ns}
