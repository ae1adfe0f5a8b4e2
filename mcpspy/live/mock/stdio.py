"""A mock on stdio: it reads a client's messages, asks the script what to send, and sends it when it is due.

It is a tap without a server: bytes are recorded before they go on, and what the mock sends is recorded as injected. There is one
thread around one `poll`, and nothing else blocks.
"""

from __future__ import annotations

import os
from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from ...platform.descriptors import POLLERR, POLLHUP, POLLIN, POLLOUT, enlarge, poll, read, sender
from ...platform.signals import name, number
from ...records import CLIENT, MCPSPY, SERVER, Close, Exit, Frame, Note, Open
from ...replay.mock.batches import Batches, batch_member
from ...replay.mock.scheduled_send import LiveServerBytes, UnendedLine, in_recorded_order
from ...transcript.decoder import Decoder
from ...transcript.message import Message
from ...transcript.model import CaptureInfo, Kind
from ...wire.lines import Lines, one_line
from .put_off import PutOffSends

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...records import Record, Sink
    from ...replay.mock.miss import Miss
    from ...replay.mock.pass_through import PassThrough
    from ...replay.mock.replies import ExitProcess
    from ...replay.mock.scheduled_send import ReplyState, ScheduledSend
    from ...replay.mock.script import Script
    from .handover import Handover

STDIN: Final = 0
STDOUT: Final = 1

READ_BYTES: Final = 1 << 18
MAX_WAITING_BYTES: Final = 8 << 20
"""Bytes that a client may leave unread before nothing more is read from it or from a live server."""

GRACE_NS: Final = 1_000_000_000
"""Time for which a mock still sends after the end of its input: a user who pipes requests into it wants the answers."""

FAR_NS: Final = 1 << 61
"""Time in 73 years, which stands for never."""

_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}


class Mock:
    """A mock that plays `script` to the client at our standard streams.

    Its clock began at `begin_ns` of the monotonic one; signals are read from `signals_fd`. `speed` is how many times faster than
    recorded it answers, 0 being at once. `tell` gets each miss, for the user. With a `handover` a live server answers from a miss on,
    and the script is the handover's. `run` returns the exit status.
    """

    __slots__ = (
        "_batches", "_begin_ns", "_decoder", "_handover", "_is_gone", "_lines", "_poll", "_put_off", "_script", "_send",
        "_signals_fd", "_sink", "_status", "_stops_ns", "_tell", "_waiting", "_waiting_bytes", "why",
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
    ) -> None:
        self._script = script
        self._sink = sink
        self._begin_ns = begin_ns
        self._signals_fd = signals_fd
        self._tell = tell
        self._handover = handover
        self._lines = Lines()
        self._decoder = Decoder(CaptureInfo(0))
        self._put_off: PutOffSends[None] = PutOffSends(speed)
        self._batches = Batches()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._send = sender(STDOUT)
        self._poll = poll()
        self._stops_ns = 0
        self._is_gone = False
        self._status: int | None = None
        self.why = ""

    def now_ns(self) -> int:
        """Return the nanoseconds since our clock began."""
        return monotonic_ns() - self._begin_ns

    def run(self) -> int:
        now_ns = self.now_ns()
        opened = [
            Open(at_ns=now_ns, stream=STDIN, sender=CLIENT, name="stdin"),
            Open(at_ns=now_ns, stream=STDOUT, sender=SERVER, name="stdout", injected=True),
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
        """Wait for what comes next, and handle it."""
        for fd, events in self._poll.poll(self._patience_ms()):
            if fd == STDIN:
                self._read()
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
        if self._put_off.next_ns:
            now_ns = self.now_ns()
            if self._put_off.next_ns <= now_ns:
                self._send_due(now_ns)
        if self._stops_ns and self._status is None and not self._waiting:
            self._review_end()

    def _review_end(self) -> None:
        """End after the client's last message, unless something is still due within the grace."""
        if self._put_off.next_ns and self.now_ns() < self._stops_ns:
            return
        if self._handover is not None and self.now_ns() < self._handover.ends_ns(self._stops_ns):
            return
        self._status = self._script.exit_code
        if self._handover is not None and self._handover.status is not None:
            self._status = self._handover.status
        self.why = "client closed stdin"

    def _patience_ms(self) -> int | None:
        due_ns = self._put_off.next_ns
        if self._stops_ns and not self._waiting:
            ends_ns = self._stops_ns if due_ns else 1
            if self._handover is not None:
                ends_ns = max(ends_ns, self._handover.ends_ns(self._stops_ns))
            due_ns = min(due_ns, ends_ns) if due_ns else ends_ns
        if due_ns > FAR_NS:
            return None
        return None if not due_ns else max(0, -((self.now_ns() - due_ns) // 1_000_000))

    # The client

    def _read(self) -> None:
        """Read from the client, and play what follows."""
        try:
            data = read(STDIN, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now_ns = self.now_ns()
        if len(data) == READ_BYTES:
            enlarge(STDIN)
        pieces = self._lines.feed(data) if data else self._lines.close()
        ends_in_part, last = self._lines.is_part, len(pieces) - 1
        records: list[Record] = [
            Frame(STDIN, now_ns, now_ns, piece, ends_in_part and at == last) for at, piece in enumerate(pieces)
        ]
        sends = [send for frame in records for send in self._answers(frame)]
        if not data:
            records.append(Close(at_ns=now_ns, stream=STDIN, by=CLIENT, how="eof"))
            rest = [message for message in self._decoder.close() if isinstance(message, Message)]
            sends += [send for message in rest for send in self._script.feed(message)]
            sends += self._script.close()
            self._stops_ns = now_ns + GRACE_NS
            self._poll.unregister(STDIN)
        self._play(records, sends, now_ns)
        if self._handover is not None:
            self._handover.carry()

    def _answers(self, frame: Record) -> list[ScheduledSend]:
        messages = [message for message in self._decoder.feed(frame) if isinstance(message, Message)]  # type: ignore[arg-type]  # a Frame
        if messages and messages[0].batch:
            return self._batch_answers(messages)
        feed = self._script.feed
        return [send for message in messages for send in feed(message)]

    def _batch_answers(self, messages: list[Message]) -> list[ScheduledSend]:
        sends: list[ScheduledSend] = []
        members: list[ReplyState] = []
        for message in messages:
            answers = self._script.feed(message)
            sends += answers
            if message.kind is Kind.REQUEST:
                reply = batch_member(self._script, message.id or "null", answers)
                members += [reply] if reply is not None else []
        self._batches.add(members)
        return sends

    def _signalled(self) -> None:
        for received in read(self._signals_fd, 512):
            signal = name(received)
            self._sink((Note(at_ns=self.now_ns(), topic="signal", text=f"{signal} received"),))
            if signal in _ENDING and self._status is None:
                self._status = 128 + received
                self.why = signal

    def _lose_client(self) -> None:
        """End: nobody reads what we send any more."""
        self._sink((Close(at_ns=self.now_ns(), stream=STDOUT, by=CLIENT, how="broken"),))
        self._is_gone = True
        self._waiting.clear()
        self._status = self._script.exit_code
        self.why = "client closed stdout"

    # Sending

    def _play_live(self, sends: list[ScheduledSend]) -> None:
        """Send what a live server sent."""
        self._play([], sends, self.now_ns())

    def _play(self, records: list[Record], sends: list[ScheduledSend], now_ns: int) -> None:
        """Send what is due at once, and put off the rest. `records` come before it in the capture."""
        lines = self._batches.cancelled()
        exit: ExitProcess | None = None
        for send in in_recorded_order(sends) if len(sends) > 1 else sends:
            if self._put_off.must_wait(send):
                self._put_off.add(send, None, now_ns)
            elif exit is None and self._script.is_due(send):
                exit = send.exit
                self._add(send, records, lines)
        self._write(records, lines, is_last=exit is not None)
        if exit is not None:
            self._exit(exit)

    def _send_due(self, now_ns: int) -> None:
        records: list[Record] = []
        lines: list[bytes] = []
        while (due := self._put_off.pop(now_ns)) is not None:
            send, _ = due
            if not self._script.is_due(send):
                continue
            if send.exit is not None:
                self._write(records, lines, is_last=True)
                self._exit(send.exit)
                return
            self._add(send, records, lines)
        self._write(records, lines)

    def _add(self, send: ScheduledSend, records: list[Record], lines: list[bytes]) -> None:
        if send.data:
            line = self._batches.line(send)
            lines += [line] if line else []
        if send.miss is not None:
            records.append(Note(at_ns=self.now_ns(), topic="miss", text=send.miss.sentence))
            self._tell(send.miss)

    def _write(self, records: list[Record], lines: Sequence[bytes], *, is_last: bool = False) -> None:
        """Record what was read and what is sent, with one write; then send it. `is_last`: the process ends after it."""
        if not records and not lines:
            return
        now_ns = self.now_ns()
        frames = [self._frame(now_ns, line) for line in lines]
        if frames and isinstance(lines[-1], UnendedLine) and (is_last or self._stops_ns):
            frames[-1].data = bytes(lines[-1])
        data = b"".join(frame.data for frame in frames)
        self._sink([*records, *frames])
        if data and not self._is_gone:
            self._waiting.append(memoryview(data))
            self._waiting_bytes += len(data)
            self._flush()

    def _frame(self, now_ns: int, line: bytes) -> Frame:
        facts = {} if isinstance(line, LiveServerBytes) else {"injected": True}
        return Frame(STDOUT, now_ns, now_ns, one_line(line), **facts)

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

    def _exit(self, exit: ExitProcess) -> None:
        """End as the recorded server's process ended."""
        if exit.signal is None:
            self._status = exit.code or 0
        else:
            self._status = 128 + number(exit.signal)
        self.why = "the recorded server ended here"

    def _end(self) -> None:
        """Send what waits, as far as it is taken at once, and record the end."""
        if self._waiting:
            self._flush()
        if self._handover is not None:
            self._handover.stop()
        now_ns = self.now_ns()
        records: list[Record] = [] if self._is_gone else [Close(at_ns=now_ns, stream=STDOUT, by=MCPSPY, how="eof")]
        self._sink([*records, Exit(at_ns=now_ns, pid=os.getpid(), code=self._status)])
