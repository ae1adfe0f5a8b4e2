"""The client of a live server over HTTP+SSE: its endpoint, the messages on its stream, and servers that misbehave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from mcpspy.errors import UpstreamError
from mcpspy.live.upstream.protocol import Failure
from mcpspy.live.upstream.sse import SseClient
from tests.deadlines import DEADLINE_S
from tests.live.http.meeting import Meeting, meeting, scene
from tests.live.http.puppet import STREAM, STREAM_END, Puppet, Request, answer, chunk, event, puppet
from tests.transcript.dialogue import notification, request, result

TAKEN = answer(202, b"Accepted")
BREAK = b"break"
"""Piece at which a server breaks off a stream."""


class ServerStream:
    """A reply that is a stream: it names its endpoint, and sends what a test puts into it until it has to end."""

    def __init__(self, endpoint: str = "/messages?session_id=abc") -> None:
        self.endpoint = endpoint
        self.said: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(event(self.endpoint, "event: endpoint")))
        while event_bytes := await asyncio.wait_for(self.said.get(), DEADLINE_S):
            if event_bytes == BREAK:
                writer.transport.abort()
                return
            writer.write(chunk(event_bytes))
            await writer.drain()
        writer.write(STREAM_END)


@asynccontextmanager
async def facing(server_stream: ServerStream, *replies: Any) -> AsyncIterator[tuple[Puppet, Meeting]]:
    """Run a client of a puppet with this stream, and these replies to POSTs."""
    async with puppet(server_stream, *replies) as server:
        async with meeting(partial(SseClient, server.url.replace("/mcp", "/v1/sse"))) as met:
            yield server, met
        server_stream.said.put_nowait(b"")


@scene
async def test_a_redirect_of_the_stream_within_the_origin_is_followed() -> None:
    server_stream = ServerStream("messages?session_id=abc")
    async with puppet(answer(307, Location="/v2/sse"), server_stream, TAKEN) as server:
        async with meeting(partial(SseClient, server.url.replace("/mcp", "/v1/sse"))) as met:
            await met.says(request(7))
            server_stream.said.put_nowait(event(result(7)))
            assert await met.told() == result(7)
        server_stream.said.put_nowait(b"")
    assert server.lines == ["GET /v1/sse", "GET /v2/sse", "POST /v2/messages?session_id=abc"]


@pytest.mark.parametrize("location", ["/mcp", "http://127.0.0.1:1/sse", "//[", "", "/a b"])
@scene
async def test_a_redirect_of_the_stream_to_itself_or_elsewhere_is_refused(location: str) -> None:
    async with puppet(answer(307, Location=location)) as server:
        with pytest.raises(UpstreamError, match="HTTP 307"):
            await SseClient(server.url, **Meeting().callbacks()).start()
    assert server.lines == ["GET /mcp"]


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/messages?session_id=abc", "/messages?session_id=abc"),
        ("messages?session_id=a%20b", "/v1/messages?session_id=a%20b"),
        ("?session_id=abc", "/v1/sse?session_id=abc"),
        ('{"uri":"/messages?sessionId=abc","protocol":"sse"}', "/messages?sessionId=abc"),
    ],
)
@scene
async def test_messages_go_to_the_endpoint_that_the_stream_names(endpoint: str, target: str) -> None:
    server_stream = ServerStream(endpoint)
    async with facing(server_stream, TAKEN) as (server, met):
        await met.says(request(7))
        server_stream.said.put_nowait(event(result(7)))
        assert await met.told() == result(7)
    assert server.lines == ["GET /v1/sse", f"POST {target}"]
    assert server.requests[1].said == request(7)


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:1/messages", "https://127.0.0.1/messages", "//evil.example/m", "http://[", "", "/a b", "{}", "/é"],
)
@scene
async def test_an_endpoint_of_another_origin_or_none_is_an_error(endpoint: str) -> None:
    async with puppet(ServerStream(endpoint)) as server:
        with pytest.raises(UpstreamError, match="is of another origin, or none"):
            await SseClient(server.url, **Meeting().callbacks()).start()
    assert server.lines == ["GET /mcp"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (answer(405), "HTTP 405 Words"),
        (answer(200, {"jsonrpc": "2.0"}), "it answers with application/json, not with text/event-stream"),
        (STREAM + STREAM_END, "its stream ended before it named an endpoint"),
        (STREAM, "the response was cut short"),
        (b"", "it closed the connection before its response"),
    ],
)
@scene
async def test_a_server_without_a_stream_is_an_error(reply: bytes, why: str) -> None:
    async with puppet(reply) as server:
        with pytest.raises(UpstreamError, match=why):
            await SseClient(server.url, **Meeting().callbacks()).start()


@scene
async def test_a_stream_that_names_no_endpoint_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.sse.ENDPOINT_S", 0.05)
    server_stream = ServerStream()
    server_stream.endpoint = ""

    async def mute(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        await request.reader.read()

    async with puppet(mute) as server:
        with pytest.raises(UpstreamError, match="its stream named no endpoint within"):
            await SseClient(server.url, **Meeting().callbacks()).start()


@scene
async def test_a_message_that_is_refused_fails_its_request() -> None:
    async with facing(ServerStream(), answer(404, b"no such session")) as (server, met):
        assert await met.asks(request(7)) == Failure(id="7", method="tools/list", status=404, why="HTTP 404 Words")
    assert len(server.requests) == 2


@scene
async def test_a_message_whose_connection_breaks_is_not_sent_again() -> None:
    async with facing(ServerStream(), b"") as (server, met):
        assert (await met.asks(request(7))).why == "it closed the connection before its response"
    assert len(server.requests) == 2


@scene
async def test_an_answer_that_came_before_its_post_broke_is_no_failure() -> None:
    server_stream, heard = ServerStream(), asyncio.Event()

    async def late(request: Request, writer: asyncio.StreamWriter) -> None:
        server_stream.said.put_nowait(event(result(7)))
        await asyncio.wait_for(heard.wait(), DEADLINE_S)

    async with facing(server_stream, late) as (_, met):
        sending = asyncio.create_task(met.says(request(7)))
        assert await met.told() == result(7)
        heard.set()
        await asyncio.wait_for(sending, DEADLINE_S)
        assert met.is_silent


@pytest.mark.parametrize("ending", [b"", BREAK])
@scene
async def test_the_end_of_the_stream_loses_the_server(ending: bytes) -> None:
    server_stream = ServerStream()
    async with facing(server_stream, TAKEN) as (server, met):
        await met.says(request(7))
        server_stream.said.put_nowait(ending)
        assert "stream" in await met.told()
        await met.says(request(8))
    assert (len(met.lost), len(server.requests)) == (1, 2)


@scene
async def test_what_is_no_message_is_recorded_and_not_heard() -> None:
    server_stream = ServerStream()
    async with facing(server_stream) as (_, met):
        for event_bytes in (
            b": ping\n\n",
            event("[DONE]"),
            event("x", "event: other"),
            event(notification("notifications/message")),
        ):
            server_stream.said.put_nowait(event_bytes)
        assert (await met.told())["method"] == "notifications/message"


@scene
async def test_giving_a_request_up_is_a_notification() -> None:
    async with facing(ServerStream(), TAKEN) as (server, met):
        await met.client.cancel("7")
    assert server.requests[1].said == notification("notifications/cancelled", {"requestId": 7})
