"""docs/capture.md agrees with the code: all that is written is described, and the description is true."""

import json
import re
import zlib
from pathlib import Path

import pytest

from mcpspy.capture.file.format import FORMAT, MIN_READER, header_line, record_line
from mcpspy.capture.file.reader import Reader
from mcpspy.records import PSEUDONYM_DIGITS as DIGITS
from mcpspy.records import PSEUDONYM_PREFIX as PREFIX
from mcpspy.records import Close, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall
from tests.capture.making import header

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "golden"

FULL: list[Record] = [
    Open(at_ns=1, stream=0, sender="client", name="request", framing="body", connection=1, transaction=1, head=b"\xff",
         forwarded=b"\xff", redacted=((0, 1, "key"),), injected=True),
    Frame(0, 2, 1, b"\xff", part=True, chunks=(1,), forwarded=b"x", redacted=((0, 1, "key"),), injected=True, length=9, sha256="00"),
    Partial(at_ns=1, stream=0, first_ns=0, data=b"", length=5),
    Stall(at_ns=1, stream=0, waiting_bytes=1, lasted_ns=1),
    Close(at_ns=1, stream=0, by="client", how="eof", extra={"undelivered_bytes": 1, "trailers": "x"}),
    Spawn(at_ns=1, pid=1, start=1),
    Exit(at_ns=1, pid=1, code=0, signal="SIGTERM", error="x", descendants=({"pid": 1, "name": "x"},)),
    Gap(at_ns=1, since_ns=0, frames=1, bytes=1, why="x", missing=1),
    Note(at_ns=1, topic="signal", text="x"),
    End(at_ns=1, frames=1, bytes=1, messages=1, gaps=1, why="x"),
]  # fmt: skip
"""Every kind of record that a tap writes, with every member."""


def section(kind: str) -> str:
    """Return the part of the page under the heading that names this kind."""
    heading = re.search(rf"^### [^\n]*`{kind}`.*?(?=^###? )", PAGE, re.MULTILINE | re.DOTALL)
    assert heading, f"no heading for {kind}"
    return heading[0]


@pytest.mark.parametrize("record", FULL, ids=lambda record: type(record).__name__)
def test_every_member_of_every_kind_is_described(record: Record) -> None:
    fields = json.loads(record_line(1, record))
    described = section(fields["kind"]) + PAGE[: PAGE.index("### `open`")]
    assert {name for name in fields if f"`{name}`" not in described} == set()


def test_every_member_of_the_header_is_described() -> None:
    described = PAGE[PAGE.index("## The header") : PAGE.index("## Records")] + PAGE[: PAGE.index("## The header")]
    assert {name for name in json.loads(header_line(header())) if f"`{name}`" not in described} == set()


def test_the_header_members_that_a_reader_needs_are_enough() -> None:
    fields = json.loads(header_line(header()))
    needed = {name: fields[name] for name in ("mcpspy", "min_reader", "id", "wall_ns", "monotonic_ns")}
    assert isinstance(Reader().feed(json.dumps(needed).encode() + b"\n")[0], Header)


def test_the_page_is_about_the_version_that_is_written() -> None:
    assert (FORMAT, MIN_READER) == (1, 1)
    assert PAGE.startswith("# The capture file, format 1\n")


def test_the_crc_of_the_page_is_the_crc_of_the_lines() -> None:
    assert '`"%08x" % zlib.crc32(line[:-19])`' in PAGE
    for line in (GOLDEN / "capture-1-stdio.mcpspy").read_bytes().splitlines(keepends=True):
        assert line.endswith(b',"crc":"%08x"}\n' % zlib.crc32(line[:-19]))


def test_the_lines_shown_are_lines_of_the_golden_captures() -> None:
    real = [line for name in ("stdio", "http") for line in (GOLDEN / f"capture-1-{name}.mcpspy").read_text().splitlines()]
    shown = [line for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(shown) > 10
    for line in shown:
        start, _, end = line.partition("…")
        assert [line for line in real if line.startswith(start) and line.endswith(end)], line


def test_every_kind_of_redaction_is_described() -> None:
    source = (ROOT / "mcpspy" / "capture" / "redaction" / "names.py").read_text(encoding="utf-8")
    literal = re.search(r"Kind: TypeAlias = Literal\[(.*?)\]", source, re.DOTALL)
    assert literal is not None
    kinds = re.findall(r'"(\w+)"', literal[1])
    assert (len(kinds), [kind for kind in kinds if f"`{kind}`" not in PAGE]) == (8, [])
    assert f"`{PREFIX}` and {DIGITS} hex digits" in PAGE


@pytest.mark.parametrize("reason", ["crc", "json", "shape", "number", "torn", "edited"])
def test_every_reason_of_damage_is_described(reason: str) -> None:
    assert f"| `{reason}` |" in PAGE
