"""`mcpspy verify`, as a user calls it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from mcpspy.capture.store import folder as stores
from tests.capture.making import WALL_NS, header, lines, opens, stored, talk
from tests.cli import terminal
from tests.cli.terminal import MCPSPY

WHOLE = lines([*opens(), *talk()], of=header(label="weather"))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A capture whose seventh line is spoilt."""
    path = tmp_path / "broken.mcpspy"
    path.write_bytes(WHOLE.replace(b'"text":"hm', b'"text":"ha'))
    return path


def run(argv: list[str], data: bytes | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, its output as text."""
    return terminal.run(*argv[len(MCPSPY) :], stdin=data)


def test_an_intact_capture_exits_0_and_says_so(mcpspy: list[str]) -> None:
    path = stored("weather")
    done = run([*mcpspy, "verify", "weather"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: intact, 8 records in {Path(path).stat().st_size / 1000:.1f} kB\n"


def test_an_incomplete_capture_exits_1(mcpspy: list[str]) -> None:
    stored("weather", ended=False)
    done = run([*mcpspy, "verify"])
    assert done.returncode == 1
    assert "there is no end record" in done.stdout


def test_a_damaged_capture_exits_3_says_where_and_what_to_do(mcpspy: list[str], damaged: Path) -> None:
    done = run([*mcpspy, "verify", str(damaged)])
    sizes = [len(line) for line in WHOLE.splitlines(keepends=True)]
    assert done.returncode == 3
    assert done.stdout.splitlines()[1:] == [
        f"  line 7, byte {sum(sizes[:6])}: the line does not match its CRC",
        f"  line 8, byte {sum(sizes[:7])}: record 6 is missing",
    ]
    assert "--repair" in done.stderr


def test_repair_writes_a_new_file_and_keeps_the_exit_status(mcpspy: list[str], damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "sound.mcpspy"
    done = run([*mcpspy, "verify", str(damaged), "--repair", str(out)])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        3,
        f"  the intact records are in {out}, 1 record marked as missing",
    )
    assert run([*mcpspy, "verify", str(out)]).returncode == 1


def test_repair_into_a_file_that_exists_is_refused(mcpspy: list[str], damaged: Path) -> None:
    before = damaged.read_bytes()
    done = run([*mcpspy, "verify", str(damaged), "--repair", str(damaged)])
    assert (done.returncode, damaged.read_bytes()) == (2, before)
    assert "exists" in done.stderr


def test_a_capture_that_is_being_written_is_not_repaired(mcpspy: list[str], tmp_path: Path) -> None:
    fd, path = stores.create(None, "x", wall_ns=WALL_NS)
    os.write(fd, lines(opens(), end_ns=None))
    searched_folder, done = run([*mcpspy, "verify", path]), run([*mcpspy, "verify", path, "--repair", str(tmp_path / "out")])
    os.close(fd)
    assert (searched_folder.returncode, "a tap still records into it" in searched_folder.stdout) == (1, True)
    assert (done.returncode, (tmp_path / "out").exists()) == (2, False)


def test_a_recording_is_as_bad_as_its_worst_capture(mcpspy: list[str]) -> None:
    stored("a", lasted_s=9)
    path = Path(stored("b", begin_s=1))
    path.write_bytes(path.read_bytes().replace(b"ping", b"pong"))
    done = run([*mcpspy, "verify", "@"])
    assert (done.returncode, done.stdout.count("intact"), done.stdout.count("damaged")) == (3, 1, 1)


def test_standard_input_can_be_verified(mcpspy: list[str]) -> None:
    done = run([*mcpspy, "verify", "-"], WHOLE)
    assert (done.returncode, done.stdout.partition(",")[0]) == (0, "standard input: intact")


def test_the_json_says_all_of_it(mcpspy: list[str], damaged: Path) -> None:
    output = json.loads(run([*mcpspy, "verify", "--json", str(damaged)]).stdout)
    (capture,) = output["captures"]
    assert (output["schema"], capture["status"], capture["complete"], capture["unusable_lines"]) == (1, "damaged", True, 1)
    assert [(problem["reason"], problem["line"]) for problem in capture["problems"]] == [("crc", 7), ("number", 8)]


@pytest.mark.parametrize(
    ("what", "status", "sentence"),
    [
        ("no/such.mcpspy", 2, "no such file"),
        ("@", 2, "nothing has been recorded yet"),
        (__file__, 3, "not an mcpspy capture"),
        ("-:7", 2, "rows cannot be verified"),
    ],
)
def test_bad_input_gets_a_clear_error(what: str, status: int, sentence: str, mcpspy: list[str]) -> None:
    done = run([*mcpspy, "verify", "--", what], b"")
    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
