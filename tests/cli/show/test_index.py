"""`mcpspy show` of a large capture in the store, for the first time and again; and the store with an index in it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.store.pruning import make_room
from mcpspy.cli import transcripts
from mcpspy.platform.files import lock
from mcpspy.records import Frame
from tests.capture.making import closes, header, opens
from tests.cli.terminal import on_terminal, run
from tests.index.showing import written
from tests.transcript.llm.traffic import ModelTraffic, completion
from tests.transcript.traffic import Traffic, modern

LARGE_BYTES = 150_000
TEXT_BYTES, FIRST_TEXT_BYTES = 21_000, 2_100_000
CALLS = 10
NAME = "large.mcpspy"


@pytest.fixture(autouse=True)
def large_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures are large from 150 KB on, so that these tests need not read 20 MB again and again."""
    monkeypatch.setattr(transcripts, "LARGE_BYTES", LARGE_BYTES)
    monkeypatch.setenv("SPY_LARGE_BYTES", str(LARGE_BYTES))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a capture of 10 calls with large results, of which the first has parts."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    frames = []
    for id in range(CALLS):
        asked = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": f"read_{id}"}}
        answer = {
            "jsonrpc": "2.0",
            "id": id,
            "result": {"content": [{"type": "text", "text": "x" * (TEXT_BYTES if id else FIRST_TEXT_BYTES)}]},
        }
        at_ns = id * 2_000_000
        frames.append(Frame(0, at_ns, at_ns, json.dumps(asked).encode() + b"\n"))
        data = json.dumps(answer).encode() + b"\n"
        pieces = [data[begin : begin + (1 << 20)] for begin in range(0, len(data), 1 << 20)]
        frames += [Frame(1, at_ns, at_ns, piece, piece is not pieces[-1]) for piece in pieces]
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    numbered = enumerate([*opens(), *frames, *closes(10**9)], 1)
    lines = [header_line(header()), *(record_line(number, record) for number, record in numbered)]
    (folder / NAME).write_bytes(b"".join(lines))
    return folder


@pytest.fixture(params=["mcp", "model"])
def http_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a capture of an HTTP server, or of a model API, with large answers."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    text = "x" * TEXT_BYTES
    if request.param == "mcp":
        traffic = Traffic()
        for id in range(CALLS):
            call = traffic.post(modern(id, "tools/call", name="read", arguments={"page": id})).stream()
            call.event({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}).close()
    else:
        traffic = ModelTraffic()
        for id in range(CALLS):
            traffic.ask(f"user: {id} {text}").answer(200, completion("ok"))
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / NAME).write_bytes(written(traffic.ends().records))
    return folder


def index_of(store: Path) -> Path:
    return store / f"{NAME}.idx"


@pytest.mark.grid(4)
@pytest.mark.parametrize(
    "words",
    [
        (":3",),
        (":2..4",),
        ("",),
        ("", "-F", "tool:read_7"),
        (":3", "--raw"),
        ("", "--json", "-F", "tool:read_7"),
        ("", "--stats"),
        ("", "--sort", "size"),
        ("", "--since", "2000-01-01"),
        ("", "--since", "2000-01-01", "--stats"),
        ("", "-F", '"read_7"'),
    ],
    ids=" ".join,
)
def test_a_large_capture_is_shown_the_same_with_its_index(words: tuple[str, ...], store: Path) -> None:
    shown = []
    for has_index in (False, True):
        assert index_of(store).exists() is has_index
        done = run("show", f"large{words[0]}", *words[1:])
        assert done.returncode == 0
        shown.append(done.stdout)
    assert shown[0] == shown[1]
    assert index_of(store).stat().st_mode & 0o777 == 0o600


def test_a_large_capture_of_http_is_shown_the_same_with_its_index(http_store: Path) -> None:
    for words in (
        (":3",),
        (":3", "--http"),
        ("", "-F", "http:2xx row:2"),
        ("", "--http", "-F", "row:2"),
        ("",),
        (":3", "--json"),
    ):
        shown = []
        for has_index in (False, True):
            assert index_of(http_store).exists() is has_index
            done = run("show", f"large{words[0]}", *words[1:])
            assert done.returncode == 0
            shown.append(done.stdout)
        assert shown[0] == shown[1]
        assert index_of(http_store).stat().st_size < 50_000
        index_of(http_store).unlink()


def test_a_terminal_shows_the_summary_first_where_there_is_an_index(store: Path) -> None:
    with on_terminal("show", "large", columns=100) as shown:
        assert shown.rest() == 0
    assert index_of(store).exists()
    with on_terminal("show", "large", columns=100) as shown:
        assert shown.rest() == 0
        assert shown.words.index("10 calls in") < shown.words.index("read_0")


def test_a_small_capture_and_one_elsewhere_get_no_index(store: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.mcpspy"
    os.link(store / NAME, elsewhere)
    assert run("show", f"{elsewhere}:3").returncode == 0
    (store / "small.mcpspy").write_bytes(b"".join([header_line(header()), record_line(1, opens()[0])]))
    run("show", "small")
    assert not list(tmp_path.rglob("*.idx"))


def test_pruning_deletes_an_index_with_its_capture_or_after_it(store: Path) -> None:
    run("show", "large:1")
    assert index_of(store).exists()
    left = store / "20261123T080000Z-gone-1.mcpspy.idx"
    left.write_bytes(b"")
    assert run("prune", "--keep", "0", "--yes").returncode == 0
    assert list(store.iterdir()) == []


def test_a_folder_with_the_name_of_an_index_keeps_nothing_from_being_pruned(store: Path) -> None:
    index_of(store).mkdir()
    done = run("prune", "--keep", "0", "--yes")
    assert (done.returncode, os.listdir(store)) == (0, [index_of(store).name])
    make_room(0, wall_ns=0)


def test_the_list_counts_an_index_and_does_not_show_it(store: Path) -> None:
    before = run("list").stderr
    run("show", "large:1")
    with index_of(store).open("r+b") as file:
        file.truncate(5_000_000)
    after = run("list")
    assert ".idx" not in after.stdout
    assert (before.split(";")[0], after.stderr.split(";")[0]) == ("1 capture, 2.3 MB", "1 capture, 7.3 MB")


def test_no_index_is_kept_above_the_quota(store: Path) -> None:
    assert run("prune", "--quota", "10mb").returncode == 0
    with (store / "small.mcpspy").open("wb") as file:
        file.truncate(10_000_000 - (store / NAME).stat().st_size)
    run("show", "large:1")
    assert not index_of(store).exists()


def test_a_shared_copy_of_an_indexed_capture_has_no_index(store: Path, tmp_path: Path) -> None:
    run("show", "large:1")
    out = tmp_path / "shared"
    out.mkdir()
    assert run("export", "share", "large", "-o", str(out / "copy.mcpspy")).returncode == 0
    assert [file.suffix for file in out.iterdir()] == [".mcpspy"]


def grow(store: Path, lines: list[bytes]) -> int:
    """Record more, as a tap does that goes on. Return the descriptor that holds its lock."""
    fd = os.open(store / NAME, os.O_WRONLY | os.O_APPEND)
    lock(fd)
    os.write(fd, b"".join(lines))
    return fd


@pytest.fixture
def parts(store: Path) -> Iterator[tuple[list[bytes], int]]:
    """The last lines of the capture, without its end, which a tap that records has not written yet; and the tap's descriptor."""
    lines = (store / NAME).read_bytes().splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines) if b'"kind":"close"' in line)
    (store / NAME).write_bytes(b"".join(lines[: end - 7]))
    fd = grow(store, [])
    yield lines[end - 7 : end], fd
    os.close(fd)


def test_a_capture_that_is_recorded_is_indexed_and_shown_with_what_came_since(
    store: Path, parts: tuple[list[bytes], int]
) -> None:
    lines, fd = parts
    first = run("show")
    assert "7 calls" in first.stdout
    assert "1 pending" in first.stdout
    before = index_of(store).stat()
    os.write(fd, b"".join(lines))
    shown = run("show")
    assert "10 calls" in shown.stdout
    assert "recording" in shown.stdout
    assert "all rules left to check" in shown.stdout
    assert "pending" not in shown.stdout
    assert "10 of 10 rows match" in run("show", "-F", "status:ok").stdout
    assert "row 10 · tools/call read_9 · ok" in run("show", "@:10").stdout
    assert index_of(store).stat().st_mtime_ns == before.st_mtime_ns
    (left,) = json.loads(run("show", "@", "-F", "row:7..8", "--json").stdout)["summary"]["unchecked"]
    assert left["rules"] == []
    assert not left["ran"]


def test_an_answer_that_may_be_a_second_one_has_the_capture_read_whole(store: Path, parts: tuple[list[bytes], int]) -> None:
    lines, fd = parts
    run("show")
    before = index_of(store).stat()
    number = json.loads(lines[0])["n"]
    again = Frame(1, 10**9, 10**9, b'{"jsonrpc":"2.0","id":"x","result":{}}\n')
    os.write(fd, record_line(number, again))
    assert "left to check" not in run("show").stdout
    assert index_of(store).stat().st_mtime_ns == before.st_mtime_ns


def test_findings_and_statistics_of_a_capture_that_grew_are_those_of_all_of_it(
    store: Path, parts: tuple[list[bytes], int]
) -> None:
    lines, fd = parts
    run("show")
    os.write(fd, b"".join(lines))
    for arguments in (("--stats",), ("--json",), ("-F", "rule:x"), ("--since", "100y"), ("--sort", "took")):
        assert "left to check" not in run("show", "@", *arguments).stdout
