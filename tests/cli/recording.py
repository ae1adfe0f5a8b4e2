"""A capture that is being recorded: by this very process, with the real writer and the real lock, line by line."""

import json
import os
import time
from typing import Any

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.catalog import entry
from mcpspy.capture.store.folder import create
from mcpspy.records import CLIENT, SERVER, Close, Exit, Frame, Header, Open, Record, Spawn


class Recording:
    """A live capture in the store, of a server that `client` (its pid) has started."""

    def __init__(self, label: str = "weather", *, client: int = 7, tapped: dict[str, Any] | None = None) -> None:
        wall_ns, self._begin_ns = time.time_ns(), time.monotonic_ns()
        fd, self.path = create(None, label, wall_ns=wall_ns)
        self._fd = fd
        parent = {"pid": client, "name": "claude", "start": 1}
        header = Header(
            capture_id=os.path.basename(self.path),
            wall_ns=wall_ns,
            monotonic_ns=self._begin_ns,
            pid=os.getpid(),
            boot_id="boot",
            parent=parent,
            label=label,
            tapped=tapped or {"transport": "stdio", "argv": ["server"], "env": []},
        )
        self._writer = Writer(fd, header_line(header))
        if tapped is not None:
            return
        now_ns = self._now_ns()
        self._writer(
            [
                Open(at_ns=now_ns, stream=0, sender=CLIENT, name="stdin"),
                Open(at_ns=now_ns, stream=1, sender=SERVER, name="stdout"),
                Open(at_ns=now_ns, stream=2, sender=SERVER, name="stderr"),
                Spawn(at_ns=now_ns, pid=9),
            ]
        )

    @property
    def id(self) -> str:
        """The id of the recording that it begins."""
        stored = entry(self.path)
        assert stored is not None
        return stored.id

    def ask(self, id: Any, method: str = "tools/call", **params: Any) -> "Recording":
        """Record a request of the client."""
        return self.line(0, {"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def answer(self, id: Any, **answer: Any) -> "Recording":
        """Record an answer of the server."""
        return self.line(1, {"jsonrpc": "2.0", "id": id, **(answer or {"result": {}})})

    def line(self, stream: int, value: Any) -> "Recording":
        """Bytes as they are, everything else as JSON on a line."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
        now_ns = self._now_ns()
        self._writer([Frame(stream, now_ns, now_ns, data)])
        return self

    def write(self, records: list[Record]) -> None:
        """Write records that another kind of tap would make."""
        self._writer(records)

    def close(self) -> None:
        """End the tap; the capture is complete."""
        self._writer.close(self._now_ns())

    def end(self) -> None:
        """Record that the client leaves and the server ends; the capture is complete."""
        now_ns = self._now_ns()
        self._writer([Close(at_ns=now_ns, stream=0, by="client", how="eof"), Exit(at_ns=now_ns, pid=9, code=0)])
        self._writer.close(now_ns)

    def kill(self) -> None:
        """Kill the tap: nothing more is written, and the lock is gone."""
        os.close(self._fd)

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._begin_ns
