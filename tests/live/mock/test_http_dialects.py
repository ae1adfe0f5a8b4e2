"""Recordings of a server over HTTP with every dialect: a mock sends its statuses, types and bodies, but for generated ids."""

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from shutil import copy
from typing import Any, NamedTuple

import pytest

from mcpspy.records import Frame
from mcpspy.wire.encodings import decode_body
from mcpspy.wire.sse import SseEvents
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.known_problems.stage import serving
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import ACCEPT, HttpMocking
from tests.peers.httpdialects import SAYS, events_of, reply_to
from tests.transcript.dialogue import result, tool_call
from tests.transcript.traffic import Traffic, initialize


class Response(NamedTuple):
    """A whole response; its body is decompressed."""

    status: int
    media_type: str | None
    body: bytes


def call(name: str, id: int) -> dict[str, Any]:
    """Make a request: `initialize`, or a call of the tool with this name."""
    if name == "initialize":
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        return {"jsonrpc": "2.0", "id": id, "method": name, "params": params}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}}


def read(response: HTTPResponse) -> Response:
    """Read a response to its end. The ids of events are blanked."""
    body, headers = response.read(), response.headers
    if encoding := headers.get("Content-Encoding"):
        body = decode_body(body, encoding.encode())
    return Response(response.status, headers.get("Content-Type"), re.sub(rb"(?m)^(id: ?)\w+", rb"\1", body))


def ask(host: str, message: Any) -> Response:
    """Post a message; return the whole response."""
    with closing(HTTPConnection(host, timeout=DEADLINE_S)) as connection:
        connection.request("POST", "/mcp", json.dumps(message), ACCEPT)
        return read(connection.getresponse())


def talk(host: str, first_id: int) -> dict[str, Response]:
    """Call every tool; return the responses by name."""
    batch = [call("charset", id) for id in (70 + first_id, 80 + first_id)]
    batch[1]["params"]["arguments"]["again"] = True
    told = {name: ask(host, call(name, id)) for id, name in enumerate(SAYS, first_id)}
    return told | {"batch": ask(host, batch)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the capture `a.mcpspy` of a whole session."""
    return tmp_path_factory.mktemp("dialects")


@pytest.fixture(scope="module")
def sent(folder: Path) -> dict[str, Response]:
    """Record a server, and return its responses."""
    with (
        serving(folder, "0", peer="httpdialects.py") as number,
        recorded(f"http://127.0.0.1:{number}/mcp", folder, "--redact", "none") as url,
    ):
        return talk(url.split("/")[2], 1)


@pytest.fixture(scope="module")
def played(sent: dict[str, Response], folder: Path) -> Iterator[dict[str, Response]]:
    """Return the responses of a mock of it, to a client with the same ids."""
    with HttpMocking(folder / "a.mcpspy") as mock:
        yield talk(mock.host, 1)


@pytest.mark.parametrize("name", [*SAYS, "batch"])
def test_a_mock_sends_the_response_of_the_server(name: str, sent: dict[str, Response], played: dict[str, Response]) -> None:
    assert played[name] == sent[name]


def test_live_ids_take_the_place_of_the_recorded_ones(sent: dict[str, Response], folder: Path, tmp_path: Path) -> None:
    copy(folder / "a.mcpspy", tmp_path)
    with HttpMocking(tmp_path / "a.mcpspy") as mock:
        told = talk(mock.host, 101)
    with serving(folder, "0", peer="httpdialects.py") as number:
        answers = talk(f"127.0.0.1:{number}", 101)
    without_message = {"JSON as a stream", "stream as JSON"}  # nobody can tell an id there
    assert {name for name in answers if told[name] != answers[name]} == without_message


def replayed(folder: Path, url: str) -> tuple[int, list[tuple[str, str, int]]]:
    """Replay the capture to a server; return the exit status, and how the messages in no exchange differ."""
    own = folder / f"replay-{url.split(':')[2].split('/', maxsplit=1)[0]}.mcpspy"
    done = run("replay", str(folder / "a.mcpspy"), "--json", "--url", url, "--capture", str(own))
    (client,) = json.loads(done.stdout)["clients"]
    (comparison,) = client["comparison"]["servers"]
    return done.returncode, [(change["how"], change["kind"], change["count"]) for change in comparison["messages"]]


def test_a_lost_event_without_a_message_is_a_difference(tmp_path: Path) -> None:
    recorded_by = Traffic()
    recorded_by.post(initialize(0)).answer(200, result(0))
    for id in (1, 2):
        stream = recorded_by.post(tool_call(id)).stream()
        stream.raw(b": alive\n\nevent: ping\ndata: 1\n\n").event(result(id)).raw(b"data: [DONE]\n\n").close()
    capture = written(tmp_path / "a.mcpspy", recorded_by.ends().records)
    with HttpMocking(capture) as mock:
        assert replayed(tmp_path, mock.url) == (0, [])
    lossy = [record for record in recorded_by.records if record is not last_of(recorded_by, b"[DONE]")]
    with HttpMocking(written(tmp_path / "lossy.mcpspy", lossy)) as mock:
        assert replayed(tmp_path, mock.url) == (1, [("removed", "malformed", 1)])


def last_of(traffic: Traffic, words: bytes) -> Frame:
    """Return the last frame with these words."""
    return [record for record in traffic.records if isinstance(record, Frame) and words in record.data][-1]


# --- HTTP+SSE ---


def heard(url: str, encoding: str = "identity") -> bytes:
    """Call every tool over HTTP+SSE; return the bytes of the stream after its endpoint, decompressed."""
    host, path = url.split("/")[2], "/sse"
    with closing(HTTPConnection(host, timeout=DEADLINE_S)) as listening:
        listening.request("GET", path, headers={"Accept-Encoding": encoding})
        stream = listening.getresponse()
        unpacker = zlib.decompressobj(wbits=31) if stream.headers.get("Content-Encoding") else None
        told = b""

        def more() -> bytes:
            data = stream.read1()
            assert data, "the stream ended early"
            return data if unpacker is None else unpacker.decompress(data)

        while b"\r\n\r\n" not in told:
            told += more()
        first, _, told = told.partition(b"\r\n\r\n")
        endpoint = first.partition(b"data: ")[2].strip().decode()
        size = 0
        for id, name in enumerate(SAYS, 1):
            with closing(HTTPConnection(host, timeout=DEADLINE_S)) as posting:
                posting.request("POST", endpoint, json.dumps(call(name, id)), ACCEPT)
                accepted = posting.getresponse()
                assert (accepted.status, accepted.read()) == (202, b"Accepted\n")
            size += len(events_of(reply_to(call(name, id))))
            while len(told) < size:
                told += more()
        return told


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_mock_over_http_and_sse_sends_the_stream_of_the_server(tmp_path: Path, encoding: str) -> None:
    with (
        serving(tmp_path, "0", peer="httpdialects.py") as number,
        recorded(f"http://127.0.0.1:{number}/sse", tmp_path, "--redact", "none") as url,
    ):
        told = heard(url, encoding)
    with HttpMocking(tmp_path / "a.mcpspy", "--transport", "sse") as mock:
        assert heard(mock.url) == told


def test_compressed_streams_are_read_as_plain_ones(tmp_path: Path) -> None:
    rows = []
    for encoding in ("identity", "gzip"):
        folder = tmp_path / encoding
        folder.mkdir()
        with (
            serving(folder, "0", peer="httpdialects.py") as number,
            recorded(f"http://127.0.0.1:{number}/sse", folder, "--redact", "none") as url,
        ):
            heard(url, encoding)
        shown = run("show", str(folder / "a.mcpspy"), "--json")
        found = json.loads(shown.stdout)
        told = [(row.get("row"), row["kind"], row.get("id"), row.get("method"), row.get("outcome")) for row in found["rows"]]
        rows.append(told)
    plain, compressed = rows
    assert compressed == plain


# --- without messages, without sessions ---


def test_a_capture_in_which_no_message_answers_is_played(tmp_path: Path) -> None:
    traffic = Traffic()
    for id in (1, 2):
        traffic.post(tool_call(id, f"t{id}")).answer(200, b"closed for today\n", Content_Type="text/plain")
    capture = written(tmp_path / "a.mcpspy", traffic.ends().records)
    with HttpMocking(capture) as mock:
        assert ask(mock.host, tool_call(7, "t2")) == (200, "text/plain", b"closed for today\n")
    refused = subprocess.run(
        [sys.executable, "-m", "mcpspy", "mock", str(capture)], input=b"", capture_output=True, check=False
    )
    assert refused.returncode == 2
    assert b"--listen 127.0.0.1:0 serves that" in refused.stderr


@pytest.mark.parametrize("is_first", [True, False])
def test_a_stream_without_a_session_is_played(tmp_path: Path, *, is_first: bool) -> None:
    before, after = b": hello\n\ndata: [DONE]\n\n", b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
    traffic = Traffic()
    stream = traffic.get().stream().raw(before)
    traffic.post(tool_call(1)).answer(200, result(1))
    for event in SseEvents().feed(after):
        stream.raw(event)
    with (
        HttpMocking(written(tmp_path / "a.mcpspy", traffic.ends().records)) as mock,
        closing(HTTPConnection(mock.host, timeout=DEADLINE_S)) as listening,
    ):
        if not is_first:
            assert ask(mock.host, tool_call(8)).status == 200
        listening.request("GET", "/mcp", headers=ACCEPT)
        response = listening.getresponse()
        if is_first:
            assert response.read(len(before)) == before
            assert ask(mock.host, tool_call(8)).status == 200
            assert response.read(len(after)) == after
        else:
            assert sorted(response.read(len(before + after)).split(b"\n\n")) == sorted((before + after).split(b"\n\n"))
