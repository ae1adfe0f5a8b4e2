"""What is carried while a recording is driven against one fresh server: from its live messages into what is said next.

A machine: `feed` takes what the live server said, `fill` gives what has to be exchanged in what is about to be said. Where the live
server spells a value as the recorded one did, nothing has to be. Refuses to put in what it is not sure of: that is missing then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....transcript.model import Kind
from ....wire.edits import ValueEdit, with_values
from ....wire.json_spans import members, span_at
from ...json.canonical import canonical, read
from ...json.locate import live_steps, live_text
from ...json.walk import Scalar, value_at
from .model import MessageRef

if TYPE_CHECKING:
    from ....transcript.model import Message
    from ...compare.ignore import Step
    from .model import CorrelatedValue, Correlations, ValueOrigin

MIN_SURE: Final = 6
"""A value of so many letters is put back wherever it stands; a shorter one at the places alone where it was carried."""

MAX_SHOWN: Final = 40

MAX_READ: Final = 4

_is_redacted = re.compile(r"redacted-[0-9a-f]{12}").search


class MissingValue(NamedTuple):
    """A value that could not be carried into what was said in the recorded `row`: it stays as it was recorded. `str` says why."""

    row: int
    what: str
    from_row: int
    why: str
    redacted: bool = False
    """Whether what stays is a pseudonym, which no server knows."""

    def __str__(self) -> str:
        return f"{self.what} of row {self.row} came from row {self.from_row}, {self.why}"


class _Value(NamedTuple):
    """A live value: its text, its bytes in JSON, and where it stands in the live message."""

    text: str
    spelled: bytes
    steps: tuple[Step, ...]


class CorrelationRun:
    """See above. `missing` grows with each `fill`."""

    __slots__ = ("_bodies", "_carrying", "_counts", "_found", "_live", "_put_back", "_spellings", "missing")

    def __init__(self, correlations: Correlations) -> None:
        self._carrying = correlations
        self._live: dict[MessageRef, Message] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._bodies: dict[MessageRef, tuple[Any, Any]] = {}
        """The messages that were looked into last, recorded and live: one list may give out a thousand ids."""
        self._found: dict[tuple[ValueOrigin, str], _Value | str] = {}
        """What was found at the places asked for so far; a text says why nothing was."""
        self._spellings: dict[bytes, bytes] = {}
        """Recorded values by the live ones that took their place, as they are within JSON."""
        self._put_back: dict[int, list[tuple[tuple[Step, ...], str, Scalar]]] = {}
        """By recorded row, where short values were carried from and to: the live text there, and the recorded value."""
        self.missing: list[MissingValue] = []

    def feed(self, row: int, live: Message) -> None:
        """What the live server said: `row` is the recorded row that it belongs to, 0 for none."""
        if live.kind in (Kind.RESULT, Kind.ERROR):
            said = MessageRef(row)
        else:
            method = live.method or ""
            nth = self._counts.get((row, method), 0)
            self._counts[row, method] = nth + 1
            said = MessageRef(row, method, nth)
        if said in self._carrying.recorded:
            self._live.setdefault(said, live)

    def fill(self, recorded: Message) -> list[ValueEdit]:
        """What has to be exchanged in a recorded message of the client's that is about to be said; in the order given."""
        by_steps: dict[tuple[Step, ...], list[tuple[CorrelatedValue, _Value]]] = {}
        names: dict[str, str] = {}
        for one in self._carrying.values(recorded):
            value = self._value(one)
            if value is None:
                continue
            if one.is_name:
                names[str(one.value)] = value.text
            else:
                by_steps.setdefault(one.steps, []).append((one, value))
        body = read(recorded.raw) if by_steps else None
        edits = [ValueEdit(steps, self._spelled(value_at(body, steps), some)) for steps, some in by_steps.items()]
        return [*edits, *_renamed(recorded.raw, edits, names)]

    def as_recorded(self, row: int, payload: bytes) -> bytes:
        """A live payload, of what belongs to a recorded row, with the recorded values in the place of those that were carried."""
        body: Any = None
        for steps, live, recorded in self._put_back.get(row, ()):
            body = read(payload) if body is None else body
            now = value_at(body, steps)
            if isinstance(now, str) and now != live:
                spelled = json.dumps(re.sub(rf"(?<!\w){re.escape(live)}(?!\w)", lambda _, to=recorded: str(to), now))  # type: ignore[misc]
                payload = with_values(payload, [ValueEdit(steps, spelled.encode())])
            elif isinstance(now, str | int | float) and _text(now) == live:
                payload = with_values(payload, [ValueEdit(steps, _json(recorded))])
        there = {live: to for live, to in self._spellings.items() if live in payload}
        if not there:
            return payload
        longest_first = sorted(there, key=len, reverse=True)
        return re.sub(b"|".join(map(re.escape, longest_first)), lambda found: there[found[0]], payload)

    # Values

    def _value(self, carried: CorrelatedValue) -> _Value | None:
        """The live value, if there is one and it is another."""
        recorded = _text(carried.value)
        why = ""
        for origin in carried.origins:
            found = self._at(origin, recorded, guessed=carried.guessed)
            if isinstance(found, _Value):
                if found.text == recorded:
                    return None
                self._remember(carried, origin, found)
                return found
            why = why or found
        shown = "" if carried.what != "value" else f" {recorded if len(recorded) <= MAX_SHOWN else recorded[:MAX_SHOWN] + '…'}"
        what = f"the {carried.what}{shown}"
        self.missing.append(MissingValue(carried.row, what, carried.from_row, why, redacted=_is_redacted(recorded) is not None))
        return None

    def _at(self, origin: ValueOrigin, recorded: str, *, guessed: bool) -> _Value | str:
        """The live value at a place, or why there is none."""
        key = origin, recorded
        if key not in self._found:
            live = self._live.get(origin.said)
            if live is None:
                return "which was not answered" if not origin.said.method else "where it was not said this time"
            self._found[key] = self._looked_up(origin, recorded, live, guessed=guessed)
        return self._found[key]

    def _looked_up(self, origin: ValueOrigin, recorded: str, live: Message, *, guessed: bool) -> _Value | str:
        if guessed and _holds(live.raw, recorded):
            return _Value(recorded, b"", ())
        before = self._carrying.recorded[origin.said]
        if live.kind is Kind.ERROR and before.kind is not Kind.ERROR:
            return "which failed"
        bodies = self._bodies.pop(origin.said, None) or (read(before.raw), read(live.raw))
        self._bodies[origin.said] = bodies
        if len(self._bodies) > MAX_READ:
            del self._bodies[next(iter(self._bodies))]
        return _value_at(origin, *bodies, live.raw) or "which brought nothing in its place"

    def _spelled(self, leaf: Any, some: list[tuple[CorrelatedValue, _Value]]) -> bytes:
        """The JSON that goes to one place of the client's message: the live value, or the text there with the live values in it."""
        carried, value = some[0]
        if carried.span is None:
            return _json(value.text) if isinstance(leaf, str) else value.spelled
        text = str(leaf)
        for one, now in reversed(some):
            if one.span is not None:
                text = text[: one.span[0]] + now.text + text[one.span[1] :]
        return _json(text)

    def _remember(self, carried: CorrelatedValue, origin: ValueOrigin, value: _Value) -> None:
        recorded = _text(carried.value)
        if min(len(value.text), len(recorded)) >= MIN_SURE:
            self._spellings.setdefault(_json(value.text)[1:-1], _json(recorded)[1:-1])
        elif not carried.is_name:
            self._put_back.setdefault(carried.row, []).append((carried.steps, value.text, carried.value))
            self._put_back.setdefault(origin.row, []).append((value.steps, value.text, carried.value))


def _value_at(origin: ValueOrigin, recorded: Any, live: Any, raw: bytes) -> _Value | None:
    """The value that stands in the live message where the recorded one had it."""
    if origin.is_name:
        return _name_at(origin, recorded, live)
    steps = live_steps(recorded, live, origin.steps)
    if steps is None:
        return None
    now = value_at(live, steps)
    if origin.span is not None:
        before = value_at(recorded, origin.steps)
        found = live_text(before, now, *origin.span) if isinstance(before, str) and isinstance(now, str) else None
        return None if found is None else _Value(found, _json(found), steps)
    if isinstance(now, bool) or not isinstance(now, str | int | float) or now == "":
        return None
    stands = None if isinstance(now, str) else span_at(raw, steps)  # of numbers every digit counts
    return _Value(_text(now), _json(now) if stands is None else raw[stands[0] : stands[1]], steps)


def _name_at(origin: ValueOrigin, recorded: Any, live: Any) -> _Value | None:
    """The name under which the live message has what the recorded one had under another: the same one, or the one at its place."""
    *around, name = origin.steps
    before, now = value_at(recorded, tuple(around)), value_at(live, tuple(around))
    if not isinstance(before, dict) or not isinstance(now, dict):
        return None
    if name in now:
        return _Value(str(name), b"", origin.steps)
    names = list(now)
    if len(before) != len(names):
        return None
    text = names[list(before).index(name)]
    return _Value(text, _json(text), (*around, text))


def _renamed(raw: bytes, edits: Iterable[ValueEdit], names: dict[str, str]) -> Iterable[ValueEdit]:
    """The edit that gives the members of `inputResponses` their live names. It holds the other edits within."""
    if not names:
        return
    steps = ("params", "inputResponses")
    payload = with_values(raw, edits)
    stands = span_at(payload, steps)
    if stands is not None:
        some = members(payload[stands[0] : stands[1]]).items()
        yield ValueEdit(
            steps, b"{" + b",".join(_json(names.get(name, name)) + b":" + bytes(value) for name, value in some) + b"}"
        )


def _holds(raw: bytes, text: str) -> bool:
    """Whether a message has this text somewhere."""
    return _json(text)[1:-1] in raw or json.dumps(text)[1:-1].encode() in raw


def _json(value: Scalar) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value).encode()


def _text(value: Scalar) -> str:
    return value if isinstance(value, str) else canonical(value)
