"""Keys of filters: the meaning of each, its operators and values, and the test for its terms.

One table serves the parser, the matcher and the page that explains filters (`views.filter_page`).
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from ...lazy_pattern import lazy_pattern
from ..calls.call import CallPart
from ..findings.registry import RULES
from ..mcp.revisions import Era
from ..model import Outcome
from . import facts
from .facts import Amount, Subject, Texts
from .grammar import MAX_KEY_LETTERS, Term
from .values import COUNTS, DURATIONS_NS, SIZES_BYTES, BadValue, Words, in_quotes, moment, numbers, on_clock_ns, words

Test: TypeAlias = Callable[[Subject], object]
"""A test for subjects: it returns something true or something false."""

COLON: Final = (":",)
ORDER: Final = (":", ">", ">=", "<", "<=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. `test` returns the test for a term, or raises `BadValue`.

    `meaning` and `values` are for the page; `example` is a term. `of_message` says that the messages of one exchange may differ
    in this fact, `of_notification` that only its notifications may.
    """

    name: str
    meaning: str
    values: str
    example: str
    test: Callable[[Term], Test]
    operators: tuple[str, ...] = COLON
    of_message: bool = False
    of_notification: bool = False


# --- How terms become tests ---


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTests:
    """Terms to tests for the texts `of` a subject. If the `vocabulary` is `closed`, the value has to match one of its words."""

    of: Texts
    vocabulary: tuple[str, ...] = ()
    closed: bool = False

    def __call__(self, term: Term) -> Test:
        """Return the test for a term. Raises: BadValue."""
        value = term.value.replace(" ", "-") if self.closed else term.value
        matches = words(value, is_quoted=term.is_quoted)
        if self.closed and not any(map(matches, self.vocabulary)):
            raise _unknown_word(value, self.vocabulary)
        return _text_test(self.of, matches)


def _texts(of: Texts, *, vocabulary: Iterable[str] = (), closed: bool = False) -> TextTests:
    return TextTests(of=of, vocabulary=tuple(vocabulary), closed=closed)


def _text_test(of: Texts, matches: Words) -> Test:
    def test(subject: Subject) -> bool:
        for text in of(subject):  # noqa: SIM110 - `any` makes a generator, which costs more than the loop
            if text is not None and matches(text):
                return True
        return False

    return test


def _unknown_word(value: str, known: tuple[str, ...]) -> BadValue:
    if "," in value:
        return BadValue(f"{in_quotes(value)} is not a word that it takes", "For one of several words write (… or …).")
    near = get_close_matches(value.lower(), known, 1) if len(value) <= MAX_KEY_LETTERS else []
    listed = (
        f"It takes {', '.join(known)}." if len(known) <= MAX_LISTED else "`mcpspy help filter` shows where they are listed."
    )
    return BadValue(f"{in_quotes(value)} is not a word that it takes", f"Did you mean {near[0]}?" if near else listed)


MAX_LISTED: Final = 24
"""The largest vocabulary that a sentence lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountTests:
    """Terms to tests for the amount `of` a subject. With an `example` of a range, a colon takes ranges only.

    `at_least` is what more than an amount is compared with, if that is known of more rows.
    """

    of: Amount
    units: dict[str, int]
    example: str = ""
    at_least: Amount | None = None

    def __call__(self, term: Term) -> Test:
        """Return the test for a term. Raises: BadValue."""
        _refuse_comparison(term)
        matches = numbers(term.operator, term.value, self.units)
        if self.example and term.operator == ":" and ".." not in term.value:
            advice = f"Write {term.key}>{term.value}, or a range as {term.key}:{self.example}."
            raise BadValue(f"{term.key} is measured and hardly ever equal to a value", advice, is_operator=True)

        amount = self.at_least if self.at_least is not None and term.operator in (">", ">=") else self.of

        def test(subject: Subject) -> bool:
            value = amount(subject)
            return value is not None and matches(value)

        return test


def _amounts(of: Amount, units: dict[str, int], *, example: str = "", at_least: Amount | None = None) -> AmountTests:
    return AmountTests(of=of, units=units, example=example, at_least=at_least)


def _refuse_comparison(term: Term) -> None:
    if term.operator == ":" and term.value[:1] in ("<", ">"):
        raise BadValue("a comparison needs no colon", f"Write {term.key}{term.value[:MAX_KEY_LETTERS]}.", is_operator=True)


_HTTP_CLASS: Final = lazy_pattern(r"[1-5][xX]{2}")
_HTTP_STATUS: Final = lazy_pattern(r"[1-5]\d\d", re.ASCII)
_HTTP_STATUSES: Final = lazy_pattern(r"[1-5]\d\d(\.\.[1-5]\d\d)?", re.ASCII)
_HTTP_METHOD: Final = lazy_pattern(r"[A-Z]+")


def _http(term: Term) -> Test:
    """Return the test for a status (`401`, `4xx`, `>=400`), a method (`POST`), or a target (`/mcp*`)."""
    _refuse_comparison(term)
    value = term.value
    if term.operator != ":" or _HTTP_STATUSES.fullmatch(value):
        if term.operator != ":" and not _HTTP_STATUS.fullmatch(value):
            raise BadValue(f"{in_quotes(value)} is not an HTTP status", "Write one of 100 to 599, as in http>=400.")
        matches = numbers(term.operator, value, COUNTS)
        return lambda subject: any(map(matches, facts.http_statuses(subject)))
    if _HTTP_CLASS.fullmatch(value):
        hundreds = int(value[0])
        return lambda subject: any(status // 100 == hundreds for status in facts.http_statuses(subject))
    if _HTTP_METHOD.fullmatch(value):
        return lambda subject: any(transaction.method == value for transaction in facts.transactions(subject))
    if value[:1] not in ("/", "*", "?"):
        advice = "Write a status (401, 4xx), a method (POST) or a path (/mcp*)."
        raise BadValue(f"{in_quotes(value)} is no status, method or path", advice)
    target = words(value, is_quoted=term.is_quoted)
    return lambda subject: any(target(transaction.target) for transaction in facts.transactions(subject))


_CODE: Final = lazy_pattern(r"-?\d{1,20}", re.ASCII)
STATUS_WORDS: Final = (*(outcome.value.replace(" ", "-") for outcome in Outcome), "failed", facts.NEEDS_INPUT)
_status_word: Final = _texts(facts.statuses, vocabulary=STATUS_WORDS, closed=True)


def _status(term: Term) -> Test:
    """Return the test for an outcome, or for the code of an error."""
    code = term.value.replace("*", "0").replace("?", "0")
    if _CODE.fullmatch(code) and term.value.strip("*?"):
        return _text_test(facts.statuses, words(term.value, is_quoted=term.is_quoted))
    return _status_word(term)


ARROWS: Final = {"→": "client", "->": "client", "←": "server", "<-": "server"}


def _side(of: Texts) -> Callable[[Term], Test]:
    test = _texts(of, vocabulary=("client", "server"), closed=True)

    def make(term: Term) -> Test:
        return test(Term(key=term.key, operator=term.operator, value=ARROWS.get(term.value, term.value)))

    return make


def _at(is_right: Callable[[int, int], bool]) -> Callable[[Term], Test]:
    """Return what makes tests for the time of a message. `is_right` compares it with the time in the filter."""

    def make(term: Term) -> Test:
        when = moment(term.value)
        bound_ns: list[int | None] = [] if when.since_ns is None else [when.since_ns]

        def test(subject: Subject) -> bool:
            if not bound_ns:
                begin_ns = subject.begin_ns
                if begin_ns is None:
                    return False
                bound_ns.append(on_clock_ns(when, begin_ns, subject.zone))
            bound = bound_ns[0]
            return bound is not None and is_right(facts.at_ns(subject), bound)

        return test

    return make


# --- The table ---

_EVENTS: Final = (
    "spawn", "exit", "close", "stall", "partial", "gap", "damage", "note", "intercept", "frame", "end", "unknown",
)  # fmt: skip
_KINDS: Final = (
    "request", "response", "result", "error", "notification", "progress", "malformed", "noise", "stderr", "transaction", "model",
    "event", *_EVENTS,
)  # fmt: skip

_PARTS: Final = (*(part.value for part in CallPart), "notification")

_GLOB: Final = "a word"
_SIDE: Final = "`client` (or `→`), `server` (or `←`)"
_SIZE: Final = "bytes, or `kb`, `mb`, `gb`"
_MOMENT: Final = "`+2.5s`, `12:30:05`, `2026-11-21`, `2026-11-21T12:30:05`"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_ALL: Final = (
    Key(name="method", values=_GLOB, example="method:tools/*", test=_texts(facts.methods), of_notification=True,
        meaning="the method of the call, or of a notification that belongs to it"),
    Key(name="tool", values=_GLOB, example="tool:search*", test=_texts(facts.tools),
        meaning="the tool that is called, or that a model asks for"),
    Key(name="model", values=_GLOB, example="model:gpt-*", test=_texts(facts.models),
        meaning="the language model that is called, or that answers, as the API names it"),
    Key(name="prompt", values=_GLOB, example="prompt:review", test=_texts(facts.prompts), meaning="the prompt that is requested"),
    Key(name="resource", values=_GLOB, example="resource:file:///*.md", test=_texts(facts.resources), of_notification=True,
        meaning="the URI of the resource that is read, subscribed to or updated"),
    Key(name="target", values=_GLOB, example="target:*", test=_texts(facts.targets), of_notification=True,
        meaning="the target of the message, whatever its method: the timeline shows it after the method"),
    Key(name="task", values=_GLOB, example="task:*", test=_texts(facts.tasks), of_notification=True,
        meaning="the id of the task that runs the call, or that the message names"),
    Key(name="status", values=f"{_listed(STATUS_WORDS)}; or the code of an error", example="status:-32601", test=_status,
        meaning="the outcome of the call. `failed` is error, tool-error, http-error and unanswered; `needs-input` is an answer"
        " that requires input, and also ok"),
    Key(name="dur", values="a number with `ns`, `us`, `ms`, `s`, `m` or `h`", example="dur>2s", operators=ORDER,
        test=_amounts(facts.durations_ns, DURATIONS_NS, example="1s..2s", at_least=facts.least_durations_ns),
        meaning="how long the call took; `dur>` and `dur>=` also find calls that waited longer without an answer"),
    Key(name="total", values="as `dur`", example="total>1m", operators=ORDER,
        test=_amounts(facts.totals_ns, DURATIONS_NS, example="1s..2s"),
        meaning="how long the whole call took, with its rounds of input and with its task"),
    Key(name="size", values=_SIZE, example="size>=1.5mb", operators=ORDER,
        test=_amounts(facts.sizes_bytes, SIZES_BYTES, example="1kb..2kb"),
        meaning="the size that the row shows: request and response together"),
    Key(name="bytes", values=_SIZE, example="bytes>100kb", operators=ORDER, of_message=True,
        test=_amounts(facts.message_bytes, SIZES_BYTES, example="1kb..2kb"), meaning="the size of one message"),
    Key(name="dir", values=_SIDE, example="dir:server", test=_side(facts.directions),
        meaning="the direction of the row's arrow: the side that makes the request, or sends the unpaired message"),
    Key(name="sender", values=_SIDE, example="sender:server", test=_side(facts.senders), of_message=True,
        meaning="the sender of the message"),
    Key(name="kind", values=_listed(_KINDS), example="kind:notification", of_message=True,
        test=_texts(facts.kinds, vocabulary=_KINDS, closed=True),
        meaning="the kind of the message, or of a row without one. `response` is result and error, `noise` is output on stdout that"
        " is not a message, `event` is anything that happened to the channel, `transaction` is an HTTP request without a message,"
        " `model` is a call of a model API"),
    Key(name="id", values=_GLOB, example="id:7", test=_texts(facts.ids),
        meaning='the id of the request, or of a tool use. `id:7` finds `7` and `"7"`'),
    Key(name="token", values=_GLOB, example="token:7", test=_texts(facts.tokens), of_message=True,
        meaning="the progress token that a request gives out, or a notification names"),
    Key(name="progress", values="a number", example="progress>10", operators=ORDER,
        test=_amounts(facts.progress_counts, COUNTS), meaning="the number of progress notifications"),
    Key(name="row", values="a number", example="row:7..20", operators=ORDER, test=_amounts(facts.row_numbers, COUNTS),
        meaning="the number of the row"),
    Key(name="call", values="a number", example="call:7", operators=ORDER, test=_amounts(facts.call_numbers, COUNTS),
        meaning="the number of the first row of the row's call: rounds with input, polls of a task, updates of a subscription"),
    Key(name="part", values=_listed(_PARTS), example="part:poll", test=_texts(facts.parts, vocabulary=_PARTS, closed=True),
        meaning="the part that the row has in a call of several rows"),
    Key(name="server", values=_GLOB, example="server:weather", test=_texts(facts.servers),
        meaning="the name of the server, or its label"),
    Key(name="client", values=_GLOB, example="client:claude*", test=_texts(facts.clients), meaning="the name of the client"),
    Key(name="lane", values=_GLOB, example="lane:weather", test=_texts(facts.lanes),
        meaning="the name of the client or of the server"),
    Key(name="transport", values="`stdio`, `http`, `sse`", example="transport:http", of_message=True,
        test=_texts(facts.transports, vocabulary=("stdio", "http", "sse"), closed=True),
        meaning="the transport of the message. `sse` is HTTP+SSE of 2024-11-05, and also `http`"),
    Key(name="http", values="a status (`401`, `4xx`, `401..403`), a method (`POST`) or a path", example="http:4xx",
        operators=ORDER, test=_http, of_message=True,
        meaning="the HTTP transaction that carried the message, or its request. `>` and `<` compare the status"),
    Key(name="session", values=_GLOB, example="session:redacted-8eec*", test=_texts(facts.sessions), of_message=True,
        meaning="the `Mcp-Session-Id`; for HTTP+SSE the number of the transaction that carries the stream"),
    Key(name="era", values=_listed(Era), example="era:modern", of_message=True,
        test=_texts(facts.eras, vocabulary=tuple(Era), closed=True), meaning="the era of the message"),
    Key(name="revision", values=_GLOB, example="revision:2025-*", test=_texts(facts.revisions), of_message=True,
        meaning="the message's revision of MCP"),
    Key(name="rule", values="the name of a rule", example="rule:stdout-noise",
        test=_texts(facts.rules, vocabulary=RULES, closed=True),
        meaning="the rule of a finding that points at the row; a repeated finding points at its first row"),
    Key(name="flaw", values=_GLOB, example="flaw:crlf", test=_texts(facts.flaws), of_message=True,
        meaning="a flaw of the message, as JSON shows it"),
    Key(name="after", values=_MOMENT, example="after:+2.5s", test=_at(operator.ge), of_message=True,
        meaning="the time of the message: then or later"),
    Key(name="before", values=_MOMENT, example="before:12:30:05", test=_at(operator.lt), of_message=True,
        meaning="the time of the message: earlier"),
)  # fmt: skip

KEYS: Final = {key.name: key for key in _ALL}
"""Every key by its name, in the order of the page."""

_OTHER_WORDS: Final = {
    "status": "outcome state error code result",
    "dur": "duration latency took",
    "after": "time at since",
    "before": "until",
    "resource": "uri",
    "tool": "name tools",
    "sender": "from by side",
    "dir": "direction",
    "kind": "type",
    "http": "path url",
    "server": "label",
    "rule": "finding",
    "size": "length",
    "revision": "version protocol",
}

HINTS: Final = {word: key for key, others in _OTHER_WORDS.items() for word in others.split()}
"""The key that is meant by a word that other programs use for it."""


def checked(term: Term) -> Test:
    """Return the test for a term. Raises: BadValue: if its key does not take the operator or the value."""
    key = KEYS[term.key]
    if term.operator not in key.operators:
        raise BadValue(
            f"{key.name} does not take {term.operator}", f"Write {key.name}:…, as in {key.example}.", is_operator=True
        )
    return key.test(term)
