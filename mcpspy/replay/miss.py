"""A request that the recording has no answer for: what was asked, what comes nearest, and the JSON-RPC error that says so.

Refuses to decide what matches: a matcher does. Source of the codes: JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Any

    from ..transcript.model import Exchange, Message

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

MAX_LETTERS: Final = 160
"""Params longer than that are cut where a sentence names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A request without a recorded answer. `reason` is what is missing, in words that follow on the request's name.

    `is_unknown` says that nothing of this method was recorded. `nearest` is the recorded request that comes nearest to it.
    """

    request: Message
    reason: str
    nearest: Exchange | None = None
    is_unknown: bool = False

    @property
    def code(self) -> int:
        """The code of the error that answers it."""
        return METHOD_NOT_FOUND if self.is_unknown else INVALID_PARAMS

    @property
    def sentence(self) -> str:
        """What was asked, what is missing, and what comes nearest."""
        asked = f"{named(self.request)}{'' if self.nearest is None else _with(self.request)} {self.reason}"
        if self.nearest is None:
            return asked
        recorded = self.nearest.request
        name = f", {named(recorded)}" if named(recorded) != named(self.request) else ""
        return f"{asked}; the nearest is row {self.nearest.row}{name}{_with(recorded)}"

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs."""
        nearest = self.nearest
        return {
            "method": self.request.method,
            "target": self.request.target,
            "nearest": nearest and {"row": nearest.row, "method": nearest.method, "target": nearest.target},
        }

    @property
    def line(self) -> bytes:
        """The error, as a line of stdio."""
        return error_line(self.request.id, self.code, f"mcpspy mock: {self.sentence}", self.data)


def error_line(id: str | None, code: int, text: str, data: dict[str, Any]) -> bytes:
    """A JSON-RPC error to the request with the id of which `id` is the token."""
    error = json.dumps({"code": code, "message": text, "data": data}, ensure_ascii=False, separators=(",", ":"))
    line = f'{{"jsonrpc":"2.0","id":{id or "null"},"error":{error}}}\n'
    return line.encode("utf-8", "backslashreplace")  # which spells a lone surrogate as JSON does


def named(request: Message) -> str:
    """`tools/call echo`."""
    return f"{request.method} {request.target}" if request.target else request.method or ""


def _with(request: Message) -> str:
    """The arguments of a request, or its params where it has none; empty where that says no more than its name."""
    params = request.params
    if not isinstance(params, dict):
        return ""
    told = params.get("arguments", {name: value for name, value in params.items() if name not in ("_meta", "name", "uri")})
    if not told:
        return ""
    try:
        text = json.dumps(told, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    return f" with {text if len(text) <= MAX_LETTERS else text[:MAX_LETTERS] + '…'}"
