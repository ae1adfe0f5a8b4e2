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
    from .difference import Difference, Differences

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

MAX_LETTERS: Final = 160
"""Params longer than that are cut where a sentence names them."""

MAX_VALUE_LETTERS: Final = 60
"""A value longer than that is cut where a sentence tells a difference."""

MAX_DATA_LETTERS: Final = 160
"""And one longer than that where data does."""

MAX_TOLD: Final = 10
"""So many differences are in the data, and three of them in the sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A request without a recorded answer. `reason` is what is missing, in words that follow on the request's name.

    `is_unknown` says that nothing of this method was recorded. `nearest` is the recorded request that comes nearest to it, and
    `differences` lead from what that one asks to this one. `ignore` are the rules that would leave them out, `options` what else
    would let it match.
    """

    request: Message
    reason: str
    nearest: Exchange | None = None
    is_unknown: bool = False
    differences: Differences | None = None
    ignore: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The code of the error that answers it."""
        return METHOD_NOT_FOUND if self.is_unknown else INVALID_PARAMS

    @property
    def sentence(self) -> str:
        """What was asked, what is missing, what comes nearest, and what would let it match. Not safe to be shown."""
        from shlex import quote

        ways = [" ".join(f"--ignore {quote(rule)}" for rule in self.ignore), *self.options]
        advice = " or ".join(one for one in ways if one)
        return self.told + (f"; {advice} would let it match" if advice else "")

    @property
    def told(self) -> str:
        """The same without advice."""
        if self.differences and self.nearest is not None:
            where = _where(self.differences)
            return f"{named(self.request)} {self.reason}; the nearest is row {self.nearest.row}{self._name()}, where {where}"
        asked = f"{named(self.request)}{'' if self.nearest is None else _with(self.request)} {self.reason}"
        if self.nearest is None:
            return asked
        return f"{asked}; the nearest is row {self.nearest.row}{self._name()}{_with(self.nearest.request)}"

    def _name(self) -> str:
        """What the nearest is about, where that is something else."""
        recorded = self.request if self.nearest is None else self.nearest.request
        return f", {named(recorded)}" if named(recorded) != named(self.request) else ""

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs."""
        nearest = self.nearest
        made: dict[str, Any] = {
            "method": self.request.method,
            "target": self.request.target,
            "nearest": nearest and {"row": nearest.row, "method": nearest.method, "target": nearest.target},
        }
        if self.differences:
            made["differences"] = [_difference(one) for one in self.differences.listed[:MAX_TOLD]]
            made["more_differences"] = max(0, self.differences.count - MAX_TOLD)
        for name, values in (("ignore", self.ignore), ("options", self.options)):
            if values:
                made[name] = list(values)
        return made

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


def _where(found: Differences) -> str:
    places = "; ".join(_words(one) for one in found.listed[:3])
    return places + (f"; and {found.count - 3} more" if found.count > 3 else "")


def _words(one: Difference) -> str:
    if one.how == "added":
        return f"there is no {one.path}"
    if one.how == "removed":
        return f"{one.path} is {_short(one.before)}, and here nothing"
    return f"{one.path} is {_short(one.before)} and not {_short(one.after)}"


def _spelled(value: Any) -> str:
    from .canonical import spelled  # a mock starts without it

    return spelled(value)


def _short(value: Any) -> str:
    text = _spelled(value)
    return text if len(text) <= MAX_VALUE_LETTERS else text[:MAX_VALUE_LETTERS] + "…"


def _difference(one: Difference) -> dict[str, Any]:
    made: dict[str, Any] = {"path": one.path, "how": one.how}
    if one.how != "added":
        made["recorded"] = _bounded(one.before)
    return made if one.how == "removed" else made | {"asked": _bounded(one.after)}


def _bounded(value: Any) -> Any:
    """A value that is no list and no object, or the beginning of its JSON."""
    text = _spelled(value)
    if len(text) > MAX_DATA_LETTERS:
        return text[:MAX_DATA_LETTERS] + "…"
    return value if value is None or isinstance(value, str | int | float) else text
