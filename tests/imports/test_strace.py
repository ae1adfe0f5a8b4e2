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
from mcpspy.imports.strace import StraceImporter
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


def imported(data: bytes) -> list[Record]:
    importer = StraceImporter(Source(name="hang.strace", format="strace", sha256="ab"))
    return [record for _, record in [*importer.feed(data), *importer.close()]]


def frames(records: list[Record]) -> list[tuple[int, bytes]]:
    return [(record.stream, record.data) for record in records if isinstance(record, Frame)]


def test_reads_and_writes_of_the_standard_streams_are_messages() -> None:
    assert frames(imported(LINES)) == [
        (0, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'),
        (2, "杭\n".encode()),
        (1, b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
    ]


def test_the_end_of_the_process_is_told() -> None:
    (exit,) = [record for record in imported(LINES) if isinstance(record, Exit)]
    assert (exit.pid, exit.signal) == (71, "SIGSEGV")


def test_other_pipes_are_left_out() -> None:
    other = LINES + LINES.replace(b"[9]", b"[19]").replace(b"71 ", b"81 ").replace(b"72 ", b"82 ")
    assert [frame for frame in frames(imported(other)) if frame[0] == 1] == [frames(imported(LINES))[2]]


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
    assert [record for _, record in [*cut, *importer.close()]] == imported(data)


@pytest.mark.parametrize("piece", [b'read(0, "', b'read(0, "\\', b"<... ", b'read(0, "a", ', b"\\1"])
def test_a_hostile_line_takes_linear_time(piece: bytes) -> None:
    imported(piece * (1_000_000 // len(piece)) + b"\n")


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
