"""`mcpspy otlp -f` that is ended and started again: it goes on where it stopped, for each collector, and loses nothing."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from mcpspy.cli.columns.following import FollowedUntil
from tests.cli.terminal import MCPSPY, Running, on_pipe
from tests.cli.test_since import aged
from tests.deadlines import DEADLINE_S, eventually
from tests.telemetry.receiver import Receiver, receiving

SENT = '"event":"sent"'


def recorded(label: str, method: str) -> None:
    """Record a session of one call, which the server sends back: these are two spans."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n"
    words = [*MCPSPY, "run", "--label", label, "--", "cat"]
    subprocess.run(words, input=request, timeout=DEADLINE_S, check=True, capture_output=True)


def killed(following: Running) -> None:
    following.process.kill()
    following.process.wait(DEADLINE_S)


def names(receiver: Receiver) -> list[str]:
    """Return the names of the spans that were received, each once: a backend that knows their ids shows one that came again once."""
    return sorted({span.span_id: span.name for span in receiver.spans}.values())[::2]


def test_what_was_recorded_while_a_killed_follower_was_away_is_sent_by_the_next() -> None:
    recorded("before", "before/all")
    with receiving() as receiver:
        words = ("otlp", "-f", "--json", "--endpoint", receiver.url)
        with on_pipe(*words) as following:
            following.wait_for(SENT)
            recorded("first", "first/one")
            following.wait_for(lambda said: said.count(SENT) == 2)
            killed(following)
        recorded("second", "second/one")
        recorded("third", "third/one")
        with on_pipe(*words) as following:
            following.wait_for("goes on where it stopped")
            eventually(lambda: {"second/one", "third/one"} <= set(names(receiver)), "what was recorded meanwhile")
            recorded("fourth", "fourth/one")
            eventually(lambda: "fourth/one" in names(receiver), "what is recorded")
            killed(following)
        assert names(receiver) == ["before/all", "first/one", "fourth/one", "second/one", "third/one"]


def test_a_follower_that_is_killed_before_its_collector_is_there_loses_nothing() -> None:
    aged("old", 3)
    recorded("first", "first/one")
    with receiving() as receiver:
        receiver.refuses, receiver.status = True, 503
        words = ("otlp", "-f", "--endpoint", receiver.url)
        with on_pipe(*words, OTEL_EXPORTER_OTLP_TIMEOUT="1") as following:
            following.wait_for("is busy")
            killed(following)
        recorded("second", "second/one")
        recorded("third", "third/one")
        receiver.refuses = False
        with on_pipe(*words) as following:
            eventually(lambda: len(names(receiver)) >= 3, "all")
            killed(following)
        assert names(receiver) == ["first/one", "second/one", "third/one"]


def test_another_collector_has_a_position_of_its_own() -> None:
    recorded("first", "first/one")
    for _ in range(2):
        with receiving() as receiver, on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
            following.wait_for("2 spans sent to")
            following.end()
            assert names(receiver) == ["first/one"]


def test_what_was_recorded_long_before_the_position_is_not_sent_again() -> None:
    aged("old", 3)
    with receiving() as receiver:
        with on_pipe("otlp", "-f", "--since", "1d", "--endpoint", receiver.url) as following:
            following.wait_for("1 span sent to")
            an_hour_ago_ns = time.time_ns() - 3_600 * 1_000_000_000
            eventually(lambda: (FollowedUntil(receiver.url).read() or 0) > an_hour_ago_ns, "the position")
            killed(following)
        recorded("new", "new/one")
        with on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
            eventually(lambda: len(receiver.spans) >= 3, "what was recorded meanwhile")
            following.end()
        assert sorted(span.name for span in receiver.spans) == ["new/one", "new/one", "ping"]


def test_since_replaces_the_position() -> None:
    with receiving() as receiver:
        with on_pipe("otlp", "-f", "--endpoint", receiver.url) as following:
            following.wait_for("waiting for the first capture")
            killed(following)
        aged("old", 3)
        aged("young", 1)
        with on_pipe("otlp", "-f", "--since", "2h", "--endpoint", receiver.url) as following:
            following.wait_for("1 span sent to")
            following.end()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"until_ns": "x"}', '{"until_ns": null}'])
def test_a_position_is_kept_in_a_private_file_and_is_none_if_it_cannot_be_read(content: str, store: Path) -> None:
    until = FollowedUntil("http://127.0.0.1:4318")
    until.write(7)
    (path,) = store.rglob("followed.json")
    assert (until.read(), path.stat().st_mode & 0o777) == (7, 0o600)
    path.write_text(content)
    assert until.read() is None


def test_a_follower_ends_when_nobody_reads_its_json_any_more() -> None:
    recorded("first", "first/one")
    with receiving() as receiver, on_pipe("otlp", "-f", "--json", "--endpoint", receiver.url) as following:
        following.wait_for(SENT)
        following.stop_reading()
        recorded("second", "second/one")
        recorded("third", "third/one")
        following.process.wait(DEADLINE_S)
