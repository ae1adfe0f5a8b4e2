"""The keys of a filter: what each means, which operators and values it takes, and the test that it makes of a term.

One table for the parser, for the matcher and for the page that explains filters (`views.filter_page`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from ..calls.call import CallPart
from ..findings.registry import RULES
from ..mcp.revisions import Era
from ..model import Outcome
from . import facts
from .facts import Amount, Subject, Texts
from .grammar import MAX_KEY_LETTERS, Term
from .models import models
from .values import COUNTS, DURATIONS_NS, SIZES_BYTES, BadValue, Words, moment, named, numbers, wall_ns, words

Test: TypeAlias = Callable[[Subject], object]
"""Whether a subject matches; what is returned is true or false."""

COLON: Final = (":",)
ORDER: Final = (":", ">", ">=", "<", "<=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key. `test` makes a test of a term, or raises `BadValue`.

    `values` says what it takes, `what` what it is about, `example` is a term. `of_message` says that the messages of one exchange may
    differ in it, `of_notification` that those may that are neither its request nor an answer.
    """

    name: str
    what: str
    values: str
    example: str
    test: Callable[[Term], Test]
    operators: tuple[str, ...] = COLON
    of_message: bool = False
    of_notification: bool = False


# --- How terms become tests ---


def _texts(of: Texts, *, vocabulary: Iterable[str] = (), closed: bool = False) -> Callable[[Term], Test]:
    """A test whether one of the texts matches. With a `vocabulary` the value has to match a word of it, if it is `closed`."""
    known = tuple(vocabulary)

    def make(term: Term) -> Test:
        value = term.value.replace(" ", "-") if closed else term.value
        matches = words(value, is_quoted=term.is_quoted)
        if closed and not any(map(matches, known)):
            raise _unknown_word(value, known)
        return _one_of(of, matches)

    return make


def _one_of(of: Texts, matches: Words) -> Test:
    def test(subject: Subject) -> bool:
        for text in of(subject):  # noqa: SIM110 - `any` makes a generator, which costs more than the loop
            if text is not None and matches(text):
                return True
        return False

    return test


def _unknown_word(value: str, known: tuple[str, ...]) -> BadValue:
    if "," in value:
        return BadValue(f"{named(value)} is not among the words it takes", "For one of several write (… or …).")
    near = get_close_matches(value.lower(), known, 1) if len(value) <= MAX_KEY_LETTERS else []
    listed = f"It takes {', '.join(known)}." if len(known) <= MAX_LISTED else "`mcpspy help filter` says where they are listed."
    return BadValue(f"{named(value)} is not among the words it takes", f"Did you mean {near[0]}?" if near else listed)


MAX_LISTED: Final = 24
"""A vocabulary of more words is not listed in a sentence."""


def _amounts(of: Amount, units: dict[str, int], *, example: str = "") -> Callable[[Term], Test]:
    """A test whether the amount is in the range. With an `example` of one, a colon wants a range."""

    def make(term: Term) -> Test:
        _refuse_comparison(term)
        matches = numbers(term.operator, term.value, units)
        if example and term.operator == ":" and ".." not in term.value:
            advice = f"Write {term.key}>{term.value}, or a range as {term.key}:{example}."
            raise BadValue(f"{term.key} is measured, and hardly ever exactly this", advice, is_operator=True)

        def test(subject: Subject) -> bool:
            found = of(subject)
            return found is not None and matches(found)

        return test

    return make


def _refuse_comparison(term: Term) -> None:
    if term.operator == ":" and term.value[:1] in ("<", ">"):
        raise BadValue("a comparison needs no colon", f"Write {term.key}{term.value[:MAX_KEY_LETTERS]}.", is_operator=True)


_HTTP_CLASS: Final = re.compile(r"[1-5][xX]{2}")
_HTTP_STATUS: Final = re.compile(r"[1-5]\d\d", re.ASCII)
_HTTP_STATUSES: Final = re.compile(r"[1-5]\d\d(\.\.[1-5]\d\d)?", re.ASCII)
_HTTP_METHOD: Final = re.compile(r"[A-Z]+")


def _http(term: Term) -> Test:
    """A status (`401`, `4xx`, `>=400`), a method (`POST`), or a target (`/mcp*`)."""
    _refuse_comparison(term)
    value = term.value
    if term.operator != ":" or _HTTP_STATUSES.fullmatch(value):
        if term.operator != ":" and not _HTTP_STATUS.fullmatch(value):
            raise BadValue(f"{named(value)} is no status of HTTP", "Write one of 100 to 599, as in http>=400.")
        matches = numbers(term.operator, value, COUNTS)
        return lambda subject: any(map(matches, facts.http_statuses(subject)))
    if _HTTP_CLASS.fullmatch(value):
        hundreds = int(value[0])
        return lambda subject: any(status // 100 == hundreds for status in facts.http_statuses(subject))
    if _HTTP_METHOD.fullmatch(value):
        return lambda subject: any(one.method == value for one in facts.transactions(subject))
    if value[:1] not in ("/", "*", "?"):
        advice = "Write a status (401, 4xx), a method (POST) or a path (/mcp*)."
        raise BadValue(f"{named(value)} is nothing that HTTP has", advice)
    target = words(value, is_quoted=term.is_quoted)
    return lambda subject: any(target(one.target) for one in facts.transactions(subject))


_CODE: Final = re.compile(r"-?\d{1,20}", re.ASCII)
_STATUS_WORDS: Final = (*(one.value.replace(" ", "-") for one in Outcome), "failed", facts.NEEDS_INPUT)
_status_word: Final = _texts(facts.statuses, vocabulary=_STATUS_WORDS, closed=True)


def _status(term: Term) -> Test:
    """An outcome, or the code of an error."""
    code = term.value.replace("*", "0").replace("?", "0")
    if _CODE.fullmatch(code) and term.value.strip("*?"):
        return _one_of(facts.statuses, words(term.value, is_quoted=term.is_quoted))
    return _status_word(term)


_ARROWS: Final = {"→": "client", "->": "client", "←": "server", "<-": "server"}


def _side(of: Texts) -> Callable[[Term], Test]:
    test = _texts(of, vocabulary=("client", "server"), closed=True)

    def make(term: Term) -> Test:
        return test(Term(key=term.key, operator=term.operator, value=_ARROWS.get(term.value, term.value)))

    return make


def _at(is_right: Callable[[int, int], bool]) -> Callable[[Term], Test]:
    """A test of when a message came, by the time it came and the time that is named."""

    def make(term: Term) -> Test:
        when = moment(term.value)
        bound_ns: list[int | None] = [] if when.since_ns is None else [when.since_ns]

        def test(subject: Subject) -> bool:
            if not bound_ns:
                begin_ns = subject.begin_ns
                if begin_ns is None:
                    return False
                unix_ns = wall_ns(when, begin_ns, subject.zone)
                bound_ns.append(None if unix_ns is None else unix_ns - begin_ns)
            bound = bound_ns[0]
            return bound is not None and is_right(facts.at_ns(subject), bound)

        return test

    return make


# --- The table ---

_EVENTS: Final = (
    "spawn", "exit", "close", "stall", "partial", "gap", "damage", "note", "frame", "end", "unknown",
)  # fmt: skip
_KINDS: Final = (
    "request", "response", "result", "error", "notification", "progress", "malformed", "noise", "stderr", "transaction", "model",
    "event", *_EVENTS,
)  # fmt: skip

_PARTS: Final = (*(one.value for one in CallPart), "notification")

_GLOB: Final = "a word"
_SIDE: Final = "`client` (or `→`), `server` (or `←`)"
_SIZE: Final = "bytes, or `kb`, `mb`, `gb`"
_MOMENT: Final = "`+2.5s`, `12:30:05`, `2026-11-21`, `2026-11-21T12:30:05`"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_ALL: Final = (
    Key(name="method", values=_GLOB, example="method:tools/*", test=_texts(facts.methods), of_notification=True,
        what="the method of the call, or of a notification that belongs to it"),
    Key(name="tool", values=_GLOB, example="tool:search*", test=_texts(facts.tools),
        what="the tool that is called, or that a model wants called"),
    Key(name="model", values=_GLOB, example="model:gpt-*", test=_texts(models),
        what="the language model that is asked, or that answers, as the API names it"),
    Key(name="prompt", values=_GLOB, example="prompt:review", test=_texts(facts.prompts), what="the prompt that is asked for"),
    Key(name="resource", values=_GLOB, example="resource:file:///*.md", test=_texts(facts.resources), of_notification=True,
        what="the URI of the resource that is read, subscribed to or updated"),
    Key(name="target", values=_GLOB, example="target:*", test=_texts(facts.targets), of_notification=True,
        what="what the message is about, whatever its method: what stands behind the method on the timeline"),
    Key(name="task", values=_GLOB, example="task:*", test=_texts(facts.tasks), of_notification=True,
        what="the id of the task that the call became, or that is asked for or told about"),
    Key(name="status", values=f"{_listed(_STATUS_WORDS)}; or the code of an error", example="status:-32601", test=_status,
        what="what became of the call. `failed` is error, tool-error, http-error and unanswered; `needs-input` an answer that"
        " wants input, and is ok too"),
    Key(name="dur", values="a number with `ns`, `us`, `ms`, `s`, `m` or `h`", example="dur>2s", operators=ORDER,
        test=_amounts(facts.durations_ns, DURATIONS_NS, example="1s..2s"), what="how long the call took"),
    Key(name="total", values="as `dur`", example="total>1m", operators=ORDER,
        test=_amounts(facts.totals_ns, DURATIONS_NS, example="1s..2s"),
        what="how long it took in all, with its rounds of input and with its task"),
    Key(name="size", values=_SIZE, example="size>=1.5mb", operators=ORDER,
        test=_amounts(facts.sizes_bytes, SIZES_BYTES, example="1kb..2kb"),
        what="the size that the row shows: request and response together"),
    Key(name="bytes", values=_SIZE, example="bytes>100kb", operators=ORDER, of_message=True,
        test=_amounts(facts.message_bytes, SIZES_BYTES, example="1kb..2kb"), what="the size of one message"),
    Key(name="dir", values=_SIDE, example="dir:server", test=_side(facts.directions),
        what="which way the row's arrow points: who asks, or who sends what stands alone"),
    Key(name="sender", values=_SIDE, example="sender:server", test=_side(facts.senders), of_message=True,
        what="who sent the message"),
    Key(name="kind", values=_listed(_KINDS), example="kind:notification", of_message=True,
        test=_texts(facts.kinds, vocabulary=_KINDS, closed=True),
        what="what the message is, or the row that has none. `response` is result and error, `noise` what a server wrote to stdout"
        " that is no message, `event` all that happened to the channel, `transaction` an HTTP request without a message, `model` a"
        " call of a model's API"),
    Key(name="id", values=_GLOB, example="id:7", test=_texts(facts.ids),
        what='the request id, or that of a tool use. `id:7` finds `7` and `"7"`'),
    Key(name="token", values=_GLOB, example="token:7", test=_texts(facts.tokens), of_message=True,
        what="the progress token, given out or named"),
    Key(name="progress", values="a number", example="progress>10", operators=ORDER,
        test=_amounts(facts.progress_counts, COUNTS), what="how many progress notifications came"),
    Key(name="row", values="a number", example="row:7..20", operators=ORDER, test=_amounts(facts.row_numbers, COUNTS),
        what="the number of the row"),
    Key(name="call", values="a number", example="call:7", operators=ORDER, test=_amounts(facts.call_numbers, COUNTS),
        what="the number of the first row of the call that the row is a part of: rounds with input, polls of a task, news of a"
        " subscription"),
    Key(name="part", values=_listed(_PARTS), example="part:poll", test=_texts(facts.parts, vocabulary=_PARTS, closed=True),
        what="what the row is to a call of several rows"),
    Key(name="server", values=_GLOB, example="server:weather", test=_texts(facts.servers),
        what="the name of the server, or its label"),
    Key(name="client", values=_GLOB, example="client:claude*", test=_texts(facts.clients), what="the name of the client"),
    Key(name="lane", values=_GLOB, example="lane:weather", test=_texts(facts.lanes), what="the name of the client or of the server"),
    Key(name="transport", values="`stdio`, `http`, `sse`", example="transport:http", of_message=True,
        test=_texts(facts.transports, vocabulary=("stdio", "http", "sse"), closed=True),
        what="how the message travelled. `sse` is HTTP+SSE of 2024-11-05, which is `http` too"),
    Key(name="http", values="a status (`401`, `4xx`, `401..403`), a method (`POST`) or a path", example="http:4xx",
        operators=ORDER, test=_http, of_message=True,
        what="the HTTP transaction that carried the message, or its request. `>` and `<` compare the status"),
    Key(name="session", values=_GLOB, example="session:redacted-8eec*", test=_texts(facts.sessions), of_message=True,
        what="the `Mcp-Session-Id`; of HTTP+SSE the number of the transaction that carries the stream"),
    Key(name="era", values=_listed(Era), example="era:modern", of_message=True,
        test=_texts(facts.eras, vocabulary=tuple(Era), closed=True), what="the era of the message"),
    Key(name="revision", values=_GLOB, example="revision:2025-*", test=_texts(facts.revisions), of_message=True,
        what="the revision of MCP that the message is of"),
    Key(name="rule", values="the name of a rule", example="rule:stdout-noise",
        test=_texts(facts.rules, vocabulary=RULES, closed=True),
        what="the rule of a finding that points at the row; of what was met several times, the first"),
    Key(name="flaw", values=_GLOB, example="flaw:crlf", test=_texts(facts.flaws), of_message=True,
        what="what is odd about the message's bytes"),
    Key(name="after", values=_MOMENT, example="after:+2.5s", test=_at(operator.ge), of_message=True,
        what="when the message came: then or later"),
    Key(name="before", values=_MOMENT, example="before:12:30:05", test=_at(operator.lt), of_message=True,
        what="when the message came: earlier"),
)  # fmt: skip

KEYS: Final = {key.name: key for key in _ALL}
"""Every key by its name, in the order in which they are explained."""

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
"""Which key is meant by words that others use for it."""


def checked(term: Term) -> Test:
    """The test that a term stands for. Raises: BadValue: if its key does not take the operator or the value."""
    key = KEYS[term.key]
    if term.operator not in key.operators:
        raise BadValue(
            f"{key.name} does not take {term.operator}", f"Write {key.name}:…, as in {key.example}.", is_operator=True
        )
    return key.test(term)
