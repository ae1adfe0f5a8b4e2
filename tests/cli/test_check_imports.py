"""`mcpspy check` of files that are imported: no place in the capture that nobody sees, nothing twice, reasons in a line or two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import run

CLIENT = '{"name":"c","version":"1"}'
HELLO = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    f'"clientInfo":{CLIENT}}}}}'
)
OFFER = (
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
    f'"serverInfo":{CLIENT}}}}}'
)
READY = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
TOOLS = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
WRONG = '{"jsonrpc":"2.0","id":1,"result":{"tools":7}}'
BOTH = "some of their messages cannot be told apart"


def log(*talk: tuple[str, str]) -> str:
    return "".join(f"2025-06-10T08:00:{at:02d}.000Z {word} {message}\n" for at, (word, message) in enumerate(talk))


def desktop(*talk: tuple[str, str]) -> str:
    return "".join(
        f"2025-05-07T18:55:{at:02d}.000Z [x] [info] Message from {word}: {message}\n" for at, (word, message) in enumerate(talk)
    )


FAULTY = log(("recv", HELLO), ("send", OFFER), ("recv", READY), ("recv", LIST), ("send", WRONG))
MIXED = desktop(
    ("client", HELLO), ("client", HELLO), ("server", OFFER), ("server", OFFER), ("client", READY), ("client", READY),
    ("client", LIST), ("client", LIST), ("server", TOOLS), ("server", TOOLS),
)  # fmt: skip
FORMATS = ("text", "json", "junit", "sarif", "github")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faulty.log").write_text(FAULTY)
    (tmp_path / "mixed.log").write_text(MIXED)
    return tmp_path


def found(*words: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(run("check", "--json", *words).stdout)["findings"]
    return findings


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_names_a_line_of_a_capture_that_nobody_sees(format: str, folder: Path) -> None:
    shown = run("check", "--format", format, "faulty.log").stdout
    shown = shown.partition('"results"')[2] or shown  # without the texts of the rules
    assert "faulty.log" in shown
    assert not any(sign in shown for sign in ("line=", "startLine", '"line":1', '"line":6', "log:6", ", line "))


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_names_the_line_of_a_capture(format: str, folder: Path) -> None:
    (folder / "seen.mcpspy").write_bytes(
        Path(__file__).parents[1].joinpath("findings", "malformed-message.mcpspy").read_bytes()
    )
    shown = run("check", "--format", format, "seen.mcpspy").stdout
    line = found("seen.mcpspy")[0]["line"]
    signs = {
        "text": "seen.mcpspy:", "json": f'"line":{line}', "junit": f'line="{line}"', "sarif": f'"startLine": {line}',
        "github": f"line={line}",
    }  # fmt: skip
    assert signs[format] in shown or signs[format].replace(": ", ":") in shown


def test_a_capture_that_an_import_stored_has_lines_of_its_own(folder: Path) -> None:
    assert run("import", "faulty.log", "-o", "kept.mcpspy").returncode == 0
    (in_place, *_), (stored, *_) = found("faulty.log"), found("kept.mcpspy")
    assert (in_place["path"], in_place["line"]) == ("faulty.log", None)
    assert (stored["path"], stored["line"]) == ("kept.mcpspy", stored["record"] + 1)


def test_what_holds_for_all_sessions_of_a_log_is_said_once(folder: Path) -> None:
    gaps = [finding for finding in found("mixed.log") if BOTH in finding["what"]]
    assert [(finding["count"], finding["path"]) for finding in gaps] == [(2, "mixed.log")]
    assert run("check", "mixed.log").stdout.count(BOTH) == 1


def test_what_holds_for_two_files_is_said_of_each(folder: Path) -> None:
    (folder / "other.log").write_text(MIXED)
    gaps = [finding for finding in found("mixed.log", "other.log") if BOTH in finding["what"]]
    assert sorted((finding["count"], finding["path"]) for finding in gaps) == [(2, "mixed.log"), (2, "other.log")]


def test_a_fault_in_each_of_two_sessions_is_two(folder: Path) -> None:
    (folder / "twice.log").write_text(FAULTY + FAULTY.replace("T08:", "T09:"))
    wrong = [finding for finding in found("twice.log") if finding["rule"] == "not-as-specified"]
    assert sum(finding["count"] for finding in wrong) == 2
    assert len({row for finding in wrong for row in finding["rows"]}) == 2


@pytest.mark.parametrize("name", ["faulty.log", "mixed.log"])
def test_rules_that_cannot_run_have_one_reason_in_two_lines_and_a_list_in_json(name: str, folder: Path) -> None:
    lines = run("check", name).stdout.splitlines()
    (at,) = (at for at, line in enumerate(lines) if "rules did not run" in line)
    reason = " ".join(lines[at + 1 :])
    assert len(lines) - at - 1 <= 3
    assert "an imported file does not have " in reason
    assert "--json lists the rules" in reason
    assert "server-died" not in reason
    unchecked = json.loads(run("check", "--json", name).stdout)["summary"]["unchecked"]
    unchecked = [item for item in unchecked if not item["ran"]]
    count = len({rule for item in unchecked for rule in item["rules"]})
    assert f"{count} rules did not run" in lines[at]
    assert any("server-died" in item["rules"] for item in unchecked)
    assert all(item["reason"] for item in unchecked)


@pytest.mark.parametrize("rules", ["server-died", "server-died,stdout-noise"])
def test_the_few_rules_that_were_asked_for_are_named(rules: str, folder: Path) -> None:
    shown = run("check", "faulty.log", "--select", rules).stdout
    assert all(rule in shown for rule in rules.split(","))
    assert "did not run: an imported file does not have" in shown
