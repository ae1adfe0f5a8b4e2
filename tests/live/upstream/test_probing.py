"""The client of a live server whose HTTP transport is not known: it changes to HTTP+SSE where its opening is refused."""

from functools import partial

import pytest

from mcpspy.live.upstream.probing import ProbingClient
from mcpspy.live.upstream.protocol import Failure
from mcpspy.records import Open
from tests.live.http.meeting import meeting, scene
from tests.live.http.puppet import answer, event, puppet
from tests.live.upstream.test_sse import TAKEN, ServerStream
from tests.transcript.dialogue import notification, request, result

OPENING = request(0, "initialize")


@pytest.mark.parametrize("status", [400, 404, 405])
@scene
async def test_a_refused_opening_is_sent_over_http_sse(status: int) -> None:
    server_stream = ServerStream()
    async with puppet(answer(status, b"no"), server_stream, TAKEN, TAKEN) as server:
        async with meeting(partial(ProbingClient, server.url.replace("/mcp", "/events"))) as met:
            await met.says(OPENING)
            server_stream.said.put_nowait(event(result(0)))
            assert await met.told() == result(0)
            await met.says(notification("notifications/initialized"))
        server_stream.said.put_nowait(b"")
        assert server.lines == ["POST /events", "GET /events", *["POST /messages?session_id=abc"] * 2]
    assert len({record.stream for record in met.of(Open)}) == len(met.of(Open))
    assert [request.said for request in server.requests if request.line.startswith("POST")][:2] == [OPENING, OPENING]


@scene
async def test_an_opening_that_is_answered_settles_on_streamable_http() -> None:
    async with puppet(answer(200, result(0)), answer(404, b"gone")) as server:
        async with meeting(partial(ProbingClient, server.url)) as met:
            assert await met.asks(OPENING) == result(0)
            assert await met.asks(request(1)) == Failure(id="1", method="tools/list", status=404, why="HTTP 404 Words: gone")
        assert server.lines == ["POST /mcp", "POST /mcp"]


@pytest.mark.parametrize("status", [401, 403, 500])
@scene
async def test_a_server_that_refuses_for_another_reason_is_not_asked_again(status: int) -> None:
    async with puppet(answer(status, b"no")) as server:
        async with meeting(partial(ProbingClient, server.url)) as met:
            assert (await met.asks(OPENING)).status == status
        assert server.lines == ["POST /mcp"]


@scene
async def test_a_server_of_neither_transport_fails_with_both_reasons() -> None:
    async with puppet(answer(404, b"no"), answer(405, b"no")) as server:
        async with meeting(partial(ProbingClient, server.url)) as met:
            failure = await met.asks(OPENING)
        assert server.lines == ["POST /mcp", "GET /mcp"]
    assert failure.why == "HTTP 404 Words: no; and over HTTP+SSE HTTP 405 Words"


@scene
async def test_a_message_that_follows_at_once_waits_for_the_change() -> None:
    server_stream = ServerStream()
    async with puppet(answer(405, b"no"), server_stream, TAKEN, TAKEN) as server:
        async with meeting(partial(ProbingClient, server.url)) as met:
            await met.says(OPENING)
            await met.until(lambda: len(server.requests) > 1)
            await met.says(request(1))
            server_stream.said.put_nowait(event(result(1)))
            assert await met.told() == result(1)
        server_stream.said.put_nowait(b"")
        assert [request.said for request in server.requests[2:]] == [OPENING, request(1)]
