"""An upstream client under test, and what it reports, in order: messages, with the stream they came on, losses and failures."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from time import monotonic_ns
from typing import Any, ParamSpec

from mcpspy.live.upstream.protocol import Failure, UpstreamClient
from mcpspy.records import Close, Exit, Frame, Header, Note, Record
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S, POLL_S

Told = dict[str, Any] | list[Any] | Failure | str
Params = ParamSpec("Params")


def scene(play: Callable[Params, Coroutine[Any, Any, None]]) -> Callable[Params, None]:
    """Make an asynchronous test: it runs in an event loop of its own."""

    @wraps(play)
    def test(*args: Params.args, **kwargs: Params.kwargs) -> None:
        asyncio.run(play(*args, **kwargs))

    return test


class Meeting:
    """An upstream client and its reports. `abouts` are the ids on whose streams the messages came, `lost` why the server is gone."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.abouts: list[str | None] = []
        self.lost: list[str] = []
        self.complaints: list[bytes] = []
        self._told: asyncio.Queue[Told] = asyncio.Queue()
        self._begin_ns = monotonic_ns()
        self.client: UpstreamClient

    def callbacks(self) -> dict[str, Any]:
        """Return the keyword arguments to make an upstream client with."""
        return {
            "sink": self.records.extend,
            "now_ns": lambda: monotonic_ns() - self._begin_ns,
            "listener": self,
        }

    async def told(self) -> Any:
        """Wait for the client's next report."""
        return await asyncio.wait_for(self._told.get(), DEADLINE_S)

    @property
    def is_silent(self) -> bool:
        """Return whether all reports have been read."""
        return self._told.empty()

    async def says(self, message: Any) -> None:
        """Send a message: bytes unchanged, anything else as JSON."""
        await self.client.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def asks(self, message: Any) -> Any:
        """Send a message, and wait for the next report."""
        await self.says(message)
        return await self.told()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the records satisfy a condition."""
        deadline_ns = monotonic_ns() + int(DEADLINE_S * 1e9)
        while not condition():
            assert monotonic_ns() < deadline_ns, self.records
            await asyncio.sleep(POLL_S)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the records of this kind."""
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def ends(self) -> list[tuple[int, str, str]]:
        """Return stream, by whom and how of each close."""
        return [(record.stream, record.by, record.how) for record in self.of(Close)]

    @property
    def exit(self) -> Exit:
        (record,) = self.of(Exit)
        assert isinstance(record, Exit)
        return record

    @property
    def notes(self) -> list[str]:
        return [f"{note.topic}: {note.text}" for note in self.of(Note)]

    def stream(self, number: int) -> bytes:
        """Join the frames of a stream."""
        return b"".join(frame.data for frame in self.of(Frame) if frame.stream == number)

    @property
    def transcript(self) -> Transcript:
        """Return the transcript of the records."""
        header = Header(capture_id="c", wall_ns=0, monotonic_ns=0, pid=1, tapped={"transport": "stdio"})
        for number, record in enumerate(self.records, 1):
            record.number = number
        return transcribe([header, *self.records])

    def on_message(self, data: bytes, about: str | None) -> None:
        self.abouts.append(about)
        self._told.put_nowait(json.loads(data))

    def on_failed(self, failure: Failure) -> None:
        self._told.put_nowait(failure)

    def on_lost(self, why: str) -> None:
        self.lost.append(why)
        self._told.put_nowait(why)

    def on_stderr(self, data: bytes) -> None:
        self.complaints.append(data)


@asynccontextmanager
async def meeting(make: Callable[..., UpstreamClient]) -> AsyncIterator[Meeting]:
    """Start an upstream client; leaving the block closes it."""
    met = Meeting()
    met.client = make(**met.callbacks())
    await met.client.start()
    try:
        yield met
    finally:
        await asyncio.wait_for(met.client.close(), DEADLINE_S)
