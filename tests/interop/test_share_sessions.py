"""A session full of secrets, made by a real client and server, shared: no secret is left in any spelling, and it still plays.

Played on stdio through `run` and over HTTP through `proxy`, by the official SDK on either side.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from captures.serving import PEERS, environment, port, started
from mcpspy.capture.file.reader import read
from mcpspy.records import Frame, Header, Open, Partial
from tests.cli.terminal import COPY
from tests.deadlines import SCENE_S
from tests.interop.serving import recorded
from tests.sharing.hiding import held, marked
from tests.starting import finished

PASSWORD = 'Pa$$w0rd "ü/\\& 17'
NOTE = "n0te-Zq8fjW2kLp0Xv6Tn"
TOKEN = "tok_abc12345XYZ"
API_KEY = "sk-live-0123456789abcdef"
SECRETS = (PASSWORD, PASSWORD[::-1], NOTE, TOKEN, API_KEY)
PIN = 471147

STEPS: list[dict[str, Any]] = [
    {"list": "tools"},
    {"call": "login", "arguments": {"user": "ada", "password": PASSWORD, "note": NOTE, "pin": PIN}},
    {"call": "whoami", "arguments": {"token": TOKEN}},
    {"read": f"vault://door?token={TOKEN}"},
]
OPTIONS = ("--path", "$.arguments.note", "--path", "$.arguments.pin")
KEEPER = (sys.executable, str(PEERS / "keeper.py"), "--api-key", API_KEY)


def mcpspy(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**environment(folder), "KEEPER_LOG": str(folder / "log")}
    return finished([*COPY, *map(str, words)], folder, env, timeout_s=SCENE_S)


def play(steps: list[dict[str, Any]], folder: Path, *target: str) -> list[Any]:
    """Run a client through these steps, and return its output of each."""
    env = {**environment(folder), "KEEPER_LOG": str(folder / "log")}
    words = [sys.executable, str(PEERS / "stepclient.py"), "legacy", json.dumps(steps), *target]
    done = finished(words, folder, env, timeout_s=SCENE_S)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def on_stdio(folder: Path) -> list[Any]:
    tap = (sys.executable, "-m", "mcpspy", "run", "--redact", "none", "--capture", str(folder / "a.mcpspy"), "--")
    return play(STEPS, folder, *tap, *KEEPER, "stdio")


def over_http(folder: Path) -> list[Any]:
    variables = {"KEEPER_LOG": str(folder / "log")}
    with started((*KEEPER, "http", "0"), folder, folder / "server.log", variables) as output:
        url = f"http://127.0.0.1:{port(output)}/mcp"
        with recorded(url, folder, "--redact", "none") as tap:
            return play(STEPS, folder, f"{tap}?api_key={API_KEY}")


def bytes_of(path: Path) -> bytes:
    """Return all bytes that a capture holds: of the file itself, and of its records."""
    pieces = [path.read_bytes()]
    for record in read(path):
        match record:
            case Frame():
                pieces += [record.data, record.forwarded or b""]
            case Partial():
                pieces.append(record.data)
            case Open():
                pieces += [record.head, record.forwarded or b""]
            case Header():
                pieces.append(json.dumps(record.tapped, ensure_ascii=False).encode())
            case _:
                pass
    return b"\0".join(pieces)


@pytest.fixture(params=[on_stdio, over_http], ids=["stdio", "http"], scope="module")
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """The folder of a session, recorded and shared, and what its client printed."""
    folder = tmp_path_factory.mktemp("session")
    (folder / "home").mkdir()
    record: Callable[[Path], list[Any]] = request.param
    printed = record(folder)
    done = mcpspy("export", "share", "a.mcpspy", "-o", "shared.mcpspy", "--verify", *OPTIONS, folder=folder)
    assert done.returncode == 0, done.stdout
    return folder, printed


def test_no_secret_is_left_in_any_spelling(session: tuple[Path, list[Any]]) -> None:
    folder, _ = session
    assert set(held(bytes_of(folder / "a.mcpspy"), SECRETS)) == set(SECRETS)
    assert held(bytes_of(folder / "shared.mcpspy"), [*SECRETS, str(PIN)]) == []


def test_what_is_shared_is_intact_and_the_same_for_who_compares(session: tuple[Path, list[Any]]) -> None:
    folder, _ = session
    assert mcpspy("verify", "shared.mcpspy", folder=folder).returncode == 0
    assert mcpspy("show", "shared.mcpspy", folder=folder).returncode == 0
    again = mcpspy("export", "share", "shared.mcpspy", "-o", "again.mcpspy", *OPTIONS, folder=folder)
    assert again.returncode == 0
    assert (folder / "again.mcpspy").read_bytes() == (folder / "shared.mcpspy").read_bytes()
    assert mcpspy("diff", "shared.mcpspy", "again.mcpspy", folder=folder).returncode == 0
    (folder / "again.mcpspy").unlink()


def replaced(value: Any) -> Any:
    """Replace pseudonyms and secrets in a client's output with `R`."""
    if isinstance(value, dict):
        return {name: replaced(item) for name, item in value.items()}
    if isinstance(value, list):
        return [replaced(item) for item in value]
    if not isinstance(value, str):
        return value
    for secret in SECRETS:
        value = value.replace(secret, "R")
    return marked(value.encode()).decode()


def test_the_mock_answers_who_asks_with_the_secrets(session: tuple[Path, list[Any]]) -> None:
    folder, printed = session
    answers = play(STEPS, folder, sys.executable, "-m", "mcpspy", "mock", "shared.mcpspy")
    assert answers[:2] == printed[:2]
    assert answers[2]["result"]["structuredContent"].keys() == printed[2]["result"]["structuredContent"].keys()
    assert replaced(answers[3:]) == replaced(printed[3:])


def test_the_mock_answers_who_asks_with_the_pseudonyms(session: tuple[Path, list[Any]]) -> None:
    folder, _ = session
    answers = play(STEPS, folder, sys.executable, "-m", "mcpspy", "mock", "shared.mcpspy")
    token = answers[3]["result"]["structuredContent"]["result"].rpartition(" ")[2]
    login = json.loads(answers[2]["result"]["structuredContent"]["said"])
    assert (marked(token.encode()), marked(login["password"].encode())) == (b"R", b"R")
    steps: list[dict[str, Any]] = [{"call": "whoami", "arguments": {"token": token}}, {"read": f"vault://door?token={token}"}]
    again = play(steps, folder, sys.executable, "-m", "mcpspy", "mock", "shared.mcpspy")
    assert [answer["result"] for answer in again[1:]] == [answer["result"] for answer in answers[3:]]


def test_a_replay_sends_no_pseudonym(session: tuple[Path, list[Any]]) -> None:
    folder, _ = session
    before = (folder / "log").read_text()
    done = mcpspy("replay", "shared.mcpspy", "--yes", "--capture", "replay.mcpspy", "--", *KEEPER, "stdio", folder=folder)
    assert "redacted" in done.stdout, done.stderr
    sent = [record.data for record in read(folder / "replay.mcpspy") if isinstance(record, Frame) and record.stream == 0]
    assert [data for data in sent if b"tools/list" in data]
    assert [data for data in sent if b"redacted-" in data] == []
    assert (folder / "log").read_text() == before
