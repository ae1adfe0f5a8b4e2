"""A side that does not read makes the other wait and not the tap grow, and one blocked stream blocks no other."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from mcpspy.live.stdio.pump import PARTIAL_NS, STALL_NS
from mcpspy.records import Close, Frame, Partial, Stall
from tests.deadlines import DEADLINE_S
from tests.live.client import OVER, Channels, Client, closing, puppet, stream
from tests.tiers import Tier, current_tier

MAX_RESIDENT_KIB = 100_000
MAX_HELD_BYTES = 8_000_000
"""Limit of the bytes held in pipes, sockets and mcpspy while nobody reads: a small multiple of the largest pipe."""

LINE_BYTES = 4096


def flood(count: int) -> str:
    """Return the step that writes so many lines on stdout."""
    return f"flood=1:{count}"


def written_bytes(pid: int) -> int:
    """Return how many bytes a process has written in all."""
    return int(Path(f"/proc/{pid}/io").read_text(encoding="utf-8").partition("wchar: ")[2].split()[0])


@pytest.mark.parametrize("over", OVER[1:] if current_tier() is Tier.SAMPLE else OVER)
def test_a_client_that_does_not_read_makes_a_flooding_server_wait(over: Channels) -> None:
    with Client(puppet(flood(100_000)), over=over) as client:
        client.recorded(Stall, stream=1)
        assert written_bytes(client.server_pid()) < MAX_HELD_BYTES


@pytest.mark.parametrize("over", OVER[:1] if current_tier() is Tier.SAMPLE else OVER)
def test_a_flood_that_is_read_late_arrives_whole_through_little_memory(over: Channels, tier: Tier) -> None:
    count = tier(sample=10, more=200, full=500) * 1_000_000 // LINE_BYTES
    with Client(puppet(flood(count), "await=enough"), over=over) as client:
        client.recorded(Stall, stream=1)
        digest = sha256()
        for _ in range(count):
            digest.update(client.take(LINE_BYTES))
        assert client.peak_kib() < MAX_RESIDENT_KIB
        client.send(b"enough\n")
        client.wait()
        recorded = sha256()
        for frame in client.each_record():
            if isinstance(frame, Frame) and frame.stream == 1:
                recorded.update(frame.data)
        assert recorded.digest() == digest.digest()


@pytest.mark.parametrize("over", OVER[:1] if current_tier() is Tier.SAMPLE else OVER)
def test_a_server_that_never_reads_makes_the_client_wait(over: Channels) -> None:
    with Client(puppet("linger"), over=over) as client:
        assert client.fill(b"x" * 4095 + b"\n") < MAX_HELD_BYTES


def test_a_server_that_never_reads_can_still_talk() -> None:
    with Client(puppet("complain=up", "linger")) as client:
        client.fill(b"x" * 4095 + b"\n")
        client.line(client.stderr)
    with Client(puppet("after=700", "say=up", "linger")) as client:
        client.fill(b"x" * 4095 + b"\n")
        assert client.line() == b"up\n"


@pytest.mark.parametrize("over", OVER[1:] if current_tier() is Tier.SAMPLE else OVER)
def test_a_flood_on_stderr_that_nobody_reads_holds_up_no_message_of_before(over: Channels) -> None:
    with Client(puppet("say=up", "flood=2:100000"), over=over) as client:
        client.recorded(Stall, stream=2)
        assert client.line() == b"up\n"
        assert written_bytes(client.server_pid()) < MAX_HELD_BYTES


def test_a_flood_on_stderr_that_is_read_is_recorded_whole(tier: Tier) -> None:
    count = tier(sample=1_000, more=10_000, full=100_000)
    with Client(puppet(f"flood=2:{count}", "say=done")) as client:
        read = client.rest(client.stderr)
        assert len(read) == count * LINE_BYTES
        client.wait()
        assert stream(client.records(), 2) == read


def test_64_messages_of_4_kib_in_flight_both_ways_do_not_stall(tier: Tier) -> None:
    rounds = tier(sample=20, more=200, full=2_000)
    batch = (b"x" * 4095 + b"\n") * 64
    with Client(puppet("echo")) as client:
        for _ in range(rounds):
            client.send(batch)
        assert len(client.take(rounds * len(batch))) == rounds * len(batch)


def test_a_stall_tells_when_it_is_over() -> None:
    with Client(puppet(flood(2_000), "await=enough")) as client:
        client.recorded(Stall, stream=1, lasted_ns=None)
        client.take(2_000 * LINE_BYTES)
        client.send(b"enough\n")
        client.wait()
        last = [record for record in client.records() if isinstance(record, Stall)][-1]
        assert last.lasted_ns is not None
        assert last.lasted_ns >= STALL_NS


@pytest.mark.skipif(current_tier() is Tier.SAMPLE, reason="takes five seconds; test_pump.py has it without the wait")
def test_half_a_line_that_waits_is_recorded_as_partial() -> None:
    with Client(puppet("write={half", "linger")) as client:
        partial = client.recorded(Partial, stream=1)
        assert partial.data == b"{half"
        assert partial.at_ns - partial.first_ns >= PARTIAL_NS


# A side that closes something and lives on


@pytest.mark.parametrize("over", OVER)
def test_a_server_that_closes_its_input_is_a_broken_pipe_to_the_client(over: Channels) -> None:
    with Client(puppet("close=0", "say=up", "linger"), over=over) as client:
        client.line()
        with pytest.raises(BrokenPipeError):
            client.chatter(b"anybody?\n", DEADLINE_S)
        assert client.recorded(Close, stream=0, by="server").how == "broken"


def test_a_server_that_has_closed_its_input_can_still_talk() -> None:
    with Client(puppet("close=0", "say=up", "after=200", "say=still here", "exit=3")) as client:
        client.line()
        with suppress(BrokenPipeError):  # it may be known by now that nobody reads
            client.send(b"anybody?\n")
        assert client.line() == b"still here\n"
        assert client.wait() == 3


def test_a_server_that_closes_its_output_ends_that_of_ours() -> None:
    with Client(puppet("say=up", "close=1", "swallow", "exit=4")) as client:
        assert client.rest() == b"up\n"
        client.send(b"x\n")
        client.close(client.stdin)
        assert client.wait() == 4
        assert closing(client.records(), 1) == ("server", "eof")


def test_a_server_that_has_closed_its_output_still_hears() -> None:
    with Client(puppet("close=1", "await=bye", "exit=5")) as client:
        client.rest()
        client.send(b"bye\n")
        assert client.wait() == 5


def test_a_client_that_reads_no_stderr_any_more_is_not_gone() -> None:
    with Client(puppet("await=go", "flood=2:10", "say=up", "echo")) as client:
        client.close(client.stderr)
        client.send(b"go\n")
        assert client.line() == b"up\n"
        client.send(b"still here\n")
        assert client.line() == b"still here\n"
        assert client.recorded(Close, stream=2, by="client").how == "broken"
