"""Leaks in a capture that should hold nothing secret: records in, leaks out. Of a secret only its first letters and length are kept.

The search is that of sharing, with rules that are too coarse to redact by: random words, long numbers, values of the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..records import Frame, Header, Open, Record
from ..wire.json_spans import JsonWalk, looks_like_json
from .entropy import random_spans
from .finder import FinderOptions, Marked, SecretFinder
from .known import KnownValues
from .patterns import PSEUDONYM
from .reassembly import FrameParts
from .share import Sharing

if TYPE_CHECKING:
    from ..wire.edits import Edit

SHOWN_LETTERS: Final = 3
LONGEST_WHOLE: Final = 8
"""Nothing is shown of a value up to this length."""

MAX_LEAKS: Final = 1_000
"""So many are reported one by one; more are counted."""

_plain_name = re.compile(r"[^\W\d][\w-]*").fullmatch
_ENVIRONMENT: Final = "environment "
_PERSON: Final = "person "


class Leak(NamedTuple):
    """A value that should not be in the capture.

    `number` is that of its record; `where` is a JSON path of a payload, or a word for another part. `kind` is `environment`,
    `token`, `entropy`, `personal`, `member` (its name makes it secret) or `number` (so does the name of a number). `name` is that
    of the variable, or of the fact about a person. `shown` are its first letters, `length` counts its bytes. `option` is the option
    that removes it; empty if sharing does so without one.
    """

    number: int
    where: str
    kind: str
    name: str
    shown: str
    length: int
    option: str


class LeakFinder:
    """Leaks of a capture: `feed` its records, then `close`. `environment` and `people` are names with values that are sought too."""

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
        options = FinderOptions(pseudonym=_as_it_is, keep=keep, more=random_spans, spares_pseudonyms=True, takes_numbers=True)
        self._notes = _LeakNotes(SecretFinder(options, known))
        self._sharing = Sharing(self._notes, _as_it_is, self._notes.enter)
        self._reported = 0
        self.more = 0
        """The number of leaks past the limit."""

    def feed(self, record: Record) -> list[Leak]:
        """Return the leaks in the next record, or in the frames that it completes."""
        self._sharing.feed(record)
        return self._taken()

    def close(self) -> list[Leak]:
        """Return the leaks in frames that were not completed."""
        self._sharing.close()
        return self._taken()

    @property
    def unread(self) -> int:
        """The number of bodies that could not be searched."""
        return self._sharing.sealed + self._sharing.given_up

    def _taken(self) -> list[Leak]:
        leaks = self._notes.taken()
        reported = leaks[: MAX_LEAKS - self._reported]
        self._reported += len(reported)
        self.more += len(leaks) - len(reported)
        return reported


class _LeakNotes:
    """A finder that takes note of secrets and their records, and returns no edits."""

    def __init__(self, finder: SecretFinder) -> None:
        self._finder = finder
        self._here: FrameParts | Record | None = None
        self._leaks: dict[tuple[int, bytes], Leak] = {}

    def enter(self, frame_or_record: FrameParts | Record) -> None:
        """Take note of what is searched next."""
        self._here = frame_or_record

    def taken(self) -> list[Leak]:
        """Return the leaks since the last call."""
        leaks, self._leaks = list(self._leaks.values()), {}
        return leaks

    def payload_edits(self, data: bytes) -> list[Edit]:
        """Search bytes that may be a message."""
        for edit in self._finder.payload_edits(data):
            self._note(data[edit.start : edit.end], edit.kind, path_at(data, edit.start))
        return []

    def text_edits(self, data: bytes) -> list[Edit]:
        """Search any other text."""
        for edit in self._finder.text_edits(data):
            self._note(data[edit.start : edit.end], edit.kind)
        return []

    def span_edits(self, spans: Iterable[Marked]) -> list[Edit]:
        """Take note of values that are secret by their field of a head."""
        for _, _, kind, value in spans:
            self._note(value, kind)
        return []

    def secret_edits(self, data: bytes) -> list[Edit]:
        """Take note of a text that its name makes a secret."""
        self._note(data, "key")
        return []

    def without_overlaps(self, data: bytes, edits: Iterable[Edit]) -> list[Edit]:
        """Return no edits."""
        return []

    def cut_off(self, data: bytes, edits: list[Edit]) -> list[Edit]:
        """Return no edits."""
        return []

    def is_secret(self, name: bytes) -> bool:
        """Tell whether a member of this name holds a secret."""
        return self._finder.is_secret(name)

    def _note(self, value: bytes, kind: str, path: str = "") -> None:
        if not value or PSEUDONYM.fullmatch(value):
            return
        here = self._here
        record = here.frames[-1] if isinstance(here, FrameParts) else here
        number = 0 if record is None else record.number
        if (number, value) not in self._leaks:
            kind, name = _kind(kind)
            self._leaks[number, value] = Leak(
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
    """Return the kind of a leak and the name that belongs to it, from the kind of the edit that would remove it."""
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
    """Return the option of the command line that removes the leak, without the secret; empty if it is removed anyway."""
    if kind == "environment":
        return f"--env {name}"
    if kind == "personal":
        return "--personal"
    if kind in ("member", "token"):
        return ""
    return f"--path {_quoted(path)}" if path else f"--value {_quoted(pattern_for(value))}"


def _quoted(text: str) -> str:
    """Quote a text for a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def pattern_for(value: bytes) -> str:
    """Make a regular expression that matches a value by its first letters and its length alone."""
    text = value.decode("utf-8", "replace")
    known = text[:SHOWN_LETTERS] if len(text) > LONGEST_WHOLE else ""
    letters = r"\S" if not re.search(r"\s", text) else r"[^\n]"
    return f"{re.escape(known)}{letters}{{{len(text) - len(known)}}}"


def path_at(data: bytes, at: int) -> str:
    """Return the JSON path of the value that has the byte `at`, as `--path` takes it; empty if no value has it, or a name."""
    if not looks_like_json(data):
        return ""
    walk = JsonWalk(data)
    for leaf in walk.leaves():
        if leaf.end >= at:
            return "" if leaf.start > at or leaf.is_name else path_of(walk.steps)
    return ""


def path_of(steps: Sequence[str | int]) -> str:
    """Spell a JSON path from the root that rules count from: the call, whose params are its members."""
    if steps and isinstance(steps[0], int):
        steps = steps[1:]
    if steps and steps[0] == "params":
        steps = steps[1:]
    return "$" + "".join(map(_step, steps)) if steps else ""


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _plain_name(step):
        return f".{step}"
    return "['" + json.dumps(step)[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"
