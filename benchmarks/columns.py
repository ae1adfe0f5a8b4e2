"""Columns: what `mcpspy export parquet` costs next to `show --stats` of the same capture, and recipes over a store of 1,000 captures.

    python -m benchmarks.columns                        # both
    python -m benchmarks.columns --messages 100000 --captures 50

The store is made: a thousand small captures, and for each the columns of one with 10,000 messages, with a date, an id and tools of
its own. So a recipe finds its columns up to date, as it does the second time, and reads those of 10 million messages.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.export import record
from benchmarks.mixed import frames
from mcpspy.capture.store.columns import column_key, column_path
from mcpspy.cli.columns.known import KnownFiles, written_by
from mcpspy.cli.transcripts import header_of
from mcpspy.columns.recipes import RECIPES
from mcpspy.columns.schema import TABLES
from mcpspy.records import CLIENT, SERVER, Open, Record

MESSAGES = 700_000
"""Those of a capture of 170 MB."""

LARGE_MESSAGES = 4_200_000
CAPTURES = 1_000
MESSAGES_EACH = 10_000
FIRST_DAY = date(2026, 8, 1)
DAYS = 100
TARGET_MIB = 300
DAY_NS = 86_400_000_000_000


def mixed_capture(path: Path, messages: int, *, capture_id: str = "big", wall_ns: int = 0) -> None:
    """Write a capture with a bit of everything."""

    def batches() -> Iterator[list[Record]]:
        yield [Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")]
        for frame in frames(messages):
            yield [frame]

    record(
        path, {"transport": "stdio", "argv": ["big"]}, batches(), messages * 1_000_000, capture_id=capture_id, wall_ns=wall_ns
    )


def cost(words: list[str], home: str) -> tuple[float, float, float, str]:
    """Run mcpspy. Return its processor time and its time in seconds, its peak memory in MiB, and what it printed."""
    began = time.monotonic()
    variables = os.environ | {"MCPSPY_HOME": home}
    process = subprocess.Popen([sys.executable, "-m", "mcpspy", *words], stdout=subprocess.PIPE, env=variables)
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} exited {process.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024, printed


def measure_export(folder: Path, messages: int, rounds: int) -> None:
    """Print the cost of an export, beside that of `show --stats` and `check`, which run in turns."""
    path = folder / f"{messages}.mcpspy"
    mixed_capture(path, messages)
    size_mb = path.stat().st_size / 1e6
    processor: dict[str, float] = {}
    clock: dict[str, float] = {}
    peak: dict[str, float] = {}
    for _ in range(rounds):
        for name, words in (
            ("show --stats", ["show", "--stats", str(path)]),
            ("check", ["check", str(path), "--fail-on", "error"]),
            ("export parquet", ["export", "parquet", str(path), "-o", str(folder / "columns")]),
        ):
            subprocess.run(["rm", "-rf", str(folder / "columns")], check=True)
            processor_s, clock_s, peak_mib, _ = cost(words, str(folder / "home"))
            processor[name] = min(processor_s, processor.get(name, processor_s))
            clock[name] = min(clock_s, clock.get(name, clock_s))
            peak[name] = min(peak_mib, peak.get(name, peak_mib))
    print(f"{messages:,} messages, {size_mb:.0f} MB")
    for name, clock_s in clock.items():
        by_clock, by_processor = clock["show --stats"] / clock_s, processor["show --stats"] / processor[name]
        print(f"  {name:<15} {clock_s:6.2f} s by the clock, {by_clock:4.0%} of the speed of show --stats", end="; ")
        print(f"{processor[name]:6.2f} s of processor time, {by_processor:4.0%}; {peak[name]:4.0f} MiB", flush=True)
    path.unlink()


def make_store(home: Path, captures: int, messages: int) -> None:
    """Make a store with captures and columns."""
    home.mkdir()
    whole = home / "whole.mcpspy"
    mixed_capture(whole, messages)
    cost(["export", "parquet", str(whole), "-o", str(home / "one")], str(home))
    made = [name for name in TABLES if (home / "one" / name).is_dir()]
    tables = {name: pq.read_table(next((home / "one" / name).rglob("*.parquet"))) for name in made}
    columns = home / "columns"
    columns.mkdir()
    (home / "captures").mkdir()
    known = KnownFiles(str(columns), written_by(payloads=False))
    for number in range(captures):
        day = FIRST_DAY + timedelta(days=number * DAYS // captures)
        wall_ns = (day - date(1970, 1, 1)).days * DAY_NS + number * 1_000_000
        path = home / "captures" / f"{number:04}.mcpspy"
        mixed_capture(path, 2, capture_id=f"{number:016x}", wall_ns=wall_ns)
        key = column_key(header_of(str(path)), path.name)
        for name, table in tables.items():
            write(Path(column_path(str(columns), name, key)), changed(table, number, wall_ns))
        known.note(str(path), known.facts(str(path)), key)
    known.save()
    whole.unlink()


def changed(table: pa.Table, number: int, wall_ns: int) -> pa.Table:
    """Give the rows of a capture the id, the time and the server of another one."""
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if field.name == "capture_id":
            column = pa.array([f"{number:016x}"] * len(table))
        elif field.name == "server":
            column = pa.array([f"server{number % 7}"] * len(table))
        elif field.name == "server_version":
            column = pa.array([f"1.{number % 5}"] * len(table))
        elif pa.types.is_timestamp(field.type):
            column = pc.add(column.cast(pa.int64()), wall_ns).cast(field.type)
        elif field.name == "duration_ns":
            column = pc.multiply(column, 1 + number % 11)
        table = table.set_column(at, field, column)
    return table


def write(path: Path, table: pa.Table) -> None:
    """Write a file of columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")


def measure_recipes(home: Path, captures: int, messages: int, rounds: int) -> None:
    """Print the time that each recipe takes."""
    make_store(home, captures, messages)
    _, _, _, printed = cost(["query", "SELECT count(*) FROM messages", "--json"], str(home))
    print(f"{captures:,} captures, {json.loads(printed)['rows'][0][0]:,} messages")
    for name, recipe in RECIPES.items():
        words = ["query", "--recipe", name, *(["--date", "2026-10-01"] if recipe.needs_date else [])]
        runs = [cost(words, str(home)) for _ in range(rounds)]
        took_s, wall_s = min(run[0] for run in runs), min(run[1] for run in runs)
        rows = len(runs[0][3].splitlines()) - 1
        print(
            f"  {name:<14} {took_s:5.2f} s of processor time, {wall_s:5.2f} s  {runs[0][2]:4.0f} MiB  {rows} rows", flush=True
        )


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="export, large or recipes; all without")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--large", type=int, default=LARGE_MESSAGES, help="messages of a capture of 1 GB")
    parser.add_argument("--captures", type=int, default=CAPTURES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    what: list[str] = options.what or ["export", "large", "recipes"]
    with tempfile.TemporaryDirectory() as folder:
        if "export" in what:
            measure_export(Path(folder), options.messages, options.rounds)
        if "large" in what:
            measure_export(Path(folder), options.large, 1)
        if "recipes" in what:
            measure_recipes(Path(folder) / "store", options.captures, MESSAGES_EACH, options.rounds)


if __name__ == "__main__":
    main()
