"""The next useful command: about the worst call, with the user's address."""

import pytest

from mcpspy.views.text.hint import next_commands
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, request, result
from tests.transcript.llm.traffic import ModelTraffic
from tests.views.scenes import busy_scene, call, failed, opened


def hints(scene: Dialogue, *whats: str, live: bool = False) -> list[str]:
    return [plain(line).split("   ")[0] for line in next_commands(scene.transcript, whats, live=live)][1:]


def test_the_first_error_comes_before_everything_else() -> None:
    assert hints(busy_scene()) == ["mcpspy show @:8", "mcpspy export mermaid"]


def test_without_errors_the_hint_shows_the_slowest_call() -> None:
    scene = opened("weather").client(request(1)).server(result(1)).client(request(2)).wait(9).server(result(2))
    assert hints(scene)[0] == "mcpspy show @:2"


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("weather", "mcpspy show weather:1"),
        ("weather:3..9", "mcpspy show weather:1"),
        ("@1:4", "mcpspy show @1:1"),
        ("my file.mcpspy", "mcpspy show 'my file.mcpspy:1'"),
        ("a:b", "mcpspy show a:b:1"),
    ],
)
def test_the_hint_uses_the_users_address(what: str, command: str) -> None:
    assert hints(opened("weather").client(call(1, "x")).server(failed(1, "no")), what)[0] == command


def test_a_model_call_can_be_shown_in_full_too() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hello").answer(429, {"error": {"message": "slow down"}})
    lines = [plain(line) for line in next_commands(traffic.transcript, ["gpt"], live=False)]
    assert lines[1].startswith("mcpspy show gpt:1")


def test_several_captures_have_no_row_to_point_at() -> None:
    assert hints(busy_scene(), "a", "b") == ["mcpspy export mermaid a b"]


def test_a_live_recording_can_be_followed() -> None:
    assert hints(busy_scene(), live=True)[-1] == "mcpspy show -f"


def test_without_calls_there_is_no_hint() -> None:
    assert hints(opened("weather")) == []


@pytest.mark.parametrize("width", range(1, 81))
def test_no_hint_is_wider_than_the_screen(width: int) -> None:
    lines = next_commands(busy_scene().transcript, ("weather",), live=False, width=width)
    assert all(line_cells(line) <= width for line in lines)


def test_on_a_narrow_screen_commands_have_no_description() -> None:
    lines = [plain(line) for line in next_commands(busy_scene().transcript, (), live=False, width=40)]
    assert lines == ["", "mcpspy show @:8", "mcpspy export mermaid"]


def test_a_command_that_does_not_fit_is_left_out_and_never_cut() -> None:
    lines = [plain(line) for line in next_commands(busy_scene().transcript, (), live=False, width=20)]
    assert lines == ["", "mcpspy show @:8"]


@pytest.mark.parametrize(
    ("whats", "findings", "commands"),
    [
        ((), ("@",), ["mcpspy show @:8", "mcpspy show -f --since 1h"]),
        ((), ("@1",), ["mcpspy show @1:8", "mcpspy show -f --since 1h"]),
        ((), ("@", "@1"), ["mcpspy show -f --since 1h"]),
        (("weather",), ("weather",), ["mcpspy show weather:8", "mcpspy show -f weather --since 1h"]),
    ],
)
def test_with_since_the_hint_names_the_recordings_that_were_shown(
    whats: tuple[str, ...], findings: tuple[str, ...], commands: list[str]
) -> None:
    lines = next_commands(busy_scene().transcript, whats, live=True, since="1h", shown_whats=findings)
    assert [plain(line).split("   ")[0].rstrip() for line in lines[1:]] == commands


def test_the_diagram_is_of_the_recordings_that_were_shown() -> None:
    lines = next_commands(busy_scene().transcript, (), live=False, since="1h", shown_whats=("@", "@1"))
    assert plain(lines[1]).startswith("mcpspy export mermaid @ @1 ")
