"""`mcpspy export parquet`, as a user calls it, on real captures."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy, rmtree
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.cli.columns.update import update
from mcpspy.columns.files import files_of
from mcpspy.records import Header
from tests.capture.making import WALL_NS, closes, header, lines, opens, talk
from tests.cli.columns.secrets import TOKEN, secretive
from tests.cli.terminal import MCPSPY, run
from tests.columns.reading import rows_of
from tests.deadlines import DEADLINE_S, eventually
from tests.sharing.hiding import lines as written
from tests.transcript.dialogue import request, result
from tests.views.scenes import call, opened, refused

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))


def exported(source: Path, folder: Path, *options: str) -> dict[str, Any]:
    """Export one capture, and return its row of the table `captures`."""
    done = run("export", "parquet", str(source), "-o", str(folder), *options)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (row,) = rows_of(folder, "captures")
    return row


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The columns of all captures of ours."""
    folder = tmp_path_factory.mktemp("columns")
    done = run("export", "parquet", str(CAPTURES), "-o", str(folder))
    assert (done.returncode, f"{len(NAMES)} captures written" in done.stderr) == (0, True), done.stderr
    return folder


@pytest.mark.grid(6)
@pytest.mark.parametrize("name", NAMES)
def test_the_tables_have_what_the_transcript_has(name: str, columns: Path) -> None:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    header = transcript.captures[0].header
    assert header is not None
    own = {table: [row for row in rows_of(columns, table) if row["capture_id"] == header.capture_id] for table in TABLES}
    assert sorted((row["record"], row["row"]) for row in own["messages"]) == sorted(
        (message.number, row.row)
        for row in transcript.rows
        for message in (getattr(row, "messages", None) or filter(None, [getattr(row, "message", None)]))
        if hasattr(row, "row")
    )
    calls = {row["row"]: row for row in own["calls"]}
    for exchange in transcript.exchanges:
        row = calls.pop(exchange.row)
        assert row["time"] == header.wall_ns + exchange.at_ns
        assert (row["duration_ns"], row["outcome"], row["method"], row["target"]) == (
            exchange.duration_ns, exchange.outcome, exchange.method, exchange.target,
        )  # fmt: skip
    assert calls == {}
    assert len(own["transactions"]) == len(transcript.captures[0].transactions)
    assert [row["row"] for row in own["model_calls"]] == [row.row for row in transcript.model_calls]
    (capture,) = own["captures"]
    assert (capture["messages"], capture["complete"], capture["calls"]) == (
        transcript.captures[0].messages, True, len(transcript.exchanges),
    )  # fmt: skip


TABLES = ("captures", "messages", "calls", "transactions", "findings", "definitions", "model_calls")


@pytest.mark.parametrize("name", ["everything", "refused", "agent-model"])
def test_findings_are_those_of_a_check(name: str, columns: Path) -> None:
    path = CAPTURES / f"{name}.mcpspy"
    checked = json.loads(run("check", str(path), "--json").stdout)["findings"]
    (info,) = transcribe(read(path)).captures
    assert info.header is not None
    rows = [row for row in rows_of(columns, "findings") if row["capture_id"] == info.header.capture_id]
    assert [(row["rule"], row["row"], row["what"]) for row in rows] == [
        (finding["rule"], finding["row"], finding["what"]) for finding in checked
    ]


def test_the_server_has_its_own_name_and_version(columns: Path) -> None:
    (row,) = [row for row in rows_of(columns, "captures") if row["file"] == "time.mcpspy"]
    assert (row["client"], row["server"], row["server_version"] is not None) == ("stepclient", "mcp-time", True)


def test_the_last_line_counts_what_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "junk.mcpspy").write_text("junk")
    done = run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    assert "1 capture written; 1 of them could not be read (column problem of captures)" in done.stderr


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    for name in ("time", "git"):
        copy(CAPTURES / f"{name}.mcpspy", tmp_path)
    folder = tmp_path / "columns"
    run("export", "parquet", str(tmp_path), "-o", str(folder))
    before = {path: os.stat(path).st_ino for table in TABLES for path in files_of(str(folder), table)}
    done = run("export", "parquet", str(tmp_path), "-o", str(folder))
    assert "0 captures written, 2 unchanged" in done.stderr
    assert {path: os.stat(path).st_ino for table in TABLES for path in files_of(str(folder), table)} == before


def test_a_capture_that_has_grown_is_written_again_and_no_other(tmp_path: Path) -> None:
    whole = (CAPTURES / "time.mcpspy").read_bytes().splitlines(keepends=True)
    grown = tmp_path / "time.mcpspy"
    grown.write_bytes(b"".join(whole[:-5]))
    copy(CAPTURES / "git.mcpspy", tmp_path)
    folder = tmp_path / "columns"
    run("export", "parquet", str(tmp_path), "-o", str(folder))
    grown.write_bytes(b"".join(whole))
    done = run("export", "parquet", str(tmp_path), "-o", str(folder))
    assert "1 capture written, 1 unchanged" in done.stderr
    (row,) = [row for row in rows_of(folder, "captures") if row["file"] == "time.mcpspy"]
    assert (row["complete"], row["bytes"]) == (True, grown.stat().st_size)
    assert len(rows_of(folder, "captures")) == 2


def test_a_capture_gets_its_name_when_its_header_is_there(tmp_path: Path) -> None:
    path, folder = tmp_path / "x.mcpspy", tmp_path / "columns"
    path.write_bytes(b"")
    assert exported(path, folder)["capture_id"].startswith("file-")
    path.write_bytes((CAPTURES / "time.mcpspy").read_bytes())
    assert exported(path, folder)["complete"] is True


def test_an_interrupted_export_is_done_again(tmp_path: Path) -> None:
    folder = tmp_path / "columns"
    exported(CAPTURES / "time.mcpspy", folder)
    (last,) = files_of(str(folder), "captures")
    os.unlink(last)
    assert exported(CAPTURES / "time.mcpspy", folder)["complete"] is True


def test_a_killed_export_leaves_whole_files_alone(tmp_path: Path) -> None:
    folder = tmp_path / "columns"
    with subprocess.Popen([*MCPSPY, "export", "parquet", str(CAPTURES), "-o", str(folder)], stderr=subprocess.PIPE) as process:
        eventually(lambda: process.poll() is not None or files_of(str(folder), "captures"), "the first capture")
        process.kill()
        process.wait(DEADLINE_S)
    some = rows_of(folder, "captures")  # each file can be read
    done = run("export", "parquet", str(CAPTURES), "-o", str(folder))
    assert done.returncode == 0
    assert len(rows_of(folder, "captures")) == len(NAMES) >= len(some) > 0


def test_what_a_killed_export_left_unfinished_is_removed_an_hour_later(tmp_path: Path) -> None:
    columns = tmp_path / "columns"
    run("export", "parquet", str(CAPTURES / "time.mcpspy"), "-o", str(columns))
    (whole,) = columns.glob("calls/*/*.parquet")
    old, new, other = (whole.with_name(f"{whole.name}.{end}") for end in ("123", "124", "bak"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other, whole):
        os.utime(path, (0, 0))
    run("export", "parquet", str(CAPTURES / "time.mcpspy"), "-o", str(columns))
    assert {path.name for path in whole.parent.iterdir()} == {whole.name, new.name, other.name}


def test_payloads_are_written_only_on_request(tmp_path: Path) -> None:
    exported(CAPTURES / "time.mcpspy", tmp_path / "without")
    assert "payload" not in rows_of(tmp_path / "without", "messages")[0]
    exported(CAPTURES / "time.mcpspy", tmp_path / "with", "--payloads")
    rows = rows_of(tmp_path / "with", "messages")
    assert json.loads(rows[0]["payload"])["method"] == rows[0]["method"]


def everything_in(folder: Path) -> str:
    return json.dumps([rows_of(folder, table) for table in TABLES])


@pytest.mark.parametrize("options", [(), ("--payloads",)])
def test_all_is_replaced_that_a_share_replaces(options: tuple[str, ...], tmp_path: Path) -> None:
    exported(secretive(tmp_path), tmp_path / "columns", *options)
    text = everything_in(tmp_path / "columns")
    assert ("tr0ub4dor" in text, TOKEN in text, "no such token: redacted-" in text) == (False, False, True)
    assert [str(row["error"]).partition(" ")[0][:9] for row in rows_of(tmp_path / "columns", "calls")] == ["no", "redacted-"]


def test_a_secret_that_a_later_message_gives_away_is_replaced_in_earlier_texts(tmp_path: Path) -> None:
    scene = opened("weather").client(call(1, "again")).server(refused(1, -32000, "tr0ub4dor-and-3 is wrong"))
    scene.client(call(2, "login", password="tr0ub4dor-and-3")).server(result(2)).closes()
    (tmp_path / "x.mcpspy").write_bytes(written(scene.records))
    exported(tmp_path / "x.mcpspy", tmp_path / "columns")
    assert "tr0ub4dor" not in everything_in(tmp_path / "columns")


@pytest.mark.parametrize("fit", ["{}", "request-{}", "{}/1"])
def test_a_token_in_an_id_is_replaced_and_other_ids_stay(fit: str, tmp_path: Path) -> None:
    others = ["7f0c2d7e-5a0e-4f0e-9d5e-2f4f0a1b2c3d", 7, "call_00000000000000000000001"]
    scene = opened("weather")
    for id in (fit.format(TOKEN), *others):
        scene.client(call(id, "again")).server(result(id))
    (tmp_path / "x.mcpspy").write_bytes(written(scene.closes().records))
    exported(tmp_path / "x.mcpspy", tmp_path / "columns")
    assert TOKEN not in everything_in(tmp_path / "columns")
    first, *rest = [row["id"] for row in rows_of(tmp_path / "columns", "calls")][-4:]
    assert fit.format("redacted-").partition("/")[0] in first
    assert rest == [json.dumps(id) for id in others]


def test_a_secret_in_a_method_or_a_revision_is_replaced(tmp_path: Path) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": TOKEN}}
    scene = opened("weather").client(request(1, f"login/{TOKEN}", meta)).server(result(1)).closes()
    (tmp_path / "x.mcpspy").write_bytes(written(scene.records))
    exported(tmp_path / "x.mcpspy", tmp_path / "columns")
    assert TOKEN not in everything_in(tmp_path / "columns")
    (call_row,) = rows_of(tmp_path / "columns", "calls")
    assert str(call_row["method"]).startswith("login/redacted-")


def test_a_secret_of_the_environment_and_one_of_the_command_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "in-the-env-1234")
    scene = opened("weather").client(call(1, "x")).server(refused(1, -32000, "neither in-the-env-1234 nor argu-ment-99"))
    head = scene.closes().records[0]
    assert isinstance(head, Header)
    head.tapped = {"transport": "stdio", "argv": ["server", "--api-key", "argu-ment-99"]}
    (tmp_path / "x.mcpspy").write_bytes(written(scene.records))
    exported(tmp_path / "x.mcpspy", tmp_path / "columns")
    text = everything_in(tmp_path / "columns")
    assert ("in-the-env-1234" in text, "argu-ment-99" in text) == (False, False)


def damaged(kind: str) -> bytes:
    data = (CAPTURES / "everything.mcpspy").read_bytes()
    rows = data.splitlines(keepends=True)
    match kind:
        case "a flipped bit":
            return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
        case "a torn end":
            return data[:-20]
        case "a missing record":
            return b"".join(rows[:9] + rows[10:])
        case "no end":
            return b"".join(rows[:-1])
        case "no header":
            return b"".join([b'{"mcpspy"' + rows[0][20:], *rows[1:]])
    raise ValueError(kind)


@pytest.mark.parametrize("kind", ["a flipped bit", "a torn end", "a missing record", "no end", "no header"])
def test_a_damaged_capture_is_a_row_with_what_could_be_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "x.mcpspy").write_bytes(damaged(kind))
    row = exported(tmp_path / "x.mcpspy", tmp_path / "columns")
    assert (row["complete"], row["problem"], row["messages"] > 10) == (False, None, True)
    assert len(rows_of(tmp_path / "columns", "messages")) >= row["messages"] > 10


@pytest.mark.parametrize("data", [b"", b"no capture\n", b'{"mcpspy":9,"min_reader":9}\n'])
def test_a_file_that_cannot_be_read_fails_no_export(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.mcpspy").write_bytes(data)
    copy(CAPTURES / "time.mcpspy", tmp_path)
    done = run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    assert (done.returncode, "2 captures written" in done.stderr) == (0, True), done.stderr
    rows = {row["file"]: row for row in rows_of(tmp_path / "columns", "captures")}
    assert (rows["x.mcpspy"]["complete"], rows["time.mcpspy"]["complete"]) == (False, True)
    assert (rows["x.mcpspy"]["problem"] is not None) is bool(data)


EVERYTHING = (CAPTURES / "everything.mcpspy").read_bytes()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(EVERYTHING)), junk=st.binary(max_size=40))
def test_any_bytes_in_a_capture_are_survived(at: int, junk: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(EVERYTHING[:at] + junk + EVERYTHING[at + len(junk) :])
    rmtree(tmp_path / "columns", ignore_errors=True)
    updated = update([str(path)], str(tmp_path / "columns"))
    (row,) = rows_of(tmp_path / "columns", "captures")
    assert updated.written == 1
    assert (row["problem"] is None) is (updated.unreadable == [])


@pytest.mark.parametrize("capture_id", ["../../../x", "", "a/b", "x" * 300, ".", "e\u0301"])
def test_no_id_of_a_capture_leads_out_of_the_folder(capture_id: str, tmp_path: Path) -> None:
    path = tmp_path / "in" / "x.mcpspy"
    path.parent.mkdir()
    path.write_bytes(lines([*opens(), *talk(), *closes()], of=header(capture_id=capture_id)))
    row = exported(path, tmp_path / "in" / "columns")
    assert row["capture_id"].startswith("id-")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in"]


def test_a_date_that_no_calendar_has_is_a_partition_too(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines([*opens(), *talk(), *closes()], of=header(wall_ns=10**30)))
    assert exported(path, tmp_path / "columns")["began"] == 2**63 - 1


def test_a_capture_begins_on_the_day_that_it_was_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines([*opens(), *talk(), *closes()]))
    exported(path, tmp_path / "columns")
    assert WALL_NS // 10**9 == 1_795_214_221
    assert [Path(file).parent.name for file in files_of(str(tmp_path / "columns"), "calls")] == ["date=2026-11-20"]


def test_a_capture_that_is_still_recorded_has_pending_calls(tmp_path: Path, store: Path) -> None:
    with subprocess.Popen([*MCPSPY, "run", "--label", "slow", "--", "sleep", "100"], stdin=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        tap.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        tap.stdin.flush()
        captures = store / "captures"
        eventually(lambda: any(b"ping" in path.read_bytes() for path in captures.glob("*")), "a record of the request")
        run("export", "parquet", "slow", "-o", str(tmp_path / "columns"))
        tap.kill()
    (capture,), (row,) = rows_of(tmp_path / "columns", "captures"), rows_of(tmp_path / "columns", "calls")
    assert (capture["is_live"], capture["complete"], row["outcome"]) == (True, False, "pending")


def test_a_capture_whose_tap_died_is_written_again_though_it_did_not_grow(tmp_path: Path, store: Path) -> None:
    with subprocess.Popen([*MCPSPY, "run", "--label", "slow", "--", "sleep", "100"], stdin=subprocess.PIPE) as tap:
        captures = store / "captures"
        eventually(lambda: any(path.stat().st_size for path in captures.glob("*.mcpspy")), "a capture")
        run("export", "parquet", "slow", "-o", str(tmp_path / "columns"))
        assert [row["is_live"] for row in rows_of(tmp_path / "columns", "captures")] == [True]
        tap.kill()
    run("export", "parquet", "slow", "-o", str(tmp_path / "columns"))
    assert [row["is_live"] for row in rows_of(tmp_path / "columns", "captures")] == [False]


def test_the_same_capture_in_two_files_is_written_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        copy(CAPTURES / "time.mcpspy", tmp_path / f"{name}.mcpspy")
    done = run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    assert "b.mcpspy is left out: it is the same capture as" in done.stderr
    assert len(rows_of(tmp_path / "columns", "captures")) == 1


def test_of_several_files_with_one_capture_the_longest_is_written(tmp_path: Path) -> None:
    whole = (CAPTURES / "time.mcpspy").read_bytes()
    for number in range(8):
        (tmp_path / f"{number}.mcpspy").write_bytes(whole if number == 6 else whole[: len(whole) // 2])
    done = run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    assert [(row["file"], row["complete"]) for row in rows_of(tmp_path / "columns", "captures")] == [("6.mcpspy", True)]
    assert "mcpspy: 2 more files left out" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such files")
def test_a_fifo_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    copy(CAPTURES / "time.mcpspy", tmp_path)
    os.mkfifo(tmp_path / "fifo.mcpspy")
    done = run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    assert (done.returncode, len(rows_of(tmp_path / "columns", "captures"))) == (0, 1)


def test_a_file_that_cannot_be_written_whole_is_named_and_the_next_export_finishes(tmp_path: Path) -> None:
    folder = tmp_path / "columns"
    words = [*MCPSPY, "export", "parquet", str(CAPTURES / "everything.mcpspy"), "-o", str(folder)]
    limited = ["sh", "-c", 'ulimit -f 8 && exec "$@"', "sh", *words]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, "File too large" in done.stderr, "Detail" in done.stderr) == (2, True, False)
    assert f"mcpspy: {folder}" in done.stderr
    assert [path.name for path in folder.rglob("*.parquet*")] == []
    assert run(*words[len(MCPSPY) :]).returncode == 0
    assert len(rows_of(folder, "captures")) == 1
