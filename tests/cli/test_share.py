"""`mcpspy export share`, as a user calls it: what it writes, what it refuses, and what its --verify says."""

import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.capture.file.reader import Reader
from mcpspy.cli.share_copy import Copier, Original, Pseudonyms
from mcpspy.errors import CaptureError, ShareError
from mcpspy.records import Damage, Frame, Header, Open
from mcpspy.sharing.finder import FinderOptions
from mcpspy.sharing.known import KnownValues
from tests.cli.recording import Recording
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.sharing.hiding import held

CAPTURES = ROOT / "captures"
HANDSHAKE = {"initialize", "server/discover", "notifications/initialized"}
SECRET = "Zq8-fjW2kLp0Xv6TnB3r"


def recorded(folder: Path, *calls: dict[str, Any]) -> Path:
    """Record a handshake and a call with each of these arguments, which is answered with them."""
    recording = Recording("keeper")
    recording.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c", "version": "1"})
    server = {"name": "s", "version": "1"}
    recording.answer(0, result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server})
    recording.line(0, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    for id, arguments in enumerate(calls, 1):
        recording.line(2, f"call {id} with {json.dumps(arguments)}\n".encode())
        recording.ask(id, name="echo", arguments=arguments)
        recording.answer(id, result={"content": [{"type": "text", "text": json.dumps(arguments)}]})
    recording.close()
    path = folder / "a.mcpspy"
    os.rename(recording.path, path)
    return path


def share(*words: str | Path, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("export", "share", *map(str, words), stdin=stdin, **environment)


def test_a_shared_capture_is_private_and_says_that_it_is_shared(tmp_path: Path) -> None:
    out = tmp_path / "out.mcpspy"
    done = share(recorded(tmp_path, {"password": SECRET}), "-o", out)
    assert (done.returncode, done.stdout) == (0, "")
    replaced = "replaced by pseudonyms: 2 passwords or keys, 1 known value"
    assert re.fullmatch(rf"mcpspy: .*out\.mcpspy: 1\d records; {replaced}\n", done.stderr)
    assert out.stat().st_mode & 0o777 == 0o600
    header = next(iter(read(out)))
    assert isinstance(header, Header)
    assert header.redaction == "shared"
    assert held(out.read_bytes(), [SECRET]) == []


def test_two_shares_have_no_pseudonym_in_common_but_with_the_same_key(tmp_path: Path) -> None:
    capture = recorded(tmp_path, {"password": SECRET})
    pseudonyms = []
    for number, options in enumerate(((), (), ("--same-key",), ("--same-key",))):
        out = tmp_path / f"{number}.mcpspy"
        assert share(capture, "-o", out, *options).returncode == 0
        pseudonyms.append(set(re.findall("redacted-[0-9a-f]{12}", out.read_text())))
    assert not pseudonyms[0] & pseudonyms[1]
    assert not pseudonyms[0] & pseudonyms[2]
    assert pseudonyms[2] == pseudonyms[3]


def test_captures_shared_together_have_their_pseudonyms_in_common(tmp_path: Path) -> None:
    path = recorded(tmp_path, {"password": SECRET})
    os.rename(path, path.with_name("one.mcpspy"))
    two = recorded(tmp_path, {"note": f"it is {SECRET}"})
    assert share(path.with_name("one.mcpspy"), two, "-o", tmp_path / "out").returncode == 0
    texts = [(tmp_path / "out" / name).read_text() for name in ("one.mcpspy", "a.mcpspy")]
    first, second = (set(re.findall(r'\\"(?:it is )?(redacted-[0-9a-f]{12})\\"', text)) for text in texts)
    assert first
    assert first == second


def test_options_say_what_else_is_secret(tmp_path: Path) -> None:
    capture = recorded(
        tmp_path, {"a": "first", "b": {"c": "second"}, "d": "x-third-x", "e": "fourth!", "mail": "me@example.com"}
    )
    options = ("--key", "A", "--path", "$.arguments.b", "--value", "x-(.*)-x", "--env", "MY_OWN", "--personal")
    assert share(capture, "-o", tmp_path / "out", *options, MY_OWN="fourth!").returncode == 0
    row = transcribe(read(tmp_path / "out")).exchanges[-1]
    assert re.sub("redacted-[0-9a-f]{12}", "R", json.dumps(row.request.params["arguments"])) == (
        '{"a": "R", "b": {"c": "R"}, "d": "x-R-x", "e": "R", "mail": "R"}'
    )


def test_secret_variables_of_this_process_are_replaced_without_an_option(tmp_path: Path) -> None:
    capture = recorded(tmp_path, {"a": f"with {SECRET}"})
    assert share(capture, "-o", tmp_path / "out", MY_API_KEY=SECRET).returncode == 0
    assert held((tmp_path / "out").read_bytes(), [SECRET]) == []


def test_rows_are_shared_with_the_handshake_and_nothing_of_the_others(tmp_path: Path) -> None:
    capture = recorded(tmp_path, *({"text": f"call-{number}-of-all"} for number in range(6)))
    out = tmp_path / "out.mcpspy"
    assert share(f"{capture}:5..6", "-o", out).returncode == 0
    rows = transcribe(read(out)).exchanges
    assert [row.method for row in rows] == ["initialize", "tools/call", "tools/call"]
    assert re.findall(r"call-\d", "".join(str(row.request.params) for row in rows)) == ["call-2", "call-3"]
    assert set(re.findall(rb"call-\d-of-all", out.read_bytes())) == {b"call-2-of-all", b"call-3-of-all"}
    assert run("verify", str(out)).returncode == 0
    request = {
        "jsonrpc": "2.0",
        "id": "a",
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "call-2-of-all"}},
    }
    assert "call-2-of-all" in run("mock", str(out), stdin=json.dumps(request).encode() + b"\n").stdout


@pytest.mark.parametrize(
    ("name", "rows"), [("streamable", "4..5"), ("sse", "5"), ("everything", "9"), ("oauth", "4"), ("stateless", "3")]
)
def test_a_part_of_any_capture_is_one_that_can_be_shown_and_served(name: str, rows: str, tmp_path: Path) -> None:
    capture, out = CAPTURES / f"{name}.mcpspy", tmp_path / "out.mcpspy"
    assert share(f"{capture}:{rows}", "-o", out).returncode == 0
    assert run("verify", str(out)).returncode == 0
    first, _, last = rows.partition("..")
    chosen = [row for row in transcribe(read(capture)).exchanges if int(first) <= row.row <= int(last or first)]
    shared = transcribe(read(out)).exchanges
    for row in chosen:
        assert [exchange.method for exchange in shared if exchange.method == row.method and exchange.outcome == row.outcome], (
            row.method
        )
    records = list(read(out))
    kept = {record.stream for record in records if isinstance(record, Open)}
    assert {record.stream for record in records if isinstance(record, Frame)} <= kept
    assert len(records) < len(list(read(capture)))


@pytest.mark.grid(6)
@pytest.mark.parametrize("name", sorted(path.stem for path in CAPTURES.glob("*.mcpspy") if not path.stem.endswith("-model")))
def test_rows_left_out_leave_none_of_their_payloads(name: str, tmp_path: Path) -> None:
    capture, out = CAPTURES / f"{name}.mcpspy", tmp_path / "out.mcpspy"
    transcript = transcribe(read(capture))
    middle = transcript.exchanges[len(transcript.exchanges) // 2]
    assert share(f"{capture}:{middle.row}", "-o", out, "--keep", ".*").returncode == 0
    assert run("verify", str(out)).returncode == 0
    data = b"\n".join(record.data for record in read(out) if isinstance(record, Frame))
    chosen = {message.number for message in middle.messages}
    others = [
        message
        for message in transcript.messages
        if message.number not in chosen and message.method not in HANDSHAKE and not message.batch
    ]
    opened = {message.number for row in transcript.exchanges if row.method in HANDSHAKE for message in row.messages}
    assert [other.raw for other in others if other.number not in opened and other.raw.strip() in data] == []
    assert all(message.raw.strip() in data for message in middle.messages)


def test_standard_input_and_output_will_do(tmp_path: Path) -> None:
    data = recorded(tmp_path, {"password": SECRET}).read_bytes()
    done = share("-", "-o", "-", stdin=data)
    assert done.returncode == 0
    assert held(done.stdout.encode(), [SECRET]) == []
    assert done.stdout.startswith('{"mcpspy":1')


def test_what_tools_show_of_a_shared_capture_is_what_they_show_of_it(tmp_path: Path) -> None:
    out = tmp_path / "out.mcpspy"
    assert share(CAPTURES / "streamable.mcpspy", "-o", out).returncode == 0
    assert run("show", str(out)).stdout == run("show", str(CAPTURES / "streamable.mcpspy")).stdout
    assert run("diff", str(CAPTURES / "streamable.mcpspy"), str(out)).returncode == 0


def test_a_damaged_line_leaves_a_gap_and_none_of_its_bytes(tmp_path: Path) -> None:
    capture = recorded(tmp_path, {"password": SECRET})
    capture.write_bytes(capture.read_bytes().replace(b'"crc":"', b'"crc":"0', 3).replace(b'{"n":6', b'{"m":6'))
    out = tmp_path / "out.mcpspy"
    assert share(capture, "-o", out).returncode == 0
    assert run("verify", str(out)).returncode == 1
    assert held(out.read_bytes(), [SECRET]) == []


def test_a_capture_that_is_still_recorded_is_shared_as_far_as_it_goes(tmp_path: Path) -> None:
    recording = Recording("keeper").ask(1, name="echo", arguments={"password": SECRET})
    assert share(recording.path, "-o", tmp_path / "out").returncode == 0
    recording.close()
    assert run("verify", str(tmp_path / "out")).returncode == 1
    assert held((tmp_path / "out").read_bytes(), [SECRET]) == []
    assert len(list(read(tmp_path / "out"))) == 6


GOLDEN = [path.read_bytes() for path in sorted((ROOT / "tests" / "golden").glob("capture-1-*.mcpspy"))]


@given(
    capture=st.sampled_from(GOLDEN),
    start=st.floats(0, 1),
    length=st.integers(0, 300),
    put=st.binary(max_size=20) | st.text('{}[]":,\\n', max_size=9).map(str.encode),
    cut=st.floats(0, 1),
)
def test_whatever_a_file_holds_it_is_shared_or_refused_and_what_is_shared_is_sound(
    capture: bytes, start: float, length: int, put: bytes, cut: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = int(start * len(capture))
    data = (capture[:at] + put + capture[at + length :])[: int(cut * 2 * len(capture))]
    path = tmp_path_factory.getbasetemp() / "fuzzed.mcpspy"
    path.write_bytes(data)
    out = io.BytesIO()
    pseudonyms = Pseudonyms(b"key", same_key=False)
    copier = Copier(FinderOptions(pseudonym=pseudonyms), KnownValues(pseudonyms), pseudonyms)
    try:
        with path.open("rb") as file:
            original = Original(file, "fuzzed")
            copier.learn(original)
            copier.learned()
            copier.copy(original, out, "out")
    except (CaptureError, ShareError):
        return
    reader = Reader()
    assert [record for record in [*reader.feed(out.getvalue()), *reader.close()] if isinstance(record, Damage)] == []


# Refusals


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("a.mcpspy",), 2, "name the new capture with -o OUT, or search for secrets with --verify."),
        (("a.mcpspy", "-o", "a.mcpspy"), 2, "a.mcpspy exists; name a file that does not"),
        (("a.mcpspy:99", "-o", "b"), 2, "there is no row 99; the last one is 3"),
        (("-:1", "-o", "b"), 2, "rows of standard input cannot be copied, as it can be read only once. Write it to a file first"),
        (("a.mcpspy", "-o", "b", "--path", "arguments"), 2, "a bare name is ambiguous"),
        (("a.mcpspy", "-o", "b", "--value", "("), 2, "'(' is not a regular expression"),
        (("a.mcpspy", "-o", "b", "--env", "NO_SUCH_VARIABLE"), 2, "there is no environment variable NO_SUCH_VARIABLE"),
        (("a.mcpspy", "-o", "-", "--verify"), 2, "--verify needs a file; name one with -o."),
        (("a.mcpspy", "-o", "b", "--json"), 2, "--json is for --verify; add that."),
        (("a.mcpspy:2", "a.mcpspy", "-o", "b"), 2, "name them once, after the last capture"),
        (("/dev/null", "-o", "b"), 2, "has no readable header; mcpspy verify --repair writes one"),
        ((str(ROOT / "README.md"), "-o", "b"), 3, "this is not an mcpspy capture"),
        (("a.mcpspy", "-o", "no/such/folder"), 2, "No such file or directory"),
    ],
)  # fmt: skip
def test_wrong_options_are_reported_and_leave_no_file(
    words: tuple[str, ...], status: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path, {})
    monkeypatch.chdir(tmp_path)
    done = share(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr.replace("\n  ", " ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "b").exists()


# What slipped through


def test_verify_says_what_leaked_and_which_option_removes_it(tmp_path: Path) -> None:
    capture, out = recorded(tmp_path, {"note": SECRET}), tmp_path / "out.mcpspy"
    done = share(capture, "-o", out, "--verify")
    assert done.returncode == 1
    what, where, *options = (line.strip() for line in done.stdout.splitlines()[1:])
    assert what == "entropy  “Zq8…”, 20 bytes"
    assert set(where.split(", ")) == {
        "record 8 text",
        "record 9 (row 3) $.arguments.note",
        "record 10 (row 3) $.result.content[0].text",
    }
    assert set(options) == {"--path '$.arguments.note'", r"--value 'Zq8\S{17}'", "--path '$.result.content[0].text'"}
    assert SECRET[3:] not in done.stdout
    again = share(capture, "-o", tmp_path / "again", "--verify", "--path", "$.arguments.note")
    assert (again.returncode, again.stdout) == (0, f"✓ {tmp_path}/again: no leaks found\n")


def test_a_known_kind_of_secret_that_is_left_is_exit_status_1_without_verify(tmp_path: Path) -> None:
    capture, out = recorded(tmp_path, {"password": 12345678}), tmp_path / "out.mcpspy"
    done = share(capture, "-o", out)
    assert (done.returncode, done.stdout) == (1, "")
    report, left, *rest = done.stderr.splitlines()
    assert report.startswith(f"mcpspy: {out}: ")
    assert left == f"✗ {out}: 3 possible leaks, 3 of a known kind of secret"
    assert [line.strip() for line in rest] == [
        "number  8 bytes",
        "record 8 text, record 9 $.arguments.password, record 10 $.result.content[0].text",
        "--value '\\S{8}'",
        "--path '$.arguments.password'",
        "--path '$.result.content[0].text'",
    ]
    assert share(capture, "-o", tmp_path / "again", "--key", "password").returncode == 0


def test_random_words_that_are_left_are_listed_and_fail_only_with_verify(tmp_path: Path) -> None:
    values = [f"{letter}{SECRET}" for letter in "ABCDEFGHIJKL"]
    capture = recorded(tmp_path, *({"note": value} for value in values))
    done = share(capture, "-o", tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"✗ {tmp_path}/out: 36 possible leaks\n  entropy  “AZq…”, 21 bytes\n" in done.stderr
    assert done.stderr.endswith("\n  … 6 more\n")
    assert [value for value in values if value in done.stderr] == []
    assert share(capture, "-o", tmp_path / "again", "--verify").returncode == 1


def test_a_copy_on_standard_output_is_searched_too(tmp_path: Path) -> None:
    done = share(recorded(tmp_path, {"password": 12345678}), "-o", "-")
    assert done.returncode == 1
    assert "✗ standard output: 3 possible leaks, 3 of a known kind of secret" in done.stderr
    assert done.stdout.startswith('{"mcpspy":1')
    assert run("verify", "-", stdin=done.stdout.encode()).returncode == 0


def test_verify_looks_at_any_capture_and_for_what_this_process_knows(tmp_path: Path) -> None:
    capture = recorded(tmp_path, {"note": "the name of it is left-handed"}, {"b": "/home/alice/x"})
    done = share("--verify", capture, "--json", MY_OWN="left-handed", HOME="/home/alice")
    assert done.returncode == 1
    (verified,) = json.loads(done.stdout)["captures"]
    assert {(leak["kind"], leak["name"], leak["option"]) for leak in verified["leaks"]} == {
        ("environment", "MY_OWN", "--env MY_OWN"),
        ("personal", "home folder", "--personal"),
    }
    assert {leak["row"] for leak in verified["leaks"]} == {None, 3, 4}


def test_values_to_keep_are_not_reported(tmp_path: Path) -> None:
    assert share("--verify", recorded(tmp_path, {"note": SECRET}), "--keep", "Zq8.*").returncode == 0


@pytest.mark.grid(7)
@pytest.mark.parametrize("name", sorted(path.stem for path in CAPTURES.glob("*.mcpspy")))
def test_our_own_captures_hold_nothing_when_they_are_shared(name: str, tmp_path: Path) -> None:
    done = share(CAPTURES / f"{name}.mcpspy", "-o", tmp_path / "out", "--verify")
    assert (done.returncode, done.stdout) == (0, f"✓ {tmp_path}/out: no leaks found\n")


def test_help_has_examples() -> None:
    assert "mcpspy export share @:5..9 -o bug.mcpspy" in share("--help").stdout
    assert "share" in run("export", "--help").stdout
