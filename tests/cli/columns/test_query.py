"""`mcpspy query`, as a user calls it, over a store and over a folder of columns."""

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from shutil import copy, rmtree

import duckdb
import pyarrow.parquet as pq
import pytest

from mcpspy.columns.database import Database, QueryError
from mcpspy.columns.recipes import RECIPES
from mcpspy.columns.schema import TABLES
from mcpspy.transcript.stats.statistics import nearest_rank
from tests.capture.making import WALL_NS, closes, header, lines, opens, talk
from tests.cli.terminal import on_terminal, run
from tests.columns.reading import rows_of
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.sharing.hiding import lines as written
from tests.transcript.dialogue import cancelled, result
from tests.views.scenes import call, opened

CAPTURES = ROOT / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.mcpspy"))


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("a folder's columns")
    assert run("export", "parquet", str(CAPTURES), "-o", str(folder)).returncode == 0
    return str(folder)


def answer(columns: str, sql: str, *options: str) -> list[list[object]]:
    done = run("query", sql, "--columns", columns, "--json", *options)
    assert done.returncode == 0, done.stderr
    rows: list[list[object]] = json.loads(done.stdout)["rows"]
    return rows


def test_all_captures_of_a_folder_are_asked(columns: str) -> None:
    assert answer(columns, "SELECT count(*) FROM captures") == [[len(NAMES)]]


def test_a_folder_whose_name_is_a_pattern_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a*" / "captures").mkdir(parents=True)
    assert "give the folder another name" in run("query", "SELECT 1", "--columns", str(tmp_path / "a*")).stderr


def test_the_store_is_brought_up_to_date_first(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    first = run("query", "SELECT file FROM captures ORDER BY file")
    assert (first.stdout.split(), "1 new or changed capture read" in first.stderr) == (["file", "time.mcpspy"], True)
    copy(CAPTURES / "git.mcpspy", store / "captures")
    second = run("query", "SELECT file FROM captures ORDER BY file")
    assert second.stdout.split() == ["file", "git.mcpspy", "time.mcpspy"]
    assert run("query", "SELECT file FROM captures").stderr == ""


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"by": 1}', b'{"by": "x", "files": {"a": 1}}'])
def test_without_the_list_of_what_is_known_no_capture_is_read_again(content: bytes | None, store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    run("query", "SELECT 1")
    known = store / "columns" / "known.json"
    known.unlink() if content is None else known.write_bytes(content)
    asked = run("query", "SELECT file FROM captures")
    assert (asked.stdout.split(), asked.stderr) == (["file", "time.mcpspy"], "")


def test_columns_that_were_deleted_are_made_again(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    run("query", "SELECT 1")
    rmtree(store / "columns" / "captures")
    assert run("query", "SELECT file FROM captures").stdout.split() == ["file", "time.mcpspy"]


def test_only_the_owner_of_a_store_can_open_its_columns(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    run("query", "SELECT 1")
    columns = store / "columns"
    assert {path.stat().st_mode & 0o777 for path in (columns, *columns.rglob("*")) if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in columns.rglob("*") if path.is_file()} == {0o600}


def test_columns_with_and_without_payloads_can_be_asked_together(tmp_path: Path) -> None:
    folder = str(tmp_path / "columns")
    run("export", "parquet", str(CAPTURES / "time.mcpspy"), "-o", folder, "--payloads")
    run("export", "parquet", str(CAPTURES / "git.mcpspy"), "-o", folder)
    assert answer(folder, "SELECT count(payload) > 0, count(*) > count(payload) FROM messages") == [[True, True]]


def test_prune_removes_columns_with_their_capture(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    for name, capture_id, day in (("old", "0" * 16, 0), ("new", "1" * 16, 3)):
        parent = {"pid": 11, "name": "client", "start": day}
        began_ns = WALL_NS + day * 86_400 * 10**9
        head = header(capture_id=capture_id, label=name, wall_ns=began_ns, parent=parent)
        (store / "captures" / f"{name}.mcpspy").write_bytes(lines([*opens(), *talk(), *closes()], of=head))
    run("query", "SELECT 1")
    assert len(rows_of(store / "columns", "calls")) == 2
    assert run("prune", "--keep", "1", "--yes").returncode == 0
    assert [row["label"] for row in rows_of(store / "columns", "captures")] == ["new"]
    assert [row["capture_id"] for row in rows_of(store / "columns", "calls")] == ["1" * 16]


def test_columns_of_a_capture_that_was_deleted_by_hand_go_too(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    for name in ("time", "git"):
        copy(CAPTURES / f"{name}.mcpspy", store / "captures")
    run("query", "SELECT 1")
    (store / "captures" / "git.mcpspy").unlink()
    assert run("query", "SELECT file FROM captures").stdout.split() == ["file", "time.mcpspy"]
    assert {row["capture_id"] for row in rows_of(store / "columns", "messages")} == {
        row["capture_id"] for row in rows_of(store / "columns", "captures")
    }


def test_since_leaves_out_what_was_before(columns: str) -> None:
    all_calls = answer(columns, "SELECT count(*) FROM calls")[0][0]
    some = answer(columns, "SELECT count(*), min(time) FROM calls", "--since", "2026-11-21T05:00Z")[0]
    assert isinstance(some[0], int)
    assert isinstance(all_calls, int)
    assert 0 < some[0] < all_calls
    assert str(some[1]) >= "2026-11-21T05:00"
    assert answer(columns, "SELECT count(*) FROM captures", "--since", "2026-11-25") == [[0]]


def test_a_table_without_rows_can_be_asked(tmp_path: Path) -> None:
    run("export", "parquet", str(CAPTURES / "time.mcpspy"), "-o", str(tmp_path / "columns"))
    assert answer(str(tmp_path / "columns"), "SELECT count(*), count(date) FROM model_calls") == [[0, 0]]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_same_columns_with_rows_and_without(name: str, columns: str, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    shapes = [Database(folder).query(f"SELECT * FROM {name}").columns for folder in (columns, str(tmp_path))]
    assert shapes[0] == shapes[1]


def test_a_query_of_columns_that_are_up_to_date_does_not_wait_for_the_import_of_pyarrow(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    run("query", "SELECT 1")
    code = "import sys; from mcpspy.cli.main import main; main(); print('pyarrow' in sys.modules)"
    words = [sys.executable, "-c", code, "query", "SELECT 1 FROM captures"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert done.stdout.split() == ["1", "1", "False"]


def test_the_same_answer_comes_as_a_table_as_csv_as_json_and_as_parquet(columns: str, tmp_path: Path) -> None:
    sql = "SELECT file, messages, complete, began, messages / 7 AS share FROM captures ORDER BY file LIMIT 2"
    table = run("query", sql, "--columns", columns).stdout.splitlines()
    assert table[0].split() == ["file", "messages", "complete", "began", "share"]
    csv = run("query", sql, "--columns", columns, "--format", "csv").stdout.splitlines()
    document = json.loads(run("query", sql, "--columns", columns, "--json").stdout)
    assert [column["name"] for column in document["columns"]] == csv[0].split(",")
    assert [",".join(map(json.dumps, row)).replace('"', "") for row in document["rows"]] == csv[1:]
    assert [line.split()[:2] for line in table[1:]] == [line.split(",")[:2] for line in csv[1:]]
    assert run("query", sql, "--columns", columns, "--format", "parquet", "-o", str(tmp_path / "x")).returncode == 0
    assert pq.read_table(tmp_path / "x").column("file").to_pylist() == [row[0] for row in document["rows"]]


@pytest.mark.parametrize("format", ["table", "csv"])
def test_no_row_of_a_long_answer_is_lost(format: str, columns: str) -> None:
    done = run("query", "SELECT * FROM range(25000)", "--columns", columns, "--format", format)
    assert [int(line) for line in done.stdout.splitlines()[1:]] == list(range(25_000))


def test_a_type_that_parquet_does_not_have_is_named(columns: str, tmp_path: Path) -> None:
    done = run("query", "SELECT INTERVAL 3 DAY", "--columns", columns, "--format", "parquet", "-o", str(tmp_path / "x"))
    assert (done.returncode, "Parquet has no such type: " in done.stderr, "interval" in done.stderr) == (2, True, True)


WIDE = "SELECT repeat('long ', 40) AS text, 'short' AS word, now() AS time, 1234567890123 AS number"


@pytest.mark.parametrize(("width", "words"), [(80, 5), (200, 12)])
def test_on_a_terminal_texts_are_cut_until_a_line_fits(width: int, words: int, columns: str) -> None:
    with on_terminal("query", WIDE, "--columns", columns, columns=width) as running:
        running.rest()
    heading, row = running.words.splitlines()
    assert len(heading) <= len(row) <= width
    assert (row.count("long"), row.count("…")) == (words, 1)
    assert row.endswith("Z  1234567890123")


def test_on_a_pipe_no_text_is_cut(columns: str) -> None:
    assert run("query", WIDE, "--columns", columns).stdout.count("long ") == 40


def test_a_table_without_rows_is_named_on_a_terminal(columns: str) -> None:
    with on_terminal("query", "SELECT file FROM captures WHERE false", "--columns", columns) as running:
        running.rest()
    assert running.words.splitlines() == ["file", "mcpspy: no rows"]


def test_small_numbers_have_three_digits_that_count(columns: str) -> None:
    shown = run("query", "SELECT 1234.56789::DOUBLE, 0.052668::DOUBLE, 0::DOUBLE", "--columns", columns).stdout
    assert shown.splitlines()[1].split() == ["1234.568", "0.0527", "0.0"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM nope", "there is no table nope; the tables are captures, messages, calls"),
        ("SELECT payload FROM messages", "payload is only in the table messages that mcpspy export parquet --payloads"),
        ("SELECT m.payload FROM messages m", "payload is only in the table messages"),
        ("SELECT definition FROM definitions", "definition is only in the table definitions"),
    ],
)
def test_what_the_tables_do_not_have_is_named_with_where_it_is(sql: str, words: str, columns: str) -> None:
    with pytest.raises(QueryError, match=re.escape(words)):
        Database(columns).query(sql)


def test_the_tables_are_listed(columns: str) -> None:
    assert [row[0] for row in answer(columns, "SHOW TABLES")] == sorted(TABLES)


def test_a_captured_text_does_nothing_to_the_terminal(columns: str) -> None:
    shown = run("query", "SELECT chr(27) || '[31mred' AS x", "--columns", columns).stdout
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_answers(name: str, columns: str) -> None:
    date = ["--date", "2026-11-21"] if RECIPES[name].needs_date else []
    done = run("query", "--recipe", name, "--columns", columns, "--json", *date)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] or name == "drift"


def test_the_recipes_are_listed() -> None:
    assert [line.split()[0] for line in run("query", "--recipes").stdout.splitlines()] == list(RECIPES)


def test_the_sql_of_a_recipe_is_what_it_runs(columns: str) -> None:
    sql = run("query", "--recipe", "error-rate", "--sql").stdout
    assert run("query", sql, "--columns", columns).stdout == run("query", "--recipe", "error-rate", "--columns", columns).stdout


def test_a_definition_that_changed_is_drift(tmp_path: Path) -> None:
    for day, word in ((0, "Adds"), (1, "Adds two")):
        tools = json.dumps({"tools": [{"name": "add", "description": word}, {"name": "same"}]})
        said = f'{{"jsonrpc":"2.0","id":1,"result":{tools}}}\n'.encode()
        asked, told = talk()[0], talk()[2]
        asked.data, told.data = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', said  # type: ignore[union-attr]
        head = header(capture_id=f"{day}" * 16, wall_ns=WALL_NS + day * 86_400 * 10**9)
        (tmp_path / f"{day}.mcpspy").write_bytes(lines([*opens(), asked, told, *closes()], of=head))
    run("export", "parquet", str(tmp_path), "-o", str(tmp_path / "columns"))
    done = run("query", "--recipe", "drift", "--columns", str(tmp_path / "columns"), "--json")
    rows = json.loads(done.stdout)["rows"]
    assert [(row[0], row[2], str(row[3])[:10]) for row in rows] == [
        ("weather", "add", "2026-11-20"),
        ("weather", "add", "2026-11-21"),
    ]


REFUSED = {
    "SELECT * FROM read_csv('/etc/passwd')": "Cannot access file",
    "SELECT * FROM '/etc/passwd'": "",
    "COPY captures TO '/tmp/x.csv'": "COPY is not allowed",
    "EXPLAIN ANALYZE COPY captures TO '{columns}/captures/x.parquet'": "EXPLAIN is not allowed",
    "SELECT 1; SELECT 2": "there are 2 statements",
    "INSTALL httpfs": "LOAD is not allowed",
    "ATTACH '/tmp/x.db'": "ATTACH is not allowed",
    "SET enable_external_access = true": "SET is not allowed",
    "CREATE TABLE x AS SELECT 1": "CREATE is not allowed",
    "SELECT * FROM read_parquet('https://127.0.0.1:9/x.parquet')": "",
    "": "there are 0 statements",
    "SELECT nothing FROM captures": "docs/columns.md has the tables and their columns",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_sql_reads_these_tables_and_nothing_else(sql: str, columns: str) -> None:
    done = run("query", sql.replace("{columns}", columns.replace("'", "''")), "--columns", columns)
    assert (done.returncode, done.stdout, REFUSED[sql] in done.stderr) == (2, "", True), done.stderr
    assert done.stderr.startswith("mcpspy: the query cannot be run: ")


def test_no_extension_is_fetched_or_loaded(columns: str) -> None:
    names = (
        "'autoinstall_known_extensions', 'autoload_known_extensions', 'enable_external_access', 'allow_community_extensions'"
    )
    rows = list(Database(columns).query(f"SELECT DISTINCT value FROM duckdb_settings() WHERE name IN ({names})").rows())
    assert rows == [("false",)]


def test_the_files_can_be_read_by_duckdb_alone(columns: str) -> None:
    with duckdb.connect() as connection:
        paths = [str(path) for path in Path(columns).glob("calls/*/*.parquet")]
        counted = connection.execute(
            "SELECT count(*), min(date) FROM read_parquet(?, hive_partitioning = true)", [paths]
        ).fetchone()
    assert counted is not None
    assert counted[0] == len(rows_of(Path(columns), "calls"))


def test_percentiles_of_the_database_are_by_nearest_rank() -> None:
    sql = """
        SELECT n, percentile_disc(0.5) WITHIN GROUP (ORDER BY i), percentile_disc(0.95) WITHIN GROUP (ORDER BY i),
               percentile_disc(0.99) WITHIN GROUP (ORDER BY i)
        FROM (SELECT unnest(range(1, 401)) AS n) JOIN (SELECT unnest(range(1, 401)) AS i) ON i <= n GROUP BY n
    """
    with duckdb.connect() as connection:
        for n, *ranks in connection.execute(sql).fetchall():
            assert ranks == [nearest_rank(list(range(1, n + 1)), percent) for percent in (50, 95, 99)]


@pytest.mark.parametrize("count", [2, 101])
def test_the_percentiles_of_recipes_are_those_of_show_stats(count: int, tmp_path: Path) -> None:
    scene, chance = opened("weather"), Random(count)
    for id in range(1, count + 1):
        scene.client(call(id, "add")).wait(chance.randint(1, 5_000)).server(result(id))
    scene.client(call(count + 1, "add")).wait(60_000).client(cancelled(count + 1)).closes()
    path = tmp_path / "x.mcpspy"
    path.write_bytes(written(scene.records))
    numbers = json.loads(run("show", str(path), "--stats", "--json").stdout)["servers"][0]["calls"]
    latency = next(method for method in numbers if method["method"] == "tools/call")["latency"]
    run("export", "parquet", str(path), "-o", str(tmp_path / "columns"))

    def row(*words: str) -> dict[str, object]:
        printed = json.loads(run("query", "--recipe", *words, "--columns", str(tmp_path / "columns"), "--json").stdout)
        return dict(zip((column["name"] for column in printed["columns"]), printed["rows"][0], strict=True))

    slowest, compared = row("slowest-tools"), row("before-after", "--date", "2100-01-01")
    assert (slowest["p50_ms"], slowest["max_ms"]) == (latency["p50_ns"] / 1e6, latency["max_ns"] / 1e6)
    assert (compared["p99_before_ms"], compared["calls_before"]) == (latency["p99_ns"] / 1e6, latency["count"])


def test_a_mistake_is_reported_before_captures_are_read(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(CAPTURES / "time.mcpspy", store / "captures")
    for sql in ("SELEC 1", "DROP TABLE calls", ""):
        done = run("query", sql)
        assert (done.returncode, "the query cannot be run" in done.stderr, "read" in done.stderr) == (2, True, False)
    assert not (store / "columns" / "captures").exists()


def test_a_sentence_of_the_database_is_followed_by_one_mark(columns: str) -> None:
    assert 'Did you mean "calls"? docs/columns.md' in run("query", "SELECT * FROM call", "--columns", columns).stderr


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_query_that_fails_leaves_an_older_result_as_it_was(format: str, columns: str, tmp_path: Path) -> None:
    path = tmp_path / "result"
    sql = "SELECT CAST(CASE WHEN method = 'initialize' THEN 'x' ELSE '1' END AS INTEGER) FROM calls"
    for content in (None, "older"):
        if content is not None:
            path.write_text(content)
        done = run("query", sql, "--columns", columns, "--format", format, "-o", str(path))
        assert (done.returncode, "Could not convert" in done.stderr) == (2, True)
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == ([("result", content)] if content else [])


def test_a_result_takes_the_place_of_a_file_with_its_permissions(columns: str, tmp_path: Path) -> None:
    path, link = tmp_path / "result.csv", tmp_path / "link.csv"
    path.write_text("older")
    path.chmod(0o640)
    link.symlink_to(path)
    assert run("query", "SELECT 1 AS x", "--columns", columns, "--format", "csv", "-o", str(link)).returncode == 0
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("x\n1\n", 0o640, True)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_disk_that_is_full_is_named(format: str, columns: str) -> None:
    done = run("query", "SELECT * FROM messages", "--columns", columns, "--format", format, "-o", "/dev/full")
    assert (done.returncode, done.stderr.count("No space left on device; make room on the disk")) == (2, 1)
    assert "Detail" not in done.stderr


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_folder_that_is_not_there_is_named_with_what_to_do(format: str, columns: str, tmp_path: Path) -> None:
    path = tmp_path / "gone" / "x"
    done = run("query", "SELECT 1", "--columns", columns, "--format", format, "-o", str(path))
    assert f"mcpspy: {path}: No such file or directory; there is no folder {path.parent}. Make it with" in done.stderr


def test_recipes_are_listed_as_json_too() -> None:
    output = json.loads(run("query", "--recipes", "--json").stdout)
    assert [(item["name"], item["needs_date"]) for item in output["recipes"]] == [
        (name, name == "before-after") for name in RECIPES
    ]


def test_the_list_of_recipes_fits_on_a_terminal() -> None:
    assert max(map(len, run("query", "--recipes").stdout.splitlines())) < 80
