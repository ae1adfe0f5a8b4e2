"""Live values of one replay: taken from the live server's messages, and put into the recorded client's messages.

A machine: `feed` takes a message of the live server, and `fill` returns the edits of a message that is to be sent. A value
that cannot be located for certain is not replaced, and is in `missing`.

The place of a value in a live message is found from its place in the recorded message. In lists an item is found by its other
values, since live lists may be longer, shorter or in another order:

    recorded    [{"name": "a", "id": 11}, {"name": "b", "id": 12}]         the value 12 is at [1].id
    live        [{"name": "b", "id": 98}, {"name": "c", "id": 99}]         so the value is at [0].id: 98

In texts a value is found by the rest of its line, in which words with digits may be any words:

    recorded    Opened 8f3a9c01 at 10:22 for you                           the value is the second word
    pattern     Opened (WORD) at WORD:WORD for you
    live        Opened 77de0123 at 11:05 for you                           so the value is 77de0123

If no live line fits, the beginning of the line (`Opened `) has to be enough. Whenever two places fit, no value is taken: a
wrong id would be worse than none, because it belongs to something else.

Two recorded sessions are compared in the same way: the later one is given the values of the earlier one.

    before   5  open  → {"ticket": "b5d729fbfa7d"}       6  write {"ticket": "b5d729fbfa7d"}
    after    5  open  → {"ticket": "4795321d6374"}       6  write {"ticket": "4795321d6374"}

The calls are paired as they are, which needs no equal params. The places from which `before` took its values name those of
`after`. A value that the client of `after` did not take from there, as a wrong id, stays, and is a difference.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ....json_path import Step
from ....lazy_pattern import lazy_pattern
from ....records import SERVER
from ....transcript.model import Exchange, Kind, Message, Transcript, UnpairedMessage
from ....wire.edits import ValueEdit, with_values
from ....wire.json_spans import members, span_at
from ...compare.compare import call_pairs, server_pairs
from ...compare.ignore import Ignore
from ...json_values import Scalar, embedded_json, is_redacted, read, traits, value_at
from ...mock.content import VOLATILE
from .model import VALUE, CorrelatedValue, Correlations, MessageRef, ValueOrigin, text_of
from .reader import read_correlations

MIN_UNIQUE: Final = 6
"""Values of so many letters are restored wherever they occur; shorter ones only where they were correlated."""

_words = lazy_pattern(rb"[0-9A-Za-z]+")
_after_escapes = lazy_pattern(rb"(?<=\\)(?:u[0-9A-Fa-f]{4}|[a-z])([0-9A-Za-z]+)")
"""The words of JSON, and those whose first letters belong to an escape."""

MAX_SHOWN: Final = 40

MAX_READ: Final = 4
"""The most messages whose JSON is kept: one list may issue a thousand ids."""

MAX_ITEMS: Final = 200
"""In longer lists an item keeps its index, if the list has kept its length."""

MAX_LINE_LETTERS: Final = 4096
"""Longer lines are not searched."""

_WORD: Final = "[0-9A-Za-z_-]+"

_split_words = lazy_pattern(rf"({_WORD})")

_is_word = lazy_pattern(_WORD)
_has_digit = lazy_pattern("[0-9]")
_has_letter = lazy_pattern(r"[^\W\d_]")
_value = lazy_pattern("[=~](.*)", re.DOTALL)


class MissingValue(NamedTuple):
    """A value in the recorded `row` for which there is no live one: it stays as it was recorded. `str` says why."""

    row: int
    what: str
    from_row: int
    why: str
    redacted: bool = False
    """True if the recorded value is a pseudonym, which no server knows."""

    def __str__(self) -> str:
        return f"{self.what} of row {self.row} came from row {self.from_row}, {self.why}"


class _Value(NamedTuple):
    """A live value: its text, its bytes in JSON, and the steps to it in the live message."""

    text: str
    spelled: bytes
    steps: tuple[Step, ...]


class CorrelationRun:
    """The live values for `correlations`. `missing` grows with each `fill`."""

    __slots__ = (
        "_bodies", "_by_word", "_correlations", "_counts", "_found", "_live", "_recorded_texts", "_short_values", "missing",
    )  # fmt: skip

    def __init__(self, correlations: Correlations) -> None:
        self._correlations = correlations
        self._live: dict[MessageRef, Message] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._bodies: dict[MessageRef, tuple[Any, Any]] = {}
        """The recorded and the live JSON of the messages that were read last."""
        self._found: dict[tuple[ValueOrigin, str], _Value | str] = {}
        """The live values at the origins so far, or the reason why there is none."""
        self._recorded_texts: dict[bytes, bytes] = {}
        """The recorded values by the live ones, as spelled within JSON."""
        self._by_word: dict[bytes, list[bytes]] = {}
        """The live ones by their first word, which finds them among thousands."""
        self._short_values: dict[int, list[tuple[tuple[Step, ...], str, Scalar]]] = {}
        """By recorded row, the places of short values: the steps, the live text, and the recorded value."""
        self.missing: list[MissingValue] = []

    def feed(self, row: int, live: Message) -> None:
        """Take a message of the live server; `row` is the recorded row that it belongs to, or 0."""
        if live.kind in (Kind.RESULT, Kind.ERROR):
            reference = MessageRef(row)
        else:
            method = live.method or ""
            nth = self._counts.get((row, method), 0)
            self._counts[row, method] = nth + 1
            reference = MessageRef(row, method, nth)
        if reference in self._correlations.recorded:
            self._live.setdefault(reference, live)

    def fill(self, recorded: Message) -> list[ValueEdit]:
        """Return the edits of a recorded message of the client that is to be sent, in order."""
        by_steps: dict[tuple[Step, ...], list[tuple[CorrelatedValue, _Value]]] = {}
        names: dict[str, str] = {}
        for correlated in self._correlations.values(recorded):
            value = self._live_value(correlated)
            if value is None:
                continue
            if correlated.is_name:
                names[str(correlated.value)] = value.text
            else:
                by_steps.setdefault(correlated.steps, []).append((correlated, value))
        body = read(recorded.raw) if by_steps else None
        edits = [ValueEdit(steps, _spelled(value_at(body, steps), pairs)) for steps, pairs in by_steps.items()]
        return [*edits, *_rename(recorded.raw, edits, names)]

    def as_recorded(self, row: int, payload: bytes) -> bytes:
        """Put the recorded values in place of the live ones, in a live payload that belongs to a recorded row."""
        body: Any = None
        for steps, live, recorded in self._short_values.get(row, ()):
            body = read(payload) if body is None else body
            now = value_at(body, steps)
            if isinstance(now, str) and now != live:
                text = re.sub(rf"(?<!\w){re.escape(live)}(?!\w)", lambda _, to=recorded: str(to), now)  # type: ignore[misc]
                payload = with_values(payload, [ValueEdit(steps, json.dumps(text).encode())])
            elif isinstance(now, str | int | float) and text_of(now) == live:
                payload = with_values(payload, [ValueEdit(steps, _json(recorded))])
        if not self._recorded_texts:
            return payload
        words = {b"", *_words.findall(payload), *_after_escapes.findall(payload)} & self._by_word.keys()
        present = {live: self._recorded_texts[live] for word in words for live in self._by_word[word] if live in payload}
        if not present:
            return payload
        longest_first = sorted(present, key=len, reverse=True)
        return re.sub(b"|".join(map(re.escape, longest_first)), lambda match: present[match[0]], payload)

    # Values

    def _live_value(self, correlated: CorrelatedValue) -> _Value | None:
        """Return the live value, if there is one and it differs."""
        recorded = text_of(correlated.value)
        why = ""
        for origin in correlated.origins:
            value = self._value_at(origin, recorded, is_guessed=correlated.is_guessed)
            if isinstance(value, _Value):
                if value.text == recorded:
                    return None
                self._remember(correlated, origin, value)
                return value
            why = why or value
        shown = "" if correlated.what != VALUE else f" {recorded if len(recorded) <= MAX_SHOWN else recorded[:MAX_SHOWN] + '…'}"
        what = f"the {correlated.what}{shown}"
        self.missing.append(MissingValue(correlated.row, what, correlated.from_row, why, redacted=is_redacted(recorded)))
        return None

    def _value_at(self, origin: ValueOrigin, recorded: str, *, is_guessed: bool) -> _Value | str:
        """Return the live value at an origin, or the reason why there is none."""
        key = origin, recorded
        if key not in self._found:
            live = self._live.get(origin.message)
            if live is None:
                return "which was not answered" if not origin.message.method else "where it was not said this time"
            self._found[key] = self._locate(origin, recorded, live, is_guessed=is_guessed)
        return self._found[key]

    def _locate(self, origin: ValueOrigin, recorded: str, live: Message, *, is_guessed: bool) -> _Value | str:
        if is_guessed and _holds(live.raw, recorded):
            return _Value(recorded, b"", ())
        before = self._correlations.recorded[origin.message]
        if live.kind is Kind.ERROR and before.kind is not Kind.ERROR:
            return "which failed"
        bodies = self._bodies.pop(origin.message, None) or (read(before.raw), read(live.raw))
        self._bodies[origin.message] = bodies
        if len(self._bodies) > MAX_READ:
            del self._bodies[next(iter(self._bodies))]
        return _value_in(origin, *bodies, live.raw) or "which brought nothing in its place"

    def _remember(self, correlated: CorrelatedValue, origin: ValueOrigin, value: _Value) -> None:
        recorded = text_of(correlated.value)
        if min(len(value.text), len(recorded)) >= MIN_UNIQUE:
            live = _json(value.text)[1:-1]
            if live not in self._recorded_texts:
                self._recorded_texts[live] = _json(recorded)[1:-1]
                self._by_word.setdefault(next(iter(_words.findall(live)), b""), []).append(live)
        elif not correlated.is_name:
            in_client = (correlated.steps, value.text, correlated.value)
            self._short_values.setdefault(correlated.row, []).append(in_client)
            self._short_values.setdefault(origin.row, []).append((value.steps, value.text, correlated.value))


def _spelled(leaf: Any, pairs: list[tuple[CorrelatedValue, _Value]]) -> bytes:
    """Return the JSON for one place of the client's message: the live value, or its text with live values in it."""
    correlated, value = pairs[0]
    if correlated.span is None:
        return _json(value.text) if isinstance(leaf, str) else value.spelled
    text = str(leaf)
    for part, live in reversed(pairs):
        if part.span is not None:
            text = text[: part.span[0]] + live.text + text[part.span[1] :]
    return _json(text)


def _value_in(origin: ValueOrigin, recorded: Any, live: Any, raw: bytes) -> _Value | None:
    """Return the value of the live message at the place of the recorded one."""
    if origin.is_name:
        return _name_in(origin, recorded, live)
    steps = live_steps(recorded, live, origin.steps)
    if steps is None:
        return None
    now = value_at(live, steps)
    if origin.span is not None:
        before = value_at(recorded, origin.steps)
        text = live_text(before, now, *origin.span) if isinstance(before, str) and isinstance(now, str) else None
        return None if text is None else _Value(text, _json(text), steps)
    if isinstance(now, bool) or not isinstance(now, str | int | float) or now == "":
        return None
    span = None if isinstance(now, str) else span_at(raw, steps)  # every digit of a number counts
    return _Value(text_of(now), _json(now) if span is None else raw[span[0] : span[1]], steps)


def _name_in(origin: ValueOrigin, recorded: Any, live: Any) -> _Value | None:
    """Return the member's name in the live message: the recorded name, or the one at its position."""
    *parent, name = origin.steps
    before, now = value_at(recorded, tuple(parent)), value_at(live, tuple(parent))
    if not isinstance(before, dict) or not isinstance(now, dict):
        return None
    if name in now:
        return _Value(str(name), b"", origin.steps)
    names = list(now)
    if len(before) != len(names):
        return None
    text = names[list(before).index(name)]
    return _Value(text, _json(text), (*parent, text))


def _rename(raw: bytes, edits: Iterable[ValueEdit], names: dict[str, str]) -> Iterable[ValueEdit]:
    """Yield the edit that gives the members of `inputResponses` their generated ids. It includes the other edits inside."""
    if not names:
        return
    steps = ("params", "inputResponses")
    payload = with_values(raw, edits)
    span = span_at(payload, steps)
    if span is not None:
        inner = members(payload[span[0] : span[1]]).items()
        renamed = b",".join(_json(names.get(name, name)) + b":" + bytes(value) for name, value in inner)
        yield ValueEdit(steps, b"{" + renamed + b"}")


def _holds(raw: bytes, text: str) -> bool:
    """Return whether a message holds this text."""
    return _json(text)[1:-1] in raw or json.dumps(text)[1:-1].encode() in raw


def _json(value: Scalar) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value).encode()


# In JSON


def live_steps(recorded: Any, live: Any, steps: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """Return the steps in `live` to the value that is at `steps` in `recorded`; None if there is none, or more than one fits."""
    path: list[Step] = []
    for at, step in enumerate(steps):
        recorded, live = _opened(recorded), _opened(live)
        live_step: Step | None = None
        if isinstance(step, str):
            is_member = isinstance(recorded, dict) and isinstance(live, dict) and step in recorded and step in live
            live_step = step if is_member else None
        elif isinstance(recorded, list) and isinstance(live, list) and step < len(recorded):
            live_step = _item(recorded, live, step, steps[at + 1 :])
        if live_step is None:
            return None
        recorded, live = recorded[step], live[live_step]
        path.append(live_step)
    return tuple(path)


def _opened(value: Any) -> Any:
    """Return the JSON that a text holds, else the value itself."""
    return embedded_json(value) if isinstance(value, str) else value


def _item(recorded: list[Any], live: list[Any], wanted: int, rest: tuple[Step, ...]) -> int | None:
    """Find the index in the live list of the item that has the index `wanted` in the recorded list."""
    if len(recorded) == len(live) == 1:
        return 0
    if max(len(recorded), len(live)) > MAX_ITEMS:
        return wanted if len(recorded) == len(live) else None
    old = [traits(_without(item, rest)) for item in recorded]
    new = [traits(_without(item, rest)) for item in live]
    exact = _same_traits(old, new, wanted)
    if exact is not None:
        return exact
    old, new = list(map(_without_digits, old)), list(map(_without_digits, new))
    similar = _same_traits(old, new, wanted)
    if similar is None and len(old) == len(new) and old[wanted] not in new and len({*old}) == len({*new}) == 1:
        return wanted  # only their places distinguish the items
    return similar


def _same_traits(old: list[frozenset[str]], new: list[frozenset[str]], wanted: int) -> int | None:
    """Find the item with the same traits, if there are as many of them as before."""
    recorded = [at for at, item_traits in enumerate(old) if item_traits == old[wanted]]
    live = [at for at, item_traits in enumerate(new) if item_traits == old[wanted]]
    return live[recorded.index(wanted)] if len(recorded) == len(live) else None


def _without_digits(item_traits: frozenset[str]) -> frozenset[str]:
    """Leave out the values with digits: times, sizes and ids differ at each run."""
    return frozenset(trait for trait in item_traits if not ((value := _value.search(trait)) and _has_digit.search(value[1])))


def _without(item: Any, steps: tuple[Step, ...]) -> Any:
    if not steps:
        return None
    first, *rest = steps
    if isinstance(first, str) and isinstance(item, dict) and first in item:
        return {**item, first: _without(item[first], tuple(rest))}
    if isinstance(first, int) and isinstance(item, list) and first < len(item):
        return [*item[:first], _without(item[first], tuple(rest)), *item[first + 1 :]]
    return item


# In texts


def live_text(recorded: str, live: str, start: int, end: int) -> str | None:
    """Return the value in `live` that is `recorded[start:end]` in `recorded`; None if there is none, or more than one fits."""
    value = recorded[start:end]
    line_start = recorded.rfind("\n", 0, start) + 1
    line_end = recorded.find("\n", end)
    before, after = recorded[line_start:start], recorded[end : len(recorded) if line_end < 0 else line_end].rstrip("\r")
    if "\n" in value or len(before) + len(value) + len(after) > MAX_LINE_LETTERS:
        return None
    group = f"({_WORD})" if _is_word.fullmatch(value) else r"(\S+?)"
    whole_line = re.compile(_before(before) + group + _after(after)).fullmatch
    index = sum(1 for _ in _values(whole_line, recorded[:line_start].split("\n")))
    count = sum(1 for _ in _values(whole_line, recorded.split("\n")))
    fitting = list(_values(whole_line, live.split("\n")))
    if fitting:
        return fitting[index] if len(fitting) == count else None
    return _after_beginning(before, _WORD if _is_word.fullmatch(value) else r"\S+", recorded, live)


def _after_beginning(before: str, value: str, recorded: str, live: str) -> str | None:
    """Return the value after the same beginning of a line, if exactly one line begins so in each text."""
    if not _has_letter.search(before):
        return None
    begins = re.compile(f"{_before(before)}({value})").match
    if len(list(_values(begins, recorded.split("\n")))) != 1:
        return None
    fitting = list(_values(begins, live.split("\n")))
    return fitting[0] if len(fitting) == 1 else None


def _values(fits: Callable[[str], re.Match[str] | None], lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= MAX_LINE_LETTERS and (match := fits(line.rstrip("\r"))):
            yield match[1]


def _before(text: str) -> str:
    """Make a pattern for the text before a value. A word with digits is any word, unless it touches the value."""
    pieces = _split_words.split(text)
    return _pattern(pieces, kept=len(pieces) - 2 if pieces[-1] == "" else -1)


def _after(text: str) -> str:
    """Make a pattern for the text after a value."""
    pieces = _split_words.split(text)
    return _pattern(pieces, kept=1 if pieces[0] == "" else -1)


def _pattern(pieces: list[str], kept: int) -> str:
    """Make a pattern of pieces: words are at odd indices, the text between them at even ones."""
    return "".join(
        _WORD if at % 2 and at != kept and _has_digit.search(piece) else re.escape(piece) for at, piece in enumerate(pieces)
    )


def restore_correlated(before: Transcript, after: Transcript, ignore: Sequence[str] = ()) -> None:
    """Put the correlated values of `before` into the messages of `after`. Raises: PathError: for a path of `ignore`."""
    rules = Ignore.of((*VOLATILE, *ignore))
    correlations = read_correlations(before)
    old_rows, new_rows = _by_capture(before), _by_capture(after)
    for old, new in server_pairs(before.captures, after.captures):
        if old is None or new is None:
            continue
        run = CorrelationRun(correlations)
        old_calls, new_calls = (
            [row for row in rows if isinstance(row, Exchange)] for rows in (old_rows[old.index], new_rows[new.index])
        )
        partners = {
            pair[1].row: pair[0].row
            for pair in call_pairs(old_calls, new_calls, rules)
            if pair[0] is not None and pair[1] is not None
        }
        theirs = [
            (partners.get(row.row) if isinstance(row, Exchange) else 0, message)
            for row in new_rows[new.index]
            for message in _messages(row)
        ]
        for row, message in theirs:
            if message.sender == SERVER and row is not None:
                run.feed(row, message)
        for message in (message for row in old_calls for message in _messages(row)):
            run.fill(message)
        for row, message in theirs:
            message.raw = run.as_recorded(row or 0, message.raw)


def _by_capture(transcript: Transcript) -> defaultdict[int, list[Exchange | UnpairedMessage]]:
    rows: defaultdict[int, list[Exchange | UnpairedMessage]] = defaultdict(list)
    for row in transcript.rows:
        if isinstance(row, Exchange | UnpairedMessage):
            rows[row.capture].append(row)
    return rows


def _messages(row: Exchange | UnpairedMessage) -> list[Message]:
    if isinstance(row, Exchange):
        return row.messages
    return [] if row.message.kind is Kind.MALFORMED else [row.message]
