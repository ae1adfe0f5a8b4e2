"""The transcript of a capture that has grown since its index was written: rows of the index, and rows of what came since.

Nobody looks for findings in it. Where what came since may have changed rows that cannot be known from the seeds, there is none.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from ..capture.file.payloads import Payloads
from ..capture.file.reader import CHUNK_BYTES, Reader
from ..errors import CaptureError
from ..platform.files import BINARY, NOFOLLOW, read_at
from ..records import Damage, Gap, Stall
from ..transcript.findings.finders import UNCHECKED
from ..transcript.known_exchanges import UnknownExchangeError
from ..transcript.log_matches import log_matches
from ..transcript.model import CaptureInfo, ChannelEvent, Exchange, Numbered, Outcome, Row, Transcript, UnpairedMessage
from ..transcript.phases import Lifecycle
from ..transcript.stats.outcomes import outcomes
from ..transcript.stats.troubles import troubles
from ..transcript.stored_rows import BLOCK_ROWS, FOREVER, RowFigures, StoredRows
from ..transcript.transcribe import Transcriber
from ..transcript.waiting import waited_ns
from .columns import row_columns
from .facts import Facts
from .file import Identity, IndexFile, open_older_index
from .grown_http import SeededTransactions
from .http_seeds import carriers
from .load import transcript_of_index
from .places import NotIndexedError
from .seeds import Seeds, begun
from .transactions import IndexedCapture

_seeds = msgspec.msgpack.Decoder(Seeds | None)

MAX_SHARE: Final = 0.25
"""The most that may have come since, as a share of what there was. Else the capture is read whole."""


class Now(NamedTuple):
    """The present, for what waits: None if the capture is not recorded any more. `widths` returns those of `RowFigures` for rows."""

    ns: Callable[[CaptureInfo], int] | None
    widths: Callable[[Sequence[Row]], tuple[int, int, int, int, int]]


def grown_transcript(
    path: str, version: str, whole: Callable[[], Transcript], now: Now, *, keeps_frames: bool = False
) -> Transcript | None:
    """Return the transcript of the capture at `path` from an index of its beginning; None if it has none that can be used.

    See `load.indexed_transcript`.
    """
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    except OSError:
        return None
    source = Payloads(fd, path)
    try:
        opened = _recent(path, fd, version)
        if opened is None:
            return None
        index, before = opened
        seeds: Seeds | None = _seeds.decode(index.section("seeds"))
        if seeds is None:
            return None
        indexed = IndexedCapture(source, keeps_frames=keeps_frames)
        facts, stored = transcript_of_index(index, indexed, whole)
        if not isinstance(stored.rows, StoredRows):
            return None
        rest = _Rest(begun(seeds, facts.info, facts.client_names, indexed.transactions, source, keeps_frames=keeps_frames))
        rest.read(path, fd, (facts.lines, before.size), is_live=now.ns is not None)
        if rest.carried is not None:
            rest.info.client_processes = {**facts.client_processes, **rest.info.client_processes}
            rest.info.client_ports = {**facts.client_ports, **rest.info.client_ports}
            rest.carried.join(facts, indexed, stored.captures[0], rest.rows)
        return _joined(rest, facts, stored.rows, now)
    except (ValueError, CaptureError, OSError, TypeError, AttributeError, KeyError, NotIndexedError, UnknownExchangeError):
        return None


def has_recent_index(path: str, version: str) -> bool:
    """Return whether the capture at `path` has an index of nearly all of it: then a new one would be hardly better."""
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    except OSError:
        return False
    try:
        return _recent(path, fd, version) is not None
    except OSError:
        return False
    finally:
        os.close(fd)


def _recent(path: str, fd: int, version: str) -> tuple[IndexFile, Identity] | None:
    opened = open_older_index(path, fd, version)
    return None if opened is None or os.fstat(fd).st_size - opened[1].size > opened[1].size * MAX_SHARE else opened


class _Rest:
    """The rows of what came since, those of the seeds, and which of these have changed."""

    def __init__(self, transcriber: Transcriber) -> None:
        self.transcriber = transcriber
        self.transcript = transcriber.transcript
        self.info = self.transcript.captures[0]
        self.seeded: list[Row] = list(self.transcript.rows)
        self.outcomes = outcomes(self.transcript)
        self.troubles = msgspec.structs.asdict(troubles(self.transcript))
        self.carried = SeededTransactions(self.info) if self.info.transactions else None
        """The transactions of the seeds; None on stdio."""
        self.rows: list[Row] = []
        self.changed: set[int] = set()
        self.carriers_changed: set[int] = set()
        """The rows of the seeds whose transactions went on."""
        self.troubles_now = self.troubles
        self._states = [self._state(row) for row in self.seeded]

    def read(self, path: str, fd: int, after: tuple[int, int], *, is_live: bool) -> None:
        """Read the records that came after so many lines and bytes. Raises: UnknownExchangeError; NotIndexedError; CaptureError."""
        reader, offset, info = Reader(path, after=after), after[1], self.info
        while data := read_at(fd, CHUNK_BYTES, offset):
            offset += len(data)
            self.transcriber.feed_lines(reader.feed_lines(data))
        if not is_live:
            self.transcriber.feed_lines(list(reader.close()))
            self.transcriber.end()
        self.rows = self.transcript.rows[len(self.seeded) :]
        events = (row.record for row in self.rows if isinstance(row, ChannelEvent))
        if (
            info.intercepted_ns is not None
            or (info.transactions and self.carried is None)
            or any(isinstance(event, Damage | Gap | Stall) for event in events)
        ):
            raise NotIndexedError
        for row, state in zip(self.seeded, self._states, strict=True):
            if isinstance(row, Numbered) and (state != self._state(row) or (isinstance(row, Exchange) and not row.over)):
                self.changed.add(row.row)
            if isinstance(row, Numbered) and self.carried is not None and not self.carried.open.isdisjoint(carriers(row, info)):
                self.carriers_changed.add(row.row)
        self.troubles_now = msgspec.structs.asdict(troubles(self.transcript))

    def _state(self, row: Row) -> object:
        """Return what is equal as long as nothing is shown in another way."""
        call = self.info.calls.get(row.row) if isinstance(row, Exchange | UnpairedMessage) else None
        of_call = None if call is None else (call.outcome, call.duration_ns, len(call.exchanges), len(call.notifications))
        if not isinstance(row, Exchange):
            return of_call
        others = len(row.notifications), len(row.more_responses), len(row.partials), row.cancelled is None, row.response is None
        return others, row.over, row.left_ns, row.is_probe, of_call


def _joined(rest: _Rest, facts: Facts, stored: StoredRows[Row], now: Now) -> Transcript:
    info, transcript = rest.info, rest.transcript
    info.now_ns = None if now.ns is None else now.ns(info)
    known = {row.row: row for row in rest.seeded if isinstance(row, Numbered)}
    begin = facts.rows // BLOCK_ROWS * BLOCK_ROWS
    newest = [known.get(getattr(row, "row", 0), row) for row in stored[begin:]]
    rows = [*newest, *rest.rows]
    changed = rest.changed | rest.carriers_changed
    blocks = {block for block in map(stored.block_of, changed) if block < begin // BLOCK_ROWS}
    positions = {
        at
        for block in blocks
        for at, row in enumerate(stored[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS], block * BLOCK_ROWS)
        if getattr(row, "row", 0) in changed
    }
    columns, others = _columns(stored, rows, info, known, blocks)
    figures = _figures(rest, rows, stored.figures, now)
    transcript.rows = cast("list[Row]", stored.grown(rows, columns, others, figures, known, blocks, positions))
    transcript.__dict__[UNCHECKED] = True
    return transcript


def _columns(
    stored: StoredRows[Row], rows: list[Row], info: CaptureInfo, known: Mapping[int, Row], blocks: Collection[int]
) -> tuple[dict[str, array[int]], array[int]]:
    """Return the columns of all rows: those of whole blocks that have not changed, and new ones. Also the rows without a number."""
    whole_blocks = len(stored) // BLOCK_ROWS
    columns = {name: array("Q", column[:whole_blocks]) for name, column in stored.columns.items()}
    for block in blocks:
        block_rows = stored[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]
        new = row_columns([known.get(getattr(row, "row", 0), row) for row in block_rows], info, columns["firsts"][block])
        for name in new.keys() & columns.keys():
            columns[name][block] = new[name][0]
        columns["end"][block] = FOREVER
    new = row_columns(rows, info, columns["lasts"][-1] + 1 if whole_blocks else 1)
    for name, column in columns.items():
        column.extend(array("Q", new.get(name) or [0 if name == "begin" else FOREVER] * len(new["firsts"])))
    begin = whole_blocks * BLOCK_ROWS
    others = array("I", [at for at in stored.other_positions if at < begin])
    others.extend(begin + at for at in new["others"])
    return columns, others


def _figures(rest: _Rest, rows: list[Row], before: RowFigures, now: Now) -> RowFigures:
    """Return the figures of all rows: those before, without what they had of the seeds, and with what seeds and rest have now."""
    info, transcript = rest.info, rest.transcript
    counted = dict(before.outcomes)
    for outcome, count in outcomes(transcript).items():
        counted[outcome.value] = counted.get(outcome.value, 0) + count
    for outcome, count in rest.outcomes.items():
        counted[outcome.value] -= count
    lifecycle = Lifecycle(info)
    lifecycle.restore(before.lifecycle)
    for row in _ended(rest):
        lifecycle.end(row)
    for later in rest.rows:
        lifecycle.feed(later)
    exchanges = [row for row in transcript.rows if isinstance(row, Exchange)]
    firsts: dict[Outcome, int] = {}
    for row in exchanges:
        firsts.setdefault(row.outcome, row.row)
    slowest = max(exchanges, key=lambda row: row.duration_ns or 0, default=None)
    notable = {*before.notable, *firsts.values(), *(() if slowest is None else (slowest.row,))}
    before_rest = rows[: len(rows) - len(rest.rows)]
    own = {id(row) for row in before_rest}
    matches = log_matches([*(row for row in rest.seeded if id(row) not in own), *rows])
    found = {
        number: (number, match.row, match.message.number, match.gap_ns, match.begin, match.end)
        for (_, number), match in matches.items()
    }
    widths = tuple(map(max, before.widths, now.widths(transcript.rows)))
    return RowFigures(
        outcomes={name: count for name, count in counted.items() if count},
        troubles={name: before.troubles[name] + count - rest.troubles[name] for name, count in rest.troubles_now.items()},
        waits=[(row.at_ns, waited_ns(row, info) or 0) for row in exchanges if not row.over],
        lifecycle=lifecycle.state(),
        notable=sorted(notable),
        log_matches=[*(match for match in before.log_matches if match[0] not in found), *found.values()],
        widths=cast("tuple[int, int, int, int, int]", widths),
        numbered=before.numbered + sum(isinstance(row, Numbered) for row in rest.rows),
    )


def _ended(rest: _Rest) -> Iterator[Exchange]:
    """Yield the requests among the seeds that have got their answers since, or were cancelled."""
    for row in rest.seeded:
        if isinstance(row, Exchange) and row.row in rest.changed and (row.response or row.cancelled) is not None:
            yield row
