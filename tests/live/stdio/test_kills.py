"""SIGKILL of client, tap or server, in every phase: the capture lacks nothing received, no process is left, and the others notice."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mcpspy.records import Damage, End
from tests.live.client import OVER, Channels, Client, ending, puppet, stream
from tests.tiers import Tier

MAX_TRAFFIC_S = 0.08
START_S = 0.04
"""About what it takes until the server runs: kills come before and after."""


def whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def messages(random: Random) -> bytes:
    """Many lines, mostly short, all different, some with characters that the capture has to escape."""
    sizes = (random.choice((20, 200, 200, 5_000, 70_000)) for _ in range(40))
    return b"".join(b'{"id":%d,"x":"\xc3\xa9\x01\xff%s"}\n' % (random.getrandbits(40), b"y" * size) for size in sizes)


def test_what_anybody_received_whole_is_in_the_capture_whenever_we_are_killed(tier: Tier, tmp_path: Path) -> None:
    random = Random(7)
    for turn in range(tier(sample=12, more=60, full=200)):
        log = tmp_path / f"server-{turn}"
        with Client(puppet(f"echo={log}"), over=random.choice(OVER)) as client:
            client.chatter(messages(random), random.uniform(0, START_S + MAX_TRAFFIC_S))
            client.process.kill()
            client.wait()
            client.gone()
            heard = {1: client.rest(), 0: log.read_bytes() if log.exists() else b""}
            if not any(heard.values()):
                continue  # we were not even recording
            records = client.records()
            for number, data in heard.items():
                assert stream(records, number).startswith(whole_lines(data))
            assert all(record.reason == "torn" for record in records if isinstance(record, Damage))


def test_a_capture_without_its_end_can_be_told_from_a_whole_one() -> None:
    with Client(puppet("say=up", "echo")) as client:
        client.line()
        client.process.kill()
        client.wait()
        assert not isinstance(client.records()[-1], End)


# In each phase of a server's life

Phase = Callable[[Client], object]


def starting(client: Client) -> object:
    return client.capture


def idle(client: Client) -> None:
    client.line()


def talking(client: Client) -> None:
    client.line()
    client.chatter(b"x" * 500 + b"\n", MAX_TRAFFIC_S)


def stuffed(client: Client) -> None:
    client.line()
    client.fill(b"x" * 4095 + b"\n")


def ending_its_input(client: Client) -> None:
    client.line()
    client.close(client.stdin)


PHASES: list[Phase] = [starting, idle, talking, stuffed, ending_its_input]
each_phase = pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
each_channel = pytest.mark.parametrize("over", OVER)

SERVER = ("ignore=TERM", "say=up", "echo", "linger")

LIMIT_S = 10.0
"""Five times what a client that lives would give: nobody waits for this one."""


@pytest.mark.grid(5)
@each_channel
@each_phase
def test_when_we_are_killed_the_server_goes_and_the_client_hears_of_it(phase: Phase, over: Channels) -> None:
    with Client(puppet(*SERVER), over=over) as client:
        phase(client)
        client.process.kill()
        client.rest()
        client.gone()


@pytest.mark.grid(5)
@each_channel
@each_phase
def test_when_the_server_is_killed_the_client_hears_of_it(phase: Phase, over: Channels) -> None:
    with Client(puppet(*SERVER), over=over) as client:
        phase(client)
        os.kill(client.server_pid(), signal.SIGKILL)
        client.rest()
        assert client.wait() == 128 + signal.SIGKILL
        assert ending(client.records())[0].signal == "SIGKILL"


@pytest.mark.grid
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("over", OVER)
def test_when_the_client_is_killed_nothing_stays(phase: Phase, over: Channels) -> None:
    with Client(puppet(*SERVER), over=over) as client:
        phase(client)
        since_s = time.monotonic()
        client.die()
        client.wait()
        assert time.monotonic() - since_s < LIMIT_S
        assert client.running() == []
        assert ending(client.records())[1].why == "client gone"


def test_a_server_that_was_killed_before_it_ran_counts_as_killed() -> None:
    with Client(puppet("die=KILL")) as client:
        assert client.wait() == 128 + signal.SIGKILL


def test_a_signal_at_any_moment_of_the_start_leaves_nothing(tier: Tier) -> None:
    random = Random(11)
    for _ in range(tier(sample=8, more=40, full=200)):
        with Client(puppet("linger")) as client:
            client.chatter(b"", random.uniform(0, 2 * START_S))
            client.signal(signal.SIGTERM)
            assert client.wait() in {-signal.SIGTERM, 128 + signal.SIGTERM}
            client.gone()
            assert b"Traceback" not in client.rest(client.stderr)
