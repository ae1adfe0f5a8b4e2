"""A mock of a capture over HTTP, as a process, and connections to it on which a test plays the client."""

from __future__ import annotations

import json
import socket
import subprocess
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mcpspy.capture.file.reader import read
from mcpspy.records import Note
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import COPY, MCPSPY
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import Wire
from tests.starting import Program
from tests.systems.lacking import END_SIGNAL

if TYPE_CHECKING:
    from types import TracebackType

    from mcpspy.records import Record
    from mcpspy.transcript.model import Transcript

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class HttpMocking:
    """`mcpspy mock --listen` of a capture; `is_real` if `process` has to be mcpspy itself. Leaving the `with` block ends it."""

    def __init__(self, capture: Path, *options: str, is_real: bool = False) -> None:
        self.own = capture.with_name(f"{capture.stem}-own.mcpspy")
        words = [*(MCPSPY if is_real else COPY), "mock", str(capture), "--listen", "127.0.0.1:0", "--capture", str(self.own)]
        start: type[subprocess.Popen[str]] = subprocess.Popen if is_real else Program
        self.process = start([*words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = self.process.stderr.readline().strip()
        assert self.url.startswith("http://"), self.url + self.process.stderr.read()
        self.host, _, self.path = self.url.removeprefix("http://").partition("/")
        self._open: list[Asking | Wire] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()
        self.hang_up()

    def hang_up(self) -> None:
        """Close every connection."""
        for connection in self._open:
            connection.close()
        self._open.clear()

    def connect(self, session: str = "") -> Asking:
        """Connect a client, which has no session yet unless one is named."""
        self._open.append(asking := Asking(self, session))
        return asking

    def wire(self) -> Wire:
        """Connect a raw socket."""
        host, _, port = self.host.partition(":")
        self._open.append(wire := Wire(socket.create_connection((host, int(port)), DEADLINE_S)))
        return wire

    def ends(self, number: int = END_SIGNAL) -> tuple[int, str, str]:
        """End it by a signal. Returns its exit status, its stdout, and the rest of its stderr."""
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, stdout, stderr

    def peak_kib(self) -> int:
        """Return the peak of its memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    @property
    def records(self) -> list[Record]:
        return list(read(str(self.own)))

    @property
    def transcript(self) -> Transcript:
        return transcribe(self.records)

    @property
    def topics(self) -> list[str]:
        return [record.topic for record in self.records if isinstance(record, Note) and record.topic != "signal"]


class Asking:
    """Serve one connection. Its requests are of `session`, which it learns when it is given one."""

    def __init__(self, mock: HttpMocking, session: str = "") -> None:
        self._mock = mock
        self._connection = HTTPConnection(mock.host, timeout=DEADLINE_S)
        self._responses: list[HTTPResponse] = []
        self.session = session
        self.path = f"/{mock.path}"

    def again(self) -> Asking:
        """Connect again in the same session."""
        return self._mock.connect(self.session)

    def ask(self, body: Any = None, method: str = "POST", path: str = "", **fields: str) -> Told:
        """Send a request: bytes unchanged, anything else as JSON. Returns when the head of the response is there."""
        self.send(body, method, path, **fields)
        return self.told()

    def send(self, body: Any = None, method: str = "POST", path: str = "", **fields: str) -> None:
        """Send a request, and wait for nothing."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        if self.session:
            named = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25", **named}
        self._connection.request(method, path or self.path, data, {**ACCEPT, **named})

    def told(self) -> Told:
        """Read the response to what was sent."""
        response = self._connection.getresponse()
        self._responses.append(response)
        self.session = response.headers.get("Mcp-Session-Id", self.session)
        if response.headers.get("Content-Length") == "0":
            response.read()  # else the next request could not be sent
        return Told(response)

    def close(self) -> None:
        self._connection.close()
        for response in self._responses:
            response.close()


class Told:
    """A response. Its events are read one by one, or with `messages` to their end."""

    def __init__(self, response: HTTPResponse) -> None:
        self.response = response
        self.status = response.status

    @property
    def is_stream(self) -> bool:
        return self.response.headers.get_content_type() == "text/event-stream"

    @property
    def answer(self) -> Any:
        """Parse the body as one JSON value."""
        return json.loads(self.response.read())

    def event(self) -> dict[str, str]:
        """Read the fields of the next event; empty at the end of the stream."""
        fields: dict[str, str] = {}
        while (line := self.response.readline().decode().rstrip("\r\n")) or fields:
            if not line:
                return fields
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields

    def next(self) -> Any:
        """Read the next message of the stream."""
        while not (data := self.event()["data"].strip()):
            pass
        return json.loads(data)

    @property
    def messages(self) -> list[Any]:
        """Read all messages to the end."""
        messages = []
        while event := self.event():
            if event["data"].strip():
                messages.append(json.loads(event["data"]))
        return messages
