"""A framing of stdio that only a test knows is recorded, read and played, because everything asks the framing and not the bytes."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Frame, Open
from mcpspy.transcript.transcribe import transcribe
from mcpspy.wire.framing import FRAMINGS, STDIO_FRAMINGS, is_unended
from tests.deadlines import DEADLINE_S
from tests.findings.account import records
from tests.live.stdio.prefixed import Prefixed

WITH_IT = [sys.executable, "-m", "tests.live.stdio.prefixed"]

REQUEST = b'{"jsonrpc":"2.0","id":%d,\n "method":"tools/call","params":{"name":"add"}}'
ANSWER = b'{"jsonrpc":"2.0","id":%d,\n "result":{"content":[],"isError":false}}'

NOISE = b"# called\n"

SERVER = f"""
import sys
while size := sys.stdin.buffer.read(4):
    id = sys.stdin.buffer.read(int(size, 16)).partition(b'"id":')[2].partition(b",")[0]
    sys.stdout.buffer.write({NOISE!r})
    answer = {ANSWER!r} % int(id)
    sys.stdout.buffer.write(b"%04x%b" % (len(answer), answer))
    sys.stdout.buffer.flush()
print("done", file=sys.stderr)
"""


def answers(*words: str | Path, ids: tuple[int, ...] = (1, 2)) -> bytes:
    """Return what the process answers to requests with these ids, in the same framing."""
    sent = b"".join(Prefixed.frame_of(REQUEST % id) for id in ids)
    done = subprocess.run([*WITH_IT, *map(str, words)], input=sent, capture_output=True, timeout=DEADLINE_S, check=True)
    return done.stdout


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "prefixed.mcpspy"
    answers("run", "--framing", Prefixed.name, "--capture", path, "--", sys.executable, "-c", SERVER)
    return path


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STDIO_FRAMINGS, Prefixed.name, Prefixed)


def test_a_capture_names_the_framing_of_messages_and_not_of_the_log(capture: Path) -> None:
    assert [record.framing for record in read(capture) if isinstance(record, Open)] == ["prefixed", "prefixed", "lines"]


def test_frames_are_cut_where_the_framing_says(capture: Path) -> None:
    requests = [record.data for record in read(capture) if isinstance(record, Frame) and record.stream == 0]
    assert requests == [Prefixed.frame_of(REQUEST % 1), Prefixed.frame_of(REQUEST % 2)]


@pytest.mark.usefixtures("known")
def test_a_reader_finds_the_messages_in_the_frames(capture: Path) -> None:
    calls = transcribe(read(capture)).exchanges
    assert [(call.request.raw, call.request.flaws, call.outcome) for call in calls] == [
        (REQUEST % 1, (), "ok"),
        (REQUEST % 2, (), "ok"),
    ]


def test_a_mock_speaks_the_framing_of_its_capture(capture: Path, tmp_path: Path) -> None:
    played = answers("mock", capture, "--capture", tmp_path / "mock.mcpspy", ids=(7, 8))
    assert played.replace(NOISE, b"") == Prefixed.frame_of(ANSWER % 7) + Prefixed.frame_of(ANSWER % 8)
    assert played.count(NOISE) == 2


@pytest.mark.parametrize("name", STDIO_FRAMINGS)
@pytest.mark.parametrize("payload", [ANSWER % 1, REQUEST % 1, b"[]"])
def test_a_payload_comes_out_of_the_frame_that_carries_it(name: str, payload: bytes) -> None:
    framing = STDIO_FRAMINGS[name]
    frame = framing.frame_of(payload)
    assert (framing().feed(frame), framing.flaw_of(frame)) == ([frame], "")
    assert framing.payload_of(frame).split() == payload.split()


def test_every_framing_is_found_by_its_name() -> None:
    assert {"lines", "sse", "body"} <= set(FRAMINGS)
    assert {name: framing.name for name, framing in FRAMINGS.items()} == {name: name for name in FRAMINGS}


@pytest.mark.usefixtures("known")
def test_a_message_within_which_its_stream_ends_is_known_by_the_flaw_of_its_framing() -> None:
    account = '· framing prefixed\n→ tools/call 1 {"name":"add"}\n← =0080{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    (call,) = transcribe(records(account)).exchanges
    assert call.response is not None
    assert call.response.flaws == (Prefixed.unended,)
    assert is_unended(call.response.flaws)


@pytest.mark.usefixtures("known")
def test_advice_about_lines_is_given_for_lines_alone() -> None:
    findings = transcribe(records("· framing prefixed\n→ ping 1\n← =0012Content-Length: 17\n← result 1")).findings
    assert [finding.rule for finding in findings if "one line" in finding.advice] == []


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("framing", "words"), [("lines", "on one line."), ("prefixed", "in one frame.")])
def test_the_advice_for_a_broken_message_fits_the_framing_of_the_capture(framing: str, words: str) -> None:
    broken = '← {"jsonrpc":"2.0","id":1,"result":{"tools":[}}'
    found = transcribe(records(f"· framing {framing}\n{broken}")).findings
    assert [finding.advice for finding in found if finding.rule == "malformed-message"] == [
        f"Send each message as one JSON object {words}"
    ]
