"""Dialogues of published walkthroughs of MCP, played by real programs: requests get answers; unspecified messages are named.

The servers are tests/peers/dialects.py, which speaks as walkthroughs have it, and one on the official SDK for what they have right.
"""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path

import pytest

import mcpspy
from mcpspy.transcript.model import Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import run
from tests.conftest import PEERS, NpmProgram
from tests.interop.faults import faults
from tests.interop.http_scenes import inspector
from tests.interop.playing import Played, Playing, Scene, tap
from tests.interop.scenes import steps
from tests.interop.serving import HttpScene, play, play_tapped, recorded, serving
from tests.known_problems.stage import Caller, asking, checked, hello
from tests.known_problems.stage import serving as peer_serving

DIALECTS = (sys.executable, str(PEERS / "dialects.py"), "0")
PROMPTS = (sys.executable, str(PEERS / "promptserver.py"))
REVIEW = steps("legacy", {"list": "prompts"}, {"prompt": "code_review", "arguments": {"code": "def f(): pass"}})


def heard(stream: HTTPResponse) -> str:
    """Read the data of the next event."""
    lines = iter(lambda: stream.readline().decode().rstrip("\n"), "")
    return next(line.removeprefix("data: ") for line in list(lines) if line.startswith("data: "))


def recorded_talk(talk: Callable[[Caller], None], folder: Path) -> Path:
    """Record this client with the server that speaks the dialects."""
    with (
        peer_serving(folder, "0", peer="dialects.py") as number,
        recorded(f"http://127.0.0.1:{number}/mcp", folder) as url,
        closing(Caller(url)) as client,
    ):
        talk(client)
    return folder / "a.mcpspy"


def transcript(capture: Path) -> Transcript:
    return transcribe(mcpspy.read(capture))


def answered(transcript: Transcript) -> list[tuple[str, str]]:
    """Return each request with its outcome."""
    return [(exchange.method, exchange.outcome.value) for exchange in transcript.exchanges]


# --- HTTP+SSE, with an endpoint in JSON, answers in parts, an end mark, and pings that are notifications ---


def speak(client: Caller) -> None:
    """Play a whole session of a walkthrough; the URL and a field name the session."""
    stream = client.request("GET", "/sse")
    path = json.loads(heard(stream))["uri"]
    client.fields["Mcp-Session-Id"] = path.partition("=")[2]
    client.post("initialize", 1, path, protocolVersion="2024.11.05", capabilities={"tools": {}})
    heard(stream)
    client.post("tools/list", 2, path)
    heard(stream)
    client.post("tools/call", 3, path, name="get_weather", arguments={"location": "北京"})
    while heard(stream) != "[DONE]":
        pass
    client.post("ping", None, path)
    heard(stream)


def test_each_request_of_the_dialect_has_its_answer(tmp_path: Path) -> None:
    made = transcript(recorded_talk(speak, tmp_path))
    assert answered(made) == [("initialize", "ok"), ("tools/list", "ok"), ("tools/call", "ok")]
    assert [len(exchange.partials) for exchange in made.exchanges] == [0, 0, 1]


def test_what_no_specification_has_is_named_and_whose_it_is(tmp_path: Path) -> None:
    rules = {
        (finding["rule"], finding["culprit"])
        for finding in checked(recorded_talk(speak, tmp_path), "--ignore", "not-as-specified")
    }
    assert rules == {
        ("endpoint-dialect", "server"),
        ("unknown-revision", "client"),
        ("unknown-revision", "server"),
        ("partial-result", "server"),
        ("no-jsonrpc", "server"),
        ("unpaired-response", "server"),
        ("done-event", "server"),
        ("wrong-kind", "client"),
        ("missing-initialized", "client"),
    }


def test_ping_and_pong_without_ids_are_both_shown(tmp_path: Path) -> None:
    unpaired_messages = [row for row in transcript(recorded_talk(speak, tmp_path)).rows if isinstance(row, UnpairedMessage)]
    assert [unpaired.message.method for unpaired in unpaired_messages if unpaired.message.method] == ["ping", "pong"]


@pytest.mark.parametrize("columns", [80, 200])
def test_the_parts_of_a_result_are_told_apart_on_any_screen(columns: int, tmp_path: Path) -> None:
    shown = run("show", f"{recorded_talk(speak, tmp_path)}:4", COLUMNS=str(columns)).stdout
    heads = [line.split("  ")[0].rstrip() for line in shown.splitlines() if line.startswith("← ")]
    assert heads[:2] == ["← partial result", "← result"]


def test_an_sdk_client_fails_on_the_dialect_as_it_does_without_mcpspy(tmp_path: Path) -> None:
    assert_same_failure("/sse", tmp_path)


def test_an_sdk_client_waits_for_an_endpoint_as_it_does_without_mcpspy(tmp_path: Path) -> None:
    assert_same_failure("/mcp/events", tmp_path)


def both(scene: HttpScene, url: str, tapped: str, folder: Path) -> tuple[Played, Played]:
    """Run a client directly and through mcpspy at the same time, and return both outputs."""
    with ThreadPoolExecutor() as pool:
        direct = pool.submit(play, scene, url, folder / "direct")
        through = play(scene, tapped, folder / "tapped")
        return direct.result(), through


def assert_same_failure(path: str, folder: Path) -> None:
    """Check that the official Python SDK fails with the same message directly and through mcpspy."""
    scene = HttpScene(client=(sys.executable, str(PEERS / "briefclient.py"), "URL"), server=DIALECTS, path=path)
    with serving(scene, folder / "run") as url, recorded(url, folder / "run") as tapped:
        direct, through = both(scene, url, tapped, folder)
    assert direct.output == "TimeoutError\n", direct.errors
    assert through == direct


def test_the_typescript_sdk_fails_on_the_dialect_as_it_does_without_mcpspy(tmp_path: Path, npm_program: NpmProgram) -> None:
    npm_program("mcp-inspector")
    scene = HttpScene(client=inspector("sse", "get_weather", "location=北京"), server=DIALECTS, path="/sse")
    with serving(scene, tmp_path / "run") as url, recorded(url, tmp_path / "run") as tapped:
        direct, through = both(scene, url, tapped, tmp_path)
    assert direct.status != 0
    assert through == direct


# --- HTTP+SSE that never says where to POST, and prompts over it ---


def review(client: Caller) -> None:
    """Play a session in which only ids connect the stream with the requests."""
    stream = client.request("GET", "/mcp/events")
    client.post("initialize", 0, "/mcp/request", **hello("2024-11-05"))
    heard(stream)
    client.post("notifications/initialized", None, "/mcp/request")
    client.post("prompts/list", 1, "/mcp/request")
    heard(stream)
    client.post("prompts/get", 2, "/mcp/request", name="code_review", arguments={"code": "def f(): pass"})
    heard(stream)


def test_without_an_endpoint_the_one_open_stream_is_the_session(tmp_path: Path) -> None:
    made = transcript(recorded_talk(review, tmp_path))
    assert answered(made) == [("initialize", "ok"), ("prompts/list", "ok"), ("prompts/get", "ok")]


def test_a_stream_that_announces_no_endpoint_is_all_that_is_found_in_a_session_of_one_client(tmp_path: Path) -> None:
    found = [finding["rule"] for finding in checked(recorded_talk(review, tmp_path)) if finding["severity"] != "note"]
    assert found == ["missing-endpoint"]


def test_a_prompt_is_shown_with_what_it_was_asked_and_who_says_what(tmp_path: Path) -> None:
    shown = run("show", f"{recorded_talk(review, tmp_path)}:5", COLUMNS="80").stdout
    assert "code_review · with code = “def f(): pass”" in shown
    assert "user: “Please review this Python code: def f(): pass”" in shown
    assert "assistant: “Let me look at it line by line.”" in shown


# --- An answer in lines of JSON that come one by one, as text/plain ---


def stream_lines(client: Caller) -> None:
    """Send a call that asks for text."""
    call = asking("tools/call", 123, {"name": "search", "arguments": {"query": "hello"}})
    client.request("POST", "/mcp/tools/call", call, Accept="text/plain", Content_Type="application/json").read()


def test_an_answer_in_lines_is_read_line_by_line(tmp_path: Path) -> None:
    made = transcript(recorded_talk(stream_lines, tmp_path))
    assert [(exchange.method, exchange.outcome.value, len(exchange.partials)) for exchange in made.exchanges] == [
        ("tools/call", "ok", 1)
    ]


# --- Prompts as the specification has them, on each transport ---


@pytest.mark.parametrize(("kind", "path"), [("sse", "/sse"), ("http", "/mcp")])
def test_prompts_pass_over_http_without_a_finding(kind: str, path: str, tmp_path: Path) -> None:
    scene = HttpScene(client=(*REVIEW, "URL"), server=(*PROMPTS, kind, "0"), path=path)
    played, records = play_tapped(scene, tmp_path / "run")
    assert played.status == 0, played.errors
    assert '"role": "assistant"' in played.output
    assert faults(records) == []


def test_prompts_pass_on_stdio_without_a_finding(tmp_path: Path) -> None:
    scene = Scene(client=REVIEW, server=(*PROMPTS, "stdio"))
    capture = tmp_path / "a.mcpspy"
    played = Playing(scene, tmp_path / "run", tap(scene, "--capture", str(capture))).end()
    assert played.status == 0, played.errors
    assert faults(list(mcpspy.read(capture))) == []
