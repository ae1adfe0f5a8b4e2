"""A transcript of an index and of what came since shows what a reader of the whole capture shows, but for findings."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcpspy.capture.file.reader import Reader
from mcpspy.capture.store.folder import INDEX_EXTENSION
from mcpspy.index.build import write_index
from mcpspy.index.file import identity
from mcpspy.index.grown import Now, grown_transcript
from mcpspy.records import Frame, Open, Record
from mcpspy.transcript.findings.finders import UNCHECKED
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.model import Row, Transcript
from mcpspy.transcript.transcribe import Transcriber
from mcpspy.views.timeline.timeline import row_widths
from tests.conftest import collect_where_many_are_open
from tests.index.showing import VERSION, chosen_rows, make_blocks_small, shown, whole
from tests.index.test_index import RECORDED
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.test_properties import CAPTURES, numbered
from tests.transcript.test_usual import DIALOGUES, capture


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_blocks_small(patch)
        yield


def widths(rows: Sequence[Row]) -> tuple[int, int, int, int, int]:
    *known, plain = row_widths(rows, 1 << 20, with_params=False)
    return known[0], known[1], known[2], plain, row_widths(rows, 1 << 20, with_params=True)[-1]


def so_far(path: Path, *, ends: bool) -> Transcript:
    """Read a capture that is recorded, or that `ends` where it is."""
    transcriber, reader = Transcriber(keep_frames=True), Reader()
    transcriber.feed_lines(reader.feed_lines(path.read_bytes()))
    if ends:
        transcriber.feed_lines(list(reader.close()))
        transcriber.close()
    else:
        transcriber.transcript.findings = findings(transcriber.transcript)
    return transcriber.transcript


def index(path: Path, *, ends: bool) -> bool:
    before = identity(str(path))
    transcript = so_far(path, ends=ends)
    return (
        before is not None
        and bool(transcript.captures)
        and write_index(str(path), transcript, before, VERSION, widths(transcript.rows))
    )


def from_grown(path: Path, *, ends: bool) -> Transcript | None:
    now = Now(None if ends else lambda info: info.last_ns + 1_000_000, widths)
    return grown_transcript(str(path), VERSION, lambda: whole(path), now, keeps_frames=True)


def assert_shows_the_same(path: Path, transcript: Transcript, *, ends: bool) -> None:
    def other() -> Transcript:
        known = so_far(path, ends=ends)
        known.findings = []
        known.__dict__[UNCHECKED] = True
        known.captures[0].now_ns = None if ends else known.captures[0].last_ns + 1_000_000
        return known

    for of_index, of_capture in zip(shown(transcript, recounts=False), shown(other(), recounts=False), strict=True):
        assert of_index == of_capture
    for of_index, of_capture in zip(chosen_rows(transcript, other()), chosen_rows(other(), other()), strict=True):
        assert of_index == of_capture
    collect_where_many_are_open()


def assert_grows(data: bytes, at: int, how: str) -> bool:
    """Index a capture at a cut, let it grow, and compare. Return whether the index was used."""
    ended, ends = "ended" in how, "ends" in how
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        lines = data.splitlines(keepends=True)
        cut = 1 + at % len(lines)
        path.write_bytes(b"".join(lines[:cut]))
        if not index(path, ends=ended):
            return False
        with path.open("ab") as file:
            file.write(b"".join(lines[cut:]))
        transcript = from_grown(path, ends=ends)
        if transcript is not None:
            assert_shows_the_same(path, transcript, ends=ends)
        return transcript is not None


def without_quotations(stream: int, data: bytes) -> bytes:
    """Change lines of stderr that quote a message, which is known only if it is among the newest."""
    return data.replace(b"{", b"(") if stream == STDERR else data


STDERR = 2
CUTS = st.integers(0, 100)
HOW = st.sampled_from(["", "ended", "ends", "ended ends"])
"""`ended` if the capture was over when its index was written, `ends` if it is now."""


@given(DIALOGUES, CUTS, HOW)
def test_dialogues_that_grew_are_shown_the_same(lines: list[tuple[int, bytes, bool]], cut: int, how: str) -> None:
    frames: list[Record] = [Frame(stream, 0, 0, without_quotations(stream, data), part) for stream, data, part in lines]
    is_used = assert_grows(capture(numbered([*Dialogue().records, *frames])), cut, how)
    event("taken up" if is_used else "read whole")


@given(CAPTURES, CUTS, HOW)
def test_captures_of_any_records_that_grew_are_shown_the_same(records: list[Record], cut: int, how: str) -> None:
    for record in records:
        if isinstance(record, Frame):
            record.data = without_quotations(record.stream, record.data)
    event("taken up" if assert_grows(capture(records), cut, how) else "read whole")


ACTIONS = st.sampled_from(["call", "answer", "last", "progress", "cancel", "ask", "reply", "note", "list", "poll", "log"])


def conversation(actions: list[tuple[str, int]]) -> Dialogue:
    """Play what clients and servers do: calls that are answered in any order, and whatever comes between."""
    scene, calls, asked = Dialogue(), [], []
    scene.client(request(0, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "me", "version": "1"}}))
    scene.server(result(0, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "it", "version": "1"}}))
    for id, (action, pick) in enumerate(actions, 1):
        match action:
            case "call":
                scene.client(tool_call(id, f"tool{pick % 3}", token=id if pick % 2 else None))
                calls.append(id)
            case "answer" | "last" if calls:
                call = calls.pop(0 if action == "answer" else -1)
                tasks = {"task": {"taskId": f"t{call}", "status": "working"}}
                scene.server(error(call) if pick == 1 else result(call, tasks if pick == 2 else {"isError": pick == 3}))
            case "progress" if calls:
                scene.server(progress(calls[pick % len(calls)], pick))
            case "cancel" if calls:
                scene.client(cancelled(calls[pick % len(calls)]))
            case "ask":
                scene.server(request(id, "sampling/createMessage", {"messages": []}))
                asked.append(id)
            case "reply" if asked:
                scene.client(result(asked.pop()))
            case "note":
                scene.server(notification("notifications/message", {"level": "info", "data": pick}))
            case "list":
                scene.client(request(id)).server(result(id, {"tools": []}))
            case "poll":
                scene.client(request(id, "tasks/get", {"taskId": f"t{pick}"}))
                calls.append(id)
            case "log":
                scene.stderr(b"listening\n")
            case _:
                scene.client(request(id, "ping")).server(result(id))
    return scene


@given(st.lists(st.tuples(ACTIONS, st.integers(0, 5)), max_size=60), CUTS, st.sampled_from(["", "ends"]))
def test_conversations_that_go_on_are_taken_up(actions: list[tuple[str, int]], cut: int, how: str) -> None:
    is_used = assert_grows(capture(numbered(conversation(actions).records)), cut, how)
    event("taken up" if is_used else "read whole")


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_recorded_sessions_that_go_on_are_shown_the_same(path: Path, part: float) -> None:
    data = path.read_bytes()
    is_used = assert_grows(data, int(data.count(b"\n") * part), "ends")
    assert is_used or b'"transport":"stdio"' not in data.partition(b"\n")[0]


@pytest.mark.parametrize("token", [None, 7])
@pytest.mark.parametrize("is_open", [False, True])
def test_what_comes_late_belongs_to_the_newest_request_with_its_id_or_token(*, is_open: bool, token: int | None) -> None:
    scene = Dialogue()
    if is_open:
        scene.client(tool_call(0, token=token)).client(cancelled(0))
    else:
        scene.client(request(0, "initialize", {"_meta": {"progressToken": token}})).server(result(0))
    scene.client(tool_call(0, token=token)).server(result(0))
    for id in range(1, 9):
        scene.client(request(id)).server(result(id))
    lines = len(scene.records)
    scene.server(result(0) if token is None else progress(token))
    assert assert_grows(capture(numbered(scene.records)), lines - 1, "")


def a_growing_capture(folder: Path) -> tuple[Path, bytes]:
    """Index the first half of a capture; return its path, and the rest of its bytes."""
    data = capture(numbered(conversation([("call", 1), ("list", 0), ("log", 0), ("answer", 0)] * 30).records))
    half = data.index(b"\n", len(data) // 2) + 1
    path = folder / "x.mcpspy"
    path.write_bytes(data[:half])
    assert index(path, ends=False)
    return path, data[half:]


def test_an_index_of_another_beginning_is_not_taken_up(tmp_path: Path) -> None:
    path, rest = a_growing_capture(tmp_path)
    known = path.read_bytes()
    assert len(known) > 8192
    for changed in (known.replace(b"tool1", b"tool2", 1), known[:-40] + known[-40:].replace(b"n", b"m"), known[:-1]):
        path.write_bytes(changed + rest)
        assert (from_grown(path, ends=False) is None) is (changed != known)
    path.write_bytes(known + rest)
    assert from_grown(path, ends=False) is not None
    path.rename(tmp_path / "other")
    path.write_bytes(known + rest)
    assert from_grown(path, ends=False) is None


@settings(max_examples=slow_examples(current_tier()))
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_index_of_a_capture_that_grew_changes_nothing(flips: list[tuple[int, int]]) -> None:
    with TemporaryDirectory() as folder:
        path, rest = a_growing_capture(Path(folder))
        with path.open("ab") as file:
            file.write(rest)
        beside = Path(f"{path}{INDEX_EXTENSION}")
        data = bytearray(beside.read_bytes())
        for place, byte in flips:
            data[place % len(data)] = byte
        beside.write_bytes(data)
        transcript = from_grown(path, ends=True)
        if transcript is not None:
            assert_shows_the_same(path, transcript, ends=True)


def test_a_stream_that_was_opened_again_in_another_way_has_no_seeds() -> None:
    again = Open(at_ns=5000, stream=0, sender="client", name="request", framing="body", connection=1)
    records: list[Record] = [*Dialogue().records, again, Frame(0, 6000, 6000, b"")]
    assert not assert_grows(capture(numbered(records)), len(records) - 2, "")
