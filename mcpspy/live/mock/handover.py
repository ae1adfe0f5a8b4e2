"""The handover of a mock on stdio to a live server, which answers from a miss on: it carries messages both ways.

The script decides what goes to the server and when (`replay.mock.pass_through`). The server's stderr is recorded and shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...records import SERVER, Note, Open, Record, Sink
from ...wire.http_body import Body
from ..http.recorder import StreamRecorder

if TYPE_CHECKING:
    from ...replay.mock.pass_through import PassThrough
    from ...replay.mock.scheduled_send import ScheduledSend
    from ..upstream.pass_through import PassThroughThread
    from ..upstream.protocol import Failure

STDERR: Final = 2
NEVER_NS: Final = 1 << 62

OWED_NS: Final = 30_000_000_000
"""Time that the live server has for what it owes after the end of the client's input: it may have to be started first."""


class Handover:
    """A mock's connection to its live server, `name`. `show` takes the server's stderr, `tell` a sentence for the user.

    `status` is the exit status of a server that was a process and has ended; 4 if it could not be started.
    """

    __slots__ = (
        "_server", "_is_leaving", "_name", "_now_ns", "_play", "_show", "_sink", "_stderr", "_tell", "script", "is_over",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        script: PassThrough,
        server: PassThroughThread,
        *,
        sink: Sink,
        now_ns: Callable[[], int],
        show: Callable[[bytes], None],
        tell: Callable[[str], None],
        name: str,
    ) -> None:
        self.script = script
        self._server = server
        self._sink = sink
        self._now_ns = now_ns
        self._show = show
        self._tell = tell
        self._name = name
        self._play: Callable[[list[ScheduledSend]], None] = _ignore
        self._stderr: StreamRecorder | None = None
        self._is_leaving = False
        self.is_over = False
        self.status: int | None = None

    @property
    def fd(self) -> int:
        """Readable when there is news of the server."""
        return self._server.fd

    def play_to(self, play: Callable[[list[ScheduledSend]], None]) -> None:
        """Have `play` send what the live server says."""
        self._play = play

    def carry(self) -> None:
        """Send what is due to the server, and start it if it is needed now."""
        if self.script.wants_server and not self._server.is_started:
            self._server.start()
        while self.script.out:
            self._server.put(self.script.out.popleft())
        notes, self.script.notes = self.script.notes, []
        for text in notes:
            self._tell(text)
            self._record(text)

    def turn(self) -> None:
        """Take the news of the server."""
        for news in self._server.take():
            news(self)
        self.carry()

    def fill(self, *, is_full: bool) -> None:
        """Read nothing more from the server as long as its client `is_full`: too far behind with reading."""
        self._server.fill(is_full=is_full)

    def ends_ns(self, stops_ns: int) -> int:
        """Return when the mock may end, as far as the server matters; 0 for at once.

        The client has closed its input, and the script ends at `stops_ns`. The server is left once it owes nothing, or after
        its time.
        """
        if not self._server.is_started or self.is_over:
            return 0
        if not self._is_leaving:
            if self.script.owes and self._now_ns() < stops_ns + OWED_NS:
                return stops_ns + OWED_NS
            self._is_leaving = True
            self._server.put(None)
        return NEVER_NS  # until `on_left`

    def stop(self) -> None:
        """End the server, because the mock ends."""
        self._server.stop()
        self._play = _ignore
        for news in self._server.take():  # what it wrote to its stderr at its end
            news(self)
        if self._stderr is not None:
            self._sink(self._stderr.close(self._now_ns(), SERVER, "eof"))

    # News of the server

    def on_reached(self) -> None:
        self._tell(f"from here on the live server answers: {self._name}")
        self._record("from here on the live server answers")
        self._play(self.script.reached())

    def on_late(self, patience_s: float) -> None:
        self._play(self.script.late(patience_s))

    def on_message(self, data: bytes, about: str | None) -> None:
        self._play(self.script.heard(data, about))

    def on_failed(self, failure: Failure) -> None:
        self._play(self.script.failed(failure.id, failure.why))

    def on_lost(self, why: str) -> None:
        self._play(self.script.lost(why))

    def on_left(self, status: int | None) -> None:
        self.status = status
        self.is_over = True

    def on_stderr(self, data: bytes) -> None:
        now_ns = self._now_ns()
        records: list[Record] = []
        if self._stderr is None:
            self._stderr = StreamRecorder(STDERR, SERVER, "lines")
            records.append(Open(at_ns=now_ns, stream=STDERR, sender=SERVER, name="stderr"))
        self._sink([*records, *self._stderr.feed(Body(data, data), now_ns)])
        self._show(data)

    def _record(self, text: str) -> None:
        self._sink((Note(at_ns=self._now_ns(), topic="pass-through", text=text),))


def _ignore(sends: list[ScheduledSend]) -> None:
    """Do nothing: there is nobody to send it to."""
