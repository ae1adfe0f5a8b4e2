"""`mcpspy otlp -f` that is ended and started again: it goes on where it stopped, for each collector."""

import json
import subprocess
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
    """Return the names of the spans that were received, each once if it came as often as it is in the captures."""
    assert len({span.span_id for span in receiver.spans}) == len(receiver.spans)
    return sorted(span.name for span in receiver.spans)[::2]


def test_what_was_recorded_while_a_killed_follower_was_away_is_sent_once_by_the_next() -> None:
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
def test_a_position_that_cannot_be_read_is_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "followed.json").write_text(content)
    assert FollowedUntil(str(tmp_path)).read() is None


def test_a_position_is_kept_in_a_private_file(tmp_path: Path) -> None:
    until = FollowedUntil(str(tmp_path / "x"))
    until.write(7)
    assert (until.read(), (tmp_path / "x/followed.json").stat().st_mode & 0o777) == (7, 0o600)


def test_a_follower_ends_when_nobody_reads_its_json_any_more() -> None:
    recorded("first", "first/one")
    with receiving() as receiver, on_pipe("otlp", "-f", "--json", "--endpoint", receiver.url) as following:
        following.wait_for(SENT)
        following.stop_reading()
        recorded("second", "second/one")
        recorded("third", "third/one")
        following.process.wait(DEADLINE_S)
