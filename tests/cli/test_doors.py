"""Findings of one capture are the same whoever is asked: `check` of its file, of its label and of `@`, `show`, the page, an agent."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import click
import pytest

from mcpspy.agent.answers import Fence
from mcpspy.agent.tools import report
from mcpspy.capture.file.format import record_line
from mcpspy.cli.check import command as check
from mcpspy.cli.show.command import command as show
from mcpspy.cli.web.agent_captures import StoredCaptures
from mcpspy.cli.web.stored_recordings import StoredRecordings
from mcpspy.errors import AddressError
from mcpspy.records import CLIENT_PROCESSES, Note
from tests.conftest import ROOT

Capsys = pytest.CaptureFixture[str]
Found = list[tuple[Any, ...]]

OWN = [path for folder in ("captures", "tests/golden", "tests/transcript", "tests/imports/recorded", "tests/views")
       for path in sorted((ROOT / folder).rglob("*.mcpspy")) if path.stat().st_size]  # fmt: skip
EXAMPLES = [*OWN, *sorted((ROOT / "tests" / "findings").glob("*.mcpspy"))]
OVER_HTTP = [path for path in EXAMPLES if b'"transport":"http"' in path.read_bytes().partition(b"\n")[0]]
AT_ONCE = 20
"""Captures of a test: it takes as long for itself as for one."""

BUDGET = 50_000
"""Tokens of an agent's answer: all findings fit in."""

_SEAL = re.compile(rb',"crc":"[0-9a-f]{8}"\}$')
_NUMBER = re.compile(rb'^\{"n":(\d+)')


def sealed(body: bytes) -> bytes:
    return b'%b,"crc":"%08x"}' % (body[:-1], crc32(body[:-1]))


def by_clients(data: bytes, client_of: Callable[[int], int]) -> bytes:
    """Add the note of a tap that found out whose connections these are: the last line but one."""
    lines = [_without_note(line) for line in data.splitlines()]
    if len(lines) < 2:
        return data
    connections = sorted({int(number) for number in re.findall(rb'"connection":(\d+)', data)})
    clients = sorted({client_of(connection) for connection in connections})
    last = lines[-1]
    number = next((int(found[1]) for line in reversed(lines[:-1]) if (found := _NUMBER.match(line))), 0) + 1
    at_ns = next((int(found[1]) for line in reversed(lines) if (found := re.search(rb'"at_ns":(\d+)', line))), 0)
    extra = {
        "connections": [[pid, *(own for own in connections if client_of(own) == pid)] for pid in clients],
        "processes": [
            {"pid": pid, "name": f"client{pid}", "start": 2, "first_ns": 0, "last_ns": at_ns} for pid in clients
        ],
    }  # fmt: skip
    note = record_line(number, Note(at_ns=at_ns, topic=CLIENT_PROCESSES, text="…", extra=extra)).rstrip(b"\n")
    if body := _SEAL.sub(b"}", last) if _SEAL.search(last) else b"":
        last = sealed(_NUMBER.sub(b'{"n":%d' % (number + 1), body))
    return b"\n".join([*lines[:-1], note, last]) + (b"\n" if data.endswith(b"\n") else b"")


def _without_note(line: bytes) -> bytes:
    """Take from a line that a tap knew another client."""
    if b'"topic":"%b"' % CLIENT_PROCESSES.encode() not in line:
        return line
    return sealed(_SEAL.sub(b"}", line).replace(CLIENT_PROCESSES.encode(), b"other"))


def one_client(connection: int) -> int:
    return 11


def two_clients(connection: int) -> int:
    return 11 + connection % 2


# Captures in which something is wrong that is about no row.


def damaged(lines: list[bytes]) -> list[bytes]:
    """Flip a bit of a line in the middle."""
    at = len(lines) // 2
    return [*lines[:at], lines[at].replace(b'"kind"', b'"kinb"', 1), *lines[at + 1 :]]


def edited(lines: list[bytes]) -> list[bytes]:
    """Take the seal off a line, as an editor's user would."""
    at = len(lines) // 2
    return [*lines[:at], _SEAL.sub(b"}", lines[at]), *lines[at + 1 :]]


def torn(lines: list[bytes]) -> list[bytes]:
    """Lose the end, as when the tap was killed."""
    return lines[:-1]


def lacking(lines: list[bytes]) -> list[bytes]:
    """Lose a line."""
    at = len(lines) // 2
    return [*lines[:at], *lines[at + 1 :]]


def foreign(lines: list[bytes]) -> list[bytes]:
    """Get a line that no tap wrote."""
    return [*lines[:-1], b"Killed", lines[-1]]


def without_session(lines: list[bytes]) -> list[bytes]:
    """Send the last requests without the id of their session."""
    at = len(lines) // 2
    bare = (re.sub(rb"[Mm]cp-[Ss]ession-[Ii]d: [^\\]*\\r\\n", b"", line) for line in lines[at:])
    return [*lines[:at], *(sealed(_SEAL.sub(b"}", line)) if _SEAL.search(line) else line for line in bare)]


FLAWS = (damaged, edited, torn, lacking, foreign, without_session)


# What each door says.


def words(found: Iterable[dict[str, Any]]) -> Found:
    members = ("rule", "severity", "culprit", "rows", "count", "what", "blame", "advice")
    return sorted(tuple(json.dumps(finding[name]) for name in members) for finding in found)


def said(verb: click.Command, capsys: Capsys, *what: str) -> Found:
    verb.main([*what, "--json"], standalone_mode=False)
    return words(json.loads(capsys.readouterr().out)["findings"])


def on_page(name: str) -> list[str]:
    """Return the rules of the findings on the page of a recording."""
    opened = StoredRecordings().open(name)
    assert opened is not None
    while opened.take() is not None:
        pass
    found = opened.part("findings")
    opened.close()
    return sorted(re.findall(r'"rule": "([\w-]+)"', json.dumps(found)))


def by_agent(what: str) -> list[str]:
    """Return the rules of the findings that an agent is told."""
    answer = report(StoredCaptures(()), Fence("0" * 16), "findings", {"what": what, "max_tokens": BUDGET})
    assert "next_cursor" not in answer.content
    return sorted(finding["rule"] for finding in answer.content["findings"])


def put(store: Path, data: bytes, label: str = "only") -> Path:
    """Make a capture the only one in the store, with this label."""
    folder = store / "captures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "only.mcpspy"
    head, _, rest = data.partition(b"\n")
    header = _SEAL.sub(b"}", head)
    if label and (named := re.sub(rb'"label":"[^"]*"', b'"label":"%b"' % label.encode(), header)) != header:
        head = sealed(named)
    path.write_bytes(b"%b\n%b" % (head, rest))
    return path


def recordings() -> list[dict[str, Any]]:
    return StoredRecordings().listed()


def agree(path: Path, capsys: Capsys, about: str) -> Found:
    """Ask at each door that has the capture at `path`, the only one in the store. Returns the findings."""
    whole = said(check, capsys, str(path))
    rules = sorted(json.loads(finding[0]) for finding in whole)
    assert said(show, capsys, str(path)) == whole, about
    named = ["only"]
    try:
        said(show, capsys, "@")
        named.append("@")
    except AddressError:  # the store has mocks and replays only
        pass
    for what in named:
        assert said(check, capsys, what) == whole, (about, what)
        assert said(show, capsys, what) == whole, (about, what)
        assert by_agent(what) == rules, (about, what)
    if "@" in named:
        assert said(check, capsys, "--since", "1970-01-02") == whole, about
    for listed in recordings():
        assert on_page(listed["recording"]) == rules, about
    return whole


@pytest.mark.grid(4)
@pytest.mark.parametrize("first", range(0, len(EXAMPLES), AT_ONCE))
def test_each_door_says_the_same_of_a_capture(first: int, store: Path, capsys: Capsys) -> None:
    for path in EXAMPLES[first : first + AT_ONCE]:
        agree(put(store, path.read_bytes()), capsys, path.name)


@pytest.mark.grid(3)
@pytest.mark.parametrize("first", range(0, len(OVER_HTTP), AT_ONCE))
def test_a_client_that_has_a_capture_for_itself_loses_nothing(first: int, store: Path, capsys: Capsys) -> None:
    for path in OVER_HTTP[first : first + AT_ONCE]:
        agree(put(store, by_clients(path.read_bytes(), one_client)), capsys, path.name)


@pytest.mark.grid(8)
@pytest.mark.parametrize("path", [path for path in OWN if path in OVER_HTTP], ids=lambda path: path.stem)
@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.__name__)
def test_a_flaw_that_is_about_no_row_is_found_at_each_door(
    flaw: Callable[[list[bytes]], list[bytes]], path: Path, store: Path, capsys: Capsys
) -> None:
    data = b"\n".join(flaw(path.read_bytes().splitlines())) + b"\n"
    for whole in (data, by_clients(data, one_client)):
        found = agree(put(store, whole), capsys, path.name)
        was_told_to_end = flaw is torn and b'"topic":"signal"' in data  # then nothing is missing
        if flaw is not without_session and not was_told_to_end:
            assert found


def parts(found: Found) -> set[tuple[str, str | int]]:
    """Divide findings into their rows. One without a row is counted with those that have one."""
    return {(rule, row) for rule, _, _, rows, *_ in found for row in ["any", *json.loads(rows)]}


@pytest.mark.grid(3)
@pytest.mark.parametrize("first", range(0, len(OVER_HTTP), AT_ONCE))
def test_what_is_found_of_two_clients_is_in_the_recording_of_one_at_least(first: int, store: Path, capsys: Capsys) -> None:
    for path in OVER_HTTP[first : first + AT_ONCE]:
        for data in (path.read_bytes(), b"\n".join(damaged(path.read_bytes().splitlines())) + b"\n"):
            capture = put(store, by_clients(data, two_clients))
            whole = parts(said(check, capsys, str(capture)))
            listed = [f"@{item['recording']}" for item in recordings()]
            each = [parts(said(check, capsys, what)) for what in listed]
            assert set().union(*each) == whole, path.name
            for what, own in zip(listed, each, strict=True):
                assert parts(said(show, capsys, what)) == own, path.name
                assert by_agent(what) == sorted(json.loads(rule) for rule, *_ in said(check, capsys, what)), path.name
                assert on_page(what[1:]) == by_agent(what), path.name


@pytest.mark.parametrize("rows", ["1", "2..3", "4..6", "1..4", "1..999"])
def test_some_rows_have_their_own_findings_for_an_agent_too(rows: str, store: Path, capsys: Capsys) -> None:
    put(store, (ROOT / "captures" / "channels.mcpspy").read_bytes())
    assert by_agent(f"@:{rows}") == sorted(json.loads(rule) for rule, *_ in said(check, capsys, f"@:{rows}"))
