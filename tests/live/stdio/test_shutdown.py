"""Tests of how a tap ends by a signal or without its client: it ends the server and its children within the client's 2 s."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from mcpspy.live.stdio.shutdown import GRACE_NS
from mcpspy.platform.processes import KEEPS_ORPHANS
from mcpspy.records import Close, Exit, Note, Record, Stall
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import Peer
from tests.deadlines import DEADLINE_S
from tests.live.client import OVER, Channels, Client, ending, puppet, stream
from tests.tiers import Tier, current_tier

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
LIMIT_S = 2.0
"""From SIGTERM to the client's SIGKILL (mcp 2.3.0, TypeScript SDK 1.32.2). There is no margin, for they have none either."""

AT_ONCE_S = 1.0
"""Less than what a server is given after the first signal."""

STUBBORN = ("ignore=TERM,INT,HUP", "grandchild", "say=up", "echo", "linger")

LAUNCHER = """
import subprocess, sys
tap = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in tap.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
tap.wait()
"""
"""A client that passes on what it hears, with a process of its own to be killed; it never ends its server's input."""


# A server that ends when it is told to


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_reaches_the_server(number: signal.Signals, over: Channels) -> None:
    with Client(puppet("say=up", "linger"), over=over) as client:
        client.line()
        client.signal(number)
        assert client.wait() == 128 + number
        assert ending(client.records())[0].signal == number.name


def test_a_signal_is_why_the_capture_ends() -> None:
    with Client(puppet("say=up", "linger")) as client:
        client.line()
        client.signal(signal.SIGTERM)
        client.wait()
        assert ending(client.records())[1].why == "SIGTERM"


def test_a_signal_ends_the_servers_input_too() -> None:
    with Client(puppet("ignore=TERM", "say=up", "swallow", "exit=4")) as client:
        client.line()
        client.signal(signal.SIGTERM)
        assert client.wait() == 4


def test_a_signal_that_ends_nothing_is_passed_on() -> None:
    with Client(puppet("ignore=USR1", "say=up", "echo")) as client:
        client.line()
        client.signal(signal.SIGUSR1)
        assert client.line(client.stderr) == b"SIGUSR1\n"
        client.send(b"still there\n")
        assert client.line() == b"still there\n"


def test_what_the_server_says_long_after_the_end_of_its_input_is_delivered() -> None:
    with Client(puppet("say=up", "swallow", f"after={2 * GRACE_NS // 1_000_000}", "say=late", "exit=3")) as client:
        client.line()
        client.close(client.stdin)
        assert client.rest() == b"late\n"
        assert client.wait() == 3


def test_a_client_that_is_gone_ends_the_servers_input() -> None:
    with Client(puppet("say=up", "swallow", "exit=5")) as client:
        client.line()
        client.die()
        assert client.wait() == 5


def waits(records: list[Record]) -> list[int | None]:
    """Return of each note how long it says that the server waited for a processor."""
    return [record.extra.get("waited_ns") for record in records if isinstance(record, Note)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a process has waited for a processor")
def test_a_signal_after_the_end_of_input_tells_how_long_the_server_has_waited_for_a_processor() -> None:
    with Client(["sh", "-c", '"$@"; true', "sh", *puppet("say=up", "linger")]) as client:
        client.line()
        client.close(client.stdin)
        client.recorded(Close, stream=0)
        client.signal(signal.SIGTERM)
        client.wait()
        waited_ns = waits(client.records())[0]
    assert waited_ns is not None
    assert 0 <= waited_ns < DEADLINE_S * 1_000_000_000


def test_a_signal_tells_nothing_about_a_server_that_still_had_its_input() -> None:
    with Client(puppet("say=up", "linger")) as client:
        client.line()
        client.signal(signal.SIGTERM)
        client.wait()
        assert waits(client.records()) == [None]


BUSY = """
import runpy, sys
from mcpspy.live.stdio import tap
tap.LATE_NS, tap.QUEUED_NS = int(sys.argv[1]), 0
sys.argv[:] = sys.argv[4:]
runpy.run_module("mcpspy", run_name="__main__", alter_sys=True)
"""
"""A tap that takes every start for a late one on a busy machine, or none."""


@pytest.mark.parametrize(("late_ns", "topic"), [(0, "late-output"), (10**18, "")])
def test_a_late_first_output_tells_how_long_the_server_has_waited_for_a_processor(late_ns: int, topic: str) -> None:
    with Client(puppet("say=up", "say=again", "echo"), through=(sys.executable, "-c", BUSY, str(late_ns))) as client:
        assert client.lines(2) == [b"up\n", b"again\n"]
        client.close(client.stdin)
        assert client.wait() == 0
        records = client.records()
    assert topics(records) == ([topic] if topic else [])
    assert all(waited_ns is not None for waited_ns in waits(records))


# A server that does not


@pytest.mark.grid
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("over", OVER)
def test_a_stubborn_server_and_its_grandchild_are_gone_before_the_client_kills_us(
    number: signal.Signals, over: Channels
) -> None:
    with Client(puppet(*STUBBORN), over=over) as client:
        client.lines(2)
        since_s = time.monotonic()
        client.signal(number)
        assert client.wait() == 128 + signal.SIGKILL
        assert time.monotonic() - since_s < LIMIT_S
        assert client.running() == []
        assert ending(client.records())[1].why == number.name


def test_a_client_that_signals_its_whole_group_finds_nothing_left(peer: Peer, tmp_path: Path) -> None:
    with Client([*peer("stubborn.py"), "--grandchild", str(tmp_path / "log")], new_session=True) as client:
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')
        client.line()
        client.close(client.stdin)
        since_s = time.monotonic()
        os.killpg(client.pid, signal.SIGTERM)
        assert client.rest() == b""
        client.wait()
        assert time.monotonic() - since_s < LIMIT_S
        assert client.running() == []


ANSWERS = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    '    id = json.loads(line).get("id")\n'
    '    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}\n'
    '    if id: print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)\n'
)


def test_a_server_that_dies_of_a_signal_to_the_group_before_mcpspy_hears_of_it_did_not_die(tier: Tier) -> None:
    for _ in range(tier(sample=5, more=20, full=100)):  # in a third of them the server is first
        with Client([sys.executable, "-c", ANSWERS], new_session=True) as client:
            params = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
            client.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":%b}\n' % params)
            client.line()
            client.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            os.killpg(client.pid, signal.SIGTERM)
            client.wait()
            assert all_findings(transcribe(client.records())) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_the_same_signal_again_means_now(number: signal.Signals) -> None:
    with Client(puppet(*STUBBORN)) as client:
        client.lines(2)
        since_s = time.monotonic()
        client.signal(number)
        client.line(client.stderr)
        client.signal(number)
        assert client.wait() == 128 + signal.SIGKILL
        assert time.monotonic() - since_s < AT_ONCE_S
        assert client.running() == []


def test_a_server_behind_a_shell_that_a_signal_ends_hears_of_it_too() -> None:
    with Client(["sh", "-c", '"$@" & wait', "sh", *puppet("ignore=TERM", "say=up", "linger")]) as client:
        client.line()
        since_s = time.monotonic()
        client.signal(signal.SIGTERM)
        assert client.line(client.stderr) == b"SIGTERM\n"
        assert client.wait() == 128 + signal.SIGTERM
        assert time.monotonic() - since_s < LIMIT_S
        assert client.running() == []


def test_what_was_sent_to_whom_is_noted() -> None:
    with Client(puppet("ignore=TERM", "say=up", "linger")) as client:
        client.line()
        client.signal(signal.SIGTERM)
        client.wait()
        notes = [record.text for record in client.records() if isinstance(record, Note)]
        assert notes[0] == "SIGTERM received and forwarded"
        assert notes[1].startswith("SIGKILL to python")


@pytest.mark.parametrize("over", OVER)
def test_a_client_that_dies_while_the_server_takes_nothing_is_noticed(over: Channels) -> None:
    with Client(puppet("say=up", "linger"), over=over) as client:
        client.line()
        client.fill(b"x" * 4095 + b"\n")
        client.die()
        client.wait()
        assert ending(client.records())[1].why == "client gone"


@pytest.mark.parametrize("over", OVER[1:] if current_tier() is Tier.SAMPLE else OVER)
def test_a_client_that_dies_after_it_was_slow_to_read_is_noticed(over: Channels) -> None:
    count = 500
    with Client(puppet(f"flood=1:{count}", "linger"), over=over) as client:
        client.recorded(Stall, stream=1)
        client.close(client.stdin)
        client.take(count * 4096)
        client.close(client.stdout)
        client.wait()
        assert ending(client.records())[1].why == "client gone"


def test_a_client_that_reads_nothing_does_not_hold_up_a_signal() -> None:
    with Client(puppet("ignore=TERM", "repeat=" + "x" * 1000)) as client:
        client.recorded(Stall, stream=1)
        since_s = time.monotonic()
        client.signal(signal.SIGTERM)
        client.wait()
        assert time.monotonic() - since_s < LIMIT_S


def test_a_client_that_dies_where_no_descriptor_tells_leaves_nothing() -> None:
    steps = ("say=up", "close=1", "ignore=TERM", "swallow", "linger")
    with Client(puppet(*steps), through=(sys.executable, "-c", LAUNCHER)) as client:
        assert client.line() == b"up\n"
        client.process.kill()
        client.gone()


# What the server started


def test_a_grandchild_that_the_server_leaves_behind_goes_with_it() -> None:
    with Client(puppet("grandchild=2", "echo")) as client:
        client.line()
        client.close(client.stdin)
        assert client.wait() == 0
        assert client.running() == []


keeps_orphans = pytest.mark.skipif(
    not KEEPS_ORPHANS, reason="this system does not tell what a server left that ended by itself"
)

HOLDS_PIPES = "{} & echo $!"
HOLDS_NONE = "setsid {} <&- >/dev/null 2>&1 & echo $!"
LEAVES = [HOLDS_PIPES, HOLDS_NONE]
LASTING = "sleep 20"
WATCHDOG = 'sh -c "while kill -0 $$; do sleep 0.02; done 2>/dev/null; sleep 0.1"'
"""A process that ends 0.1 s after the shell that started it, once the tap has seen that end."""


@keeps_orphans
@pytest.mark.parametrize("script", LEAVES)
def test_a_process_that_runs_half_a_second_after_the_server_was_left_behind(script: str) -> None:
    with Client(["sh", "-c", script.format(LASTING)]) as client:
        left = int(client.line())
        assert client.wait() == 0
        records = client.records()
        os.kill(left, signal.SIGKILL)
    assert [process["pid"] for process in ending(records)[0].descendants] == [left]
    assert topics(records) == ["descendants-running"]
    assert severities(records) == ["warning"]


@keeps_orphans
@pytest.mark.parametrize("script", LEAVES)
def test_a_watchdog_that_ends_soon_after_the_server_was_not(script: str) -> None:
    with Client(["sh", "-c", script.format(WATCHDOG)]) as client:
        left = int(client.line())
        assert client.wait() == 0
        records = client.records()
    assert left in [process["pid"] for process in ending(records)[0].descendants]
    assert topics(records) == ["descendants-ended"]
    assert severities(records) == []


@keeps_orphans
def test_a_watchdog_that_ends_soon_is_not_counted_with_a_process_that_was_left_behind() -> None:
    with Client(["sh", "-c", f"{WATCHDOG} & {HOLDS_NONE.format(LASTING)}"]) as client:
        left = int(client.line())
        assert client.wait() == 0
        records = client.records()
        os.kill(left, signal.SIGKILL)
    (note,) = [record for record in records if isinstance(record, Note)]
    assert len(ending(records)[0].descendants) >= 2
    assert [process["pid"] for process in note.extra["descendants"]] == [left]
    (finding,) = [finding for finding in all_findings(transcribe(records)) if finding.rule == "descendants-left"]
    assert "left 1 of its processes running: sleep." in finding.what


@pytest.mark.parametrize("session", ["", "setsid "])
def test_a_watchdog_may_end_by_itself_after_a_client_that_closes_stdin(session: str) -> None:
    script = f"{session}sh -c 'trap \"\" TERM; sleep 0.2' <&- >/dev/null 2>&1 & cat; exit 3"
    with Client(["sh", "-c", script]) as client:
        client.send(b"up\n")
        client.line()
        client.close(client.stdin)
        assert client.wait() == 3
        records = client.records()
    assert topics(records) in ([], ["descendants-ended"])  # the first if it ended before the server
    assert severities(records) == []


def test_what_mcpspy_has_to_end_after_half_a_second_was_left_behind() -> None:
    with Client(["sh", "-c", "sleep 20 <&- >/dev/null 2>&1 & cat"]) as client:
        client.send(b"up\n")
        client.line()
        client.close(client.stdin)
        assert client.wait() == 0
        assert client.running() == []
        records = client.records()
    assert topics(records) == ["descendants-running", "escalation"]
    assert severities(records) == ["warning"]


@keeps_orphans
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_wait_for_what_the_server_left(number: signal.Signals) -> None:
    with Client(["sh", "-c", f"{HOLDS_NONE.format(LASTING)}; exit 4"]) as client:
        left = int(client.line())
        client.recorded(Exit)
        client.signal(number)
        assert client.wait() == 4
        records = client.records()
        os.kill(left, signal.SIGKILL)
    assert topics(records) in (["signal"], ["descendants-running", "signal"])  # the second on a slow machine
    assert severities(records) in ([], ["warning"])


def test_a_second_signal_ends_a_tap_at_once_whatever_the_server_left() -> None:
    with Client(["sh", "-c", f"{HOLDS_NONE.format(LASTING)}; cat"]) as client:
        left = int(client.line())
        client.signal(signal.SIGINT)
        client.signal(signal.SIGINT)
        assert client.wait() == 128 + signal.SIGINT
        records = client.records()
        os.kill(left, signal.SIGKILL)
    assert "descendants-running" not in topics(records), "nobody waited for half a second"
    assert severities(records) == []


def topics(records: list[Record]) -> list[str]:
    """Return the topics of the notes."""
    return [record.topic for record in records if isinstance(record, Note)]


def severities(records: list[Record]) -> list[str]:
    """Return the severity of each finding of processes that were left behind."""
    return [finding.severity for finding in all_findings(transcribe(records)) if finding.rule == "descendants-left"]


def test_a_daemon_with_a_session_and_files_of_its_own_is_spared() -> None:
    with Client(puppet("daemon", "echo")) as client:
        daemon = int(client.line())
        client.close(client.stdin)
        client.wait()
        assert client.running() == [daemon]
        os.kill(daemon, signal.SIGKILL)
        client.gone()


def test_what_ran_before_us_is_none_of_the_servers() -> None:
    script = 'sleep 60 & echo $! >&2; exec "$@"'
    with Client(puppet("echo"), through=("sh", "-c", script, "sh")) as client:
        older = int(client.line(client.stderr))
        client.close(client.stdin)
        client.wait()
        assert older in client.running()
        os.kill(older, signal.SIGKILL)
        client.gone()


@keeps_orphans
def test_a_grandchild_that_holds_the_pipes_holds_nobody_up() -> None:
    with Client(puppet("say=up", "grandchild", "exit=6")) as client:
        client.line()
        grandchild = int(client.line())
        assert client.rest() == b""
        assert client.wait() == 6
        assert ending(client.records())[0].descendants[0]["pid"] == grandchild
        os.kill(grandchild, signal.SIGKILL)
        client.gone()


@keeps_orphans
def test_all_that_the_server_wrote_is_delivered_to_a_slow_client_though_a_grandchild_holds_the_pipe() -> None:
    count = 250
    with Client(puppet("grandchild", f"flood=1:{count}", "exit=7")) as client:
        grandchild = int(client.line())
        client.recorded(Exit)
        received = client.rest()
        assert len(received) == count * 4096
        assert client.wait() == 7
        assert stream(client.records(), 1).endswith(received)
        os.kill(grandchild, signal.SIGKILL)
        client.gone()
