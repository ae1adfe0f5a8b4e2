"""Looks through a capture for what a shared one should not hold: with what redacts, and with what is too coarse for that.

Refuses to keep what it finds: of a secret its first letters and its length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..records import Frame, Header, Open, Record
from ..wire.json_spans import JsonWalk, looks_like_json
from .entropy import chance_spans
from .finder import FinderOptions, Marked, SecretFinder
from .known import KnownValues
from .patterns import STAND_IN
from .reassembly import FrameParts
from .share import Sharing

if TYPE_CHECKING:
    from ..wire.edits import Edit

SHOWN_LETTERS: Final = 3
LONGEST_WHOLE: Final = 8
"""Of a value that is not longer nothing is shown."""

MAX_LEAKS: Final = 1_000
"""So many are told one by one; more are counted."""

_plain_name = re.compile(r"[^\W\d][\w-]*").fullmatch
_ENVIRONMENT: Final = "environment "
_PERSON: Final = "person "


class Leak(NamedTuple):
    """Something that should not be there.

    `number` is the record's; `where` a JSON path of a payload, or a word for another part; `kind` what it looks like: `environment`,
    `token`, `entropy`, `personal`, `member` (its name says so), `number` (so does the name of a number). `name` is that of the
    variable, or what of a person it is. `shown` are its first letters, `length` are its bytes. `option` is what takes it out;
    empty where sharing does without one.
    """

    number: int
    where: str
    kind: str
    name: str
    shown: str
    length: int
    option: str


class LeakFinder:
    """Leaks in a capture: `feed` its records, then `close`. `environment` and `people` are names with values that are sought too."""

    def __init__(
        self,
        *,
        environment: Iterable[tuple[str, bytes]] = (),
        people: Iterable[tuple[str, bytes]] = (),
        keep: tuple[re.Pattern[str], ...] = (),
    ) -> None:
        known = KnownValues(_as_it_is)
        for name, value in environment:
            known.add(value, f"{_ENVIRONMENT}{name}", telling=True)
        for name, value in people:
            known.add(value, f"{_PERSON}{name}", telling=True)
        known.close()
        wanted = FinderOptions(stand_in=_as_it_is, keep=keep, more=chance_spans, spares_stand_ins=True, takes_numbers=True)
        self._watched = _LeakNotes(SecretFinder(wanted, known))
        self._sharing = Sharing(self._watched, _as_it_is, self._watched.meet)
        self._told = 0
        self.more = 0
        """How many more there were than are told."""

    def feed(self, record: Record) -> list[Leak]:
        """What is in the next record, or in the frames that it completes."""
        self._sharing.feed(record)
        return self._taken()

    def close(self) -> list[Leak]:
        """What is in those that were not completed."""
        self._sharing.close()
        return self._taken()

    @property
    def unread(self) -> int:
        """How many bodies could not be looked into."""
        return self._sharing.sealed + self._sharing.given_up

    def _taken(self) -> list[Leak]:
        found = self._watched.taken()
        told = found[: MAX_LEAKS - self._told]
        self._told += len(told)
        self.more += len(found) - len(told)
        return told


class _LeakNotes:
    """A finder that takes note of what is found, and in which record, and has nothing edited."""

    def __init__(self, finder: SecretFinder) -> None:
        self._finder = finder
        self._here: FrameParts | Record | None = None
        self._found: dict[tuple[int, bytes], Leak] = {}

    def meet(self, one: FrameParts | Record) -> None:
        """What is looked into next."""
        self._here = one

    def taken(self) -> list[Leak]:
        """What was found since the last time."""
        found, self._found = list(self._found.values()), {}
        return found

    def payload(self, data: bytes) -> list[Edit]:
        """Look into what may be a message."""
        for one in self._finder.payload(data):
            self._note(data[one.start : one.end], one.kind, path_at(data, one.start))
        return []

    def text(self, data: bytes) -> list[Edit]:
        """Look into any other text."""
        for one in self._finder.text(data):
            self._note(data[one.start : one.end], one.kind)
        return []

    def marked(self, spans: Iterable[Marked]) -> list[Edit]:
        """Take note of what is secret by its place in a head."""
        for _, _, kind, value in spans:
            self._note(value, kind)
        return []

    def secret(self, data: bytes) -> list[Edit]:
        """Take note of what is secret by its name."""
        self._note(data, "key")
        return []

    def settled(self, data: bytes, edits: Iterable[Edit]) -> list[Edit]:
        """Nothing is edited."""
        return []

    def cut_off(self, data: bytes, edits: list[Edit]) -> list[Edit]:
        """Nothing is edited."""
        return []

    def is_secret(self, name: bytes) -> bool:
        """Whether a member of this name holds a secret."""
        return self._finder.is_secret(name)

    def _note(self, value: bytes, kind: str, path: str = "") -> None:
        if not value or STAND_IN.fullmatch(value):
            return
        here = self._here
        record = here.frames[-1] if isinstance(here, FrameParts) else here
        number = 0 if record is None else record.number
        if (number, value) not in self._found:
            kind, name = _kind(kind)
            self._found[number, value] = Leak(
                number=number,
                where=path or _part_of(record),
                kind=kind,
                name=name,
                shown=_shown(value),
                length=len(value),
                option=_option(kind, name, path, value),
            )


def _as_it_is(value: bytes) -> bytes:
    return value


def _kind(kind: str) -> tuple[str, str]:
    """The kind of a leak, and the name that belongs to it, from the kind of the edit that would take it out."""
    for word, prefix in (("environment", _ENVIRONMENT), ("personal", _PERSON)):
        if kind.startswith(prefix):
            return word, kind.removeprefix(prefix)
    return (kind if kind in ("token", "entropy", "number") else "member"), ""


def _part_of(record: Record | None) -> str:
    match record:
        case Header():
            return "header"
        case Open():
            return "head"
        case Frame():
            return "text"
        case None:
            return ""
    return type(record).__name__.lower()


def _shown(value: bytes) -> str:
    return value[:SHOWN_LETTERS].decode("utf-8", "replace") if len(value) > LONGEST_WHOLE else ""


def _option(kind: str, name: str, path: str, value: bytes) -> str:
    """What on the command line takes it out, without the secret; empty for what is taken out anyway."""
    if kind == "environment":
        return f"--env {name}"
    if kind == "personal":
        return "--personal"
    if kind in ("member", "token"):
        return ""
    return f"--path {_quoted(path)}" if path else f"--value {_quoted(pattern_for(value))}"


def _quoted(text: str) -> str:
    """For a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def pattern_for(value: bytes) -> str:
    """A regular expression that matches a value by its first letters and its length alone."""
    text = value.decode("utf-8", "replace")
    known = text[:SHOWN_LETTERS] if len(text) > LONGEST_WHOLE else ""
    letters = r"\S" if not re.search(r"\s", text) else r"[^\n]"
    return f"{re.escape(known)}{letters}{{{len(text) - len(known)}}}"


def path_at(data: bytes, at: int) -> str:
    """The JSON path of the value that has the byte `at`, as `--path` takes it; empty where it is in none, or in a name."""
    if not looks_like_json(data):
        return ""
    walk = JsonWalk(data)
    for leaf in walk.leaves():
        if leaf.end >= at:
            return "" if leaf.start > at or leaf.is_name else path_of(walk.steps)
    return ""


def path_of(steps: Sequence[str | int]) -> str:
    """A JSON path from the root that rules count from: the call, whose params are its members."""
    if steps and isinstance(steps[0], int):
        steps = steps[1:]
    if steps and steps[0] == "params":
        steps = steps[1:]
    return "$" + "".join(_step(one) for one in steps) if steps else ""


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _plain_name(step):
        return f".{step}"
    return "['" + json.dumps(step)[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"
