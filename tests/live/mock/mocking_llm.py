"""A mock of a model API in a thread of this process, and its records; a test plays the client."""

from __future__ import annotations

import asyncio
import os
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from json import dumps, loads
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mcpspy.live.mock.http.server import serve
from mcpspy.live.mock.llm import LlmMock
from mcpspy.replay.mock.match_key import Strictness
from mcpspy.replay.mock.matching import RequestMatcher, Reuse
from mcpspy.replay.mock.prompt_key import PromptRules
from mcpspy.replay.mock.recorded_prompts import recorded_prompts
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S
from tests.transcript.dialogue import make_header
from tests.transcript.llm.traffic import CHAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from mcpspy.live.mock.llm import LlmPassThrough
    from mcpspy.records import Record
    from mcpspy.replay.mock.miss import Miss
    from mcpspy.transcript.model import Transcript
    from tests.transcript.llm.traffic import ModelTraffic


class Told(NamedTuple):
    """A response: its status and fields, its body as far as it came, and whether all of it did."""

    status: int
    fields: dict[str, str]
    body: bytes
    is_whole: bool

    @property
    def json(self) -> Any:
        return loads(self.body)


class ModelMocking:
    """A mock of what `traffic` recorded. Leaving the `with` block ends it."""

    def __init__(
        self,
        traffic: ModelTraffic,
        *,
        strictness: Strictness = Strictness.DEFAULT,
        ignore: Sequence[str] = (),
        reuse: Reuse = Reuse.LAST,
        speed: float = 0.0,
        plays_nearest: bool = False,
        forward: LlmPassThrough | None = None,
    ) -> None:
        prompts = recorded_prompts(transcribe(traffic.records, keep_frames=True, with_findings=False))
        exchanges = [prompt.exchange for prompt in prompts]
        finds = RequestMatcher(exchanges, strictness=strictness, ignore=ignore, reuse=reuse, rules=PromptRules)
        self.missed: list[Miss] = []
        self.records: list[Record] = []
        self._mock = LlmMock(
            prompts, finds, begin_ns=0, speed=speed, plays_nearest=plays_nearest, pass_through=forward, tell=self.missed.append
        )
        self._mock.record_to(self._record)
        self._listener = self._mock.listen("127.0.0.1", 0)
        self._signals, self._end = os.pipe()
        self._ready = Event()
        self._thread = Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(DEADLINE_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.write(self._end, bytes([15]))
        self._thread.join(DEADLINE_S)
        os.close(self._signals)
        os.close(self._end)

    @property
    def transcript(self) -> Transcript:
        """Return its records so far."""
        header = make_header(label="gpt-mock")
        header.tapped = {"transport": "http", "url": self._mock.url, "listen": self._mock.url, "leg": "model"}
        return transcribe([header, *self.records])

    def connect(self) -> HTTPConnection:
        """Connect a client."""
        return HTTPConnection("127.0.0.1", self._mock.own.port, timeout=DEADLINE_S)

    def ask(self, body: Any, path: str = CHAT, method: str = "POST", **fields: str) -> Told:
        """Send a request on a connection of its own, bytes unchanged, anything else as JSON. Returns the response."""
        connection = self.connect()
        data = body if isinstance(body, bytes) or body is None else dumps(body).encode()
        try:
            connection.request(method, path, data, {name.replace("_", "-"): value for name, value in fields.items()})
            return read_response(connection.getresponse())
        finally:
            connection.close()

    def _serve(self) -> None:
        asyncio.run(serve([(self._mock, self._listener)], self._signals, self._ready.set))

    def _record(self, records: Iterable[Record]) -> None:
        for record in records:
            record.number = len(self.records) + 1
            self.records.append(record)


def read_response(response: HTTPResponse) -> Told:
    """Read a response to its end, or to where it breaks off."""
    try:
        body, is_whole = response.read(), True
    except IncompleteRead as error:
        body, is_whole = error.partial, False
    return Told(response.status, {name.lower(): value for name, value in response.getheaders()}, body, is_whole)
