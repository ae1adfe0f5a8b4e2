"""The findings that `mcpspy check` leaves beside a large capture, and `mcpspy show` of it afterwards."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.cli import transcripts
from mcpspy.cli.web.stored_recordings import StoredRecordings
from mcpspy.records import Frame
from tests.capture.making import closes, header, opens
from tests.cli.terminal import on_terminal, run

CALLS = 5_010
TEXT = "x" * 100
LARGE_BYTES = 1_000_000
NAME = "large.mcpspy"
LEFT = "rules left to check"
TOOL = {"name": "read", "inputSchema": {"type": "object", "properties": {"page": {"type": "integer"}}}}


@pytest.fixture(scope="module")
def capture() -> bytes:
    """A capture of more than 10,000 messages and `LARGE_BYTES`, in which one call has arguments that its tool does not take."""
    frames: list[Frame] = []

    def add(stream: int, **members: Any) -> None:
        at_ns = len(frames) * 1_000_000
        frames.append(Frame(stream, at_ns, at_ns, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"))

    add(0, id=0, method="tools/list")
    add(1, id=0, result={"tools": [TOOL]})
    for id in range(1, CALLS):
        add(0, id=id, method="tools/call", params={"name": "read", "arguments": {"page": "two" if id == 7 else id}})
        add(1, id=id, result={"content": [{"type": "text", "text": TEXT}]})
    numbered = enumerate([*opens(), *frames, *closes(10**11)], 1)
    return b"".join([header_line(header()), *(record_line(number, record) for number, record in numbered)])


@pytest.fixture
def store(capture: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    monkeypatch.setenv("SPY_LARGE_BYTES", str(LARGE_BYTES))
    monkeypatch.setattr(transcripts, "LARGE_BYTES", LARGE_BYTES)
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    (folder / NAME).write_bytes(capture)
    return folder


def left_by(store: Path) -> Path:
    return store / f"{NAME}.idx.check"


def shown(*words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Give the head and the findings of `show --json`."""
    told = json.loads(run("show", "large", "--json", *words).stdout)
    return told, told["findings"]


def checked(*words: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(run("check", "large", "--json", *words).stdout)["findings"]
    return findings


def unchecked(*words: str) -> list[str]:
    """Give the reasons why a verb says that rules did not look at everything."""
    return sorted(rule["reason"] for rule in json.loads(run(*words, "--json").stdout)["summary"]["unchecked"])


def essence(findings: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((finding["rule"], finding["what"], finding["culprit"], finding["row"]) for finding in findings)


def test_after_a_check_show_has_its_findings_with_an_index_and_without(store: Path) -> None:
    before = shown()[1]
    assert LEFT in run("show", "large").stdout
    found = checked()
    assert "arguments-invalid" in {finding["rule"] for finding in found} - {finding["rule"] for finding in before}
    assert left_by(store).stat().st_mode & 0o777 == 0o600
    for has_index in (False, True):
        if not has_index:
            (store / f"{NAME}.idx").unlink()
        assert essence(shown()[1]) == essence(found)
        for words in (("large",), ("large:1..3",), ("large", "-F", "rule:arguments-invalid"), ("large", "--stats")):
            assert LEFT not in run("show", *words).stdout
        assert unchecked("show", "large") == unchecked("check", "large")
        assert "page" in run("show", "large", "-F", "rule:arguments-invalid").stdout


def test_an_index_that_was_made_before_the_check_is_made_anew(store: Path) -> None:
    run("show", "large:1")
    findings = checked()
    (found,) = (found for found in essence(findings) if found[0] == "arguments-invalid")
    assert essence(shown("-F", "rule:arguments-invalid")[1]) == [found]


def test_a_terminal_shows_the_findings_of_the_check(store: Path) -> None:
    run("check", "large")
    with on_terminal("show", "large", columns=120) as terminal:
        assert terminal.rest() == 0
        assert LEFT not in terminal.words
        assert "arguments-invalid" in terminal.words


def test_without_a_check_of_the_capture_as_it_is_show_says_what_is_left(store: Path) -> None:
    run("check", "large")
    data = left_by(store).read_bytes()
    left_by(store).write_bytes(data[:30] + bytes([data[30] ^ 1]) + data[31:])
    assert LEFT in run("show", "large:1..2").stdout
    left_by(store).write_bytes(data)
    left_by(store).chmod(0o644)
    assert LEFT in run("show", "large:1..2").stdout
    left_by(store).chmod(0o600)
    assert LEFT not in run("show", "large:1..2").stdout
    os.utime(store / NAME, ns=(1, 1))
    assert LEFT in run("show", "large:1..2").stdout
    left_by(store).unlink()
    assert LEFT in run("show", "large:1..2").stdout


@pytest.mark.parametrize("words", [("--select", "transport"), ("--since", "2020-01-01")])
def test_a_check_of_a_part_leaves_nothing(store: Path, words: tuple[str, ...]) -> None:
    run("check", "large", *words)
    assert not left_by(store).exists()


def test_what_a_check_left_goes_with_its_capture(store: Path) -> None:
    run("check", "large")
    assert left_by(store).exists()
    assert run("prune", "--keep", "0", "--yes").returncode == 0
    assert list(store.iterdir()) == []


def test_the_page_has_the_findings_of_a_check_whatever_that_showed(store: Path) -> None:
    checked("-F", "row:1")
    recordings = StoredRecordings()
    (recording,) = recordings.listed()
    page = recordings.open(recording["recording"])
    assert page is not None
    page.take()
    assert "arguments-invalid" in json.dumps(page.part("findings"))
    heading = page.take()
    assert heading is not None
    assert LEFT not in json.dumps(heading)
    page.close()


def test_what_is_shown_since_a_time_after_a_check_is_the_same_with_an_index(store: Path) -> None:
    run("check", "large")
    words = ("show", "large", "--since", "2000-01-01", "-F", "row:1..3")
    first = run(*words)
    assert (store / f"{NAME}.idx").exists()
    again = run(*words)
    assert (first.stdout, first.returncode) == (again.stdout, 0)
