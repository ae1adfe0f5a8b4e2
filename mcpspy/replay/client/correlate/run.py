"""Live values of one replay: taken from the live server's messages, and put into the recorded client's messages.

A machine: `feed` takes a message of the live server, and `fill` returns the edits of a message that is to be sent. A value that
cannot be located for certain is not replaced, and is in `missing`.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ....json_path import Step
from ....lazy_pattern import lazy_pattern
from ....transcript.model import Kind, Message
from ....wire.edits import ValueEdit, with_values
from ....wire.json_spans import members, span_at
from ...json.canonical import read
from ...json.locate import live_steps, live_text
from ...json.redacted import is_redacted
from ...json.walk import Scalar, value_at
from .model import VALUE, CorrelatedValue, Correlations, MessageRef, ValueOrigin, text_of

MIN_UNIQUE: Final = 6
"""Values of so many letters are restored wherever they occur; shorter ones only where they were correlated."""

_words = lazy_pattern(rb"[0-9A-Za-z]+")
_after_escapes = lazy_pattern(rb"(?<=\\)(?:u[0-9A-Fa-f]{4}|[a-z])([0-9A-Za-z]+)")
"""The words of JSON, and those whose first letters belong to an escape."""

MAX_SHOWN: Final = 40

MAX_READ: Final = 4
"""The most messages whose JSON is kept: one list may issue a thousand ids."""


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
