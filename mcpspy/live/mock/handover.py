"""Between a mock on stdio and the live server that goes on in its place: what the client says goes there, what comes back is played.

The server's stderr is recorded with the rest, and shown. Refuses to know what is to go there and when: the machine does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...records import SERVER, Note, Open
from ...wire.http_body import Body
from ..http.recorder import StreamRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Record, Sink
    from ...replay.mock.pass_through import PassThrough
    from ...replay.mock.scheduled_send import ScheduledSend
    from ..upstream.pass_through import PassThroughThread
    from ..upstream.protocol import Failure

STDERR: Final = 2
NEVER_NS: Final = 1 << 62

OWED_NS: Final = 30_000_000_000
"""After the end of the client's input the live server may take so long for what it owes: it may have to be started first."""


class Handover:
    """`show` takes what the server writes to its stderr, `tell` a sentence for a person; `name` is what people call the server.

    `status` is the exit status of a server that was a process, and has ended; 4 where it could not be started.
    """

    __slots__ = (
        "_forward", "_is_leaving", "_name", "_now_ns", "_play", "_show", "_sink", "_stderr", "_tell", "forwarding", "is_over",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        forwarding: PassThrough,
        forward: PassThroughThread,
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        show: Callable[[bytes], None],
        tell: Callable[[str], None],
        name: str,
    ) -> None:
        self.forwarding = forwarding
        self._forward = forward
        self._sink = sink
        self._now_ns = now_ns
        self._show = show
        self._tell = tell
        self._name = name
        self._play: Callable[[list[ScheduledSend]], None] = _nothing
        self._stderr: StreamRecorder | None = None
        self._is_leaving = False
        self.is_over = False
        self.status: int | None = None

    @property
    def fd(self) -> int:
        """Can be read when the server has said something."""
        return self._forward.fd

    def play_to(self, play: Callable[[list[ScheduledSend]], None]) -> None:
        """Who plays what is to be said."""
        self._play = play

    def carry(self) -> None:
        """Hand on what is to go to the server, which is started if it is wanted now."""
        if self.forwarding.wants_server and not self._forward.is_started:
            self._forward.start()
        while self.forwarding.out:
            self._forward.put(self.forwarding.out.popleft())
        notes, self.forwarding.notes = self.forwarding.notes, []
        for text in notes:
            self._tell(text)
            self._record(text)

    def turn(self) -> None:
        """Take what the server has said."""
        for told in self._forward.take():
            told(self)
        self.carry()

    def fill(self, *, is_full: bool) -> None:
        """Whether the client is so far behind with reading that nothing more is to come from the server."""
        self._forward.fill(is_full=is_full)

    def ends_ns(self, stops_ns: int) -> int:
        """When the mock may end for all of the server. Its client has said its last, and hears the recording out until `stops_ns`.

        The server is left once it owes nothing, or has had its time.
        """
        if not self._forward.is_started or self.is_over:
            return 0
        if not self._is_leaving:
            if self.forwarding.owes and self._now_ns() < stops_ns + OWED_NS:
                return stops_ns + OWED_NS
            self._is_leaving = True
            self._forward.put(None)
        return NEVER_NS  # until it has been left, which is told

    def stop(self) -> None:
        """The mock ends now, and the server with it."""
        self._forward.stop()
        self._play = _nothing
        for told in self._forward.take():  # what it wrote to its stderr at its end
            told(self)
        if self._stderr is not None:
            self._sink(self._stderr.close(self._now_ns(), SERVER, "eof"))

    # What the server's news are told to

    def reached(self) -> None:
        self._tell(f"from here on the live server answers: {self._name}")
        self._record("from here on the live server answers")
        self._play(self.forwarding.reached())

    def late(self, patience_s: float) -> None:
        self._play(self.forwarding.late(patience_s))

    def heard(self, data: bytes, about: str | None) -> None:
        self._play(self.forwarding.heard(data, about))

    def failed(self, failure: Failure) -> None:
        self._play(self.forwarding.failed(failure.id, failure.why))

    def lost(self, why: str) -> None:
        self._play(self.forwarding.lost(why))

    def left(self, status: int | None) -> None:
        self.status = status
        self.is_over = True

    def wrote(self, data: bytes) -> None:
        now_ns = self._now_ns()
        records: list[Record] = []
        if self._stderr is None:
            self._stderr = StreamRecorder(STDERR, SERVER, "lines")
            records.append(Open(at_ns=now_ns, stream=STDERR, sender=SERVER, name="stderr"))
        self._sink([*records, *self._stderr.feed(Body(data, data), now_ns)])
        self._show(data)

    def _record(self, text: str) -> None:
        self._sink((Note(at_ns=self._now_ns(), topic="pass-through", text=text),))


def _nothing(cues: list[ScheduledSend]) -> None:
    """Who plays before anybody does."""
