"""The client of a live server over Streamable HTTP: what it sends, what it reports, and servers that misbehave."""

import asyncio
import gzip
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from captures.serving import PEERS, port, started
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.errors import UpstreamError
from mcpspy.live.upstream.headers import UpstreamMessage, field_value
from mcpspy.live.upstream.http import OutgoingRequest
from mcpspy.live.upstream.protocol import Failure
from mcpspy.live.upstream.sse import SseClient
from mcpspy.live.upstream.streamable import Post, StreamableClient
from mcpspy.records import Close, Frame, Open, Partial
from mcpspy.transcript.http.head import decoded_value
from mcpspy.transcript.model import Outcome
from tests.deadlines import DEADLINE_S
from tests.live.http.meeting import Meeting, meeting, scene
from tests.live.http.puppet import STREAM, Puppet, Request, answer, chunk, event, held, puppet, stream
from tests.transcript.dialogue import error, notification, request, result, tool_call

REVISION = "2025-11-25"
OPENING = request(
    1,
    "initialize",
    {"protocolVersion": REVISION, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}},
)
OPENED = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
INITIALIZED = notification("notifications/initialized")
WELCOME = answer(200, result(1, OPENED), Mcp_Session_Id="abc")
TAKEN = answer(202)
NO_STREAM = answer(405)


def modern(id: Any, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    return request(id, method, {**(params or {}), "_meta": meta})


@asynccontextmanager
async def facing(*replies: Any, **options: Any) -> AsyncIterator[tuple[Puppet, Meeting]]:
    """Run a client of a puppet with these replies."""
    async with puppet(*replies) as server, meeting(partial(StreamableClient, server.url, **options)) as met:
        yield server, met


def heads(met: Meeting, name: str) -> list[bytes]:
    return [record.head for record in met.of(Open) if record.name == name]


# Servers that others wrote


@pytest.mark.parametrize(("mode", "path", "kind"), [("http", "/mcp", StreamableClient), ("sse", "/sse", SseClient)])
def test_a_server_on_the_sdk_is_heard_asks_back_and_reads_like_a_tap(
    mode: str, path: str, kind: Callable[..., Any], tmp_path: Path
) -> None:
    async def play(url: str) -> None:
        async with meeting(partial(kind, url)) as met:
            assert (await met.asks(OPENING))["result"]["serverInfo"]["name"] == "labserver"
            await met.says(INITIALIZED)
            question = await met.asks(tool_call(2, "greet"))
            assert question["method"] == "elicitation/create"
            await met.says(result(question["id"], {"action": "accept", "content": {"name": "Ada"}}))
            assert (await met.told())["id"] == 2
        methods = [(exchange.method, exchange.sender, exchange.outcome) for exchange in met.transcript.exchanges]
        assert methods == [
            ("initialize", "client", Outcome.OK),
            ("tools/call", "client", Outcome.OK),
            ("elicitation/create", "server", Outcome.OK),
        ]
        assert all(record.injected == (record.name == "request") for record in met.of(Open))
        assert met.lost == []

    words = [sys.executable, str(PEERS / "pyserver.py"), mode, "0"]
    with started(words, tmp_path, tmp_path / "log", {}) as output:
        asyncio.run(play(f"http://127.0.0.1:{port(output)}{path}"))


def test_a_server_on_the_sdk_takes_modern_requests_and_sees_them_cancelled(tmp_path: Path) -> None:
    async def play(url: str) -> None:
        async with meeting(partial(StreamableClient, url)) as met:
            read = await met.asks(modern("a", "resources/read", {"uri": "lab://café/x"}))
            assert read["result"]["contents"][0]["uri"] == "lab://café/x"
            call = modern(2, "tools/call", {"name": "slow", "arguments": {"n": 1000}})
            call["params"]["_meta"]["progressToken"] = 2
            assert (await met.asks(call))["method"] == "notifications/progress"
            await met.client.cancel("2")
        assert met.transcript.exchanges[-1].outcome is Outcome.CANCELLED

    words = [sys.executable, str(PEERS / "pyserver.py"), "http", "0"]
    with started(words, tmp_path, tmp_path / "log", {}) as output:
        asyncio.run(play(f"http://127.0.0.1:{port(output)}/mcp"))


# What goes out


@scene
async def test_the_session_and_the_revision_go_with_every_message_after_the_first() -> None:
    async with facing(WELCOME, TAKEN, answer(200, result(2))) as (server, met):
        met.client._listens = False  # type: ignore[attr-defined]  # the server stream is another test's
        await met.asks(OPENING)
        await met.says(INITIALIZED)
        await met.asks(request(2))
    names = ("mcp-session-id", "mcp-protocol-version")
    assert [tuple(request.fields.get(name) for name in names) for request in server.requests] == [
        (None, None), ("abc", REVISION), ("abc", REVISION), ("abc", REVISION)
    ]  # fmt: skip
    assert server.lines[-1] == "DELETE /mcp"


@scene
async def test_a_server_without_sessions_is_not_asked_to_delete_one() -> None:
    async with facing(answer(200, result(1, OPENED))) as (server, met):
        await met.asks(OPENING)
    assert server.lines == ["POST /mcp"]


@scene
async def test_a_modern_request_names_its_revision_method_and_target_and_no_session() -> None:
    async with facing(WELCOME, answer(200, result(2))) as (server, met):
        await met.asks(OPENING)
        await met.asks(modern(2, "resources/read", {"uri": "lab://café/x"}))
    fields = server.requests[1].fields
    assert (fields["mcp-protocol-version"], fields["mcp-method"]) == ("2026-07-28", "resources/read")
    assert fields["mcp-name"] == "=?base64?bGFiOi8vY2Fmw6kveA==?="
    assert "mcp-session-id" not in fields


@scene
async def test_arguments_that_the_servers_schema_marks_are_repeated_in_fields() -> None:
    inner = {"type": "object", "properties": {"id": {"type": "integer", "x-mcp-header": "Tenant"}}}
    properties = {"region": {"type": "string", "x-mcp-header": "Region"}, "on": {"x-mcp-header": "On"}, "of": inner}
    tools = {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": properties}}]}
    async with facing(answer(200, result(1, tools)), answer(200, result(2))) as (server, met):
        await met.asks(modern(1, "tools/list"))
        await met.asks(modern(2, "tools/call", {"name": "t", "arguments": {"region": "Zürich", "on": True, "of": {"id": 7}}}))
    meanings = {name: decoded_value(value) for name, value in server.requests[1].fields.items() if name.startswith("mcp-param")}
    assert meanings == {"mcp-param-region": "Zürich", "mcp-param-on": "true", "mcp-param-tenant": "7"}


@pytest.mark.parametrize("value", ["", " x", "x ", "é", "a\nb", "=?base64?eA==?=", "=?base64?%?=", "tab\t"])
def test_a_value_that_would_not_arrive_as_it_is_goes_in_base64(value: str) -> None:
    assert field_value(value).startswith(b"=?base64?")
    assert decoded_value(field_value(value).decode()) == value


def test_a_plain_value_goes_as_it_is() -> None:
    assert field_value("file:///a b?=") == b"file:///a b?="


@scene
async def test_the_users_fields_go_with_every_request_in_place_of_ours() -> None:
    headers = [(b"Authorization", b"Bearer s3cr3t"), (b"User-Agent", b"mine")]
    async with facing(WELCOME, headers=headers) as (server, met):
        await met.asks(OPENING)
    assert {(request.fields["authorization"], request.fields["user-agent"]) for request in server.requests} == {
        ("Bearer s3cr3t", "mine")
    }


@scene
async def test_secrets_are_redacted_on_their_way_to_the_capture() -> None:
    records: list[Any] = []
    async with puppet(WELCOME) as server:
        met = Meeting()
        callbacks = {**met.callbacks(), "sink": RedactingSink(records.extend, Redactor(b"k" * 32))}
        met.client = StreamableClient(server.url, **callbacks, headers=[(b"Authorization", b"Bearer s3cr3t")])
        await met.client.start()
        await met.asks(OPENING)
        await met.client.close()
    heads = b"".join(record.head for record in records if isinstance(record, Open))
    assert b"s3cr3t" not in heads
    assert b"Session-Id: abc" not in heads
    assert heads.count(b"Authorization: Bearer redacted-") == 2


@scene
async def test_sending_a_notification_lasts_until_it_is_taken() -> None:
    may_take = asyncio.Event()

    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.wait_for(may_take.wait(), DEADLINE_S)
        writer.write(TAKEN)

    async with facing(slow, answer(200, result(2))) as (server, met):
        sending = asyncio.create_task(met.says(notification("notifications/roots/list_changed")))
        await asyncio.wait_for(server.came.wait(), DEADLINE_S)
        assert await met.asks(request(2)) == result(2)  # a whole round trip, in which a send that does not wait would end
        assert not sending.done()
        may_take.set()
        await asyncio.wait_for(sending, DEADLINE_S)


@scene
async def test_a_request_is_not_waited_for() -> None:
    async with facing(held(), answer(200, result(2))) as (_, met):
        await met.says(request(1))
        assert await met.asks(request(2)) == result(2)


@scene
async def test_the_server_stream_is_opened_once_the_session_is_and_read() -> None:
    news = event(notification("notifications/tools/list_changed"))
    async with facing(WELCOME, TAKEN, held(news)) as (server, met):
        await met.asks(OPENING)
        assert (await met.asks(INITIALIZED))["method"] == "notifications/tools/list_changed"
        assert met.abouts[-1] is None
    assert server.lines[2] == "GET /mcp"


@scene
async def test_a_server_without_a_server_stream_is_not_asked_again() -> None:
    async with facing(WELCOME, TAKEN, NO_STREAM, answer(200, result(2))) as (server, met):
        await met.asks(OPENING)
        await met.says(INITIALIZED)
        assert await met.asks(request(2)) == result(2)
    assert server.lines == ["POST /mcp", "POST /mcp", "GET /mcp", "POST /mcp", "DELETE /mcp"]


# What is heard


@pytest.mark.parametrize(
    "reply",
    [
        answer(200, result(7)),
        stream(event(result(7))),
        stream(event("", "id: 0"), b": ping\n\n", event("[DONE]", "event: other"), event(result(7))),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + json.dumps(result(7)).encode(),
        answer(200, gzip.compress(json.dumps(result(7)).encode()), Content_Encoding="gzip"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, result(7)),
        answer(200, [result(7)]),
        answer(404, error(7)),
    ],
    ids=["json", "events", "other events", "until it closes", "gzip", "interim", "batch", "404"],
)
@scene
async def test_an_answer_is_heard_however_it_comes(reply: bytes) -> None:
    async with facing(reply) as (_, met):
        assert (await met.asks(request(7)))["id"] == 7
        assert met.abouts == ["7"]
    assert met.is_silent


@scene
async def test_an_event_in_single_bytes_is_one_message_with_its_chunks() -> None:
    event_bytes = event(result(7))
    async with facing(stream(*(event_bytes[at : at + 1] for at in range(len(event_bytes))))) as (_, met):
        assert await met.asks(request(7)) == result(7)
    frame = next(frame for frame in met.of(Frame) if frame.data == event_bytes)
    assert frame.chunks == (1,) * len(event_bytes)


@scene
async def test_giving_up_a_modern_request_closes_its_stream() -> None:
    async with facing(held(event(notification("notifications/progress", {"progressToken": 1})))) as (server, met):
        await met.asks(modern(1, "tools/call", {"name": "t"}))
        server.left.clear()
        await met.client.cancel("1")
        await asyncio.wait_for(server.left.wait(), DEADLINE_S)
    assert (server.lines, met.is_silent) == (["POST /mcp"], True)
    assert [(record.by, record.how) for record in met.of(Close)][-1] == ("client", "broken")


@scene
async def test_a_recorded_cancellation_of_a_modern_request_closes_its_stream_too() -> None:
    async with facing(held()) as (server, met):
        await met.says(modern(1, "tools/call", {"name": "t"}))
        await asyncio.wait_for(server.came.wait(), DEADLINE_S)
        await met.says(notification("notifications/cancelled", {"requestId": 1}))
        await asyncio.wait_for(server.left.wait(), DEADLINE_S)
    assert server.lines == ["POST /mcp"]


@scene
async def test_giving_up_a_request_of_a_session_is_a_notification() -> None:
    async with facing(WELCOME, held(), TAKEN) as (server, met):
        await met.asks(OPENING)
        await met.says(request("a"))
        await met.client.cancel('"a"')
    assert server.requests[2].said == notification("notifications/cancelled", {"requestId": "a"})


# Streams that are resumed


@scene
async def test_a_stream_that_ends_before_its_answer_is_taken_up_where_it_ended() -> None:
    first = stream(event("", "id: p1", "retry: 5"), event(notification("notifications/message"), "id: p2"))
    async with facing(WELCOME, first, stream(event(result(2), "id: p3"))) as (server, met):
        await met.asks(OPENING)
        await met.asks(request(2))
        assert await met.told() == result(2)
    assert (server.lines[2], server.requests[2].fields["last-event-id"]) == ("GET /mcp", "p2")
    assert met.abouts[-1] == "2"
    assert met.is_silent


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ([NO_STREAM], "HTTP 405 for the stream that was to be resumed"),
        ([stream(), stream()], "the stream ended before the response, and resuming it brought nothing"),
    ],
)
@scene
async def test_a_stream_that_brings_nothing_more_fails_its_request(replies: list[bytes], why: str) -> None:
    async with facing(stream(event("", "id: p1", "retry: 5")), *replies) as (server, met):
        failure = await met.asks(request(2))
    assert (failure.id, failure.why) == ("2", why)
    assert len(server.requests) == 1 + len(replies)


@scene
async def test_a_modern_stream_that_breaks_is_not_taken_up() -> None:
    async with facing(stream(event("", "id: p1", "retry: 5"))) as (server, met):
        assert (await met.asks(modern(2, "tools/list"))).why == "HTTP 200 OK: the response held no answer"
    assert len(server.requests) == 1


# What should not be


BROKEN = {
    "500": (answer(500, b"boom\nat line 7"), 500, "HTTP 500 Words: boom"),
    "500 with a page": (answer(500, b"\n<!DOCTYPE html>"), 500, "HTTP 500 Words"),
    "401": (answer(401), 401, "HTTP 401 Words"),
    "null id": (answer(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no"}}), 400, "HTTP 400 Words"),
    "a page": (answer(200, b"<html>", Content_Type="text/html"), 200, "HTTP 200 Words: the response held no answer"),
    "accepted": (TAKEN, 202, "HTTP 202 Words: the response held no answer"),
    "another id": (answer(200, result(8)), 200, "HTTP 200 Words: the response held no answer"),
    "no response": (b"", 0, "it closed the connection before its response"),
    "half a head": (b"HTTP/1.1 200 OK\r\nConte", 0, "it closed the connection before its response"),
    "half a body": (answer(200, result(7))[:-5], 200, "HTTP 200 Words: the response was cut short"),
    "half an event": (STREAM + chunk(event(result(7))[:-5]), 200, "HTTP 200 OK: the response was cut short"),
    "an event without its end": (stream(event(result(7))[:-1]), 200, "HTTP 200 OK: the response held no answer"),
    "no HTTP": (b"220 smtp ready\r\n\r\n", 0, "its response is not valid HTTP: no HTTP/1.x status line"),
    "packed": (answer(200, b"{}", Content_Encoding="zip"), 200, "HTTP 200 Words: its body cannot be read: no decoder for the content coding zip"),  # noqa: E501
    "redirected away": (
        answer(307, Location="http://127.0.0.1:1/mcp"), 307, "HTTP 307 Words to http://127.0.0.1:1/mcp, which is another origin"
    ),
    "redirected, other way": (answer(302, Location="/login"), 302, "HTTP 302 Words"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
@scene
async def test_a_request_without_an_answer_fails_once_and_is_not_sent_again(name: str) -> None:
    reply, status, why = BROKEN[name]
    async with facing(reply) as (server, met):
        await met.says(request(7))
        message = await met.told()
        while not isinstance(message, Failure):  # what was said all the same is heard
            message = await met.told()
        assert message == Failure(id="7", method="tools/list", status=status, why=why)
    assert (len(server.requests), met.lost) == (1, [])


@scene
async def test_a_reset_connection_fails_its_request_and_is_not_sent_again() -> None:
    async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        await writer.drain()
        writer.transport.abort()

    async with facing(reset) as (server, met):
        failure = await met.asks(request(7))
    assert failure.id == "7"
    assert len(server.requests) == 1


@scene
async def test_an_error_for_the_whole_request_is_heard_before_it_fails() -> None:
    async with facing(BROKEN["null id"][0]) as (_, met):
        assert (await met.asks(request(7)))["error"]["code"] == -32000
        assert met.abouts == ["7"]
        assert (await met.told()).id == "7"


@scene
async def test_a_notification_that_is_refused_fails_without_an_id() -> None:
    async with facing(answer(404, b"gone")) as (_, met):
        assert await met.asks(INITIALIZED) == Failure(
            id=None, method="notifications/initialized", status=404, why="HTTP 404 Words: gone"
        )


@scene
async def test_a_redirect_within_the_origin_is_followed_with_the_message() -> None:
    async with facing(answer(307, Location="/mcp/"), answer(200, result(7))) as (server, met):
        assert await met.asks(request(7)) == result(7)
    assert server.lines == ["POST /mcp", "POST /mcp/"]
    assert server.requests[1].said == request(7)


@scene
async def test_redirects_in_a_circle_send_a_message_to_no_place_twice() -> None:
    async with facing(answer(308, Location="/a"), *[answer(308, Location="/mcp")] * 9) as (server, met):
        assert (await met.asks(request(7))).why == "HTTP 308 Words to /mcp, where it was sent already"
    assert server.lines == ["POST /mcp", "POST /a"]


@scene
async def test_redirects_without_end_are_followed_three_times() -> None:
    async with facing(*[answer(308, Location=f"/{at}") for at in range(9)]) as (server, met):
        assert (await met.asks(request(7))).why == "HTTP 308 Words, for the 4th time"
    assert len(server.requests) == 4


@scene
async def test_a_line_of_events_without_end_is_recorded_and_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.http.MAX_MESSAGE_BYTES", 3_000_000)
    endless = stream(*[b"data: " + b"x" * 1_000_000] * 5, b"\n\n", event(result(7)))
    async with facing(endless) as (_, met):
        assert await met.asks(request(7)) == result(7)
    assert [note.partition(":")[0] for note in met.notes] == ["too-long"]


@scene
async def test_half_an_event_that_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.partials.PARTIAL_S", 0.05)
    async with facing(held(b"data: {")) as (_, met):
        await met.says(request(7))
        await met.until(lambda: met.of(Partial))
    assert [record.data for record in met.of(Partial)] == [b"data: {"]


class Nowhere(asyncio.Transport):
    """A connection on which nothing arrives."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Drop the data."""

    def abort(self) -> None:
        """Do nothing: there is nothing to end."""

    close = abort


PIECES = [STREAM, answer(200, result(7)), event(result(7)), b"data: {\n\n", b"5\r\n", b"0\r\n\r\n"]
REPLIES = st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)


@given(REPLIES, st.integers(1, 30), st.booleans())
def test_whatever_a_server_sends_is_recorded_and_ends_in_an_answer_or_a_failure(data: bytes, size: int, breaks: bool) -> None:  # noqa: FBT001
    async def play() -> None:
        met = Meeting()
        client = met.client = StreamableClient("http://127.0.0.1:1/", **met.callbacks())
        post = Post(client, UpstreamMessage(b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'))
        client._waiting["7"] = post
        post.transaction = OutgoingRequest(client._transport, "POST", b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"{}", post)
        post.transaction.connection_made(Nowhere())
        for at in range(0, len(data), size):
            post.transaction.data_received(data[at : at + size])
        post.transaction.connection_lost(ConnectionResetError() if breaks else None)
        ends = 0
        while not met.is_silent:
            message = await met.told()
            ends += isinstance(message, Failure) or (
                isinstance(message, dict) and message.get("id") == 7 and "result" in message
            )
        assert ends == 1
        assert len(met.of(Open)) == len(met.of(Close))

    asyncio.run(play())


@scene
async def test_what_is_still_under_way_at_the_end_is_left_and_recorded_so() -> None:
    async with facing(held()) as (_, met):
        await met.says(request(7))
    assert [(record.stream, record.by) for record in met.of(Close)][-1][1] == "client"
    assert met.is_silent


@scene
async def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    met = Meeting()
    async with puppet() as server:
        pass
    with pytest.raises(UpstreamError, match=f"127.0.0.1:{server.port}/mcp: it cannot be reached: Connection refused"):
        await StreamableClient(server.url, **met.callbacks()).start()


@scene
async def test_an_https_server_is_spoken_to_by_whoever_trusts_it() -> None:
    authority = trustme.CA()
    served, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(served)
    authority.configure_trust(trusting)
    async with puppet(WELCOME, TAKEN, held(), answer(200), tls=served) as server:
        url = f"https://localhost:{server.port}/mcp"
        async with meeting(partial(StreamableClient, url, tls=trusting)) as met:
            assert (await met.asks(OPENING))["id"] == 1
            await met.says(INITIALIZED)
        assert [note.partition(",")[0] for note in met.notes] == ["tls: TLSv1.3"]
        assert server.lines[-1] == "DELETE /mcp"
        with pytest.raises(UpstreamError, match="it cannot be reached: unable to get local issuer certificate"):
            await StreamableClient(url, **Meeting().callbacks()).start()


@pytest.mark.parametrize("url", ["mcp.example", "ftp://x/", "http://user@host/", ""])
def test_what_is_no_url_is_an_error(url: str) -> None:
    with pytest.raises(UpstreamError, match="not the URL of a server"):
        StreamableClient(url, **Meeting().callbacks())


@scene
async def test_a_server_that_has_gone_is_lost_once() -> None:
    async with facing(WELCOME) as (server, met):
        await met.asks(OPENING)
        assert server.listener is not None
        server.listener.close()
        assert (await met.asks(request(2))).why == "the server cannot be reached: Connection refused"
        assert (await met.told()).endswith("cannot be reached: Connection refused")
        await met.says(request(3))
    assert len(met.lost) == 1
