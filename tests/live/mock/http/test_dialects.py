"""Responses in any mixture of dialects over HTTP: a mock sends their bytes."""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.wire.sse import SseEvents
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import HttpMocking
from tests.transcript.dialogue import request, result
from tests.transcript.traffic import Traffic, initialize

ANSWERS = st.sampled_from(
    [
        b'{"jsonrpc":"2.0","id":%d,"result":{}}',
        b'{ "id" : "%d" ,"result":{"content":[]}, "jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"\xe5\xa4\xa9"}}',
        b'[ {"jsonrpc":"2.0","id":%d,"result":{}} ,\t7 ]',
        b'{"result":{"content":[]}}',
    ]
)
EVENTS = st.sampled_from(
    [
        b": alive", b"event: ping\ndata: 1", b"data: [DONE]", b"data:", b"event: x\ndata:{", b"retry: 9", b"vendor: x\ndata: text",
        b'data: {"result":{"progress":30}}', b'data: {"jsonrpc":"2.0","method":"pong"}', b"", b"data: [7,\ndata:  8]",
        b'data: {"jsonrpc":"2.0","id":"none","result":{}}', b'event: message\ndata:  {"jsonrpc":"2.0"}',
    ]
)  # fmt: skip
SPACE = st.sampled_from([b"", b"\n", b" \r\n\n"])
TEXTS = st.sampled_from([b"", b"sorry\nno\r\n", b"<p>\n</p>", b"data: {}\n\n", b"null", b"[7 ]\n"])
TYPES = st.sampled_from(["application/json", "application/json;charset=UTF-8", "text/plain", "application/x-ndjson"])


class Played(NamedTuple):
    """A response as the server sends it, before it is compressed."""

    media_type: str
    body: bytes
    is_compressed: bool = False


def stream(before: list[bytes], answer: bytes, after: list[bytes], end: bytes, *, is_compressed: bool) -> Played:
    """Write a stream of these events around an answer."""
    events = [*before, b"data: " + answer, *after]
    body = b"".join(event.replace(b"\n", end) + (end + end if event else end) for event in events)
    return Played("text/event-stream; charset=utf-8", body, is_compressed)


BODIES = st.one_of(
    st.builds(lambda media_type, *parts: Played(media_type, b"".join(parts)), TYPES, SPACE, ANSWERS, SPACE),
    st.builds(Played, TYPES, TEXTS),
    st.builds(
        stream,
        st.lists(EVENTS, max_size=4),
        ANSWERS,
        st.lists(EVENTS, max_size=4),
        st.sampled_from([b"\n", b"\r\n"]),
        is_compressed=st.booleans(),
    ),
)


def recorded(replies: list[Played]) -> Traffic:
    """Return a session in which the server sends these, each in answer to a request of its own."""
    traffic = Traffic()
    traffic.post(initialize(0)).answer(200, result(0))
    for id, reply in enumerate(replies, 1):
        call, body = traffic.post(request(id, "tools/call", {"name": f"t{id}"})), reply.body.replace(b"%d", b"%d" % id)
        if reply.is_compressed:
            call.answer(200, gzip.compress(body, mtime=0), Content_Type=reply.media_type, Content_Encoding="gzip")
        elif reply.media_type.startswith("text/event-stream"):
            call.stream(Content_Type=reply.media_type)
            for event in SseEvents().feed(body):
                call.raw(event)
            call.close()
        else:
            call.answer(200, body, Content_Type=reply.media_type)
    return traffic.ends()


@settings(max_examples=10, deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=40))
def test_every_byte_is_played_over_http(replies: list[Played]) -> None:
    with TemporaryDirectory() as folder, HttpMocking(written(Path(folder) / "a.mcpspy", recorded(replies).records)) as mock:
        for id, reply in enumerate(replies, 1):
            told = mock.connect().ask(request(id, "tools/call", {"name": f"t{id}"})).response
            assert (told.headers["Content-Type"], told.read()) == (reply.media_type, reply.body.replace(b"%d", b"%d" % id)), id
