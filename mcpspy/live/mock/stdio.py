"""A mock on stdio: hears a client on one descriptor, asks the script what to say to it, and says it on another when it is due.

It is a tap with one end taken out: what passes goes to the sink first, and what it says itself is marked as injected. Refuses to
understand: the script does. One thread around one `poll`; nothing blocks but that.
"""

from __future__ import annotations

import os
from collections import deque
from heapq import heappop, heappush
from select import POLLERR, POLLHUP, POLLIN, POLLOUT, poll
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from ...records import CLIENT, MCPSPY, SERVER, Close, Exit, Frame, Note, Open
from ...replay.mock.batches import Batches
from ...replay.mock.scheduled_send import LiveServerBytes
from ...transcript.decode import Decoder
from ...transcript.message import Message
from ...transcript.model import CaptureInfo, Kind
from ...wire.lines import Lines
from ..stdio.descriptors import enlarge, sender
from ..stdio.signals import name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...records import Record, Sink
    from ...replay.mock.miss import Miss
    from ...replay.mock.pass_through import PassThrough
    from ...replay.mock.replies import ExitProcess
    from ...replay.mock.scheduled_send import ReplyState, ScheduledSend
    from ...replay.mock.script import Script
    from ...wire.framing import StdioFraming
    from .handover import Handover

STDIN: Final = 0
STDOUT: Final = 1

READ_BYTES: Final = 1 << 18
MAX_WAITING_BYTES: Final = 8 << 20
"""When a client leaves more than that unread, we read no more of what it asks, and of what a live server says."""

GRACE_NS: Final = 1_000_000_000
"""After the end of its input a mock still says what is due within so long: whoever pipes requests into it wants the answers."""

FAR_NS: Final = 1 << 61
"""What is due later than that, in 73 years, is not waited for."""

_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}


class Mock:
    """Plays `script` to whoever holds the other ends of our standard streams.

    Its clock began at `begin_ns` of the monotonic one; `signals_fd` is where signals are told. `speed` is how many times faster than
    recorded it answers, 0 being at once. `tell` is told each miss, for a person. `handover` is there where a live server goes on
    after a miss; then the script is its own. `run` returns the exit status.
    """

    __slots__ = (
        "_batches", "_begin_ns", "_count", "_cues", "_decoder", "_floors", "_framing", "_handover", "_is_gone", "_poll",
        "_script", "_send", "_signals_fd", "_sink", "_speed", "_status", "_stops_ns", "_tell", "_waiting", "_waiting_bytes", "why",
    )  # fmt: skip

    def __init__(
        self,
        script: Script | PassThrough,
        sink: Sink,
        *,
        begin_ns: int,
        signals_fd: int,
        speed: float = 0.0,
        tell: Callable[[Miss], None],
        handover: Handover | None = None,
        framing: type[StdioFraming] = Lines,
    ) -> None:
        self._script = script
        self._sink = sink
        self._begin_ns = begin_ns
        self._signals_fd = signals_fd
        self._speed = speed
        self._tell = tell
        self._handover = handover
        self._framing = framing()
        self._decoder = Decoder(CaptureInfo(0))
        self._cues: list[tuple[int, int, ScheduledSend]] = []
        """What is due later: when, on our clock, and in which order."""
        self._count = 0
        self._batches = Batches()
        self._floors: dict[ReplyState, int] = {}
        """When the last cue of a scene is due: none of it comes before."""
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._send = sender(STDOUT)
        self._poll = poll()
        self._stops_ns = 0
        self._is_gone = False
        self._status: int | None = None
        self.why = ""

    def now_ns(self) -> int:
        """Nanoseconds since our clock began."""
        return monotonic_ns() - self._begin_ns

    def run(self) -> int:
        now_ns = self.now_ns()
        opened = [
            Open(at_ns=now_ns, stream=STDIN, sender=CLIENT, name="stdin", framing=self._framing.name),
            Open(at_ns=now_ns, stream=STDOUT, sender=SERVER, name="stdout", framing=self._framing.name, injected=True),
        ]
        self._decoder.open(opened[0])
        self._poll.register(STDIN, POLLIN)
        self._poll.register(STDOUT, 0)
        self._poll.register(self._signals_fd, POLLIN)
        if self._handover is not None:
            self._poll.register(self._handover.fd, POLLIN)
            self._handover.play_to(self._play_live)
        self._play([*opened], self._script.open(), now_ns)
        while self._status is None:
            self._turn()
        self._end()
        return self._status

    # Turns

    def _turn(self) -> None:
        """Wait for what comes next, and do it."""
        for fd, events in self._poll.poll(self._patience_ms()):
            if fd == STDIN:
                self._hear()
            elif fd == self._signals_fd:
                self._signalled()
            elif self._handover is not None and fd == self._handover.fd:
                self._handover.turn()
            elif self._waiting and events & POLLOUT:
                self._flush()
            elif events & (POLLERR | POLLHUP):
                self._lose_client()
            if self._status is not None:
                return
        if self._cues:
            now_ns = self.now_ns()
            if self._cues[0][0] <= now_ns:
                self._say_due(now_ns)
        if self._stops_ns and self._status is None and not self._waiting:
            self._review_end()

    def _review_end(self) -> None:
        """The client has said its last: end, unless something is still to be said within the grace."""
        if self._cues and self.now_ns() < self._stops_ns:
            return
        if self._handover is not None and self.now_ns() < self._handover.ends_ns(self._stops_ns):
            return
        self._status = self._script.exit_code
        if self._handover is not None and self._handover.status is not None:
            self._status = self._handover.status
        self.why = "client closed stdin"

    def _patience_ms(self) -> int | None:
        due_ns = self._cues[0][0] if self._cues else 0
        if self._stops_ns and not self._waiting:
            ends_ns = self._stops_ns if self._cues else 1
            if self._handover is not None:
                ends_ns = max(ends_ns, self._handover.ends_ns(self._stops_ns))
            due_ns = min(due_ns, ends_ns) if due_ns else ends_ns
        if due_ns > FAR_NS:
            return None
        return None if not due_ns else max(0, -((self.now_ns() - due_ns) // 1_000_000))

    # The client

    def _hear(self) -> None:
        try:
            data = os.read(STDIN, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now_ns = self.now_ns()
        if len(data) == READ_BYTES:
            enlarge(STDIN)
        pieces = self._framing.feed(data) if data else self._framing.close()
        ends_in_part, last = self._framing.is_part, len(pieces) - 1
        records: list[Record] = [
            Frame(STDIN, now_ns, now_ns, piece, ends_in_part and at == last) for at, piece in enumerate(pieces)
        ]
        cues = [cue for frame in records for cue in self._heard(frame)]
        if not data:
            records.append(Close(at_ns=now_ns, stream=STDIN, by=CLIENT, how="eof"))
            cues += [cue for one in self._decoder.close() if isinstance(one, Message) for cue in self._script.feed(one)]
            cues += self._script.close()
            self._stops_ns = now_ns + GRACE_NS
            self._poll.unregister(STDIN)
        self._play(records, cues, now_ns)
        if self._handover is not None:
            self._handover.carry()

    def _heard(self, frame: Record) -> list[ScheduledSend]:
        messages = [one for one in self._decoder.feed(frame) if isinstance(one, Message)]  # type: ignore[arg-type]  # a Frame
        if messages and messages[0].batch:
            return self._heard_batch(messages)
        feed = self._script.feed
        return [cue for one in messages for cue in feed(one)]

    def _heard_batch(self, messages: list[Message]) -> list[ScheduledSend]:
        cues: list[ScheduledSend] = []
        members: list[ReplyState] = []
        for one in messages:
            fed = self._script.feed(one)
            cues += fed
            if one.kind is Kind.REQUEST:
                answered = next((cue.state for cue in fed if cue.answers), None) or self._script.open_request(one.id or "null")
                members += [answered] if answered is not None else []
        self._batches.add(members)
        return cues

    def _signalled(self) -> None:
        for number in os.read(self._signals_fd, 512):
            told = name(number)
            self._sink((Note(at_ns=self.now_ns(), topic="signal", text=f"{told} received"),))
            if told in _ENDING and self._status is None:
                self._status = 128 + number
                self.why = told

    def _lose_client(self) -> None:
        """Nobody reads us any more, so there is nobody to play for."""
        self._sink((Close(at_ns=self.now_ns(), stream=STDOUT, by=CLIENT, how="broken"),))
        self._is_gone = True
        self._waiting.clear()
        self._status = self._script.exit_code
        self.why = "client closed stdout"

    # What we say

    def _play_live(self, cues: list[ScheduledSend]) -> None:
        """Say what a live server says."""
        self._play([], cues, self.now_ns())

    def _play(self, heard: list[Record], cues: list[ScheduledSend], now_ns: int) -> None:
        """Say what is due at once, and put off the rest. `heard` is recorded before it."""
        lines = self._batches.cancelled() if self._batches else []
        leave: ExitProcess | None = None
        for cue in cues:
            if self._speed and (cue.delay_ns or cue.state in self._floors):
                self._put_off(cue, now_ns)
            elif leave is None and self._script.is_due(cue):
                leave = cue.exit
                self._add(cue, heard, lines)
        self._say(heard, lines)
        if leave is not None:
            self._leave(leave)

    def _put_off(self, cue: ScheduledSend, now_ns: int) -> None:
        due_ns = now_ns + int(cue.delay_ns / self._speed)
        if cue.state is not None:
            due_ns = self._floors[cue.state] = max(due_ns, self._floors.get(cue.state, 0))
        self._count += 1
        heappush(self._cues, (due_ns, self._count, cue))

    def _say_due(self, now_ns: int) -> None:
        records: list[Record] = []
        lines: list[bytes] = []
        while self._cues and self._cues[0][0] <= now_ns:
            due_ns, _, cue = heappop(self._cues)
            if self._floors.get(cue.state) == due_ns:
                del self._floors[cue.state]
            if not self._script.is_due(cue):
                continue
            if cue.exit is not None:
                self._say(records, lines)
                self._leave(cue.exit)
                return
            self._add(cue, records, lines)
        self._say(records, lines)

    def _add(self, cue: ScheduledSend, records: list[Record], lines: list[bytes]) -> None:
        if cue.data:
            line = self._batches.line(cue) if self._batches else cue.data
            lines += [line] if line else []
        if cue.miss is not None:
            records.append(Note(at_ns=self.now_ns(), topic="miss", text=cue.miss.sentence))
            self._tell(cue.miss)

    def _say(self, records: list[Record], lines: Sequence[bytes]) -> None:
        """Record what was heard and what is said to it, with one write; then say it."""
        if not records and not lines:
            return
        now_ns = self.now_ns()
        frames = [self._frame(now_ns, line) for line in lines]
        data = b"".join(frame.data for frame in frames)
        self._sink([*records, *frames])
        if data and not self._is_gone:
            self._waiting.append(memoryview(data))
            self._waiting_bytes += len(data)
            self._flush()

    def _frame(self, now_ns: int, line: bytes) -> Frame:
        facts = {} if isinstance(line, LiveServerBytes) else {"injected": True}
        return Frame(STDOUT, now_ns, now_ns, self._framing.frame_of(line), **facts)

    def _flush(self) -> None:
        while self._waiting:
            try:
                sent = self._send(self._waiting[0])
            except BlockingIOError:
                break
            except OSError:
                self._lose_client()
                return
            self._waiting_bytes -= sent
            if sent < len(self._waiting[0]):
                self._waiting[0] = self._waiting[0][sent:]
            else:
                self._waiting.popleft()
        self._poll.modify(STDOUT, POLLOUT if self._waiting else 0)
        is_full = self._waiting_bytes > MAX_WAITING_BYTES
        if not self._stops_ns:
            self._poll.modify(STDIN, 0 if is_full else POLLIN)
        if self._handover is not None:
            self._handover.fill(is_full=is_full)

    # The end

    def _leave(self, leave: ExitProcess) -> None:
        """The recorded server's process ended here, and so does ours."""
        if leave.signal is None:
            self._status = leave.code or 0
        else:
            from signal import Signals

            self._status = 128 + getattr(Signals, leave.signal, Signals.SIGKILL)
        self.why = "the recorded server ended here"

    def _end(self) -> None:
        """Say what waits as far as it is taken at once, and write down how it ended."""
        if self._waiting:
            self._flush()
        if self._handover is not None:
            self._handover.stop()
        now_ns = self.now_ns()
        records: list[Record] = [] if self._is_gone else [Close(at_ns=now_ns, stream=STDOUT, by=MCPSPY, how="eof")]
        self._sink([*records, Exit(at_ns=now_ns, pid=os.getpid(), code=self._status)])
