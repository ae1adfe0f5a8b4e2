"""Texts to intercepts: `FILTER => ACTION [ARGUMENTS] [LIMITS]`.

Every text either becomes an `InterceptRule` or raises `InterceptError`, which names the column and what to write instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..errors import FilterError, InterceptError, PathError
from ..json_path import Step, assignment_at, steps_at
from ..transcript.filter.filter import filter_of
from ..transcript.filter.grammar import Filter
from ..transcript.filter.values import DURATIONS_NS, BadValue, amount, in_quotes
from .actions import (
    SECOND_NS,
    Action,
    AnswerStatus,
    CutOff,
    Delay,
    Duplicate,
    Expire,
    Garbage,
    Hold,
    MadeAnswer,
    RemoveValue,
    Reorder,
    SetValue,
    Truncate,
    Withhold,
    answer_template,
    error_template,
)

ARROW: Final = "=>"

KNOWN_KEYS: Final = frozenset({
    "method", "tool", "prompt", "resource", "target", "status", "dur", "size", "bytes", "dir", "sender", "kind", "id", "token",
})  # fmt: skip
"""The keys of filters whose facts are known while a message passes."""

ACTIONS: Final = (
    "delay", "hold", "reorder", "drop", "error", "respond", "set", "remove", "truncate", "garbage", "duplicate", "disconnect",
    "status", "expire", "stall", "kill",
)  # fmt: skip
_REFUSED: Final = {
    "stdio": {
        "status": ("there is no status on stdio", "Write error and a code, as in error -32000."),
        "expire": ("a session on stdio does not expire", "Write disconnect, or kill."),
    },
    "http": {"kill": ("mcpspy did not start this server, so it does not kill it", "Write disconnect, or stall.")},
}
"""By the transport, the actions that it does not have, each with why not and what to write instead."""
HOLD_NS: Final = 60 * SECOND_NS
"""The longest time that a message is held, unless the intercept names another."""
REORDER_NS: Final = SECOND_NS
"""The longest time that an answer waits for another one, unless the intercept names another."""

_OF_BODY: Final = ("content-", "transfer-encoding", "connection")
"""The beginnings of fields that are mcpspy's own to write."""

_LIMITS: Final = ("p", "nth", "max", "after")

_arrow = re.compile(r'(?:[^"=]++|"(?:[^"\\]++|\\.)*+"|=(?!>))*+(=>)', re.DOTALL)
_blanks = re.compile(r"\s*")
_word = re.compile(r'"(?:[^"\\]++|\\.)*+"|\S+', re.DOTALL)
_limit = re.compile(r"(p|nth|max|after)=(\S*)")
_field = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*")

Answers = Callable[[str], bytes]
"""Returns the content of a file, or the answer of a recorded row. Raises ValueError, with the reason, if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of an intercept: it acts at random, at the nth match alone, so many times, from a time on. 0 and 1.0: no limit."""

    chance: float = 1.0
    nth: int = 0
    most: int = 0
    after_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptRule:
    """An intercept that was read from text. `scope` names the messages that it acts on: `requests`, `answers` or `all`."""

    text: str
    chosen: Filter
    action: Action
    limits: Limits
    scope: str


def parse_intercept(text: str, answers: Answers, transport: str = "stdio") -> InterceptRule:
    """Return the intercept that a text describes, for a tap of `stdio` or `http`. Raises: InterceptError."""
    arrow = _arrow.match(text)
    if arrow is None:
        raise InterceptError(text, len(text) + 1, "there is no =>", "Write FILTER => ACTION, as in 'tool:search => delay 3s'.")
    chosen = _filter(text, text[: arrow.start(1)])
    arguments = _Arguments(text, arrow.end(1))
    for refused, (reason, advice) in _REFUSED[transport].items():
        if arguments.text.startswith(refused, arguments.at):
            raise arguments.error(reason, advice)
    action = _action(arguments, answers)
    limits = _limits(arguments)
    return InterceptRule(text=text.strip(), chosen=chosen, action=action, limits=limits, scope=_scope(chosen, action))


def _scope(chosen: Filter, action: Action) -> str:
    if chosen.keys & {"kind", "sender"}:
        return "all"
    of_answers = isinstance(action, Truncate | Garbage | Reorder | CutOff) or bool(chosen.keys & {"status", "dur"})
    if isinstance(action, SetValue | RemoveValue):
        of_answers = of_answers or action.steps[0] in ("result", "error")
    return "answers" if of_answers else "requests"


def _filter(text: str, expression: str) -> Filter:
    try:
        chosen = filter_of([expression])
    except FilterError as error:
        raise InterceptError(text, error.column, error.reason, error.advice) from None
    assert chosen is not None
    for key in sorted(chosen.keys - KNOWN_KEYS):
        advice = f"The keys are {', '.join(sorted(KNOWN_KEYS))}."
        raise InterceptError(text, max(expression.find(key), 0) + 1, f"{key} is not known while a message passes", advice)
    return chosen


class _Arguments:
    """The words after the arrow, taken one by one."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.skip()

    def skip(self) -> None:
        """Skip blanks."""
        blanks = _blanks.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at

    def error(self, reason: str, advice: str, at: int | None = None) -> InterceptError:
        return InterceptError(self.text, (self.at if at is None else at) + 1, reason, advice)

    @property
    def is_over(self) -> bool:
        """True if nothing but limits follows."""
        return self.at == len(self.text) or _limit.match(self.text, self.at) is not None

    def take(self, what: str, example: str) -> tuple[str, int]:
        """Take a word, or a text in quotation marks; return it with its offset."""
        word = _word.match(self.text, self.at)
        if word is None or self.is_over:
            raise self.error(f"{what} is missing", f"Write {example}.")
        at, taken = self.at, word[0]
        self.at = word.end()
        self.skip()
        if taken.startswith('"'):
            try:
                return str(json.loads(taken, strict=False)), at
            except ValueError:
                raise self.error("this text is not closed", 'Close it with a quotation mark: "…".', at) from None
        return taken, at

    def path(self) -> tuple[tuple[Step, ...], str]:
        """Take a path, as in `params.arguments.q`; return its steps, and the path itself."""
        begin = self.at
        try:
            steps, self.at = steps_at(self.text, begin)
        except PathError as error:
            raise InterceptError(self.text, error.column, error.reason, error.advice) from None
        path = self.text[begin : self.at]
        self.skip()
        return steps, path

    def assignment(self) -> SetValue:
        """Take a path, `=` and a value of JSON."""
        try:
            steps, path, value, self.at = assignment_at(self.text, self.at)
        except PathError as error:
            raise InterceptError(self.text, error.column, error.reason, error.advice) from None
        self.skip()
        return SetValue(steps=steps, value=value, path=path)


def _action(arguments: _Arguments, answers: Answers) -> Action:
    name, at = arguments.take("the action", f"one of {', '.join(ACTIONS)}")
    match name:
        case "delay":
            return _delay(arguments)
        case "hold":
            return Hold(most_ns=HOLD_NS if arguments.is_over else _time(arguments, *arguments.take("the time", "hold 30s")))
        case "reorder":
            time = REORDER_NS if arguments.is_over else _time(arguments, *arguments.take("the time", "reorder 2s"))
            return Reorder(most_ns=time)
        case "disconnect" if not arguments.is_over:
            return CutOff(length=_number(arguments, *arguments.take("the number of bytes", "disconnect 20")))
        case "drop" | "disconnect" | "stall" | "kill":
            return Withhold(then=name)
        case "expire":
            return Expire()
        case "error":
            return _error(arguments)
        case "respond":
            return _respond(arguments, answers)
        case "set":
            return arguments.assignment()
        case "remove":
            steps, path = arguments.path()
            return RemoveValue(steps=steps, path=path)
        case "status":
            return _status(arguments)
        case "truncate":
            return Truncate(length=_number(arguments, *arguments.take("the number of bytes", "truncate 20")))
        case "duplicate":
            return Duplicate()
        case "garbage":
            line, at = arguments.take("the text", 'garbage "text"')
            return Garbage(line=line.replace("\r", " ").replace("\n", " ").encode("utf-8", "surrogatepass"))
    raise arguments.error(f"there is no action {in_quotes(name)}", f"The actions are {', '.join(ACTIONS)}.", at)


def _delay(arguments: _Arguments) -> Delay:
    text, at = arguments.take("the time", "delay 3s, or delay 1s..3s")
    low, dots, high = text.partition("..")
    least_ns = _time(arguments, low, at)
    most_ns = _time(arguments, high, at) if dots else least_ns
    if most_ns < least_ns:
        raise arguments.error(f"{in_quotes(text)} ends before it begins", f"Write {high}..{low}.", at)
    return Delay(least_ns=least_ns, most_ns=most_ns)


def _error(arguments: _Arguments) -> MadeAnswer:
    code = _number(arguments, *arguments.take("the code", 'error -32000 "try later"'))
    text = "error by an intercept of mcpspy" if arguments.is_over else arguments.take("the message", "it")[0]
    return MadeAnswer(template=error_template(code, text), words=f"error {code}")


def _status(arguments: _Arguments) -> AnswerStatus:
    text, at = arguments.take("the status", "status 503")
    code = _number(arguments, text, at)
    if not 200 <= code <= 599:
        raise arguments.error(f"{text} is no status of a response", "Write a number from 200 to 599.", at)
    fields = []
    while not arguments.is_over:
        field, at = arguments.take("the field", '"Retry-After: 2"')
        if _field.fullmatch(field) is None or field.lower().startswith(_OF_BODY):
            raise arguments.error(
                f"{in_quotes(field)} is no field of this response", 'Write "Retry-After: 2", or leave it out.', at
            )
        fields.append(field)
    return AnswerStatus(code=code, fields=tuple(fields))


def _respond(arguments: _Arguments, answers: Answers) -> MadeAnswer:
    name, at = arguments.take("the answer", "the name of a file, or a row as in respond @:7")
    try:
        content = answers(name)
    except ValueError as error:
        raise arguments.error(str(error), "Name a file with JSON, or a row with an answer, as in @:7.", at) from None
    template = answer_template(content)
    if template is None:
        raise arguments.error(f"{in_quotes(name)} has no JSON", "Name a file with a result, or with a whole answer.", at)
    return MadeAnswer(template=template, words=f"respond {name}")


def _number(arguments: _Arguments, text: str, at: int) -> int:
    if re.fullmatch(r"-?\d{1,9}", text, re.ASCII) is None:
        raise arguments.error(f"{in_quotes(text)} is not a number", "Write a whole number.", at)
    return int(text)


def _time(arguments: _Arguments, text: str, at: int) -> int:
    try:
        return amount(text, DURATIONS_NS)
    except BadValue as bad:
        raise arguments.error(bad.reason, bad.advice, at) from None


def _limits(arguments: _Arguments) -> Limits:
    values: dict[str, int | float] = {}
    while arguments.at < len(arguments.text):
        limit = _limit.match(arguments.text, arguments.at)
        if limit is None:
            raise arguments.error("this is no limit", f"Limits are {'=…, '.join(_LIMITS)}=…, as in p=0.1 or after=10s.")
        name, text, at = limit[1], limit[2], limit.start(2)
        if name == "after":
            values[name] = _time(arguments, text, at)
        elif name == "p":
            values[name] = _chance(arguments, text, at)
        elif (number := _number(arguments, text, at)) < 1:
            raise arguments.error(f"{name} is at least 1", f"Write {name}=1.", at)
        else:
            values[name] = number
        arguments.at = limit.end()
        arguments.skip()
    return Limits(
        chance=float(values.get("p", 1.0)),
        nth=int(values.get("nth", 0)),
        most=int(values.get("max", 0)),
        after_ns=int(values.get("after", 0)),
    )


def _chance(arguments: _Arguments, text: str, at: int) -> float:
    try:
        chance = float(text)
    except ValueError:
        chance = -1.0
    if not 0.0 <= chance <= 1.0:
        raise arguments.error(f"{in_quotes(text)} is no probability", "Write a number from 0 to 1, as in p=0.1.", at)
    return chance
