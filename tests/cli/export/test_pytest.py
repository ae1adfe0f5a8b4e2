"""`mcpspy export pytest`: tests that are well as they were written, with the captures that they play beside them."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from captures.make import STORIES
from mcpspy.capture.file.reader import read
from mcpspy.records import Frame, Header
from tests.capture.making import lines
from tests.cli.replays import call as ticket_call
from tests.cli.replays import recorded
from tests.cli.terminal import run
from tests.conftest import PEERS, ROOT
from tests.deadlines import SCENE_S
from tests.tiers import Tier
from tests.transcript.dialogue import notification, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize

CAPTURES = ROOT / "captures"
PYTEST = [sys.executable, str(PEERS / "sdktests.py"), "-q", "-p", "no:cacheprovider"]
UNPLAYABLE = {"refused", "channels", "prompts"}
"""The capture in which nothing was answered, and those of servers that no official client accepts."""


def test_every_test_that_is_written_of_a_capture_is_well(tmp_path: Path, tier: Tier) -> None:
    playable = [name for name in STORIES if name not in UNPLAYABLE][:: tier(sample=4, more=1, full=1)]
    for name in playable:
        output = str(tmp_path / f"test_{name}.py")
        assert run("export", "pytest", str(CAPTURES / f"{name}.mcpspy"), "-o", output).returncode == 0
    command = [
        *PYTEST,
        "-W",
        "error",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",  # anyio, which the SDK imports, has a plugin
        "--basetemp",
        str(tmp_path / "temporary"),
        "--mcpspy-record=none",
        "-o",
        "asyncio_default_fixture_loop_scope=function",  # pytest-asyncio warns where it is not set
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert f"{len(playable)} passed" in ran.stdout, ran.stdout


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
    command = [*PYTEST, "--basetemp", str(tmp_path / "temporary")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert "1 passed" in ran.stdout, ran.stdout


def drawn(answers: list[Any]) -> dict[str, Any]:
    """Redeem the ticket that the server has made up."""
    return ticket_call("redeem", ticket=answers[-1]["result"]["content"][0]["text"].split()[-1].rstrip("."))


def test_a_shared_copy_is_put_where_the_test_looks_for_it(tmp_path: Path) -> None:
    for _ in range(2):  # the second time it is there
        ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
        assert ran.returncode == 0
    header = next(read(tmp_path / "captures" / "git.mcpspy"))
    assert isinstance(header, Header)
    assert header.redaction == "shared"


TOKEN = "ghp_Zy9Xw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"


def with_secrets(path: Path, **arguments: object) -> Path:
    """Write a capture of a call with secrets, which the answer repeats."""
    traffic = Traffic()
    served = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    traffic.post(initialize()).answer(200, result(0, served), Mcp_Session_Id="s")
    traffic.post(notification(), session="s").answer(202)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "log_in", "arguments": arguments}}
    answer = {"content": [{"type": "text", "text": f"your token is {TOKEN}"}]}
    traffic.post(json.dumps(call).encode(), session="s").answer(200, result(2, answer))
    header, *records = traffic.records
    assert isinstance(header, Header)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lines(records, of=header))
    return path


def test_no_secret_gets_into_a_test_or_the_capture_beside_it(tmp_path: Path) -> None:
    capture = with_secrets(tmp_path / "mine" / "shop.mcpspy", password="hunter2", city="Berlin")
    ran = run("export", "pytest", str(capture), "-o", str(tmp_path / "test_shop.py"))
    assert ran.returncode == 0
    (copy,) = (tmp_path / "captures").iterdir()
    assert f"mcpspy: {copy}: " in ran.stderr
    assert "replaced by pseudonyms: " in ran.stderr
    texts = [
        (tmp_path / "test_shop.py").read_text(),
        copy.read_text(),
        ran.stderr,
        run("export", "pytest", str(capture)).stdout,
    ]
    assert [text for text in texts if "hunter2" in text or TOKEN[:8] in text] == []
    assert "Berlin" in texts[0]
    command = [*PYTEST, "--basetemp", str(tmp_path / "temporary")]
    played = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert "1 passed" in played.stdout, played.stdout


def test_a_capture_with_secrets_beside_the_test_is_not_played(tmp_path: Path) -> None:
    capture = with_secrets(tmp_path / "captures" / "shop.mcpspy", password="hunter2")
    ran = run("export", "pytest", str(capture), "-o", str(tmp_path / "test_shop.py"))
    assert ran.returncode == 0
    assert f"{capture} holds secrets, so the test plays a copy; keep shop.mcpspy to yourself" in ran.stderr
    assert 'mcpspy.serve("shop.shared.mcpspy")' in (tmp_path / "test_shop.py").read_text()
    assert TOKEN not in (tmp_path / "captures" / "shop.shared.mcpspy").read_text()


def test_no_test_is_written_where_a_secret_would_be_left(tmp_path: Path) -> None:
    capture = with_secrets(tmp_path / "mine" / "shop.mcpspy", password=12345678)
    ran = run("export", "pytest", str(capture), "-o", str(tmp_path / "test_shop.py"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "a secret would get into the test." in ran.stderr
    assert not (tmp_path / "test_shop.py").exists()


def test_a_capture_that_lies_there_stays_where_it_is(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES, tmp_path / "captures")
    ran = run("export", "pytest", str(tmp_path / "captures" / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
    assert ran.stderr == ""
    assert 'mcpspy.serve("git.mcpspy")' in (tmp_path / "test_git.py").read_text(encoding="utf-8")


def test_two_sessions_with_one_server_go_into_one_folder(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "git.mcpspy").write_text("mine")
    for _ in range(2):  # the second time its copy is there already
        ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"), "-o", str(tmp_path / "test_git.py"))
        assert ran.returncode == 0
        assert 'mcpspy.serve("git-2.mcpspy")' in (tmp_path / "test_git.py").read_text(encoding="utf-8")
    assert (tmp_path / "captures" / "git.mcpspy").read_text() == "mine"
    copied = [record for record in read(tmp_path / "captures" / "git-2.mcpspy") if isinstance(record, Frame)]
    assert copied == [record for record in read(CAPTURES / "git.mcpspy") if isinstance(record, Frame)]
    assert len(list((tmp_path / "captures").iterdir())) == 2


def test_what_the_server_made_up_is_taken_from_its_answer(tmp_path: Path) -> None:
    capture = recorded(tmp_path, ticket_call("draw"), drawn)
    run("export", "pytest", capture, "-o", str(tmp_path / "test_tickets.py"))
    text = (tmp_path / "test_tickets.py").read_text(encoding="utf-8")
    assert 'ticket = re.search("Your ticket is (.+?)\\\\.", result.content[0].text)[1]' in text
    assert 'call(client, "redeem", {"ticket": ticket})' in text
    assert '[f"Your ticket is {ticket}."]' in text
    command = [*PYTEST, "--basetemp", str(tmp_path / "temporary")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert "1 passed" in ran.stdout, ran.stdout


def test_the_head_names_what_guards_the_server(tmp_path: Path) -> None:
    text = run("export", "pytest", str(CAPTURES / "git.mcpspy")).stdout
    assert "It guards the client, since the real server does not run." in text
    assert "    mcpspy replay captures/git.mcpspy -- COMMAND…\n" in text


@pytest.mark.parametrize(("installed", "client"), [("1.30.0", "ClientSession"), ("2.3.0", "Client"), ("3.0.0", "Client")])
def test_the_installed_sdk_decides_the_dialect(installed: str, client: str, tmp_path: Path) -> None:
    folder = tmp_path / f"mcp-{installed}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mcp\nVersion: {installed}\n")
    ran = run("export", "pytest", str(CAPTURES / "logs.mcpspy"), PYTHONPATH=str(tmp_path))
    assert f"from mcp import {client}" in ran.stdout


def test_on_standard_output_stderr_says_where_to_put_the_capture() -> None:
    ran = run("export", "pytest", str(CAPTURES / "git.mcpspy"))
    assert "def test_git(mcpspy):" in ran.stdout
    assert ran.stderr.startswith("mcpspy: the test reads captures/git.mcpspy beside it: mcpspy export share ")


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
    assert sorted(node.name for node in tree.body if isinstance(node, ast.FunctionDef)) == ["test_git", "test_time"]
    assert sorted(path.name for path in (tmp_path / "captures").iterdir()) == ["git.mcpspy", "time.mcpspy"]


def test_version_1_of_the_sdk_sends_what_it_can_send() -> None:
    assert "ClientSession" in run("export", "pytest", "--sdk", "1", str(CAPTURES / "logs.mcpspy")).stdout
    ran = run("export", "pytest", "--sdk", "1", str(CAPTURES / "git.mcpspy"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "it does not begin with initialize, which version 1 of the SDK requires; use --sdk 2" in ran.stderr


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (str(CAPTURES / "refused.mcpspy"), "no request in it was answered, so there is nothing to test; record"),
        ("-", "a test needs a file"),
    ],
)
def test_what_cannot_be_tested_is_reported(what: str, sentence: str) -> None:
    ran = run("export", "pytest", what)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert sentence in ran.stderr
