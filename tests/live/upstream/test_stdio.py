"""The client of a live stdio server: what it reports and records, how it ends, and servers that misbehave."""

import asyncio
import os
import signal
import sys
from functools import partial
from typing import Any

import pytest

from mcpspy.errors import UpstreamError
from mcpspy.live.upstream.protocol import Failure
from mcpspy.live.upstream.stdio import StdioClient
from mcpspy.platform.processes import process
from mcpspy.records import CLIENT, SERVER, Exit, Frame, Open, Partial, Spawn, Stall
from mcpspy.transcript.model import Outcome
from tests.conftest import PEERS
from tests.deadlines import eventually
from tests.live.http.meeting import Meeting, meeting, scene
from tests.transcript.dialogue import notification, request, tool_call

INITIALIZE = request(
    1,
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}},
)


def puppet(*steps: str) -> Any:
    return partial(StdioClient, [sys.executable, str(PEERS / "puppet.py"), *steps], patience_s=0.3)


def sdk_server() -> Any:
    return partial(StdioClient, [sys.executable, str(PEERS / "pyserver.py"), "stdio"])


def is_gone(pid: int) -> bool:
    return process(pid) is None


# What is heard and recorded


@scene
async def test_a_server_on_the_sdk_is_heard_and_asks_back() -> None:
    async with meeting(sdk_server()) as met:
        assert (await met.asks(INITIALIZE))["result"]["serverInfo"]["name"] == "labserver"
        await met.says(notification("notifications/initialized"))
        question = await met.asks(tool_call(2, "greet"))
        assert question["method"] == "elicitation/create"
        await met.says({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}})
        assert (await met.told())["id"] == 2


@scene
async def test_its_records_read_like_those_of_a_tap() -> None:
    async with meeting(sdk_server()) as met:
        await met.asks(INITIALIZE)
        await met.says(notification("notifications/initialized"))
        await met.asks(request(2, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
    exchanges = met.transcript.exchanges
    assert [(exchange.method, exchange.outcome) for exchange in exchanges] == [
        ("initialize", Outcome.OK),
        ("tools/call", Outcome.OK),
    ]
    assert [(record.name, record.sender, record.injected) for record in met.of(Open)] == [
        ("stdin", CLIENT, True),
        ("stdout", SERVER, False),
        ("stderr", SERVER, False),
    ]
    assert [frame.injected for frame in met.of(Frame) if frame.stream == 0] == [True, True, True]
    assert not any(frame.injected for frame in met.of(Frame) if frame.stream == 1)
    assert met.of(Spawn)[0].pid == met.exit.pid
    assert (met.ends[0], met.exit.code) == ((0, "client", "eof"), 0)


@scene
async def test_a_message_goes_out_as_one_line_whatever_line_ends_it_has() -> None:
    async with meeting(puppet("echo")) as met:
        await met.says(b'{"jsonrpc":"2.0",\r\n "id":1,\n"method":"ping"}\n')
        assert await met.told() == request(1, "ping")
    assert met.stream(0) == b'{"jsonrpc":"2.0",   "id":1, "method":"ping"}\n'


@scene
async def test_a_line_of_many_megabytes_is_heard_whole() -> None:
    async with meeting(puppet("echo")) as met:
        long = request(1, "ping", {"x": "y" * 5_000_000})
        assert await met.asks(long) == long
    assert [frame.part for frame in met.of(Frame) if frame.stream == 1] == [True, True, True, True, False]


@scene
async def test_junk_on_stdout_is_recorded_and_not_heard() -> None:
    async with meeting(puppet("say=up and running", "say=", "say=[1]", 'say={"id":1}', "write=\ufeff", "echo")) as met:
        assert await met.asks(request(1)) == request(1)
    assert met.stream(1).startswith(b"up and running\n\n[1]\n")


@scene
async def test_a_last_line_without_its_end_is_heard() -> None:
    async with meeting(puppet('write={"jsonrpc":"2.0","id":1,"result":{}}', "exit=0")) as met:
        assert (await met.told())["id"] == 1


@scene
async def test_half_a_last_line_is_not_heard() -> None:
    async with meeting(puppet('write={"jsonrpc":"2.0","id":1,"res', "exit=0")) as met:
        assert await met.told() == "the server exited with status 0"
    assert met.stream(1) == b'{"jsonrpc":"2.0","id":1,"res'


@scene
async def test_the_members_of_a_batch_are_heard_one_after_the_other() -> None:
    batch = 'say=[{"jsonrpc":"2.0","id":1,"result":{}},7,{"jsonrpc":"2.0","id":2,"result":{}}]'
    async with meeting(puppet(batch, "swallow")) as met:
        assert [(await met.told())["id"], (await met.told())["id"]] == [1, 2]


@scene
async def test_stderr_is_recorded_and_handed_on() -> None:
    async with meeting(puppet("complain=it is late", "swallow")) as met:
        pass
    assert b"".join(met.complaints) == met.stream(2) == b"it is late\n"


@scene
async def test_giving_a_request_up_is_a_notification() -> None:
    async with meeting(puppet("echo")) as met:
        await met.client.cancel('"a"')
        assert (await met.told())["params"] == {"requestId": "a"}


BIG = request(1, "ping", {"x": "y" * 2_000_000})


@scene
async def test_a_server_that_reads_slowly_is_waited_for_and_that_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.stdio.STALL_S", 0.05)
    async with meeting(puppet("after=300", "echo")) as met:
        await met.says(BIG)
        await met.says(request(2))
        assert [await met.told(), await met.told()] == [BIG, request(2)]
    begun, ended = met.of(Stall)
    assert (begun.stream, begun.waiting_bytes > 1_000_000, begun.lasted_ns) == (0, True, None)
    assert ended.lasted_ns >= 50_000_000


@scene
async def test_a_server_that_reads_nothing_fails_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.stdio.STALL_S", 0.02)
    monkeypatch.setattr("mcpspy.live.upstream.stdio.DEAF_S", 0.05)
    async with meeting(puppet("linger")) as met:
        await met.says(BIG)
        assert (await met.asks(request(2))).why == "the server does not read its standard input"


@scene
async def test_leaving_a_server_that_reads_nothing_ends_the_wait() -> None:
    async with meeting(puppet("linger")) as met:
        await met.says(BIG)
        behind = asyncio.create_task(met.says(request(2)))
        await asyncio.wait([behind], timeout=0.05)
        assert not behind.done()
    await behind


@scene
async def test_half_a_line_that_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.live.upstream.partials.PARTIAL_S", 0.05)
    async with meeting(puppet('write={"jsonrpc"', "linger")) as met:
        await met.until(lambda: met.of(Partial))
    assert [record.data for record in met.of(Partial)] == [b'{"jsonrpc"']


# How it ends


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (("exit=3",), "the server exited with status 3"),
        (
            ("complain=first", "complain=out of cheese", "exit=1"),
            "the server exited with status 1; its last words: out of cheese",
        ),
        (("die=SEGV",), "the server was ended by SIGSEGV"),
        (("close=1", "linger"), "the server has closed its standard output"),
        (("grandchild", "exit=0"), "the server exited with status 0"),
    ],
)
@scene
async def test_a_server_that_goes_is_lost_and_says_how(steps: tuple[str, ...], why: str) -> None:
    async with meeting(puppet(*steps)) as met:
        assert await met.told() == why


@scene
async def test_what_a_server_said_before_it_died_is_heard_first() -> None:
    async with meeting(puppet('say={"jsonrpc":"2.0","id":1,"result":{}}', "exit=3")) as met:
        assert [await met.told(), await met.told()] == [
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            "the server exited with status 3",
        ]
    assert len(met.lost) == 1


@scene
async def test_a_server_that_we_leave_is_not_lost() -> None:
    async with meeting(puppet("swallow", "exit=7")) as met:
        pass
    assert (met.lost, met.exit.code, met.ends[0]) == ([], 7, (0, "client", "eof"))


@scene
async def test_its_status_is_kept() -> None:
    async with meeting(puppet("swallow", "die=KILL")) as met:
        pass
    assert (met.client.status, met.exit.signal) == (137, "SIGKILL")  # type: ignore[attr-defined]  # a StdioClient


@scene
async def test_a_server_that_closed_its_input_fails_what_is_sent() -> None:
    async with meeting(puppet("close=0", "linger")) as met:
        await met.until(lambda: met.ends)
        failure = await met.asks(tool_call(2, "add"))
    assert failure == Failure(id="2", method="tools/call", why="the server has closed its standard input")
    assert met.ends[0] == (0, "server", "broken")


@scene
async def test_a_server_that_ignores_the_end_of_its_input_gets_sigterm() -> None:
    async with meeting(puppet("say=up", "linger")) as met:
        await met.until(lambda: met.stream(1))
    assert met.exit.signal == "SIGTERM"
    assert [note.partition(" to ")[0] for note in met.notes] == ["escalation: SIGTERM"]


@scene
async def test_a_server_that_ignores_sigterm_too_gets_sigkill_with_what_it_started() -> None:
    async with meeting(puppet("ignore=TERM", "grandchild", "linger")) as met:
        await met.until(lambda: met.stream(1).endswith(b"\n"))
    assert met.exit.signal == "SIGKILL"
    eventually(lambda: is_gone(int(met.stream(1))), "the grandchild's end")


@scene
async def test_what_a_server_leaves_behind_is_ended() -> None:
    async with meeting(puppet("grandchild", "swallow", "exit=0")) as met:
        await met.until(lambda: met.stream(1).endswith(b"\n"))
    assert [descendant["pid"] for descendant in met.exit.descendants] == [int(met.stream(1))]
    eventually(lambda: is_gone(int(met.stream(1))), "the grandchild's end")


@scene
async def test_what_a_server_leaves_may_end_by_itself() -> None:
    async with meeting(puppet("grandchild", "exit=0")) as met:
        await met.until(lambda: any(isinstance(record, Exit) for record in met.records))
        os.kill(int(met.stream(1)), signal.SIGKILL)
    assert [descendant["pid"] for descendant in met.exit.descendants] == [int(met.stream(1))]
    assert [note.partition(":")[0] for note in met.notes] == ["descendants-ended"]


@scene
async def test_it_may_be_closed_twice() -> None:
    async with meeting(puppet("swallow")) as met:
        await met.client.close()
    assert len(met.ends) == 3


@scene
async def test_closing_that_is_given_up_leaves_nothing_alive() -> None:
    async with meeting(puppet("ignore=TERM", "say={pid}", "linger")) as met:
        await met.until(lambda: met.stream(1).endswith(b"\n"))
        closing = asyncio.create_task(met.client.close())
        await asyncio.wait([closing], timeout=0.05)
        closing.cancel()
        await asyncio.wait([closing])
    eventually(lambda: is_gone(int(met.stream(1))), "the server's end")


@scene
async def test_it_is_in_a_session_of_its_own() -> None:
    async with meeting(puppet("swallow")) as met:
        assert os.getsid(met.of(Spawn)[0].pid) == met.of(Spawn)[0].pid


@pytest.mark.parametrize(("command", "reason"), [("./no-such-server", "command not found"), ("/dev/null", "Permission denied")])
@scene
async def test_a_server_that_cannot_be_started_is_an_error(command: str, reason: str) -> None:
    met = Meeting()
    with pytest.raises(UpstreamError, match=reason):
        await StdioClient([command], **met.callbacks()).start()
    assert met.exit.error == reason
