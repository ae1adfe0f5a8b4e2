"""`mcpspy.spark` on a real cluster: two executors on this machine, of which one is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from mcpspy.cli.columns.results import json_pieces
from mcpspy.columns.database import Database
from mcpspy.columns.recipes import RECIPES
from mcpspy.columns.schema import TABLES, TIME
from tests.cli.terminal import run
from tests.columns.reading import rows_of
from tests.conftest import ROOT, BuiltProgram, DebianProgram
from tests.deadlines import SCENE_S

DRIVER = Path(__file__).parent / "spark_driver.py"
CAPTURES = ROOT / "captures"
WHOLE_BYTES = 8_000
"""A capture up to this size is read whole. Two thirds of ours are larger."""

DATE = "2026-11-21"


def folder_of_captures(folder: Path) -> Path:
    """Make a folder with all captures of ours, damaged ones, files that are none, and one capture in several files.

    Of captures with odd names and of torn ones, one is read whole and one in lines.
    """
    for path in CAPTURES.glob("*.mcpspy"):
        copy(path, folder)
    (folder / "memory.mcpspy").rename(folder / "a b%20c[1]{é}.mcpspy")
    (folder / "prompts.mcpspy").rename(folder / "ü b%20c[1]{é}.mcpspy")
    small, large, flipped, headless = (folder / f"{name}.mcpspy" for name in ("probe", "git", "time", "oauth"))
    for torn in (small, large):
        torn.write_bytes(torn.read_bytes()[:-20])
    assert small.stat().st_size < WHOLE_BYTES < large.stat().st_size
    data = flipped.read_bytes()
    flipped.write_bytes(data[:5_000] + bytes([data[5_000] ^ 0x80]) + data[5_001:])
    headless.write_bytes(headless.read_bytes().partition(b"\n")[2])
    (folder / "empty.mcpspy").write_bytes(b"")
    (folder / "none.mcpspy").write_bytes(b"no capture\n")
    (folder / "newer.mcpspy").write_bytes(b'{"mcpspy":9,"min_reader":9}\n')
    (folder / "notes.txt").write_text("no capture either")
    (folder / "sub" / "of").mkdir(parents=True)
    copy(folder / "sse.mcpspy", folder / "sub" / "sse-again.mcpspy")
    (folder / "sub" / "of" / "part.mcpspy").write_bytes((folder / "sse.mcpspy").read_bytes()[:7_000])
    return folder


def in_order(rows: list[dict[str, Any]], table: str, ns: int = 1) -> list[str]:
    """Return rows as text in an order that does not depend on their files; times divided by so many ns."""
    times = [column.name for column in TABLES[table].columns if column.type == TIME]
    plain = [row | {name: row[name] // ns for name in times if row[name] is not None} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in plain)


@pytest.mark.timeout(5 * SCENE_S)
def test_a_cluster_that_loses_an_executor_writes_the_rows_of_the_export(
    built: BuiltProgram, debian_program: DebianProgram, tmp_path: Path
) -> None:
    debian_program("java")
    library = str(Path(built("spark/pyspark")).parent)
    (tmp_path / "captures").mkdir()
    captures, written, exported = folder_of_captures(tmp_path / "captures"), tmp_path / "written", tmp_path / "exported"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([library, str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(captures), str(tmp_path), str(WHOLE_BYTES)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=4 * SCENE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5_000:]
    printed = json.loads(done.stdout)
    assert printed["killed"] is not None
    assert printed["killed"] not in printed["after"]
    assert len(printed["after"]) == 2

    (captures / "empty.mcpspy").unlink()  # Spark reads no empty files
    assert run("export", "parquet", str(captures), "-o", str(exported)).returncode == 0
    for table in TABLES:
        wanted = in_order(rows_of(exported, table), table, ns=1_000)
        assert wanted
        assert in_order(rows_of(written, table), table) == wanted, table
    incomplete = {row["file"] for row in rows_of(written, "captures") if not row["complete"]}
    assert incomplete == {f"{name}.mcpspy" for name in ("probe", "git", "time", "oauth", "none", "newer")}

    for folder in (exported, written):
        database = Database(str(folder))
        for name, recipe in RECIPES.items():
            answer = json.loads("".join(json_pieces(database.query(recipe.sql.replace("{date}", DATE)))))
            assert plain(answer["rows"]) == plain(printed["recipes"][name]), (name, folder)


def plain(rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows with numbers and times in one form."""
    return [[plain_value(value) for value in row] for row in rows]


def plain_value(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return pytest.approx(float(value))
    return value.removesuffix("Z").removesuffix("+00:00") if isinstance(value, str) else value
