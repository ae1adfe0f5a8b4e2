"""`mcpspy export pytest`: tests that are well as they were written, with the captures that they play beside them."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from captures.make import STORIES
from mcpspy.records import Header
from tests.capture.making import lines
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.deadlines import SCENE_S
from tests.transcript.dialogue import notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize

CAPTURES = ROOT / "captures"
UNANSWERED = "refused"
"""The capture in which nothing was answered."""


def test_every_test_that_is_written_of_a_capture_is_well(tmp_path: Path) -> None:
    for name in STORIES:
        if name != UNANSWERED:
            assert (
                run("export", "pytest", str(CAPTURES / f"{name}.mcpspy"), "-o", str(tmp_path / f"test_{name}.py")).returncode
                == 0
            )
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(tmp_path / "temporary"),
        "--mcpspy-record=none",
        "-o",
        "asyncio_default_fixture_loop_scope=function",  # pytest-asyncio warns where it is not set
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert f"{len(STORIES) - 1} passed" in ran.stdout, ran.stdout


def test_each_of_several_clients_is_answered_as_it_was(tmp_path: Path) -> None:
    traffic = Traffic()
    for session in ("first", "second"):
        served = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        traffic.post(initialize()).answer(200, result(0, served), Mcp_Session_Id=session)
        traffic.post(notification(), session=session).answer(202)
        tool = {"name": "forecast", "inputSchema": {"type": "object"}}
        traffic.post(request(1), session=session).answer(200, result(1, {"tools": [tool]}))
        answer = {"content": [{"type": "text", "text": f"the {session}"}]}
        traffic.post(tool_call(2), session=session).answer(200, result(2, answer))
    header, *records = traffic.records
    assert isinstance(header, Header)
    (tmp_path / "weather.mcpspy").write_bytes(lines(records, of=header))
    run("export", "pytest", str(tmp_path / "weather.mcpspy"), "-o", str(tmp_path / "test_weather.py"))
    text = (tmp_path / "test_weather.py").read_text(encoding="utf-8")
    assert (
        text.index('["the first"]')
        < text.index("async with Client(server.url", text.index('["the first"]'))
        < text.index('["the second"]')
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "temporary")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert "1 passed" in ran.stdout, ran.stdout


def test_the_capture_is_put_where_the_test_looks_for_it(tmp_path: Path) -> None:
    ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
    assert ran.stderr == f"mcpspy: copied to {tmp_path}/captures/git.mcpspy\n"
    assert (tmp_path / "captures" / "git.mcpspy").read_bytes() == (CAPTURES / "git.mcpspy").read_bytes()


def test_a_capture_that_lies_there_stays_where_it_is(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES, tmp_path / "captures")
    ran = run("export", "pytest", str(tmp_path / "captures" / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
    assert ran.stderr == ""
    assert 'mcpspy.serve("git.mcpspy")' in (tmp_path / "test_git.py").read_text(encoding="utf-8")


def test_another_capture_of_that_name_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "git.mcpspy").write_text("mine")
    ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "it exists and is another capture; move it" in ran.stderr
    assert (tmp_path / "captures" / "git.mcpspy").read_text() == "mine"
    assert not (tmp_path / "test_git.py").exists()


def test_on_standard_output_stderr_says_where_to_put_the_capture() -> None:
    ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"))
    assert "def test_git(mcpspy):" in ran.stdout
    assert ran.stderr.startswith("mcpspy: the test reads captures/git.mcpspy beside it: copy ")


def test_only_the_selected_rows_are_tested() -> None:
    module = run("export", "pytest", f"{CAPTURES / 'git.mcpspy'}:3..4").stdout
    assert [line.strip() for line in module.splitlines() if "# row" in line] == [
        "# row 3: tools/call git_status",
        "# row 4: tools/call git_log",
    ]


def test_only_the_rows_that_a_filter_lets_through_are_tested() -> None:
    module = run("export", "pytest", str(CAPTURES / "git.mcpspy"), "-F", "tool:git_log").stdout
    assert [line.strip() for line in module.splitlines() if "# row" in line] == ["# row 4: tools/call git_log"]


def test_several_captures_make_several_tests(tmp_path: Path) -> None:
    run(
        "export", "pytest", *(str(CAPTURES / f"{name}.mcpspy") for name in ("git", "time")), "-o", str(tmp_path / "test_two.py")
    )
    tree = ast.parse((tmp_path / "test_two.py").read_bytes())
    assert sorted(one.name for one in tree.body if isinstance(one, ast.FunctionDef)) == ["test_git", "test_time"]
    assert sorted(path.name for path in (tmp_path / "captures").iterdir()) == ["git.mcpspy", "time.mcpspy"]


def test_version_1_of_the_sdk_sends_what_it_can_send() -> None:
    assert "ClientSession" in run("export", "pytest", "--sdk", "1", str(CAPTURES / "logs.mcpspy")).stdout
    ran = run("export", "pytest", "--sdk", "1", str(CAPTURES / "git.mcpspy"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "it does not begin with initialize, which version 1 of the SDK requires; leave out --sdk" in ran.stderr


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (str(CAPTURES / f"{UNANSWERED}.mcpspy"), "no request in it was answered, so there is nothing to test; record"),
        ("-", "a test needs a file"),
    ],
)
def test_what_cannot_be_tested_is_reported(what: str, sentence: str) -> None:
    ran = run("export", "pytest", what)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert sentence in ran.stderr
