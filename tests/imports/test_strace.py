"""The output of strace is imported: the same rows as in a tap's capture, and the hang that nobody wrapped can be looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import open as open_captures
from mcpspy import transcribe
from mcpspy.imports.formats import recognized
from mcpspy.imports.source import Source
from mcpspy.imports.strace import UNDER_WAY, StraceImporter
from mcpspy.records import Exit, Frame, Gap, Header, Record
from tests.cli.terminal import on_pipe, run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, eventually
from tests.imports.logging_clients import rows_in_any_order

SERVER = [sys.executable, "-P", "-m", "mcpspy.demo.server"]
STRACE = ["-f", "-ttt", "-T", "-y", "-e", "trace=read,write", "-s", "1000000"]
LINES = (
    b'71 1745130721.000001 read(0<pipe:[8]>, "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"tools/list\\"}\\n", 999) = 47\n'
    b"72 1745130721.100000 write(1<pipe:[9]>,  <unfinished ...>\n"
    b'71 1745130721.150000 write(2<pipe:[7]>, "\\346\\235\\255\\n", 4) = 4\n'
    b'72 1745130721.200000 <... write resumed>"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"result\\":{}}\\n", 37) = 37\n'
    b'71 1745130721.300000 read(0<pipe:[8]>, "", 999) = 0\n'
    b"71 1745130721.400000 +++ killed by SIGSEGV +++\n"
)


def imported(data: bytes, sha256: str = "ab") -> list[Record]:
    """Return the records of strace's output; without a digest, of a file that still grows."""
    importer = StraceImporter(Source(name="hang.strace", format="strace", sha256=sha256))
    return numbered([record for _, record in [*importer.feed(data), *importer.close()]])


def numbered(records: list[Record]) -> list[Record]:
    for number, record in enumerate(records[1:]):
        record.number = number
    return records


def frames(records: list[Record]) -> list[tuple[int, bytes]]:
    return [(record.stream, record.data) for record in records if isinstance(record, Frame)]


def test_reads_and_writes_of_the_standard_streams_are_messages() -> None:
    assert frames(imported(LINES)) == [
        (0, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'),
        (1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
        (2, "杭\n".encode()),
    ]


def test_the_end_of_the_process_is_told() -> None:
    (exit,) = [record for record in imported(LINES) if isinstance(record, Exit)]
    assert (exit.pid, exit.signal) == (71, "SIGSEGV")


def test_other_pipes_are_left_out() -> None:
    other = LINES + LINES.replace(b"[9]", b"[19]").replace(b"71 ", b"81 ").replace(b"72 ", b"82 ")
    assert [frame for frame in frames(imported(other)) if frame[0] == 1] == [frames(imported(LINES))[1]]


def test_output_without_times_makes_a_capture_without_times() -> None:
    records = imported(b'write(1, "{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"notifications/x\\"}\\n", 45) = 45\n')
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped["imported"]["facts"]["times"] == "missing"


@pytest.mark.parametrize("escape", [b"\\8", b"\\9", b"\\x8", b"\\777", b"\\q"])
def test_an_escape_that_strace_does_not_write_is_read(escape: bytes) -> None:
    assert frames(imported(LINES.replace(b"jsonrpc", escape)))


def test_a_message_that_strace_cut_is_a_gap() -> None:
    records = imported(b'read(0, "{\\"jsonrpc\\":\\"2."..., 999) = 46\n')
    (gap,) = [record for record in records if isinstance(record, Gap)]
    assert gap.why == "strace kept only the beginning of what was read or written; call it with -s 1000000"


def call(words: str, value: object, end: str = "") -> bytes:
    """Return the line of a call that reads or writes a message."""
    data = json.dumps({"jsonrpc": "2.0"} | value) + "\n" if isinstance(value, dict) else str(value)
    return f"{words}, {json.dumps(data)}, {len(data)}{end or f') = {len(data)}'}\n".encode()


ASKED = {"id": 1, "method": "tools/call", "params": {"name": "a"}}
ANSWERED = {"id": 1, "result": {}}
NOISE = '{"level":"info"}\n'


def test_messages_on_other_descriptors_are_found_by_who_sends_them() -> None:
    lines = [
        call("7 write(9<pipe:[9]>", NOISE),
        call("7 read(6<pipe:[6]>", ASKED),
        call("7 write(8<pipe:[8]>", ASKED),
        call("9 write(5</tmp/log>", ANSWERED),
        call("8 write(7<pipe:[7]>", ANSWERED),
        call("8 write(1<pipe:[2]>", "a line\n"),
        call("8 write(2<pipe:[2]>", "another\n"),
        call("8 write(1<pipe:[2]>", "a third\n"),
    ]
    streams = [stream for stream, _ in frames(imported(b"".join(lines)))]
    assert streams == [0, 1, 2, 2]


def test_a_pipe_between_traced_processes_is_no_standard_stream() -> None:
    hello = {"id": 0, "method": "initialize"}
    lines = [
        call("7 write(9<pipe:[9]>", hello, " <unfinished ...>"),
        call("8 read(0<pipe:[9]>", hello),
        call("7 read(0<pipe:[6]>", ASKED),
        call("8 write(1<pipe:[8]>", {"id": 0, "result": {}}),
        call("7 read(8<pipe:[8]>", {"id": 0, "result": {}}),
        call("7 write(1<pipe:[7]>", ANSWERED),
    ]
    assert [data for _, data in frames(imported(b"".join(lines)))] == [
        json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n" for message in (ASKED, ANSWERED)
    ]


@pytest.mark.parametrize(
    ("stdin", "stdout"), [("0", "1"), ("0<pipe:[6]>", "1"), ("6", "7"), ("6<pipe:[6]>", "7<pipe:[7]>")], ids=str
)
@pytest.mark.parametrize("sha256", ["", "ab"], ids=["growing", "whole"])
def test_answers_are_found_though_strace_came_while_the_first_request_was_read(sha256: str, stdin: str, stdout: str) -> None:
    ready, ask = {"method": "notifications/initialized"}, {"id": 11, "method": "ping"}
    first: dict[str, object] = {"id": 10, "result": {}}
    both = "".join(json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in (ready, ask))
    begun = call(f"7 write({stdout}", first, " <unfinished ...>")
    length = len(json.dumps({"jsonrpc": "2.0"} | first)) + 1
    lines = (
        begun
        + call(f"8 read({stdin}", both)
        + b"7 <... write resumed>) = %d\n" % length
        + call(f"7 write({stdout}", first | {"id": 11})
    )
    said = [json.loads(data).get("id") for _, data in frames(imported(lines, sha256))]
    assert sorted(said, key=str) == [10, 11, 11, None]


@pytest.mark.parametrize("sha256", ["", "ab"], ids=["growing", "whole"])
def test_what_is_read_after_a_read_of_which_strace_saw_only_the_end_is_there(sha256: str) -> None:
    seen = call("8 <... read resumed>", ASKED).replace(b">, ", b">", 1)
    lines = seen + call("7 write(1", ANSWERED) + call("8 read(0", ASKED | {"id": 2}) + call("8 read(0", ASKED | {"id": 3})
    said = [(stream, json.loads(data)["id"]) for stream, data in frames(imported(lines, sha256))]
    assert said == [(0, 1), (1, 1), (0, 2), (0, 3)]


def test_calls_of_a_client_are_counted_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "client.strace"
    path.write_bytes(call("7 write(9<pipe:[9]>", ASKED) + call("7 read(8<pipe:[8]>", ANSWERED))
    done = run("show", str(path))
    assert done.returncode == 2
    assert "2 calls with messages of a client to its server; trace the server's process" in done.stderr


@pytest.mark.parametrize("end", [" <detached ...>", " <unfinished ...>", ""])
def test_a_write_that_did_not_end_is_a_gap_and_nobody_is_accused(end: str) -> None:
    begins = call("7 write(1<pipe:[7]>", ANSWERED, end or "|").replace(b"|\n", b"")
    records = imported(call("7 read(0<pipe:[6]>", ASKED) + begins)
    (gap,) = [record for record in records if isinstance(record, Gap)]
    assert (gap.bytes, gap.why) == (len(json.dumps({"jsonrpc": "2.0"} | ANSWERED)) + 1, UNDER_WAY)
    assert "unanswered-request" not in [finding.rule for finding in transcribe(records).findings]


def test_an_answer_comes_before_the_request_that_it_caused_though_strace_saw_its_end_later() -> None:
    answer = call("8 write(1<pipe:[7]>", ANSWERED, " <unfinished ...>")
    length = len(json.dumps({"jsonrpc": "2.0"} | ANSWERED)) + 1
    late = b"8 <... write resumed>) = %d\n" % length
    again = ASKED | {"id": 2}
    records = imported(call("7 read(0<pipe:[6]>", ASKED) + answer + call("7 read(0<pipe:[6]>", again) + late)
    assert [stream for stream, _ in frames(records)] == [0, 1, 0]


def test_a_request_that_ends_the_output_accuses_nobody() -> None:
    request = call("7 read(0<pipe:[6]>", ASKED)
    assert not transcribe(imported(request)).findings
    ended = transcribe(imported(request + b'7 read(0<pipe:[6]>, "", 99) = 0\n'))
    assert [finding.rule for finding in ended.findings] == ["unanswered-request"]


def test_threads_that_strace_does_not_name_may_have_answered() -> None:
    transcript = transcribe(imported(call("read(0<pipe:[6]>", ASKED) + b'read(0<pipe:[6]>, "", 99) = 0\n'))
    assert not transcript.findings
    assert "strace named no threads" in repr(transcript.rows)


def test_the_exit_is_that_of_the_process_and_not_of_its_threads() -> None:
    talk = call("8 read(0<pipe:[6]>", ASKED) + call("9 write(1<pipe:[7]>", ANSWERED)
    ends = b"9 +++ exited with 0 +++\n8 +++ exited with 0 +++\n7 +++ exited with 3 +++\n"
    (exit_,) = [record for record in imported(talk + ends) if isinstance(record, Exit)]
    assert (exit_.pid, exit_.code) == (7, 3)


@pytest.mark.parametrize("prefix", [b"[pid  7] ", b"7     0.000012 ", b"7 12:00:00 ", b"7 12:00:00.123456 "])
def test_other_prefixes_of_strace_are_read(prefix: bytes) -> None:
    line = prefix + call("read(0", ASKED)
    assert recognized(line) is not None
    assert len(frames(imported(line))) == 1


@given(
    st.lists(st.sampled_from([*LINES.splitlines(keepends=True), b'"', b"\\", b"(", b"<unfinished ...>\n", b"\n", b" = 5\n"]))
)
def test_any_lines_are_read(pieces: list[bytes]) -> None:
    transcribe(imported(b"".join(pieces)))


@given(st.binary(max_size=1000), st.integers(1, 40))
def test_any_bytes_are_read_cut_anywhere(data: bytes, step: int) -> None:
    data = LINES[:200] + data + LINES
    importer = StraceImporter(Source(name="hang.strace", format="strace", sha256="ab"))
    cut = [item for at in range(0, len(data), step) for item in importer.feed(data[at : at + step])]
    assert numbered([record for _, record in [*cut, *importer.close()]]) == imported(data)


@pytest.mark.grid
@pytest.mark.parametrize("begin", [b"", b"read(0, ", b'read(0, "', b"readv(0, ", b"write(1<"])
@pytest.mark.parametrize(
    "piece",
    [b'read(0, "', b'read(0, "\\', b"<... ", b'read(0, "a", ', b"\\1", b'\\"', b" ", b"->, ", b") = ", b'iov_base=\\"', b"1"],
)
@pytest.mark.parametrize("end", [b"\n", b'"\n', b" <unfinished ...>\n", b") = 5\n"])
def test_a_hostile_line_takes_linear_time(begin: bytes, piece: bytes, end: bytes) -> None:
    imported(begin + piece * (200_000 // len(piece)) + end)


@pytest.mark.parametrize(
    "line", [call("7 write(9<pipe:[9]>", ASKED), b'7 write(9<pipe:[9]>, "{", 1) = 1\n', b'7 write(1, "[", 1) = 1\n']
)
def test_hostile_lines_take_linear_time(line: bytes) -> None:
    imported(line * (2_000_000 // len(line)))


def test_strace_makes_the_rows_and_findings_of_the_taps_capture(tmp_path: Path, debian_program: DebianProgram) -> None:
    trace, capture = tmp_path / "server.strace", tmp_path / "tap.mcpspy"
    traced = [debian_program("strace"), *STRACE, "-o", str(trace), *SERVER]
    tap = [sys.executable, "-m", "mcpspy", "run", "--capture", str(capture), "--", *traced]
    client = [sys.executable, "-m", "mcpspy.demo.client", *tap]
    done = subprocess.run(client, capture_output=True, timeout=DEADLINE_S, check=False)
    if b"ptrace" in done.stderr:
        pytest.skip("this user may not trace")
    assert recognized(trace.read_bytes()[: 1 << 20]) is not None
    made = run("import", str(trace), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    strace, tapped = open_captures(made), open_captures(capture)
    assert rows_in_any_order(strace) == rows_in_any_order(tapped)
    assert [finding.rule for finding in strace.findings] == [finding.rule for finding in tapped.findings]


def test_a_server_that_runs_is_looked_at_and_goes_on(tmp_path: Path, debian_program: DebianProgram) -> None:
    trace = tmp_path / "hang.strace"

    def ask(number: int) -> str:
        assert server.stdin is not None
        assert server.stdout is not None
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        return server.stdout.readline()

    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert '"id": 1' in ask(1)
        words = [debian_program("strace"), *STRACE, "-o", str(trace), "-p", str(server.pid)]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            if "attached" not in tracer.stderr.readline():
                server.kill()
                pytest.skip("this user may not trace")
            assert '"id": 2' in ask(2)  # the read in which the server waited when strace came may be missing
            assert '"id": 3' in ask(3)
            eventually(lambda: trace.exists() and trace.read_bytes().count(b"write(1") == 2, "the answer in strace's output")
            try:
                with on_pipe("show", "-f", str(trace)) as shown:
                    shown.wait_for("→ initialize")
                    shown.end()
            finally:
                tracer.terminate()
        assert '"id": 4' in ask(4)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("duration", ["9" * 30 + ".000000", "9999999.999999"])
def test_a_duration_that_cannot_be_is_no_trouble(duration: str) -> None:
    lines = [
        f"7 8999999999.000001 read(0, {json.dumps(json.dumps({'jsonrpc': '2.0'} | ASKED) + chr(10))}, 99) = 77 <{duration}>\n"
    ]
    lines.append(
        f"7 8999999999.000002 write(1, {json.dumps(json.dumps({'jsonrpc': '2.0'} | ANSWERED) + chr(10))}, 99) = 43 <{duration}>\n"
    )
    assert len(transcribe(imported("".join(lines).encode())).exchanges) == 1
