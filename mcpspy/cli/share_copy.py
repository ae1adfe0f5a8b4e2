"""Copies of captures without secrets. Each capture is read twice, as a stream: first to learn the secrets of all, then to copy.

Secrets are also facts of this machine: the environment, the home folder, the names of the user and the machine.
"""

import os
import re
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from getpass import getuser
from typing import BinaryIO

import click

from ..capture.file.format import header_line, record_line
from ..capture.file.reader import CHUNK_BYTES, Reader, RecordCounts
from ..capture.redaction.names import kind_of_option
from ..capture.redaction.redactor import Redactor
from ..capture.store.folder import key
from ..errors import ShareError
from ..records import PSEUDONYM_PREFIX, End, Gap, Header, Record
from ..replay.compare.ignore import Ignore
from ..sharing.excerpt import Excerpt
from ..sharing.finder import FinderOptions, SecretFinder
from ..sharing.known import KnownValues
from ..sharing.patterns import SecretNames
from ..sharing.share import SHARED, Sharing
from ..sharing.user_paths import UserPaths
from ..wire.edits import apply_edits
from .progress import ReadingProgress

FRESH_KEY_BYTES = 32

_CUT = "…".encode()

SHORTEST_VALUE = 8
"""Shorter values of the environment are ordinary words."""

SHORTEST_NAME = 3

_EVERYWHERE = {
    "COLORTERM", "COLUMNS", "DISPLAY", "EDITOR", "HOME", "HOST", "HOSTNAME", "LANG", "LANGUAGE", "LESSCLOSE", "LESSOPEN", "LINES",
    "LOGNAME", "LS_COLORS", "MAIL", "MANPATH", "NAME", "OLDPWD", "PAGER", "PATH", "PS1", "PWD", "PYTHONPATH", "SHELL", "SHLVL",
    "TERM", "TERM_PROGRAM", "TMPDIR", "TZ", "USER", "USERNAME", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "VISUAL", "_",
}  # fmt: skip
"""Variables that every process has, whose values are not secret."""

_EVERYWHERE_BEGINNINGS = ("GIT_", "LC_", "MCPSPY_", "NVM_", "PYTEST_", "SYSTEMD_", "XDG_")
_NOBODY = {"admin", "localhost", "nobody", "root", "runner", "ubuntu", "user"}
"""Names that identify nobody."""


class Pseudonyms:
    """Replacements of values: digests with the store's key, and unless `same_key`, digests of these with a key that is not kept.

    So a value gets the same pseudonym whether it was replaced when it was recorded or now, and shares made at different times have no
    pseudonym in common. The pseudonyms of a capture that `is_shared` already stay.
    """

    def __init__(self, store_key: bytes, *, same_key: bool) -> None:
        self._inner = Redactor(store_key)
        self._outer = None if same_key else Redactor(os.urandom(FRESH_KEY_BYTES))
        self.is_shared = False

    def __call__(self, value: bytes) -> bytes:
        inner = self._inner.pseudonym(value)
        if self._outer is None or (self.is_shared and inner == value):
            return inner
        return self._outer.pseudonym(inner[len(PSEUDONYM_PREFIX) :])

    def boot(self, value: bytes) -> bytes:
        """Replace the id of a boot."""
        return value if self.is_shared else self(value)


@dataclass(slots=True)
class ShareResult:
    """The result of one copy: how many values were replaced, by kind; and how many bodies could not be read."""

    path: str
    counts: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    records: int = 0
    has_end: bool = False


class Original:
    """A capture to be copied: an open file, read up to its size when it was opened."""

    def __init__(self, file: BinaryIO, name: str, progress: ReadingProgress | None = None) -> None:
        self._file = file
        self._progress = progress
        self.name = name
        self._size = os.fstat(file.fileno()).st_size

    def records(self) -> Iterator[Record]:
        """Read its records, from the first. Raises: CaptureError."""
        reader = Reader(self.name)
        self._file.seek(0)
        left = self._size
        while left and (chunk := self._file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield from reader.feed(chunk)
            if self._progress is not None:
                self._progress.add(len(chunk))
        yield from reader.close()


def spooled(file: BinaryIO, name: str) -> Original:
    """Store a stream, which can be read only once, in a temporary file."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as we run
    while chunk := file.read(CHUNK_BYTES):
        copy.write(chunk)
    copy.flush()
    return Original(copy, name)


class Copier:
    """A copier of captures: first `learn` every capture and call `learned`, then `copy` each."""

    def __init__(self, options: FinderOptions, known: KnownValues, pseudonyms: Pseudonyms) -> None:
        self.known = known
        self._finder = SecretFinder(options, known)
        self._finder.learns = True
        self._pseudonyms = pseudonyms

    def learn(self, original: Original, excerpt: Excerpt | None = None) -> None:
        """Learn the secrets of a capture. Raises: CaptureError."""
        sharing = Sharing(self._finder, self._pseudonyms.boot)
        for record in original.records():
            if excerpt is not None:
                excerpt.see(record)
            if isinstance(record, Header):
                self._begin(record)
            sharing.feed(record)
        sharing.close()

    def learned(self) -> None:
        """Finish learning."""
        self._finder.end_learning()

    def learn_records(self, records: Iterable[Record]) -> None:
        """Learn the secrets of some records, which are changed."""
        sharing = Sharing(self._finder, self._pseudonyms.boot)
        for record in records:
            sharing.feed(record)
        sharing.close()

    def learn_payloads(self, payloads: Iterable[bytes]) -> None:
        """Learn the secrets of payloads."""
        for payload in payloads:
            self._finder.payload_edits(payload)

    def masked_text(self, text: str) -> str:
        """Return a text of a view without secrets, and without those that the view has cut off with `…`."""
        data = text.encode("utf-8", "surrogatepass")
        *cut, last = apply_edits(data, self._finder.text_edits(data)).split(_CUT)
        whole = _CUT.join([*(apply_edits(part, self._finder.cut_off(part, [])) for part in cut), last])
        return whole.decode("utf-8", "surrogatepass")

    def masked(self, payload: bytes) -> bytes:
        """Return a payload without secrets: the body of a message, or of a request to a model."""
        return apply_edits(payload, self._finder.payload_edits(payload))

    def records(self, original: Original) -> Iterator[Record]:
        """Yield the records of a capture without secrets. No other may be read at the same time. Raises: CaptureError."""
        sharing = Sharing(self._finder, self._pseudonyms.boot)
        for record in original.records():
            if isinstance(record, Header):
                self._begin(record)
            yield from sharing.feed(record)
        yield from sharing.close()

    def _begin(self, header: Header) -> None:
        self._pseudonyms.is_shared = header.redaction == SHARED
        self._finder.forget()

    def copy(self, original: Original, file: BinaryIO, path: str, excerpt: Excerpt | None = None) -> ShareResult:
        """Write a copy of a capture without secrets. Raises: ShareError: if it has no header. CaptureError, OSError."""
        sharing = Sharing(self._finder, self._pseudonyms.boot)
        writer = _CopyWriter(file, original.name)
        for record in original.records():
            if isinstance(record, Header):
                self._begin(record)
            if excerpt is None or excerpt.keeps(record):
                writer.write(sharing.feed(record))
        writer.write(sharing.close())
        writer.close()
        return ShareResult(
            path=path,
            counts=sharing.counts,
            unread=sharing.sealed + sharing.given_up,
            records=writer.number,
            has_end=writer.has_end,
        )


def copier_of(
    *,
    keys: tuple[str, ...] = (),
    paths: tuple[str, ...] = (),
    values: tuple[re.Pattern[str], ...] = (),
    variables: tuple[str, ...] = (),
    keep: tuple[re.Pattern[str], ...] = (),
    personal: bool,
    same_key: bool = False,
    spares_pseudonyms: bool = False,
    store_key: bytes | None = None,
) -> Copier:
    """Make a copier that knows the secrets of this machine and, by names, paths, patterns and variables, those of the user.

    `store_key` is that of another machine's store, whose pseudonyms are to be made.

    Raises: PathError; click.UsageError: for a variable that is not set.
    """
    user_paths = UserPaths(Ignore.of(paths)) if paths else None
    named = _named_values(variables)
    pseudonyms = Pseudonyms(key() if store_key is None else store_key, same_key=same_key)
    known = KnownValues(pseudonyms)
    for _, value in _secret_variables():
        known.add(value)
    for value in named:
        known.add(value, telling=True)
    for _, value in people() if personal else ():
        known.add(value, "personal", telling=True)
    options = FinderOptions(
        pseudonym=pseudonyms,
        names=SecretNames(keys),
        paths=user_paths,
        values=values,
        keep=keep,
        personal=personal,
        spares_pseudonyms=spares_pseudonyms,
    )
    return Copier(options, known, pseudonyms)


class _CopyWriter:
    """A writer of a new capture: it renumbers the records, and the `end` record has new counts."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._waiting: list[Record] | None = []
        self._size = 0
        self._counts = RecordCounts()
        self.number = 0
        self.has_end = False

    def write(self, records: list[Record]) -> None:
        for record in records:
            if isinstance(record, Header):
                self._put(header_line(record))
                waiting, self._waiting = self._waiting or [], None
                self.write(waiting)
            elif self._waiting is not None:
                self._waiting.append(record)
            else:
                self._record(record)

    def close(self) -> None:
        if self._waiting is not None:
            raise ShareError(f"{self._name} has no readable header; mcpspy verify --repair writes one")

    def _record(self, record: Record) -> None:
        self._counts.feed(record)
        if isinstance(record, Gap):
            record.missing = 0  # as numbers are new, none is missing
        elif isinstance(record, End):
            self.has_end = True
            record = self._end(record)
        self.number += 1
        self._put(record_line(self.number, record))

    def _end(self, old: End) -> End:
        return End(
            at_ns=old.at_ns,
            frames=self._counts.frames,
            bytes=self._size,
            messages=self._counts.messages,
            gaps=self._counts.gaps,
            why=old.why,
            extra=old.extra,
        )

    def _put(self, line: bytes) -> None:
        self._file.write(line)
        self._size += len(line)


def _secret_variables() -> Iterator[tuple[str, bytes]]:
    """Yield variables with names of secrets, and their values."""
    for name, value in os.environ.items():
        if kind_of_option(name) is not None and value and name not in _EVERYWHERE:
            yield name, os.fsencode(value)


def suspicious_variables() -> Iterator[tuple[str, bytes]]:
    """Yield variables whose values should be in no capture: secret ones, and those that are neither short nor a path or a word."""
    yield from _secret_variables()
    for name, value in os.environ.items():
        if name in _EVERYWHERE or name.startswith(_EVERYWHERE_BEGINNINGS) or kind_of_option(name) is not None:
            continue
        if len(value) >= SHORTEST_VALUE and not value.startswith(("/", "~", "file:")) and not value.isalpha():
            yield name, os.fsencode(value)


def _named_values(names: Iterable[str]) -> list[bytes]:
    """Return the values of variables. Raises: UsageError: for one that is not set."""
    values = []
    for name in names:
        value = os.environ.get(name, "")
        if not value:
            raise click.UsageError(f"There is no environment variable {name}; --env takes the name of one that is set.")
        values.append(os.fsencode(value))
    return values


def people() -> Iterator[tuple[str, bytes]]:
    """Yield the home folder, the user's name and the machine's name, each with its kind, unless they are common to many machines."""
    home = os.path.expanduser("~")
    if os.path.isabs(home) and len(home) > 1 and os.path.basename(home) not in _NOBODY:
        yield "home folder", os.fsencode(home)
    for what, name in (("user name", _user()), ("host name", socket.gethostname())):
        if len(name) >= SHORTEST_NAME and name.lower() not in _NOBODY:
            yield what, os.fsencode(name)


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
