"""A capture of an HTTP tap that others cut or remove: it can be read, that is said, and every byte passes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.records import Damage, End, Frame, Gap, Header, Open, Record
from tests.deadlines import DEADLINE_S, POLL_S, readable
from tests.live.http.ends import EVENTS, OK, Proxy, Upstream, asked, chunk


def exchange(upstream: Upstream, proxy: Proxy) -> None:
    client, server = asked(upstream, proxy, proxy.request())
    server.head()
    server.take(2)
    server.send(OK)
    assert client.take(len(OK)) == OK
    client.close()
    server.close()


def harmed(harm: Callable[[Path], object], path: Path) -> tuple[list[Record], str]:
    """Do the harm while an event stream is open, and events and requests pass. Return what was recorded, and what was said."""
    upstream = Upstream()
    proxy = Proxy(upstream.url, path, "--redact", "none")
    try:
        client, server = asked(upstream, proxy, proxy.request(b"GET /mcp"))
        server.head()
        server.send(EVENTS)
        exchange(upstream, proxy)
        harm(path)
        assert proxy.process.stderr is not None
        deadline = time.monotonic() + DEADLINE_S
        while not readable(proxy.process.stderr.fileno(), POLL_S):
            assert time.monotonic() < deadline
            exchange(upstream, proxy)
            server.send(chunk(b"data: {}\n\n"))
        for _ in range(5):
            exchange(upstream, proxy)
            server.send(chunk(b"data: {}\n\n"))
        server.send(b"0\r\n\r\n")
        client.close()
        said = proxy.stop()
        return proxy.records(), said
    finally:
        proxy.end()
        upstream.end()


@pytest.mark.parametrize("harm", [lambda path: os.truncate(path, 0), Path.unlink], ids=["cut", "removed"])
def test_what_comes_after_the_harm_can_be_read(harm: Callable[[Path], object], tmp_path: Path) -> None:
    records, said = harmed(harm, tmp_path / "x.mcpspy")
    assert said.count("\n") == 1
    assert "cut by another program" in said or "was removed; a new one is made" in said
    assert [type(record) for record in records[:2]] == [Header, Gap]
    assert [record for record in records if isinstance(record, Damage)] == []
    assert sum(isinstance(record, Frame) and record.data == b"{}" for record in records) >= 5
    assert isinstance(records[-1], End)
    opened = {record.stream for record in records if isinstance(record, Open)}
    assert {record.stream for record in records if isinstance(record, Frame)} <= opened
