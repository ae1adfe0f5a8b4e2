"""Records to a transcript: a pure fold, the same for a capture read whole and for one that grows.

Refuses to read clocks and files: all it knows came in records. Records of unknown kinds and streams become events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import chain, count
from typing import TYPE_CHECKING, Final

from ..records import CLIENT, Close, Damage, End, Exit, Frame, Gap, Header, Note, Open, Record
from .clock import Clock
from .correlate import Correlator
from .decode import Decoded, Decoder
from .lanes import name_lanes
from .mcp.fields import client_name
from .mcp.negotiation import ProbeDetector
from .model import CaptureInfo, ChannelEvent, Exchange, Kind, Message, Row, Transcript

if TYPE_CHECKING:
    from .calls.join import CallJoiner
    from .http.assemble import TransactionAssembler
    from .llm.assemble import ModelLeg

_ERROR: Final = Kind.ERROR


def transcribe(*captures: Iterable[Record], keeps_frames: bool = False, finds: bool = True) -> Transcript:
    """The transcript of captures that will not grow any more, merged by their clocks. For the two words see `Transcriber`.

    `Transcript.captures` has them in the order in which they began; rows are numbered in the order of the common clock.
    """
    transcriber = Transcriber(keeps_frames=keeps_frames, finds=finds)
    feed = transcriber.feed
    if len(captures) == 1:
        for record in captures[0]:
            feed(record)
    else:
        for record, capture in _merged(captures, transcriber):
            feed(record, capture)
    transcriber.close()
    return transcriber.transcript


class Transcriber:
    """Rows from the records of one capture, or of several at once, which are numbered from 0.

    `feed` and `close` return the rows that are new or changed; `transcript` has all of them at any time. `close` also makes its
    findings; while captures grow, `findings(transcript)` gives those there are so far. `keeps_frames` is for who wants to see HTTP
    as it was on the wire: transactions keep the frames of their streams. Whoever only wants the rows `finds` nothing and joins no
    calls, which also spares a start-up the import of all that.
    """

    __slots__ = ("_captures", "_client_names", "_clock", "_finds", "_keeps_frames", "_next_row", "transcript")

    def __init__(self, *, keeps_frames: bool = False, finds: bool = True) -> None:
        self.transcript = Transcript()
        self._finds = finds
        self._keeps_frames = keeps_frames
        self._captures: list[_Capture] = []
        self._clock = Clock()
        self._client_names: dict[int, str] = {}
        self._next_row = count(1).__next__

    def feed(self, record: Record, capture: int = 0) -> Sequence[Row]:
        """Take in the next record of the capture with this number."""
        if capture >= len(self._captures):
            self._begin(capture)
        if isinstance(record, Header):
            self._header(self._captures[capture].source, record)
            return ()
        return self._captures[capture].feed(record)

    def close(self, capture: int | None = None) -> list[Row]:
        """Nothing more will come of this capture; None: of any."""
        chosen = self._captures if capture is None else self._captures[capture : capture + 1]
        rows = [row for one in chosen for row in one.close()]
        if self._finds:
            from .findings.run import findings  # a fifth of the time that importing this module took

            self.transcript.findings = findings(self.transcript)
        return rows

    def _begin(self, capture: int) -> None:
        while len(self._captures) <= capture:
            source = CaptureInfo(len(self._captures))
            rows, next_row = self.transcript.rows, self._next_row
            http = partial(
                _transactions, source, rows, next_row, self._named, keeps_frames=self._keeps_frames, joins=self._finds
            )
            self.transcript.captures.append(source)
            self._captures.append(_Capture(source, rows, next_row, self._named, http, joins=self._finds))
        self._name_lanes()

    def _header(self, source: CaptureInfo, header: Header) -> None:
        if source.header is None:
            source.header = header
            source.shift_ns = self._clock.shift_ns(header)
            self._name_lanes()

    def _named(self, source: CaptureInfo, name: str) -> None:
        self._client_names.setdefault(source.index, name)
        self._name_lanes()

    def _name_lanes(self) -> None:
        name_lanes(self.transcript.captures, self._client_names)


class _Capture:
    """What `Transcriber` knows of one capture. On stdio it is also the scope of request ids; HTTP has scopes of its own."""

    __slots__ = (
        "_calls",
        "_joined",
        "_correlator",
        "_decoder",
        "_http",
        "_knows_client",
        "_make_http",
        "_named",
        "_probes",
        "_rows",
        "source",
    )

    def __init__(
        self,
        source: CaptureInfo,
        rows: list[Row],
        next_row: Callable[[], int],
        named: Callable[[CaptureInfo, str], None],
        make_http: Callable[[], TransactionAssembler | ModelLeg],
        *,
        joins: bool,
    ) -> None:
        self.source = source
        self._http: TransactionAssembler | ModelLeg | None = None
        self._make_http = make_http
        self._rows = rows
        self._named = named
        self._decoder = Decoder(source)
        self._calls: CallJoiner | None = None
        self._joined: frozenset[str] = frozenset()
        if joins:
            from .calls.join import JOINED, CallJoiner

            self._calls, self._joined = CallJoiner(source), JOINED
        self._probes = ProbeDetector()
        self._correlator = Correlator(next_row, self._probes)
        self._knows_client = False

    def feed(self, record: Record) -> Sequence[Row]:
        source = self.source
        if record.at_ns > source.last_ns:  # noqa: PLR1730 - `max` is a call per record
            source.last_ns = record.at_ns
        if isinstance(record, Frame):
            if not record.data and record.length:
                source.unkept += 1
            if self._http is not None and (rows := self._http.frame(record)) is not None:
                return rows
            return self._add(self._decoder.feed(record))
        if isinstance(record, Open):
            if record.transaction:
                if self._http is None:
                    self._http = self._make_http()
                return self._http.open(record)
            self._decoder.open(record)
            return ()
        if source.transactions and (rows := self._in_transaction(record)) is not None:
            return rows
        event = ChannelEvent(source.index, record.at_ns + source.shift_ns, record)
        self._rows.append(event)
        return (event, *self._consequences(record))

    def close(self) -> Sequence[Row]:
        rows = self._add(self._decoder.close())
        self.source.closed = True
        of_http = self._http.end() if self._http is not None else ()
        return (*rows, *of_http, *self._over(self._correlator.close()))

    def _in_transaction(self, record: Record) -> Sequence[Row] | None:
        """What a record changes that belongs to a transaction; None for others."""
        http = self._http
        match record:
            case Close() if http is not None:
                return http.close(record)
            case Note() if http is not None:
                return http.note(record)
            case _:
                return None

    def _consequences(self, record: Record) -> Sequence[Row]:
        """What an event changes; the rows that it changed."""
        source = self.source
        match record:
            case Exit():
                source.exit = record
                return self._over(self._correlator.close())
            case Close(how=how) if how != "broken":  # then the reader of the stream is gone, not its writer
                stream = source.streams.get(record.stream)
                silent = stream and stream.name != "stderr" and stream.sender
                return self._over(self._correlator.close(silent)) if silent else ()
            case End():
                source.complete = not (source.gaps or source.damages)
                return self.close()
            case Gap():
                source.gaps += 1
            case Damage(reason=reason) if reason != "edited":  # then nothing is lost
                source.damages += 1
            case _:
                return ()
        source.complete = False
        self._decoder.damage()
        if self._http is not None:
            self._http.damage()
        return ()

    def _over(self, rows: list[Exchange]) -> Sequence[Row]:
        """Exchanges that nobody will answer, and the calls that change by that."""
        return rows if self._calls is None else (*rows, *self._calls.firsts(rows))

    def _add(self, decoded: Sequence[Decoded]) -> Sequence[Row]:
        rows: list[Row] = []
        calls, joining = self.source.calls, self._calls
        for one in decoded:
            if isinstance(one, Message):
                row = self._correlator.feed(one)
                if self._probes.changed:
                    rows += self._probes.take_changed()
                if not self._knows_client:
                    self._ask_name(one)
                if isinstance(row, Exchange) and row.request is not one:
                    is_joined = one.result_type is not None or one.kind is _ERROR
                else:
                    self._rows.append(row)
                    is_joined = one.method in self._joined
                rows.append(row)
                if (is_joined or calls) and joining is not None and (first := joining.feed(row, one)) is not None:
                    rows.append(first)
            else:
                self._rows.append(one)
                rows.append(one)
        return rows

    def _ask_name(self, message: Message) -> None:
        """Learn the client's name from a request of its own. Looking for the word first keeps this off the hot path."""
        if message.sender == CLIENT and message.kind is Kind.REQUEST and b"clientInfo" in message.raw:
            name = client_name(message.raw)
            if name is not None:
                self._knows_client = True
                self._named(self.source, name)


def _transactions(
    source: CaptureInfo,
    rows: list[Row],
    next_row: Callable[[], int],
    named: Callable[[CaptureInfo, str], None],
    *,
    keeps_frames: bool,
    joins: bool,
) -> TransactionAssembler | ModelLeg:
    """What HTTP needs, imported when the first of it comes: 9 of 89 ms of imports, for which a mock of stdio need not wait."""
    if source.is_model:
        from .llm.assemble import ModelLeg

        return ModelLeg(source, rows, next_row, keeps_frames=keeps_frames)
    from .http.assemble import TransactionAssembler

    return TransactionAssembler(source, rows, next_row, named, keeps_frames=keeps_frames, joins=joins)


def _merged(captures: Sequence[Iterable[Record]], transcriber: Transcriber) -> Iterator[tuple[Record, int]]:
    """The records of all captures by the common clock, each with its capture's number in the order of their beginnings."""
    clock = Clock()
    began: list[tuple[int, Header | None, Iterator[Record]]] = []
    for records in map(iter, captures):
        first = next(records, None)
        if isinstance(first, Header):
            began.append((clock.shift_ns(first), first, records))
        elif first is not None:
            began.append((0, None, chain((first,), records)))
    began.sort(key=lambda one: one[0])
    for capture, (_, header, _) in enumerate(began):
        if header is not None:
            yield header, capture  # after which its shift is known, on the transcript's clock
    shifts_ns = {source.index: source.shift_ns for source in transcriber.transcript.captures}
    timed = [_timed(records, capture, shifts_ns.get(capture, 0)) for capture, (_, _, records) in enumerate(began)]
    for _, capture, record in merge(*timed, key=lambda one: one[0]):
        yield record, capture


def _timed(records: Iterator[Record], capture: int, shift_ns: int) -> Iterator[tuple[int, int, Record]]:
    for record in records:
        yield record.at_ns + shift_ns, capture, record
