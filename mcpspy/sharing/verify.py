"""Leaks in a capture that should hold nothing secret: records in, leaks out. Of a secret only its first letters and length are kept.

The search is that of sharing, with rules that are too coarse to redact by: random words, long numbers, values of the environment.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log2
from typing import Final, NamedTuple

from ..capture.redaction.names import kind_of_option
from ..lazy_pattern import lazy_pattern
from ..records import Frame, Header, Open, Record
from ..wire.edits import Edit
from ..wire.json_spans import JsonWalk, looks_like_json
from .deltas import FrameParts
from .encodings import runs
from .finder import FinderOptions, Marked, SecretFinder
from .known import KnownValues
from .patterns import PSEUDONYM, SecretSpan
from .share import Sharing

SHOWN_LETTERS: Final = 3
LONGEST_WHOLE: Final = 8
"""Nothing is shown of a value up to this length."""

MAX_LEAKS: Final = 1_000
"""So many are reported one by one; more are counted."""

_plain_name = lazy_pattern(r"[^\W\d][\w-]*")
_ENVIRONMENT: Final = "environment "
_PERSON: Final = "person "


class Leak(NamedTuple):
    """A value that should not be in the capture.

    `number` is that of its record; `where` is a JSON path of a payload, or a word for another part. `kind` is `environment`,
    `token`, `entropy`, `personal`, `member` (its name makes it secret) or `number` (so does the name of a number). `name` is that
    of the variable, or of the fact about a person. `shown` are its first letters, `length` counts its bytes. `option` is the option
    that removes it; empty if sharing does so without one. `is_known` says that it is a known kind of secret: a name or its form
    makes it one. Other leaks only look random, or are personal.
    """

    number: int
    where: str
    kind: str
    name: str
    shown: str
    length: int
    option: str
    is_known: bool


_KNOWN_KINDS: Final = {"member", "number", "token"}


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
        self.known = 0
        """The number of all leaks of a known kind."""

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
        self.known += sum(leak.is_known for leak in leaks)
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
        """Return whether a member of this name holds a secret."""
        return self._finder.is_secret(name)

    def is_secret_option(self, name: bytes) -> bool:
        """Return whether an option of this name has a secret for its value."""
        return self._finder.is_secret_option(name)

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
                is_known=kind in _KNOWN_KINDS or (kind == "environment" and kind_of_option(name) is not None),
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
    if _plain_name.fullmatch(step):
        return f".{step}"
    return "['" + json.dumps(step)[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"


# --- Random words: those with too much entropy to be language, and no name that makes them an id or a digest ---


SHORTEST: Final = 20
LONGEST: Final = 512
"""Longer runs are data: an image, an archive."""

MIN_BITS: Final = 3.4
"""Entropy (Shannon) per letter; 20 random letters and digits have 4.0 and seldom less than 3.6, words about 3."""

MIN_CHANGES: Final = 0.3
"""Changes between capitals, small letters and digits, per letter: 0.6 in random words, 0.2 in names of programs."""

_runs = lazy_pattern(rb"[A-Za-z0-9_+/-]{%d,}={0,2}" % SHORTEST)
_words = lazy_pattern(rb"[A-Za-z0-9_+-]{%d,}={0,2}" % SHORTEST)
_turns = lazy_pattern(rb"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_hex = lazy_pattern(rb"[0-9a-f]{20,}|[0-9A-F]{20,}")
_uuid = lazy_pattern(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MIN_HEX_BITS: Final = 2.8

_is_id = lazy_pattern(
    rb"(?i)(?:ids?|uuid|guid|hash|digest|sha|sha\d+|md5|etag|checksum|commit|revision|rev|cursor|tree|parent|integrity|nonce"
    rb"|traceparent|tracestate|blob|data|progresstoken|event-?id|uri|url)$"
)
"""Names whose values may be random, and give access to nothing."""

_named = lazy_pattern(
    rb"(?i)\b(?:id|uuid|hash|digest|sha\d*|md5|etag|checksum|commit|revision|tree|parent|index|merge|traceparent)\b\W{0,4}(?:W/.)?$"
)
_BEFORE: Final = 24


def random_spans(data: bytes, name: bytes) -> Iterator[SecretSpan]:
    """Yield the words of `data` that look random; `name` is that of the member whose value it is.

    Pseudonyms are left out, and so are ids and digests that a name announces, in the text before them or of the member.
    """
    if len(data) < SHORTEST or _is_id.search(name) is not None:
        return
    for run in _runs.finditer(data):
        if run.end() - run.start() > LONGEST:
            continue
        if any(PSEUDONYM.search(base64.text) for base64 in runs(run[0])):
            continue
        for match in _words.finditer(data[run.start() : run.end()]):
            start = run.start() + match.start()
            bare = match[0].rstrip(b"=")
            if _is_random(bare) and not PSEUDONYM.search(bare) and not _named.search(data[max(start - _BEFORE, 0) : start]):
                yield SecretSpan(start, start + len(match[0]), "entropy", match[0])


def bits(word: bytes) -> float:
    """Return the entropy of a word's letters, in bits per letter."""
    return -sum(count / len(word) * log2(count / len(word)) for count in Counter(word).values())


def _is_random(word: bytes) -> bool:
    """Return whether a word looks random: an id in hex, or a mixture of letters and digits."""
    if _uuid.fullmatch(word) or _hex.fullmatch(word):
        return bits(word) >= _MIN_HEX_BITS
    return bits(word) >= MIN_BITS and sum(1 for _ in _turns.finditer(word)) / len(word) >= MIN_CHANGES
