"""`mcpspy mock --listen` without sessions, as a process: the modern era over Streamable HTTP, and HTTP+SSE."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.transcript.model import Outcome
from mcpspy.wire.sse import SseEvents
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import Asking, HttpMocking, Told
from tests.transcript.dialogue import Dialogue, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def named(id: Any, name: str = "forecast", client: str = "claude-code", token: Any = None) -> dict[str, Any]:
    """Write a call of the modern era."""
    call = modern(id, "tools/call", client, name=name)
    if token is not None:
        call["params"]["_meta"]["progressToken"] = token
    return call


def news(id: Any, uri: str) -> dict[str, Any]:
    """Write a notification of a subscription."""
    return notification("notifications/resources/updated", {"uri": uri, "_meta": {SUBSCRIPTION: id}})


# The modern era


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMocking]:
    """A mock of a capture of stdio: two equal calls with two answers, a refusal, a call without an answer, a subscription."""
    recorded = Dialogue().client(modern(1, "server/discover")).server(result(1, {"supportedVersions": ["2026-07-28"]}))
    recorded.client(named(2)).server(result(2, {"content": [], "n": 1})).client(named(3)).server(
        result(3, {"content": [], "n": 2})
    )
    recorded.client(named(4, "odd")).server(error(4, -32602))
    recorded.client(named(5, "slow", token=5)).server(progress(5))
    recorded.client(modern(6, "subscriptions/listen")).server(notification("notifications/subscriptions/acknowledged",
                                                                           {"_meta": {SUBSCRIPTION: 6}}))  # fmt: skip
    recorded.client(named(7, "write")).server(news(6, "a:b")).server(result(7, {"content": []}))
    with HttpMocking(written(tmp_path_factory.mktemp("mock") / "modern.mcpspy", recorded.closes().records[:-1])) as mock:
        yield mock


@pytest.fixture
def mock(serving: HttpMocking) -> Iterator[HttpMocking]:
    yield serving
    serving.hang_up()


def discovered(mock: HttpMocking, name: str = "claude-code") -> Asking:
    asking = mock.connect()
    assert "result" in asking.ask(modern(0, "server/discover", name)).answer
    return asking


def test_the_modern_era_is_given_no_session_and_no_stream_to_get(mock: HttpMocking) -> None:
    asking = discovered(mock)
    assert asking.session == ""
    assert asking.ask(method="GET").status == 405


def test_a_client_is_its_connection(mock: HttpMocking) -> None:
    client, other = discovered(mock), discovered(mock)
    assert [asking.ask(named(9)).answer["result"]["n"] for asking in (client, other, client, other)] == [1, 1, 2, 2]


def test_other_connections_under_its_name_go_on_where_it_is(mock: HttpMocking) -> None:
    client, _ = discovered(mock, "pool"), discovered(mock, "other")
    assert client.ask(named(9, client="pool")).answer["result"]["n"] == 1
    assert mock.connect().ask(named(9, client="pool")).answer["result"]["n"] == 2


def test_refusals_have_the_status_that_the_specification_gives_their_code(mock: HttpMocking) -> None:
    asking = discovered(mock)
    reply = asking.ask(named(9, "odd"))
    assert (reply.status, reply.answer) == (400, error(9, -32602))
    reply = asking.ask(modern(9, "unheard/of"))
    assert (reply.status, reply.answer["error"]["code"]) == (404, -32601)


def test_closing_the_response_stream_cancels(tmp_path: Path) -> None:
    recorded = Dialogue().client(named(5, "slow", token=5)).server(progress(5)).wait(60_000).server(result(5))
    capture = written(tmp_path / "slow.mcpspy", recorded.client(named(6)).server(result(6)).closes().records[:-1])
    with HttpMocking(capture, "--speed", "1") as mock:
        asking = mock.connect()
        assert asking.ask(named(9, "slow", token=7)).next() == progress(7)
        asking.close()
        mock.connect().ask(named(10)).response.read()
        mock.ends()
    assert [exchange.outcome for exchange in mock.transcript.exchanges] == [Outcome.CANCELLED, Outcome.OK]


def test_news_go_to_the_subscription_that_they_name_under_its_live_id(mock: HttpMocking) -> None:
    asking = discovered(mock)
    listening = mock.connect().ask(modern("live", "subscriptions/listen"))
    assert listening.next()["params"]["_meta"] == {SUBSCRIPTION: "live"}
    assert asking.ask(named(9, "write")).answer == result(9, {"content": []})
    assert listening.next() == news("live", "a:b")


# HTTP+SSE


def stream_of(mock: HttpMocking) -> tuple[Told, Asking]:
    """Open a client's stream, and a connection that posts to its endpoint."""
    stream = mock.connect().ask(method="GET")
    event = stream.event()
    assert event["event"] == "endpoint"
    posting = mock.connect()
    posting.path = event["data"]
    return stream, posting


@pytest.fixture(scope="module")
def serving_sse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMocking]:
    """A mock of the same kind of capture for HTTP+SSE."""
    recorded = Dialogue().client(initialize(1)).server(result(1))
    recorded.client(tool_call(2, token=2)).server(progress(2)).server(result(2, 1))
    recorded.client(tool_call(3, token=3)).server(progress(3)).server(result(3, 2))
    capture = written(tmp_path_factory.mktemp("mock") / "sse.mcpspy", recorded.closes().records[:-1])
    with HttpMocking(capture, "--transport", "sse") as mock:
        yield mock


@pytest.fixture
def sse(serving_sse: HttpMocking) -> Iterator[HttpMocking]:
    yield serving_sse
    serving_sse.hang_up()


def test_every_answer_comes_on_the_stream_and_none_on_the_post(sse: HttpMocking) -> None:
    stream, posting = stream_of(sse)
    reply = posting.ask(initialize(7))
    assert (reply.status, reply.response.read()) == (202, b"Accepted")
    posting.ask(tool_call(8, token="t")).response.read()
    assert [stream.next() for _ in range(3)] == [result(7), progress("t"), result(8, 1)]


def test_every_stream_is_a_client_of_its_own(sse: HttpMocking) -> None:
    (stream, posting), (other, posting_other) = stream_of(sse), stream_of(sse)
    posting.ask(tool_call(1)).response.read()
    posting_other.ask(tool_call(1)).response.read()
    assert stream.next() == other.next() == result(1, 1)


def test_who_closes_the_stream_ends_the_session(sse: HttpMocking) -> None:
    getting = sse.connect()
    endpoint = getting.ask(method="GET").event()["data"]
    getting.close()
    posting = sse.connect()
    posting.path = endpoint

    def refused() -> bool:
        return posting.ask(request(1)).status == 404

    assert refused() or refused() or refused()


def test_the_endpoint_is_announced_as_it_was_recorded(tmp_path: Path) -> None:
    recorded = Traffic(url="http://127.0.0.1:3001/mcp/events")
    get = recorded.get("/mcp/events").stream().event("/mcp/post?sessionId=abc", kind="endpoint")
    recorded.post(initialize(1), "/mcp/post?sessionId=abc").answer(202, b"Accepted")
    get.event(result(1))
    with HttpMocking(written(tmp_path / "own.mcpspy", recorded.records), "--transport", "sse") as mock:
        event = mock.connect().ask(method="GET", path="/mcp/events").event()
    assert event["data"].startswith("/mcp/post?sessionId=")
    assert not event["data"].endswith("=abc")


STYLES = (
    b": hello\n\nretry: 500\n\nevent: endpoint\ndata: %b\n\nid: 7\n\n",
    b"\xef\xbb\xbf: odd\r\nid: e1\r\nretry: 9\r\nevent:endpoint\r\ndata:%b\r\n\r\n",
    b'event: endpoint\rdata: {"uri": "%b", "protocol": "ssE"}\r\rid: 7\revent: x\rdata: \r\r',
)


@pytest.mark.parametrize("style", STYLES)
def test_a_stream_of_http_and_sse_begins_with_the_bytes_of_the_recorded_one(style: bytes, tmp_path: Path) -> None:
    recorded = Traffic(url="http://127.0.0.1:3001/sse")
    get, path = recorded.get("/sse").stream(), b"/post?sessionId=abc"
    events = SseEvents()
    for event in events.feed(style % path):
        get.raw(event)
    recorded.post(initialize(1), path.decode()).answer(202, b"Accepted")
    get.event(result(1))
    with HttpMocking(written(tmp_path / "own.mcpspy", recorded.records), "--transport", "sse") as mock:
        stream = mock.connect().ask(method="GET").response
        begun = stream.read(len(style % path) + 29)  # the session's id has 32 letters
    assert re.sub(rb"(?<=sessionId=)\w+", b"abc", begun) == style % path
