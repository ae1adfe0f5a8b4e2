"""Records to a transcript: a pure fold, the same for a capture that is read whole and for one that grows.

No clock and no file is read: headers say when captures began. Records of unknown kinds and of unknown streams become channel events.

Captures of several servers share one time axis, and lanes with unique names. A client of stdio is known by its process, because one
client talks to many servers; its name comes from its own messages. An HTTP tap is started by somebody else, and has any number of
clients. A model is named as a server is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, count
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..records import (
    CLIENT,
    CLIENT_PROCESSES,
    SERVER,
    Close,
    Damage,
    End,
    Exit,
    Frame,
    Gap,
    Header,
    Intercept,
    Note,
    Open,
    Record,
    Side,
    Stall,
    connection_ports,
    connection_processes,
)
from ..usual_lines import CloseLine, FrameLine, OpenLine, UsualLine
from .absent_facts import mark_unread
from .correlator import Correlator
from .decoder import Decoded, Decoder
from .hops import forwarded_calls
from .mcp.fields import client_name
from .mcp.methods import LISTEN
from .mcp.negotiation import ProbeDetector
from .message import REQUEST, FrameSource
from .model import (
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Message,
    Row,
    Transcript,
    UnpairedMessage,
    name_lanes,
)

if TYPE_CHECKING:
    from .calls.join import CallJoiner
    from .findings.rule import FindsCredentials
    from .http.assemble import TransactionAssembler
    from .llm.model_traffic import ModelTrafficAssembler


def transcribe(
    *captures: Iterable[Record],
    keep_frames: bool = False,
    keep_noise: bool = True,
    with_findings: bool = True,
    credentials: FindsCredentials | None = None,
) -> Transcript:
    """Return the transcript of captures that do not grow any more: of each the records, as `mcpspy.read` returns them.

    `Transcript.captures` has them in the order in which they began; rows are numbered by time. For the options see `Transcriber`.
    Raises: TypeError: if a capture is not an iterable of records, such as the path of a file.
    """
    transcriber = Transcriber(
        keep_frames=keep_frames, keep_noise=keep_noise, with_findings=with_findings, credentials=credentials
    )
    if len(captures) == 1 and isinstance(captures[0], _Batches):
        transcriber.leave_payloads(captures[0].frames)
        for batch in captures[0].batches():
            transcriber.feed_lines(batch)
    elif len(captures) == 1:
        for record in _checked(captures[0]):
            transcriber.feed(record)
    else:
        for record, capture in _merged([_checked(records) for records in captures], transcriber):
            transcriber.feed(record, capture)
    transcriber.close()
    return transcriber.transcript


@runtime_checkable
class _Batches(Protocol):
    """Records that can be taken many at a time, as `mcpspy.read` returns them, and the file in which their payloads stay."""

    frames: FrameSource | None

    def batches(self) -> Iterator[list[Record | UsualLine]]: ...


class Transcriber:
    """Rows from the records of one capture, or of several at once, which are numbered from 0.

    `feed` and `close` return the rows that are new or changed; `transcript` has all of them at any time, and the findings after
    `close`. Of captures that grow, `findings(transcript)` returns the findings so far. With `keep_frames` the streams of HTTP
    transactions keep their frames, to show HTTP as it was on the wire. Without `keep_noise` only the first and the last part of a
    frame of stdio are kept that comes in parts (1 MiB each) and cannot be a message. Without `with_findings` there are no
    findings and no calls, which also saves the time of their imports. `credentials` finds those that a text shows; None: none are
    sought.
    """

    __slots__ = (
        "_captures", "_client_names", "_keep_frames", "_keep_noise", "_next_row", "_time_axis", "_with_findings", "transcript",
    )  # fmt: skip

    def __init__(
        self,
        *,
        keep_frames: bool = False,
        keep_noise: bool = True,
        with_findings: bool = True,
        credentials: FindsCredentials | None = None,
    ) -> None:
        self.transcript = Transcript(credentials=credentials)
        self._with_findings = with_findings
        self._keep_frames = keep_frames
        self._keep_noise = keep_noise
        self._captures: list[_CaptureReader] = []
        self._time_axis = TimeAxis()
        self._client_names: dict[int, str] = {}
        self._next_row = count(1).__next__

    def leave_payloads(self, frames: FrameSource | None) -> None:
        """Leave long payloads of the only capture in its file; None: keep them."""
        if not self._captures:
            self._begin(0)
        self._captures[0].info.frames = frames

    def feed(self, record: Record, capture: int = 0) -> Sequence[Row]:
        """Take in the next record of the capture with this number."""
        if capture >= len(self._captures):
            self._begin(capture)
        if isinstance(record, Header):
            self._header(self._captures[capture].info, record)
            return ()
        return self._captures[capture].feed(record)

    def feed_lines(self, batch: Sequence[Record | UsualLine]) -> None:
        """Take in the next records of the only capture."""
        if not self._captures:
            self._begin(0)
        feed = self._captures[0].feed
        for record in batch:
            if isinstance(record, Header):
                self.feed(record)
            else:
                feed(record)

    def close(self, capture: int | None = None) -> list[Row]:
        """End this capture, of which no more records will come; None: all captures."""
        rows = self.end(capture)
        if self._with_findings:
            from .findings.run import findings  # a fifth of the time that importing this module takes

            if len(self._captures) > 1:
                self.transcript.hops = forwarded_calls(self.transcript)
            self.transcript.findings = findings(self.transcript)
        return rows

    def end(self, capture: int | None = None) -> list[Row]:
        """Do the same without findings."""
        readers = self._captures if capture is None else self._captures[capture : capture + 1]
        return [row for reader in readers for row in reader.close()]

    def _begin(self, capture: int) -> None:
        while len(self._captures) <= capture:
            info = CaptureInfo(len(self._captures))
            self.transcript.captures.append(info)
            reader = _CaptureReader(
                info,
                self.transcript.rows,
                self._next_row,
                self._learn_client_name,
                keep_frames=self._keep_frames,
                keep_noise=self._keep_noise,
                joins=self._with_findings,
            )
            self._captures.append(reader)
        self._name_lanes()

    def _header(self, info: CaptureInfo, header: Header) -> None:
        if info.header is None:
            info.header = header
            info.shift_ns = self._time_axis.shift_ns(header)
            self._name_lanes()

    def _learn_client_name(self, info: CaptureInfo, name: str) -> None:
        self._client_names.setdefault(info.index, name)
        self._name_lanes()

    def _name_lanes(self) -> None:
        name_lanes(self.transcript.captures, self._client_names)


class _CaptureReader:
    """Rows from the records of one capture. On stdio a capture is also the scope of its ids; HTTP has scopes of its own."""

    __slots__ = (
        "_calls", "_correlator", "_damaged_ns", "_decoder", "_holes", "_http", "_keep_frames", "_knows_client", "_next_row",
        "_on_client_name", "_probes", "_rows", "_unread_from", "info",
    )  # fmt: skip

    def __init__(
        self,
        info: CaptureInfo,
        rows: list[Row],
        next_row: Callable[[], int],
        on_client_name: Callable[[CaptureInfo, str], None],
        *,
        keep_frames: bool,
        keep_noise: bool,
        joins: bool,
    ) -> None:
        self.info = info
        self._http: TransactionAssembler | ModelTrafficAssembler | None = None
        self._keep_frames = keep_frames
        self._rows = rows
        self._next_row = next_row
        self._on_client_name = on_client_name
        self._decoder = Decoder(info, keeps_noise=keep_noise)
        self._calls: CallJoiner | None = None
        if joins:
            from .calls.join import CallJoiner

            self._calls = CallJoiner(info)
        self._probes = ProbeDetector()
        self._correlator = Correlator(next_row, self._probes)
        self._knows_client = False
        self._unread_from: dict[int, int] = {}
        self._holes: dict[Side, int] = {}
        """The number of the last record in whose place, or before which, messages of a side are missing."""
        self._damaged_ns = -1

    def feed(self, record: Record | UsualLine) -> Sequence[Row]:
        info, http, place = self.info, self._http, None
        if record.at_ns > info.last_ns:  # noqa: PLR1730 - `max` is a call per record
            info.last_ns = record.at_ns
        if isinstance(record, FrameLine):
            if http is None and (message := self._decoder.message_on(record)) is not None:
                return self._add_message(message)
            place = record.place
            record = record.record()
        if isinstance(record, Frame):
            if not record.data and record.length:
                info.unkept += 1
            if http is not None and (changed := http.frame(record, place)) is not None:
                return changed
            if not record.data and (stream := info.streams.get(record.stream)):
                self._holes[stream.sender] = record.number
            return self._add(self._decoder.feed(record))
        if isinstance(record, (Open, OpenLine)):
            if record.transaction:
                if http is None:
                    http = self._http = self._assembler()
                return http.open(record)
            self._decoder.open(record.record() if isinstance(record, OpenLine) else record)
            return ()
        if http is not None and isinstance(record, (Close, CloseLine)) and (changed := http.close(record)) is not None:
            return changed
        if isinstance(record, CloseLine):
            record = record.record()
        if http is not None and isinstance(record, Note) and (changed := http.note(record)) is not None:
            return changed
        if isinstance(record, Note) and record.topic == CLIENT_PROCESSES:
            info.client_processes.update(connection_processes(record))
            info.client_ports.update(connection_ports(record))
            return ()
        if isinstance(record, Intercept):
            return (self._http or self._decoder).intercept(record)
        event = ChannelEvent(info.index, record.at_ns + info.shift_ns, record)
        self._rows.append(event)
        return (event, *self._consequences(record))

    def close(self) -> Sequence[Row]:
        rows = self._add(self._decoder.close())
        self.info.closed = True
        of_http = self._http.end() if self._http is not None else ()
        over = (*rows, *of_http, *self._over(self._correlator.close()))
        if self._holes:
            over += tuple(mark_unread(self._rows, self.info, self._holes, self._damaged_ns))
        return over

    def _assembler(self) -> TransactionAssembler | ModelTrafficAssembler:
        """Return what reads HTTP. Its import takes 9 of 89 ms, for which a mock of stdio need not wait."""
        if self.info.is_model:
            from .llm.model_traffic import ModelTrafficAssembler

            return ModelTrafficAssembler(self.info, self._rows, self._next_row, keeps_frames=self._keep_frames)
        from .http.assemble import TransactionAssembler

        return TransactionAssembler(
            self.info, self._rows, self._next_row, self._on_client_name, self._calls, keeps_frames=self._keep_frames
        )

    def _consequences(self, record: Record) -> Sequence[Row]:
        """Take in an event of the channel; return the rows that it changes."""
        info = self.info
        match record:
            case Exit():
                info.exit = record
                return self._over(self._correlator.close())
            case Close(how=how) if how != "broken":  # a broken stream has no reader any more, but still has a writer
                stream = info.streams.get(record.stream)
                if record.by == CLIENT and info.left_ns is None:
                    info.left_ns = record.at_ns
                silent = stream and stream.name != "stderr" and stream.sender
                return self._over(self._correlator.close(silent)) if silent else ()
            case End():
                info.complete = not (info.gaps or info.damages)
                return self.close()
            case Note(topic="escalation"):
                info.escalations += 1
                return ()
            case Note(topic="restart"):
                return self._decoder.restart()
            case Stall():
                self._stall(record)
                return ()
            case Gap():
                info.gaps += 1
                self._holes = {CLIENT: record.number, SERVER: record.number}
            case Damage(reason=reason) if reason != "edited":  # an edited line is damaged and not missing
                info.damages += 1
                if record.is_repeated:
                    info.complete = False
                    return ()
                self._damaged_ns = record.at_ns + info.shift_ns
                self._holes.setdefault(SERVER, 0)
            case _:
                return ()
        info.complete = False
        self._decoder.damage()
        if self._http is not None:
            self._http.damage(record.at_ns + info.shift_ns)
        return ()

    def _stall(self, record: Stall) -> None:
        """Note what a reader left unread, and how long."""
        stream, lasted_ns = record.stream, record.lasted_ns
        if lasted_ns is None:
            from .waiting import first_unread

            self._unread_from[stream] = first_unread(self._rows, self.info, record)
        else:
            first = self._unread_from.pop(stream, record.number)
            self.info.unread.append([stream, record.at_ns - lasted_ns, record.at_ns, first])

    def _over(self, rows: list[Exchange]) -> Sequence[Row]:
        """Return exchanges that nobody will answer, and the first rows of their calls. A subscription ends when its client leaves."""
        left_ns = self.info.left_ns
        for row in rows:
            if left_ns is not None and row.method == LISTEN and row.cancelled is None and row.response is None:
                row.left_ns = left_ns + self.info.shift_ns
        return rows if self._calls is None else (*rows, *self._calls.firsts(rows))

    def _add(self, decoded: Sequence[Decoded]) -> Sequence[Row]:
        rows: list[Row] = []
        for item in decoded:
            if isinstance(item, Message):
                rows += self._add_message(item)
            else:
                self._rows.append(item)
                rows.append(item)
        has_changes = self.info.restarted or self.info.intercepted_ns is not None
        return [*rows, *self._decoder.mark_requests(self._rows)] if has_changes else rows

    def _add_message(self, message: Message) -> Sequence[Row]:
        """Pair a message. Return the row that it became part of, and those that changed with it."""
        info, joiner = self.info, self._calls
        info.messages += 1
        row = self._correlator.feed(message)
        if not self._knows_client and message.kind is REQUEST and message.sender == CLIENT:
            self._look_for_name(message)
        if isinstance(row, UnpairedMessage) or row.request is message:
            self._rows.append(row)
        first = joiner.feed(row, message) if joiner is not None and (info.calls or joiner.may_begin(message)) else None
        message.leave()
        if first is None and not self._probes.changed:
            return (row,)
        return (*self._probes.take_changed(), row, *(() if first is None else (first,)))

    def _look_for_name(self, request: Message) -> None:
        """Learn the client's name from one of its requests. Looking for the word first keeps this off the hot path."""
        if b"clientInfo" in request.raw:
            name = client_name(request.raw)
            if name is not None:
                self._knows_client = True
                self._on_client_name(self.info, name)


def _checked(records: Iterable[Record]) -> Iterator[Record]:
    """Return an iterator over `records`, whose first item was looked at. Raises: TypeError: if they are no records."""
    wrong: object = records
    if isinstance(wrong, str | bytes) or hasattr(wrong, "__fspath__"):
        path = wrong.decode("utf-8", "replace") if isinstance(wrong, bytes) else str(wrong)
        raise TypeError(f"transcribe takes records, not a path: use mcpspy.open({path!r})")
    if isinstance(wrong, Record):
        raise TypeError("transcribe takes the records of whole captures, not one record: use transcribe([record, …])")
    if not isinstance(wrong, Iterable):
        name = type(wrong).__name__
        raise TypeError(f"transcribe takes records, as mcpspy.read returns them, not {name}: use mcpspy.open(path)")
    iterator = iter(records)
    first: object = next(iterator, None)
    if first is None:
        return iter(())
    if isinstance(first, Record):
        return chain((first,), iterator)
    if isinstance(first, Iterable) and not isinstance(first, str | bytes):
        raise TypeError("transcribe takes each capture as an argument of its own: use transcribe(*captures)")
    raise TypeError(f"transcribe takes records, not items of type {type(first).__name__}: use mcpspy.open(path) for a file")


def _merged(captures: Sequence[Iterator[Record]], transcriber: Transcriber) -> Iterator[tuple[Record, int]]:
    """Yield the records of all captures by time, each with the number of its capture in the order in which they began."""
    time_axis = TimeAxis()
    began: list[tuple[int, Header | None, Iterator[Record]]] = []
    for records in captures:
        first = next(records, None)
        if isinstance(first, Header):
            began.append((time_axis.shift_ns(first), first, records))
        elif first is not None:
            began.append((0, None, chain((first,), records)))
    began.sort(key=lambda capture: capture[0])
    for index, (_, header, _) in enumerate(began):
        if header is not None:
            yield header, index  # fed before the next step, so that its shift on the transcript's clock is known below
    shifts_ns = {info.index: info.shift_ns for info in transcriber.transcript.captures}
    timed = [_timed(records, index, shifts_ns.get(index, 0)) for index, (_, _, records) in enumerate(began)]
    for _, index, record in merge(*timed, key=lambda item: item[0]):
        yield record, index


def _timed(records: Iterator[Record], capture: int, shift_ns: int) -> Iterator[tuple[int, int, Record]]:
    for record in records:
        yield record.at_ns + shift_ns, capture, record


class TimeAxis:
    """The common axis of several captures, which begins with the first one asked about.

    Captures of one boot are compared by the monotonic clock, which nobody sets; others by wall time.
    """

    __slots__ = ("_boots", "_wall_ns")

    def __init__(self) -> None:
        self._wall_ns: int | None = None
        self._boots: dict[str, int] = {}

    def shift_ns(self, header: Header) -> int:
        """Return the time to add to the times of this capture's records."""
        if self._wall_ns is None:
            self._wall_ns = header.wall_ns
        shift_ns = header.wall_ns - self._wall_ns
        if not header.boot_id:
            return shift_ns
        began_ns = self._boots.setdefault(header.boot_id, header.monotonic_ns - shift_ns)
        return header.monotonic_ns - began_ns
