"""The keys that call again and restart: with real servers, some of them still used by a client."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from mcpspy.cli.call.subject import recorded_subject
from mcpspy.cli.transcripts import select_captures
from mcpspy.cli.tui_sources import source_of
from mcpspy.records import Frame
from mcpspy.transcript.model import Exchange
from mcpspy.tui.calling import changes, danger, mistake
from tests.cli.call.test_live import SDK_SERVER, begin, end
from tests.cli.replays import LIST, call, recorded
from tests.intercept.making import line
from tests.live.client import Client
from tests.transcript.dialogue import Dialogue, result
from tests.tui.piloting import CAPTURES, Piloted, piloted, piloting, sed_editor
from tests.tui.test_live import newest
from tests.views.scenes import call as scene_call

Editor = Callable[[str], None]


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """`editor(script)` makes $EDITOR edit with this script of sed."""

    def set_editor(script: str) -> None:
        monkeypatch.setenv("EDITOR", sed_editor(tmp_path, script))
        monkeypatch.delenv("VISUAL", raising=False)

    return set_editor


def injected(client: Client) -> list[str]:
    """End a client, and return the arguments of the calls that it did not send."""
    sent = [record.data for record in end(client) if isinstance(record, Frame) and record.injected]
    return [json.dumps(json.loads(data)["params"]["arguments"]) for data in sent]


@contextmanager
def sums() -> Iterator[Client]:
    """Yield a client that has called a tool of a server on the official SDK."""
    with Client(SDK_SERVER, "--label", "sums") as client:
        begin(client)
        yield client


@asynccontextmanager
async def at_the_call() -> AsyncIterator[Piloted]:
    """Show the newest recording, with the cursor on that call."""
    async with piloted(newest()) as shown:
        await shown.until("tools/call add")
        await shown.burst("end")
        await shown.until(lambda _: shown.row == 4)
        yield shown


@piloting
async def test_r_calls_again_in_the_running_session_after_it_has_asked() -> None:
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("r")
            await shown.until("tools/call add to the running session of sums")
            assert "it may change something, for it is not marked as read-only" in shown.text
            await shown.press("c")
            text = await shown.until("✓ as recorded in row 4")
            assert "✓ tools/call add  ok  " in text
            assert ", recorded " in text
            await shown.press("escape")
            await shown.until("by mcpspy c")
        assert injected(client) == ['{"a": 1, "b": 2}']


@piloting
async def test_escape_instead_of_an_answer_sends_nothing() -> None:
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("r", "escape")
            await shown.until("row id ")
        assert injected(client) == []


@piloting
async def test_a_call_is_edited_first_and_what_differs_is_shown(editor: Editor) -> None:
    editor('s/"b": 2/"b": 40/')
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("R")
            await shown.until("c  call it")
            await shown.press("c")
            text = await shown.until("✗ differs from row 4")
            assert "changed $.arguments.b=40" in text
            assert '- "3"' in text
            assert '+ "41"' in text
        assert injected(client) == ['{"a": 1, "b": 40}']


@piloting
async def test_arguments_that_do_not_fit_the_schema_are_not_sent(editor: Editor) -> None:
    editor('s/"b": 2/"b": "two"/')
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("R")
            await shown.until("they do not fit the input schema")
            await shown.press("escape")
            await shown.until("row id ")
        assert injected(client) == []


@piloting
async def test_what_is_no_json_is_edited_again(editor: Editor) -> None:
    editor('s/"b": 2/"b": /')
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("R")
            await shown.until("edit it again")
            editor('s/"b": /"b": 5/')
            await shown.press("e")
            await shown.until("c  call it")
            await shown.press("c")
            await shown.until('+ "6"')
        assert injected(client) == ['{"a": 1, "b": 5}']


@piloting
async def test_nothing_is_sent_when_nothing_was_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.delenv("VISUAL", raising=False)
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("R")
            await shown.until("Nothing was changed, and nothing was sent.")
        assert injected(client) == []


@piloting
async def test_a_finished_recording_gets_a_server_of_its_own_after_r_has_asked(tmp_path: Path) -> None:
    path = recorded(tmp_path, LIST, call("greet", name="Ada"))
    async with piloted(Path(path), row=4) as shown:
        await shown.press("r")
        await shown.until("tools/call greet to a new ")
        await shown.press("enter")
        text = await shown.until("✓ as recorded in row 4")
        assert '"Hello, Ada"' in text
        assert "recorded in " in text


@piloting
async def test_escape_cancels_a_call_that_waits() -> None:
    with Client(["sh", "-c", "cat >/dev/null"], "--label", "mute") as client:
        client.send(line({"id": 1, "method": "resources/list"}))
        async with piloted(newest()) as shown:
            await shown.until("pending")
            await shown.press("r")
            await shown.until("waiting for the answer of the running session of mute")
            await shown.until("resources/list")
            await shown.press("escape")
            await shown.until("Cancelled: resources/list")
            await shown.until("row id ")


@pytest.mark.parametrize(
    ("capture", "row", "why"),
    [("everything", 1, "row 1 is the handshake"), ("everything", 2, "row 2 is no call")],
)
@piloting
async def test_what_cannot_be_called_again_says_why(capture: str, row: int, why: str) -> None:
    async with piloted(CAPTURES / f"{capture}.mcpspy", row=row) as shown:
        await shown.press("r")
        await shown.until(why)


@piloting
async def test_a_row_without_an_answer_is_compared_with_nothing(tmp_path: Path) -> None:
    path = recorded(tmp_path, LIST, call("greet", name="wait"))
    source = source_of(select_captures((path,)))
    exchange = source.transcript.exchanges[-1]
    exchange.response = None
    async with piloted(source, row=4) as shown:
        await shown.press("r", "c")
        await shown.until("row 4 has no answer to compare with")
        assert "as recorded" not in shown.text


def test_a_row_of_several_captures_is_called_by_its_number_in_its_own() -> None:
    source = source_of(select_captures((str(CAPTURES / "everything.mcpspy"), str(CAPTURES / "logs.mcpspy"))))
    exchanges = [exchange for exchange in source.transcript.exchanges if exchange.sender == "client"]
    assert {exchange.capture for exchange in exchanges} == {0, 1}
    for exchange in exchanges:
        if exchange.method != "initialize":
            assert recorded_subject(source.address(exchange)).exchange.request.raw == exchange.request.raw


# --- The tool, as the server describes it ---

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}


def forecast(**annotations: bool) -> Dialogue:
    """A list with one tool, and a call of it."""
    tool = {"name": "forecast", "inputSchema": SCHEMA, **({"annotations": annotations} if annotations else {})}
    scene = Dialogue()
    scene.client(line({"id": 1, "method": "tools/list"})).server(result(1, {"tools": [tool]}))
    params = {"name": "forecast", "arguments": {"city": "Rome", "days": 3}}
    scene.client(line({"id": 2, "method": "tools/call", "params": params})).server(result(2))
    return scene


def the_call(scene: Dialogue) -> Exchange:
    exchange = scene.transcript.exchanges[-1]
    assert exchange.method == "tools/call"
    return exchange


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({}, "not marked as read-only"),
        ({"readOnlyHint": True}, ""),
        ({"destructiveHint": True}, "marked as destructive"),
        ({"readOnlyHint": False}, "not marked as read-only"),
    ],
)
def test_only_a_tool_that_is_marked_as_read_only_is_called_without_a_question(annotations: dict[str, bool], words: str) -> None:
    scene = forecast(**annotations)
    said = danger(scene.transcript, the_call(scene))
    assert (words in said) if words else not said


def test_a_tool_that_is_not_listed_is_not_called_without_a_question() -> None:
    scene = Dialogue()
    scene.client(scene_call(1, "unknown")).server(result(1))
    assert danger(scene.transcript, the_call(scene))


@pytest.mark.parametrize(
    ("value", "wrong"),
    [({"city": "Oslo"}, False), ({"city": 7}, True), ({"days": 3}, True), ({"city": "Oslo", "days": "3"}, True)],
)
def test_edited_arguments_are_held_against_the_input_schema(value: dict[str, object], *, wrong: bool) -> None:
    scene = forecast()
    assert bool(mistake(scene.transcript, the_call(scene), value)) is wrong


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"city": "Rome", "days": 3}, ()),
        ({"city": "Rome", "days": 4}, ("$.arguments.days=4",)),
        ({"city": "Rome", "days": 3, "a b": None}, ("$.arguments['a b']=null",)),
        ({"city": "上"}, ('$.arguments={"city": "\\u4e0a"}',)),
        ({}, ("$.arguments={}",)),
    ],
)
def test_only_what_was_edited_is_changed(value: object, words: tuple[str, ...]) -> None:
    assert changes(the_call(forecast()), value) == words


@pytest.mark.parametrize("value", [[], 1, "text", None, {"city": "x" * 200_000}])
def test_what_cannot_be_sent_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"object|too long"):
        changes(the_call(forecast()), value)


# --- Restarting ---


@piloting
async def test_x_restarts_the_server_after_it_has_asked_and_the_client_stays() -> None:
    with sums() as client:
        async with at_the_call() as shown:
            await shown.press("x")
            await shown.until("restart sums")
            await shown.press("r")
            await shown.until("Server restarted (pid ")
            await shown.until('by mcpspy: {"jsonrpc"')
        client.send(line({"id": 9, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 3, "b": 4}}}))
        assert json.loads(client.line())["result"]["content"][0]["text"] == "7"


@piloting
async def test_x_says_when_nothing_runs() -> None:
    async with piloted(CAPTURES / "everything.mcpspy") as shown:
        await shown.press("x")
        await shown.until("Only a server that runs under mcpspy run can be restarted.")
