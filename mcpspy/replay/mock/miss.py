"""A request that the recording has no answer for: what was asked, what comes nearest, and the JSON-RPC error that says so.

Refuses to decide what matches: a matcher does. Source of the codes: JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...transcript.mcp.methods import OPENINGS
from ..compare.difference import Differences, differences
from ..json.walk import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...transcript.model import Exchange, Message
    from ..compare.difference import Difference
    from .match_key import MatchRules


METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

MAX_LETTERS: Final = 160
"""Params longer than that are cut where a sentence names them."""

MAX_VALUE_LETTERS: Final = 60
"""A value longer than that is cut where a difference is told."""

MAX_DATA_LETTERS: Final = 160
"""And one longer than that where data does."""

MAX_TOLD: Final = 10
"""So many differences are in the data."""

MAX_IN_A_SENTENCE: Final = 3

METHOD: Final = "method"
TARGET: Final = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A request without a recorded answer. `reason` is what is missing, in words that follow on the request's name.

    `refused_by` is the rule by which no recorded request is the same: an option as it was given, or `method` or `target` where
    nothing of that name was recorded. `nearest` is the recorded request that comes nearest to it, and `differences` lead from what
    that one asks to this one. `ignore` are the rules that would leave them out, `options` what else would let it match. `played` is
    the recorded exchange that was played all the same.
    """

    request: Message
    reason: str
    refused_by: str = ""
    nearest: Exchange | None = None
    differences: Differences | None = None
    ignore: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    played: Exchange | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of this method was recorded."""
        return self.refused_by == METHOD

    @property
    def code(self) -> int:
        """The code of the error that answers it."""
        return METHOD_NOT_FOUND if self.is_unknown else INVALID_PARAMS

    @property
    def sentence(self) -> str:
        """What was asked, what is missing, what comes nearest, and what would let it match. Not safe to be shown."""
        told = [self._told()]
        if self.nearest is not None:
            told.append(f"the nearest is row {self.nearest.row}{self._nearest_words()}")
        if self.refused_by.startswith("--"):
            told.append(f"{self.refused_by} refuses it")
        if self.advice:
            told.append(f"{' or '.join(self.advice)} would let it match")
        if self.played is not None:
            told.append(f"row {self.played.row} was played all the same")
        return "; ".join(told)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to give the mock so that it would match, each as it is typed in a shell; all rules to ignore are one."""
        from shlex import quote

        rules = " ".join(f"--ignore {quote(rule)}" for rule in self.ignore)
        return (rules, *self.options) if rules else self.options

    @property
    def name_of_nearest(self) -> str:
        """`tools/call echo` of the nearest, where that is something else than what was asked."""
        name = "" if self.nearest is None else request_name(self.nearest.request)
        return name if name != request_name(self.request) else ""

    def _told(self) -> str:
        shown = "" if self.differences or self.nearest is None else _with(self.request)
        return f"{request_name(self.request)}{shown} {self.reason}"

    def _nearest_words(self) -> str:
        name = f", {self.name_of_nearest}" if self.name_of_nearest else ""
        if not self.differences or self.nearest is None:
            return name + ("" if self.nearest is None else _with(self.nearest.request))
        places = "; ".join(difference_text(one) for one in self.differences.listed[:MAX_IN_A_SENTENCE])
        more = self.differences.count - MAX_IN_A_SENTENCE
        return f"{name}, where {places}" + (f"; and {more} more" if more > 0 else "")

    @property
    def data(self) -> dict[str, Any]:
        """The same for programs."""
        nearest = self.nearest
        made: dict[str, Any] = {
            "method": self.request.method,
            "target": self.request.target,
            "refused_by": self.refused_by,
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


def request_name(request: Message) -> str:
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


def difference_text(one: Difference, letters: int = MAX_VALUE_LETTERS) -> str:
    """`$.arguments.path: "a" ≠ "b"`: where it is, what was recorded, what is asked; of a long value the part that differs."""
    if one.how == "added":
        return f"{one.path}: nothing ≠ {excerpt(_spelled(one.after), 0, letters)}"
    if one.how == "removed":
        return f"{one.path}: {excerpt(_spelled(one.before), 0, letters)} ≠ nothing"
    before, after = _spelled(one.before), _spelled(one.after)
    pairs = enumerate(zip(before, after, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), 0)
    return f"{one.path}: {excerpt(before, at, letters)} ≠ {excerpt(after, at, letters)}"


def excerpt(text: str, at: int, letters: int) -> str:
    """At most so many letters of a text, with the place `at` among them; what is left out is an ellipsis."""
    if len(text) <= letters:
        return text
    begin = min(max(0, at - letters // 3), len(text) - letters)
    begin = 0 if begin <= 1 else begin
    end = begin + letters
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _spelled(value: Any) -> str:
    from ..json.canonical import spelled  # a mock starts without it

    return spelled(value)


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


MAX_METHODS: Final = 6
"""So many methods are named where one was never recorded."""

MAX_RULES: Final = 5
"""More rules than that are no advice."""


class Candidate(NamedTuple):
    """A recorded question, and what of its params counts."""

    exchange: Exchange
    counted: Any


def method_miss(request: Message, methods: Iterable[str]) -> Miss:
    """A miss of a method that was never recorded, while `methods` were."""
    known = list(methods)
    opening = [one for one in known if one in OPENINGS]
    if request.method in OPENINGS and opening:
        reason = f"was never recorded: this recording opens with {opening[0]}"
    elif known:
        reason = f"was never recorded; what was is {', '.join(known[:MAX_METHODS])}{', …' if len(known) > MAX_METHODS else ''}"
    else:
        reason = "was never recorded"
    return Miss(request=request, reason=reason, refused_by=METHOD)


def target_miss(request: Message, candidates: Sequence[Candidate]) -> Miss:
    """A miss of a target that was never recorded; its method was. Never without candidates."""
    targets = {one.exchange.target or "": one.exchange for one in reversed(candidates)}
    close = get_close_matches(request.target or "", targets, n=1, cutoff=0)
    nearest = targets[close[0]] if close else candidates[0].exchange
    return Miss(request=request, reason="was never recorded", refused_by=TARGET, nearest=nearest)


def params_miss(
    request: Message, counted: Any, candidates: Sequence[Candidate], rules: MatchRules, options: Sequence[str]
) -> Miss:
    """A miss by params alone. `counted` is what of them counts, by `rules`. Never without candidates."""
    nearest, found = _nearest(counted, candidates, rules)
    ignore = tuple(dict.fromkeys(rules.leave_out(one.steps) for one in found.listed if one.steps))
    return Miss(
        request=request,
        reason=f"was never recorded with {rules.what}",
        refused_by=f"--match {rules.strictness}",
        nearest=nearest,
        differences=found,
        ignore=ignore if len(ignore) <= MAX_RULES and not found.more else (),
        options=tuple(options),
    )


def reuse_miss(request: Message, last: Exchange, count: int) -> Miss:
    """A miss of what was asked more often than the `count` times that it was recorded, and `last` so."""
    times = "once" if count == 1 else f"{count} times"
    reason = f"was recorded {times} and asked for once more"
    return Miss(request=request, reason=reason, refused_by="--reuse error", nearest=last, options=("--reuse last",))


def _nearest(counted: Any, candidates: Sequence[Candidate], rules: MatchRules) -> tuple[Exchange, Differences]:
    """The most alike of the candidates, and where what is asked differs from it."""
    asked = rules.traits(counted)
    best = max(candidates, key=lambda one: similarity(rules.traits(one.counted), asked))
    return best.exchange, differences(best.counted, counted)
