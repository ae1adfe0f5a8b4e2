"""Miss: a request without a recorded answer, with the reason, the nearest recorded request and what would let it match.

It is sent to the client as a JSON-RPC error (codes: JSON-RPC 2.0, section 5.1). A matcher decides what is a miss, and gives a bounded
number of recorded requests to compare it to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...transcript.mcp.methods import OPENINGS
from ..json_values import readable_json, similarity

if TYPE_CHECKING:
    from ...transcript.model import Exchange, Message
    from ..compare.difference import Difference, Differences
    from .match_key import MatchRules

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

MAX_LETTERS: Final = 160
"""The longest params in a sentence; longer ones are cut."""

MAX_VALUE_LETTERS: Final = 60
"""The longest value in the text of a difference."""

MAX_DATA_LETTERS: Final = 160
"""The longest value in the data of the error."""

MAX_IN_DATA: Final = 10
"""The most differences in the data of the error."""

MAX_IN_A_SENTENCE: Final = 3

MAX_METHODS: Final = 6
"""The most recorded methods that are listed for one that was never recorded."""

MAX_RULES: Final = 5
"""The most ignore rules that are suggested."""

METHOD: Final = "method"
TARGET: Final = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A request without a recorded answer. `reason` says what is missing, in words that follow the request's name.

    `refused_by` is the rule by which no recorded request is equal: an option with its value, or `method` or `target` if nothing of
    that name was recorded. `nearest` is the most similar recorded request, and `differences` lead from its params to those of this
    request. `ignore` are rules that would leave the differences out, `options` are others that would let it match. `played` is the
    recorded exchange that was played instead. `siblings` are captures of the same server and client that are not served.
    """

    request: Message
    reason: str
    refused_by: str = ""
    nearest: Exchange | None = None
    differences: Differences | None = None
    ignore: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    played: Exchange | None = None
    siblings: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """True if nothing of this method was recorded."""
        return self.refused_by == METHOD

    @property
    def code(self) -> int:
        """The code of the error that answers it."""
        return METHOD_NOT_FOUND if self.is_unknown else INVALID_PARAMS

    @property
    def sentence(self) -> str:
        """The request, the reason, the nearest request, and what would let it match. Not escaped."""
        parts = [self._reason_with_name()]
        if self.nearest is not None:
            parts.append(f"the nearest is row {self.nearest.row}{self._nearest_words()}")
        if self.refused_by.startswith("--"):
            parts.append(f"{self.refused_by} refuses it")
        if self.advice:
            parts.append(f"{' or '.join(self.advice)} would let it match")
        if self.played is not None:
            parts.append(f"row {self.played.row} was played all the same")
        if self.siblings:
            parts.append(f"its client started the server more than once: serve {', '.join(self.siblings)} too")
        return "; ".join(parts)

    @property
    def advice(self) -> tuple[str, ...]:
        """The options of the mock that would let it match, each as typed in a shell; all ignore rules together are one."""
        from shlex import quote

        rules = " ".join(f"--ignore {quote(rule)}" for rule in self.ignore)
        return (rules, *self.options) if rules else self.options

    @property
    def name_of_nearest(self) -> str:
        """The name of the nearest request, as `tools/call echo`; empty if it is this request's name too."""
        name = "" if self.nearest is None else request_name(self.nearest.request)
        return name if name != request_name(self.request) else ""

    def _reason_with_name(self) -> str:
        shown = "" if self.differences or self.nearest is None else _with_arguments(self.request)
        return f"{request_name(self.request)}{shown} {self.reason}"

    def _nearest_words(self) -> str:
        name = f", {self.name_of_nearest}" if self.name_of_nearest else ""
        if not self.differences or self.nearest is None:
            return name + ("" if self.nearest is None else _with_arguments(self.nearest.request))
        texts = "; ".join(difference_text(difference) for difference in self.differences.listed[:MAX_IN_A_SENTENCE])
        more = self.differences.count - MAX_IN_A_SENTENCE
        return f"{name}, where {texts}" + (f"; and {more} more" if more > 0 else "")

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON."""
        nearest = self.nearest
        data: dict[str, Any] = {
            "method": self.request.method,
            "target": self.request.target,
            "refused_by": self.refused_by,
            "nearest": nearest and {"row": nearest.row, "method": nearest.method, "target": nearest.target},
        }
        if self.differences:
            data["differences"] = [_difference_object(difference) for difference in self.differences.listed[:MAX_IN_DATA]]
            data["more_differences"] = max(0, self.differences.count - MAX_IN_DATA)
        for name, values in (("ignore", self.ignore), ("options", self.options), ("siblings", self.siblings)):
            if values:
                data[name] = list(values)
        return data

    @property
    def line(self) -> bytes:
        """The error, as a line of stdio."""
        return error_line(self.request.id, self.code, f"mcpspy mock: {self.sentence}", self.data)


class Candidate(NamedTuple):
    """A recorded request that a miss is compared to, and the counted part of its params."""

    exchange: Exchange
    counted: Any


def method_miss(request: Message, methods: Iterable[str]) -> Miss:
    """Explain a miss of a method that was never recorded; `methods` were."""
    known = list(methods)
    opening = next((method for method in known if method in OPENINGS), None)
    if request.method in OPENINGS and opening is not None:
        reason = f"was never recorded: this capture opens with {opening}"
    elif known:
        reason = f"was never recorded; what was is {', '.join(known[:MAX_METHODS])}{', …' if len(known) > MAX_METHODS else ''}"
    else:
        reason = "was never recorded"
    return Miss(request=request, reason=reason, refused_by=METHOD)


def target_miss(request: Message, candidates: Sequence[Candidate]) -> Miss:
    """Explain a miss of a target that was never recorded, unlike its method. Needs a candidate."""
    from difflib import get_close_matches  # which a mock that passes requests through need not wait for

    by_target = {candidate.exchange.target or "": candidate.exchange for candidate in reversed(candidates)}
    close = get_close_matches(request.target or "", by_target, n=1, cutoff=0)
    nearest = by_target[close[0]] if close else candidates[0].exchange
    return Miss(request=request, reason="was never recorded", refused_by=TARGET, nearest=nearest)


def params_miss(
    request: Message, counted: Any, candidates: Sequence[Candidate], rules: MatchRules, options: Sequence[str]
) -> Miss:
    """Explain a miss by params alone; `counted` is the part of them that `rules` compare. Needs a candidate."""
    nearest, differences = _nearest(counted, candidates, rules)
    ignore = tuple(dict.fromkeys(rules.ignore_rule(difference.steps) for difference in differences.listed if difference.steps))
    return Miss(
        request=request,
        reason=f"was never recorded with {rules.subject}",
        refused_by=f"--match {rules.strictness}",
        nearest=nearest,
        differences=differences,
        ignore=ignore if len(ignore) <= MAX_RULES and not differences.more else (),
        options=tuple(options),
    )


def reuse_miss(request: Message, last: Exchange, count: int) -> Miss:
    """Explain a miss of a request that came more often than the `count` times that it was recorded; `last` is the last of these."""
    times = "once" if count == 1 else f"{count} times"
    reason = f"was recorded {times} and asked for once more"
    return Miss(request=request, reason=reason, refused_by="--reuse error", nearest=last, options=("--reuse last",))


def _nearest(counted: Any, candidates: Sequence[Candidate], rules: MatchRules) -> tuple[Exchange, Differences]:
    """Find the most similar candidate, and how the request differs from it."""
    from ..compare.difference import differences  # as above

    traits = rules.traits(counted)
    best = max(candidates, key=lambda candidate: similarity(rules.traits(candidate.counted), traits))
    return best.exchange, differences(best.counted, counted)


def error_line(id: str | None, code: int, text: str, data: dict[str, Any]) -> bytes:
    """Return the line of a JSON-RPC error; `id` is the id key of the request."""
    error = json.dumps({"code": code, "message": text, "data": data}, ensure_ascii=False, separators=(",", ":"))
    line = f'{{"jsonrpc":"2.0","id":{id or "null"},"error":{error}}}\n'
    return line.encode("utf-8", "backslashreplace")  # which spells a lone surrogate as JSON does


def request_name(request: Message) -> str:
    """Return the method with the target, as `tools/call echo`."""
    return f"{request.method} {request.target}" if request.target else request.method or ""


def _with_arguments(request: Message) -> str:
    """Return the arguments of a request, or its params, in words that follow its name; empty if they add nothing to it."""
    params = request.params
    if not isinstance(params, dict):
        return ""
    arguments = params.get("arguments", {name: value for name, value in params.items() if name not in ("_meta", "name", "uri")})
    if not arguments:
        return ""
    try:
        text = json.dumps(arguments, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    return f" with {text if len(text) <= MAX_LETTERS else text[:MAX_LETTERS] + '…'}"


def difference_text(difference: Difference, letters: int = MAX_VALUE_LETTERS) -> str:
    """Return the path, the recorded and the live value, as `$.arguments.path: "a" ≠ "b"`; of long values the part that differs."""
    path = difference.path
    if difference.how == "added":
        return f"{path}: nothing ≠ {excerpt(readable_json(difference.after), 0, letters)}"
    if difference.how == "removed":
        return f"{path}: {excerpt(readable_json(difference.before), 0, letters)} ≠ nothing"
    before, after = readable_json(difference.before), readable_json(difference.after)
    pairs = enumerate(zip(before, after, strict=False))
    at = next((at for at, (old, new) in pairs if old != new), 0)
    return f"{path}: {excerpt(before, at, letters)} ≠ {excerpt(after, at, letters)}"


def excerpt(text: str, at: int, letters: int) -> str:
    """Cut a text to so many letters around the place `at`; ellipses stand for the rest."""
    if len(text) <= letters:
        return text
    begin = min(max(0, at - letters // 3), len(text) - letters)
    begin = 0 if begin <= 1 else begin
    end = begin + letters
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _difference_object(difference: Difference) -> dict[str, Any]:
    data: dict[str, Any] = {"path": difference.path, "how": difference.how}
    if difference.how != "added":
        data["recorded"] = _bounded(difference.before)
    return data if difference.how == "removed" else data | {"asked": _bounded(difference.after)}


def _bounded(value: Any) -> Any:
    """Return a scalar as it is, anything else as JSON, cut if it is long."""
    text = readable_json(value)
    if len(text) > MAX_DATA_LETTERS:
        return text[:MAX_DATA_LETTERS] + "…"
    return value if value is None or isinstance(value, str | int | float) else text
