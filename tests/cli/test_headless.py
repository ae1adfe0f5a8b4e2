"""Captures that have lost their header: they are read, verified and repaired like others, and other files are not taken for them."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import mcpspy
from mcpspy.records import Damage, Frame, Header
from tests.cli.terminal import run

GOLDEN = Path(__file__).parent.parent / "golden"
CAPTURES = ["capture-1-stdio.mcpspy", "capture-1-http.mcpspy"]


def unsealed(data: bytes) -> bytes:
    return re.sub(rb',"crc":"[0-9a-f]{8}"}', b"}", data)


LOST: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "its header": (lambda data: data.partition(b"\n")[2], 0),
    "the beginning of its header": (lambda data: data[100:], 0),
    "all of its header but its checksum": (lambda data: data[data.index(b"\n") - 25 :], 0),
    "its first word": (lambda data: data[9:], 0),
    "its header and a record": (lambda data: data.split(b"\n", 2)[2], 1),
    "its header and three records": (lambda data: data.split(b"\n", 4)[4], 3),
    "its header and the beginning of a record": (lambda data: data[data.index(b"\n") + 30 :], 1),
    "its header and its checksums": (lambda data: unsealed(data.partition(b"\n")[2]), 0),
    "its header and its end": (lambda data: data.partition(b"\n")[2].rstrip(b"\n").rpartition(b"\n")[0] + b"\n", 0),
    "its header and the end of its last line": (lambda data: data.partition(b"\n")[2][:-20], 0),
}
"""Beginnings of captures that are gone, and with them how many records."""


def frames(path: Path) -> list[bytes]:
    return [record.data for record in mcpspy.read(path) if isinstance(record, Frame)]


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("lost", LOST)
def test_a_capture_without_its_header_is_repaired(lost: str, name: str, tmp_path: Path) -> None:
    change, records = LOST[lost]
    path, sound = tmp_path / "x.log", tmp_path / "sound.mcpspy"
    path.write_bytes(change((GOLDEN / name).read_bytes()))
    assert run("verify", str(path)).returncode == 3
    done = run("verify", str(path), "--repair", str(sound))
    assert done.returncode == 3, done.stderr
    repaired = list(mcpspy.read(sound))
    assert isinstance(repaired[0], Header)
    assert [record for record in repaired if isinstance(record, Damage) and record.reason != "edited"] == []
    before = frames(GOLDEN / name)
    assert before[-len(frames(sound)) :] == frames(sound)
    assert len(before) - len(frames(sound)) <= records
    assert run("verify", str(sound)).returncode in (0, 1)
    assert run("show", str(sound)).stdout.count("\n") > 3


def test_a_capture_without_its_header_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(LOST["its header"][0]((GOLDEN / CAPTURES[0]).read_bytes()))
    shown = run("show", str(path)).stdout
    assert "the header is missing" in shown
    assert "initialize" in shown


@pytest.mark.parametrize(
    "text",
    [
        '{"n":1}\n',
        '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        'a {"n":1,"at_ns":2,"kind":"frame"}\n',
        "hello\n",
        '[{"n":1,"at_ns":2}]\n',
    ],
)
def test_other_files_are_no_captures(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_text(text)
    done = run("verify", str(path), "--repair", str(tmp_path / "out"))
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
