"""The servers beside the one that a stdio tap's pumps serve: one that starts, or one that is to end. Used for restarts alone.

Each has an `Outlet` to its stdin, and readers of its stdout and stderr. When a server takes over, the pumps exchange these ends
with it: so the client's own descriptors always belong to the same pumps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...platform.descriptors import POLLIN, POLLOUT, read, release, rest_of, sender
from ...platform.processes import ServerProcess, descendants, process
from ...records import Frame
from ...wire.lines import Lines
from .pump import READ_BYTES
from .shutdown import Shutdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from ...platform.processes import ListedProcess
    from .pump import Readiness

    class SourceKeeper(Protocol):
        """Takes what readers read."""

        ready: Readiness

        def now_ns(self) -> int: ...
        def is_blocked(self, *, is_log: bool) -> bool: ...
        def deliver(self, reader: SourceReader, frame: Frame, whole: bytes) -> None: ...
        def logged(self, server: ServerEnd, data: bytes) -> None: ...
        def ended(self, reader: SourceReader) -> None: ...


DRAIN_NS: Final = 500_000_000
"""Time after its exit for which pipes that others still hold are read."""

AGAIN_NS: Final = 10_000_000
"""Time after which a reader looks again whether the client takes what it has."""

STDOUT: Final = 1
STDERR: Final = 2

MAX_HELD_BYTES: Final = 1 << 24
"""A longer message of a server that is beside is not passed on."""


class Outlet:
    """The writing end of a server's stdin. It never blocks; what the server does not take waits."""

    def __init__(self, fd: int, ready: Readiness) -> None:
        self.target = fd
        self.send: Callable[[Any], int] = sender(fd)
        self.pending = memoryview(b"")
        self._ready = ready
        self._is_closing = False
        self.is_closed = False

    def write(self, data: bytes) -> None:
        """Send bytes behind those that wait."""
        if self.is_closed or self._is_closing:
            return
        self.pending = memoryview(b"".join((self.pending, data)))
        self.go_on()

    def go_on(self) -> None:
        """Send what waits, as far as the server takes it."""
        if self.is_closed:
            return
        try:
            self.pending = self.pending[self.send(self.pending) :] if self.pending else self.pending
        except BlockingIOError:
            pass
        except OSError:
            self._shut()
            return
        if self.pending:
            self._ready.watch(self.target, POLLOUT, self._writable)
        else:
            self._ready.forget(self.target)
            if self._is_closing:
                self._shut()

    def close(self) -> None:
        """Close it once what waits is sent."""
        self._is_closing = True
        self.go_on()

    def _writable(self, events: int) -> None:
        self.go_on()

    def _shut(self) -> None:
        self.pending = memoryview(b"")
        self._ready.forget(self.target)
        release(self.target)
        self.is_closed = True


class SourceReader:
    """A reader of one stream of a server that is beside. Its keeper gets each whole message with its frame; of a log, each line.

    `over` means that it has ended. A message that is too long comes in parts, as frames alone.
    """

    def __init__(self, server: ServerEnd, fd: int, keeper: SourceKeeper, *, is_log: bool) -> None:
        self.server = server
        self.source = fd
        self.lines = Lines()
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.first_ns = 0
        self.partial_recorded = False
        self.due_ns = 0
        self.over = False
        self._keeper = keeper
        self._ready = keeper.ready
        self._is_log = is_log
        self.go_on()

    def go_on(self) -> None:
        """Read when there is something."""
        if not self.over:
            self._ready.watch(self.source, POLLIN, self._readable)

    def on_time(self, now_ns: int) -> None:
        """Read on, if the client takes it by now."""
        if self.due_ns and now_ns >= self.due_ns:
            self.due_ns = 0
            self.go_on()

    def finish(self) -> None:
        """Read what has been written by now, and no more."""
        if not self.over:
            data, _ = rest_of(self.source)
            if data:
                self._take(data)
            self._end()

    def _readable(self, events: int) -> None:
        if self._keeper.is_blocked(is_log=self._is_log):
            self._ready.forget(self.source)
            self.due_ns = self._keeper.now_ns() + AGAIN_NS
            self._ready.interrupted = True
            return
        try:
            data = read(self.source, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self._end()

    def _take(self, data: bytes) -> None:
        now_ns = self._keeper.now_ns()
        began_ns = self.first_ns if self.lines.held_bytes or self.held else now_ns
        pieces = self.lines.feed(data)
        last = len(pieces) - 1
        for at, piece in enumerate(pieces):
            is_part = at == last and self.lines.is_part
            if self._is_log:
                self._keeper.deliver(self, self._frame(piece, now_ns, began_ns, is_part=is_part), piece)
            else:
                self._message(piece, now_ns, now_ns if at else began_ns, is_part=is_part)
        if self._is_log:
            self._keeper.logged(self.server, data)
        if pieces or began_ns == now_ns:
            self.first_ns = now_ns
        self._ready.interrupted = True

    def _message(self, piece: bytes, now_ns: int, began_ns: int, *, is_part: bool) -> None:
        """Hand on a message with its last part; one that is too long is recorded in parts, and goes no further."""
        self.held.append(piece)
        self.held_bytes += len(piece)
        if self.held_bytes > MAX_HELD_BYTES:
            for at, held in enumerate(self.held):
                frame = self._frame(held, now_ns, began_ns, is_part=is_part or at < len(self.held) - 1)
                self._keeper.deliver(self, frame, b"")
            self.held = []
        elif not is_part:
            whole = b"".join(self.held)
            self._keeper.deliver(self, self._frame(whole, now_ns, began_ns), whole)
        if not is_part:
            self.held, self.held_bytes = [], 0

    def _frame(self, data: bytes, now_ns: int, began_ns: int, *, is_part: bool = False) -> Frame:
        return Frame(STDERR if self._is_log else STDOUT, now_ns, began_ns, data, is_part)

    def _end(self) -> None:
        self.over = True
        self.due_ns = 0
        rest = b"".join((*self.held, *self.lines.close()))
        self.held, self.held_bytes = [], 0
        if rest:
            now_ns = self._keeper.now_ns()
            self._keeper.deliver(self, self._frame(rest, now_ns, self.first_ns or now_ns), b"")
        self._ready.forget(self.source)
        release(self.source)
        self._keeper.ended(self)


class ServerEnd:
    """One server: its process, the requests of the client that it has to answer, and its ends while it is beside.

    `open` has requests by id. `refused` has the ids to which mcpspy has answered in its place. `status` is its
    exit code, less than 0 for a signal.
    """

    def __init__(self, number: int, child: ServerProcess | None) -> None:
        self.number = number
        self.child = child
        listed = process(child.pid) if child is not None else None
        self.start = listed.start if listed is not None else 0
        self.open: dict[str, bytes] = {}
        self.refused: set[str] = set()
        self.renamed: dict[str, str] = {}
        """The ids of its own requests for which the client has got another one."""
        self.outlet: Outlet | None = None
        self.stdout: SourceReader | None = None
        self.stderr: SourceReader | None = None
        self.status: int | None = None
        self.exit_ns = 0
        self.deadline_ns = 0
        self.is_dead = False
        """True if it ended by itself."""
        self.has_finished = False
        """True once it gets no more time for its calls."""
        self.shutdown = Shutdown()
        self.log = b""
        """The end of what it wrote to stderr while it was beside."""
        self.failure = ""
        """The reason why it could not be started."""
        self.unused: tuple[int, ...] = ()
        """Descriptors to be closed with it."""
        self.waiting: list[Frame] = []
        """Its notifications for the client from before it took over."""

    @property
    def pid(self) -> int:
        """Its process; 0 for the place of a server that there is not."""
        return self.child.pid if self.child is not None else 0

    @property
    def readers(self) -> list[SourceReader]:
        """The readers of its streams."""
        return [reader for reader in (self.stdout, self.stderr) if reader is not None]

    @property
    def has_said_all(self) -> bool:
        """True if nothing more comes from it."""
        return all(reader.over for reader in self.readers)

    @property
    def said_all_ns(self) -> int:
        """The time from which nothing more of it is waited for; 0 while it runs."""
        return self.exit_ns + DRAIN_NS if self.exit_ns else 0

    @property
    def due_ns(self) -> int:
        """The next time at which something is due; 0 for never."""
        dues = (
            self.deadline_ns,
            0 if self.has_said_all else self.said_all_ns,
            self.shutdown.due_ns,
            *(reader.due_ns for reader in self.readers),
        )
        return min((due for due in dues if due), default=0)

    def processes(self, others: Iterable[ServerEnd]) -> list[ListedProcess]:
        """Return the processes that are this server's, and no others': those below it, and older ones that have lost their parent."""
        if not self.pid:
            return []
        listed = descendants(self.pid)
        parents = {listed_process.pid: listed_process.parent for listed_process in listed}
        pids = {other.pid for other in others if other.pid}
        later = min((other.start for other in others if other.start > self.start), default=1 << 63)

        def owner(pid: int) -> int:
            while pid in parents and pid not in pids and pid != self.pid:
                pid = parents[pid]
            return pid

        own = [(listed_process, owner(listed_process.pid)) for listed_process in listed]
        return [
            listed_process
            for listed_process, root in own
            if root == self.pid or (root not in pids and self.start <= listed_process.start < later)
        ]
