"""A recording that is still recorded: rows come, timers run, messages are held and let go."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcpspy.cli.tui_sources import StoreDesk
from mcpspy.tui.holding import Holding
from mcpspy.tui.source import RowSource
from tests.deadlines import DEADLINE_S, eventually
from tests.intercept.making import call
from tests.live.client import Client
from tests.live.stdio.test_intercepts import SERVER_COMMAND
from tests.tui.piloting import Piloted, piloted, piloting, sed_editor


def newest() -> RowSource:
    """Open the newest recording, once it has a message."""
    desk = StoreDesk()
    listed = eventually(desk.recordings, "a recording with a message")
    source = desk.open(listed[0].name)
    assert source is not None
    assert source.live
    return source


@asynccontextmanager
async def called() -> AsyncIterator[tuple[Client, Piloted]]:
    """Yield a client that has called once, and the interface that shows its recording."""
    with Client(SERVER_COMMAND) as client:
        client.send(call(1))
        client.line()
        async with piloted(newest()) as shown:
            yield client, shown


async def hold_the_next(client: Client, shown: Piloted, **arguments: str) -> None:
    """Set a breakpoint for calls like the one at the cursor, and let the client make another."""
    await shown.press("b", "enter")
    await shown.until("In force")
    client.send(call(2, **arguments))
    await shown.until("goes on in")


@piloting
async def test_rows_come_and_the_cursor_goes_along_on_the_last_one() -> None:
    async with called() as (client, shown):
        await shown.until("tools/call search")
        client.send(call(2, tool="later"))
        await shown.until("tools/call later")
        await shown.until(lambda _: shown.row == 2)


@piloting
async def test_the_cursor_stays_where_the_user_looks_and_new_rows_are_marked() -> None:
    with Client(SERVER_COMMAND) as client:
        for number in range(1, 4):
            client.send(call(number))
            client.line()
        async with piloted(newest()) as shown:
            await shown.until(lambda _: shown.row == 3)
            await shown.press("up")
            client.send(call(4, tool="later"))
            await shown.until("1 new: End")
            assert shown.row == 2
            await shown.until("\n●   4 ")
            await shown.press("end")
            await shown.until(lambda text: "new: End" not in text)


@piloting
async def test_a_pending_call_has_a_running_timer_and_p_finds_it() -> None:
    server = ["sh", "-c", "cat >/dev/null"]
    with Client(server) as client:
        client.send(call(1, tool="lost"))
        async with piloted(newest()) as shown:
            first = await shown.until("pending")
            await shown.until(lambda text: "pending" in text and text != first)
            await shown.press("p")
            assert shown.row == 1
            await shown.press("right")
            await shown.until("the server (sh) was sent this, and has not answered yet")


@piloting
async def test_a_message_is_held_and_released() -> None:
    async with called() as (client, shown):
        await shown.press("b")
        await shown.until("tool:search => hold")
        await shown.press("enter")
        await shown.until("In force until you press b again or quit")
        client.send(call(2, q="held"))
        await shown.until("held → tools/call search · goes on in")
        await shown.press("h")
        await shown.until("release it")
        await shown.press("r")
        await shown.until("Released: ")
        assert b'"id": 2' in client.line()
        await shown.press("b", "1")
        await shown.until("No longer held")
        client.send(call(3))
        assert b'"id": 3' in client.line()


@piloting
async def test_a_held_message_is_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", sed_editor(tmp_path, "s/held/edited by me/"))
    monkeypatch.delenv("VISUAL", raising=False)
    async with called() as (client, shown):
        await hold_the_next(client, shown, q="held")
        await shown.press("h", "e")
        await shown.until("Sent on, edited")
        assert b"edited by me" in client.line()


@piloting
async def test_a_held_message_is_dropped() -> None:
    async with called() as (client, shown):
        await hold_the_next(client, shown)
        await shown.press("h", "d")
        await shown.until("Dropped: ")
        await shown.press("b", "1")
        await shown.until("No longer held")
        client.send(call(3))
        assert b'"id": 3' in client.line()


@piloting
async def test_a_question_of_a_key_and_one_of_the_timer_each_get_their_own_answer() -> None:
    async with called() as (_, shown):
        header = shown.terminal.source.transcript.captures[0].header
        assert header is not None
        holding = Holding()
        with ThreadPoolExecutor(1) as timer:
            for number in range(20):
                holding.hold(header.capture_id, f"tool:never{number} => hold")
                asked = timer.submit(lambda: [holding.held() for _ in range(20)])
                for in_force in holding.breakpoints:
                    holding.remove(in_force)
                assert asked.result(DEADLINE_S) == [[]] * 20
        holding.close()


@piloting
async def test_closing_the_interface_releases_what_is_held() -> None:
    with Client(SERVER_COMMAND) as client:
        client.send(call(1))
        client.line()
        async with piloted(newest()) as shown:
            await hold_the_next(client, shown)
        assert b'"id": 2' in client.line()


@piloting
async def test_an_answer_is_held_under_response() -> None:
    async with called() as (client, shown):
        await shown.press("right", "b")
        await shown.until("(kind:result or kind:error) tool:search => hold")
        await shown.press("enter")
        await shown.until("In force")
        client.send(call(2))
        await shown.until("held ← answer")
        await shown.press("h", "r")
        assert b'"id": 2' in client.line()


@piloting
async def test_a_faulty_breakpoint_is_not_set() -> None:
    async with called() as (_, shown):
        await shown.press("b", "backspace", "enter")
        await shown.until("hol")
        assert "In force" not in shown.foot


@piloting
async def test_a_newer_recording_is_shown_to_who_looks_at_the_end() -> None:
    with Client(SERVER_COMMAND) as client:
        client.send(call(1))
        client.line()
        async with piloted(newest(), follows=True) as shown:
            await shown.until("tools/call search")
            with Client(SERVER_COMMAND, "--label", "second", new_session=True, through=("env",)) as other:
                other.send(call(1, tool="newer"))
                other.line()
                await shown.until("tools/call newer")


@piloting
async def test_l_lists_the_recordings_and_enter_opens_one() -> None:
    with Client(SERVER_COMMAND, "--label", "weather") as client:
        client.send(call(1))
        client.line()
        async with piloted(newest()) as shown:
            await shown.press("l")
            await shown.until("► ")
            await shown.until("weather")
            await shown.press("enter")
            await shown.until("tools/call search")
            await shown.press("l")
            assert not shown.terminal.recordings.display
