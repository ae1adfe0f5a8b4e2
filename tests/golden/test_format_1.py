"""Captures of format 1, and what mcpspy 0.9.0 printed about them. They are never written again; README.md says what is there.

Outputs are compared additively: what was printed is still printed, with the same value; new members may come. Of findings, the
rule, severity, culprit and place are compared, and not the prose, which is expected to get better (nor notes of the reader
about damage). Findings of rules that came later are left out. A member that is not in a stored output was wrong when it was
stored, or is no promise.
"""

import json
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import Reader
from mcpspy.records import Damage, Header, Record, Unknown
from tests.cli.terminal import PLAIN
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.golden.comparing import differences, of_rules, shortened
from tests.golden.printed import FOLDER, OLDER, contents, path_of

NAMES = sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json") if path.name != "rules.json")
SLICES = [NAMES[first::4] for first in range(4)]
RULES = set(json.loads((FOLDER / "rules.json").read_text(encoding="utf-8")))
"""The rules of the version that wrote the files."""

SUMS = [line.split() for line in (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
DIGESTS = {Path(name).name: digest for digest, name in SUMS}

NEVER_WRITTEN = {"header-older", "header-least"}
"""Captures whose header lacks members that every tap writes."""


def records_of(name: str) -> list[Record]:
    reader = Reader()
    return [*reader.feed(contents(name)), *reader.close()]


def printed(names: list[str], **environment: str) -> dict[str, Any]:
    """Return the outputs for these captures, from a process of its own, without the extras."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.printed", *names],
        cwd=ROOT,
        env={**os.environ, "TZ": "UTC", "PYTHONPATH": os.pathsep.join([PLAIN["PYTHONPATH"], str(ROOT)]), **environment},
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    return dict(json.loads(done.stdout))


def schemas(value: Any) -> set[Any]:
    """Collect the values of all members `schema` at the beginning of what a verb prints."""
    return {item["schema"] for item in value if "schema" in item}


def changes(printed: dict[str, Any]) -> list[str]:
    """List what is not printed as it was."""
    found: list[str] = []
    for name, outputs in printed.items():
        stored = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        for verb, output in outputs.items():
            known = [of_rules(item, RULES) for item in output["printed"]]
            assert schemas(known) <= {1}, (name, verb)
            found += differences(stored.get(verb, {}), shortened({**output, "printed": known}), f"{name}: {verb}")
    return found


def test_every_golden_file_is_as_it_was() -> None:
    files = [*FOLDER.iterdir(), *map(path_of, OLDER)]
    changed = [
        path.name
        for path in files
        if path.name != "SHA256SUMS" and sha256(path.read_bytes()).hexdigest() != DIGESTS.get(path.name)
    ]
    assert not changed, f"restore these files; they are never written again: {changed}"
    assert not DIGESTS.keys() - {path.name for path in files}, "restore the files that are missing"


def test_every_golden_capture_has_its_output() -> None:
    captures = {path.name.partition(".")[0] for path in FOLDER.glob("*.mcpspy*")}
    assert captures | set(OLDER) == set(NAMES)


@pytest.mark.parametrize("mode", ["speedups", "pure"])
@pytest.mark.parametrize("names", SLICES, ids=["first", "second", "third", "fourth"])
def test_what_was_printed_is_still_printed(names: list[str], mode: str) -> None:
    environment = {"MCPSPY_PURE": "1"} if mode == "pure" else {}
    wrong = changes(printed(names, **environment))
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("name", NAMES)
def test_records_are_written_again_as_they_were(name: str) -> None:
    records = records_of(name)
    if name in NEVER_WRITTEN or any(isinstance(record, Damage) for record in records):
        return
    first, *others = records
    assert isinstance(first, Header)
    assert header_line(first) + b"".join(record_line(record.number, record) for record in others) == contents(name)


# --- All that docs/capture.md describes occurs ---

PAGE = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
KINDS = sorted({kind.__name__.lower() for kind in get_args(Record)} - {"header", "damage", "unknown"})
NAME = re.compile(r"`([a-z][a-z_0-9-]*)`")


def section(heading: str) -> str:
    """Return the part of the page under the first heading that has these words."""
    found = re.search(rf"^##+ [^\n]*{re.escape(heading)}.*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"no heading for {heading}"
    return found[0]


def rows_of(text: str) -> set[str]:
    """Return the names in the first columns of tables."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in NAME.findall(cell)}


def described(kind: str) -> set[str]:
    """Return the members of a kind of record that the page describes: in a table, or else in sentences."""
    text = section(f"`{kind}`")
    names = rows_of(text) if kind != "note" else {"topic", "text", "connection", "transaction", "waited_ns", "descendants"}
    return (names or set(NAME.findall(text)) - set(KINDS)) | {"n", "at_ns", "kind"}


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """All lines of all golden captures that are objects of JSON."""
    found = []
    for name in NAMES:
        for line in contents(name).splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:  # a damaged one
                continue
    return [line for line in found if isinstance(line, dict)]


def inner_objects(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects in the arrays of a record."""
    arrays = (value for value in line.values() if isinstance(value, list))
    return [item for array in arrays for item in array if isinstance(item, dict)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_of_every_kind_of_record_occurs(kind: str, lines: list[dict[str, Any]]) -> None:
    kinds = set(NAME.findall(section(f"`{kind}`").partition("\n")[0]))  # `spawn` and `exit` are described together
    there = {name for line in lines if line.get("kind") in kinds for item in [line, *inner_objects(line)] for name in item}
    assert there
    assert not described(kind) - there


def test_every_member_of_the_header_occurs(lines: list[dict[str, Any]]) -> None:
    headers = [line for line in lines if "mcpspy" in line]
    there = {name for line in headers for name in line}
    assert not rows_of(section("The header")) - there
    tapped = {name for line in headers for name in line.get("tapped", {})}
    assert tapped >= {"transport", "argv", "env", "url", "listen", "leg", "mock", "replay", "replayed_label", "imported"}
    assert {line.get("redaction") for line in headers} == {"credentials", "none", "shared", None}


def test_every_topic_of_a_note_occurs(lines: list[dict[str, Any]]) -> None:
    assert not rows_of(section("`note`")) - {line["topic"] for line in lines if line.get("kind") == "note"}


@pytest.mark.parametrize(
    ("member", "values"),
    [
        ("framing", {"lines", "sse", "body"}),
        ("how", {"eof", "broken", "reset", "abort"}),
        ("by", {"client", "server", "mcpspy"}),
        ("sent", {"unchanged", "changed", "nothing", "mcpspy"}),
    ],
)
def test_every_value_of_a_member_occurs(member: str, values: set[str], lines: list[dict[str, Any]]) -> None:
    assert {line[member] for line in lines if member in line and "kind" in line} >= values


def test_every_kind_of_redaction_and_of_bytes_occurs(lines: list[dict[str, Any]]) -> None:
    kinds = {span[2] for line in lines for span in line.get("redacted", ())}
    assert kinds >= {"authorization", "cookie", "dpop", "key", "path", "session", "token", "userinfo"}
    assert {name for line in lines for name in line} >= {"head_base64", "forwarded_base64", "base64"}


def test_every_reason_of_damage_occurs() -> None:
    reasons = {record.reason for name in NAMES for record in records_of(name) if isinstance(record, Damage)}
    assert reasons == rows_of(section("Damage"))


def test_a_kind_that_is_not_known_occurs() -> None:
    assert any(isinstance(record, Unknown) for name in NAMES for record in records_of(name))


# --- The comparison itself ---


@pytest.mark.parametrize(
    ("stored", "now", "wrong"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": {"b": [1]}}, {"a": {"b": [1], "c": None}}, []),
        ([{"a": 1}], [{"a": 1, "b": 2}], []),
        ({}, {"a": 1}, []),
        ({"a": 1}, {}, ["$.a is missing"]),
        ({"a": None}, {}, ["$.a is missing"]),
        ({"a": 1}, {"a": 2}, ["$.a: 2 instead of 1"]),
        ({"a": 1}, {"a": True}, ["$.a: True instead of 1"]),
        ({"a": 1}, {"a": 1.0}, ["$.a: 1.0 instead of 1"]),
        ({"a": 0}, {"a": None}, ["$.a: None instead of 0"]),
        ({"a": "1"}, {"a": 1}, ["$.a: 1 instead of '1'"]),
        ([1, 2], [1, 2, 3], ["$ has 3 items instead of 2"]),
        ([1, 2], [2, 1], ["$[0]: 2 instead of 1", "$[1]: 1 instead of 2"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["$.a[0].b: 2 instead of 1"]),
        ({"a": {}}, {"a": []}, ["$.a: [] instead of {}"]),
    ],
)
def test_the_comparison_lets_members_come_and_nothing_change(stored: Any, now: Any, wrong: list[str]) -> None:
    assert differences(stored, now) == wrong


def test_a_long_string_is_compared_to_its_last_letter() -> None:
    first, other = ("x" * 500 + end for end in "ab")
    assert differences(shortened([first]), shortened([first])) == []
    assert differences(shortened({"a": [first]}), shortened({"a": [other]})) != []
    assert shortened("short") == "short"


def test_findings_of_later_rules_are_left_out() -> None:
    both = {"findings": [{"rule": "old"}, {"rule": "new"}], "rows": []}
    assert of_rules(both, {"old"}) == {"findings": [{"rule": "old"}], "rows": []}
    assert of_rules({"summary": {"findings": 3}}, set()) == {"summary": {"findings": 3}}
