"""The cost of a tap over time: nothing while it is idle, and no more memory after a million messages."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.records import End, Stall
from tests.deadlines import eventually
from tests.live.client import Client, puppet
from tests.tiers import Tier, current_tier

QUIET_S = 1.2
"""More than any timer that runs while nobody talks would take to be seen."""

MAX_GROWTH_KIB = 4_000

MESSAGES_AT_ONCE = 500


def effort(pid: int) -> tuple[int, int]:
    """Return how often a process has gone to sleep so far, and its processor time, over all its threads."""
    switches = ticks = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            switches += int((task / "status").read_text(encoding="utf-8").partition("\nvoluntary_ctxt_switches:")[2].split()[0])
            ticks += sum(map(int, (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]))
    except (FileNotFoundError, ProcessLookupError):  # a thread has ended
        return effort(pid)
    return switches, ticks


def rests(pid: int) -> bool:
    """Wait until a process has done nothing at all for a while."""
    seen, since_s = effort(pid), time.monotonic()

    def is_quiet() -> bool:
        nonlocal seen, since_s
        now = effort(pid)
        if now != seen:
            seen, since_s = now, time.monotonic()
        return time.monotonic() - since_s > QUIET_S

    return eventually(is_quiet, "an idle process")


def with_nobody_talking(client: Client) -> None:
    client.send(b"x\n")
    client.line()


def with_the_clients_last_word_said(client: Client) -> None:
    client.close(client.stdin)


def with_a_client_that_does_not_read(client: Client) -> None:
    client.send(b"flood\n")
    client.recorded(Stall, stream=1)


STATES: list[Callable[[Client], None]] = [
    with_nobody_talking,
    with_the_clients_last_word_said,
    with_a_client_that_does_not_read,
]


@pytest.mark.parametrize("state", STATES[:1] if current_tier() is Tier.SAMPLE else STATES, ids=lambda state: state.__name__)
def test_an_idle_tap_does_nothing(state: Callable[[Client], None]) -> None:
    steps = ("await=flood", "flood=1:100000") if state is with_a_client_that_does_not_read else ("echo", "linger")
    with Client(puppet(*steps)) as client:
        state(client)
        assert rests(client.pid)


def resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text(encoding="utf-8").partition("VmRSS:")[2].split()[0])


def descriptors(pid: int) -> list[str]:
    return sorted(os.listdir(f"/proc/{pid}/fd"), key=int)


@pytest.mark.timeout(1200)
def test_memory_and_descriptors_are_the_same_after_many_messages(tier: Tier) -> None:
    rounds = tier(sample=100_000, more=300_000, full=1_000_000) // MESSAGES_AT_ONCE
    warm = rounds // 4
    with Client(puppet("echo")) as client:
        for turn in range(rounds):
            if turn == warm:
                before = resident_kib(client.pid), descriptors(client.pid)
            numbers = range(turn * MESSAGES_AT_ONCE, (turn + 1) * MESSAGES_AT_ONCE)
            batch = b"".join(
                b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":"%s"}}\n' % (n, b"y" * (n % 300))
                for n in numbers
            )
            client.send(batch)
            assert client.take(len(batch)) == batch
        after = resident_kib(client.pid), descriptors(client.pid)
        assert after[1] == before[1]
        assert after[0] < before[0] + MAX_GROWTH_KIB
        client.close(client.stdin)
        client.wait()
        end = client.recorded(End)
        assert end.messages == 2 * rounds * MESSAGES_AT_ONCE
