"""Rules that did not look at everything, in the first line of `mcpspy show` and in its JSON: in the words of `mcpspy check`."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.records import Frame
from tests.capture.making import closes, header, opens
from tests.cli.terminal import run
from tests.conftest import ROOT

SOME = "not all messages were checked"
LEFT = "36 rules left to check"
MANY = 5_001


def session(calls: int, *, page: Any = 1) -> bytes:
    """Write a capture of a session in which a tool is called so often; its last call has this page as an argument."""
    frames: list[Frame] = []

    def add(stream: int, **members: Any) -> None:
        at_ns = len(frames) * 1_000_000
        frames.append(Frame(stream, at_ns, at_ns, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"))

    tool = {"name": "read", "inputSchema": {"type": "object", "properties": {"page": {"type": "integer"}}}}
    hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
    add(0, id="a", method="initialize", params={**hello, "clientInfo": {"name": "c", "version": "1"}})
    offer = {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    add(1, id="a", result={**hello, **offer})
    add(0, method="notifications/initialized")
    add(0, id="b", method="tools/list")
    add(1, id="b", result={"tools": [tool]})
    for id in range(calls):
        add(0, id=id, method="tools/call", params={"name": "read", "arguments": {"page": page if id == 7 else id}})
        add(1, id=id, result={"content": [{"type": "text", "text": str(id)}]})
    numbered = enumerate([*opens(), *frames, *closes(10**11)], 1)
    return b"".join([header_line(header()), *(record_line(number, record) for number, record in numbered)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def summary(verb: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the line with the sign, and what the JSON of the verb has as unchecked."""
    lines = run(verb, "x.mcpspy").stdout.splitlines()
    made = json.loads(run(verb, "x.mcpspy", "--json").stdout)["summary"]["unchecked"]
    return lines[0] if verb == "show" else next(line for line in reversed(lines) if line[0] in "✓✗⚑…·"), made


@pytest.mark.parametrize(("calls", "is_some"), [(50, False), (201, True)])
def test_show_says_of_a_limit_what_check_says(folder: Path, calls: int, *, is_some: bool) -> None:
    (folder / "x.mcpspy").write_bytes(session(calls))
    (first, of_show), (last, of_check) = summary("show"), summary("check")
    assert of_show == of_check
    assert [first[0], last[0], SOME in first, SOME in last, bool(of_show)] == ["✓", "✓", is_some, is_some, is_some]


def test_show_says_of_a_package_that_is_missing_what_check_says(folder: Path) -> None:
    (folder / "x.mcpspy").write_bytes((ROOT / "tests" / "findings" / "not-as-specified.mcpspy").read_bytes())
    (first, of_show), (last, of_check) = summary("show"), summary("check")
    assert of_show == of_check
    assert "pip install mcp-types" in of_show[0]["reason"]
    assert SOME in first
    assert SOME in last


def test_a_session_of_which_rules_were_left_to_check_is_not_called_well(folder: Path) -> None:
    (folder / "x.mcpspy").write_bytes(session(MANY, page="two"))
    (first, of_show), (last, of_check) = summary("show"), summary("check")
    assert (first[0], last[0]) == ("·", "✗")
    assert "all ok" not in first
    assert f"{LEFT} · {SOME}" in first
    left, limit = of_show
    assert (left["reason"], left["ran"], len(left["rules"])) == ("only mcpspy check runs them", False, 36)
    assert limit in of_check
    assert "did not run" not in first


def test_show_says_which_rules_an_import_leaves_without_facts(folder: Path) -> None:
    log = str(ROOT / "captures" / "mcp-server-weather.log")
    assert run("import", log, "-o", "x.mcpspy").returncode == 0
    (first, of_show), (last, of_check) = summary("show"), summary("check")
    assert sorted(map(str, of_show)) == sorted(map(str, of_check))
    assert "rules did not run" in first
    assert "rules did not run" in last
