"""The verbs that start processes, wait for pipes and sockets, or change files, on Windows, as far as Linux can play it."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, Timer
from urllib.parse import urlsplit

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Exit, Frame, Note
from tests.deadlines import DEADLINE_S, eventually
from tests.interop.playing import is_alive
from tests.systems.test_windows import CAPTURES, ROOT

PUPPET = [sys.executable, str(ROOT / "tests" / "peers" / "puppet.py")]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return what the SDKs' clients leave of the environment there, and what plays the system."""
    played = {"PYTHONPATH": str(Path(__file__).parent), "MCPSPY_TESTED_SYSTEM": "win32", "PATH": os.environ["PATH"]}
    return {"USERPROFILE": str(home), "PYTHONUTF8": "1", "COLUMNS": "100"} | played | more


def started(home: Path, *arguments: str, cwd: Path = ROOT, **more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcpspy", *arguments],
        env=environment(home, **more),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def done(home: Path, *arguments: str, cwd: Path = ROOT, **more: str) -> tuple[int, str, str]:
    """Run a verb without input; return exit status, output and errors."""
    process = started(home, *arguments, cwd=cwd, **more)
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out.decode(), err.decode()


def capture_of(home: Path) -> Path:
    (path,) = (home / ".mcpspy" / "captures").glob("*.mcpspy")
    return path


def frames(path: Path, stream: int) -> bytes:
    return b"".join(record.data for record in read(path) if isinstance(record, Frame) and record.stream == stream)


def test_run_forwards_and_records_every_byte_and_exits_with_the_servers_status(tmp_path: Path) -> None:
    sent = PING + b"\xff\xfe\r\n" + b'{"x":"%s"}\n' % (b"y" * 300_000) + b"no end"
    with started(tmp_path, "run", "--", *PUPPET, "complain=up", "echo", "exit=3") as process:
        out, err = process.communicate(sent, timeout=DEADLINE_S)
    assert (process.returncode, out, err) == (3, sent, b"up\n")
    assert [frames(capture_of(tmp_path), stream) for stream in range(3)] == [sent, sent, b"up\n"]


def test_run_says_that_there_is_no_such_command(tmp_path: Path) -> None:
    status, _, err = done(tmp_path, "run", "--", "no-such-server")
    assert status == 127
    assert "no-such-server: command not found" in err
    assert [record.error for record in read(capture_of(tmp_path)) if isinstance(record, Exit)] == ["command not found"]


def test_run_starts_a_script_by_cmd_exe(tmp_path: Path) -> None:
    folder = tmp_path / "Program Files"
    folder.mkdir()
    (folder / "npx.cmd").touch()
    (tmp_path / "cmd.exe").write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1], flush=True)\n")
    (tmp_path / "cmd.exe").chmod(0o755)
    more = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COMSPEC": str(tmp_path / "cmd.exe")}
    status, out, err = done(tmp_path, "run", "--", "npx", "-y", "a & b", cwd=ROOT, **more)
    script = str(folder / "npx.cmd").replace(" ", "^ ")
    out = out.replace("npx.CMD", "npx.cmd")  # as PATHEXT has it
    assert (status, out, err) == (0, f'/d /s /c "{script} ^"-y^" ^"a^ ^&^ b^""\n', "")


def test_a_server_goes_with_a_tap_that_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, "run", "--", *PUPPET, "ignore=TERM", "say=up", "linger") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.kill()
        assert process.stdout.read() == b""  # which the server held open


def test_a_server_that_ignores_the_end_of_its_input_goes_with_its_client(tmp_path: Path) -> None:
    server = [*PUPPET, "ignore=TERM", "say={pid}", "swallow", "linger"]
    client = (
        "import subprocess, sys; tap = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE); "
        "print(tap.stdout.readline().decode(), flush=True); tap.wait()"
    )
    command = [sys.executable, "-c", client, sys.executable, "-m", "mcpspy", "run", "--", *server]
    with subprocess.Popen(command, env=environment(tmp_path), cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    eventually(lambda: not is_alive(pid), "the end of the server")
    eventually(lambda: b"client gone" in capture_of(tmp_path).read_bytes(), "the reason")


def test_a_server_goes_on_after_the_end_of_its_input_while_its_client_lives(tmp_path: Path) -> None:
    with started(tmp_path, "run", "--", *PUPPET, "swallow", "after=4000", "say=done") as process:
        assert process.communicate(timeout=DEADLINE_S)[0] == b"done\n"
    assert process.returncode == 0


def test_a_server_that_goes_on_when_nobody_reads_it_is_ended_with_all_below_it(tmp_path: Path) -> None:
    with started(tmp_path, "run", "--", *PUPPET, "ignore=TERM", "say=up", "after=500", "say=anybody?", "linger") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.stdout.close()
        process.wait(DEADLINE_S)
    notes = [record.text for record in read(capture_of(tmp_path)) if isinstance(record, Note) and record.topic == "escalation"]
    assert [note.partition(" (")[0] for note in notes] == [f"taskkill to {Path(sys.executable).name}"]


def test_ctrl_c_is_left_to_the_client_and_the_server_which_got_it_too(tmp_path: Path) -> None:
    with started(tmp_path, "run", "--", *PUPPET, "say=up", "swallow") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        eventually(lambda: b"SIGINT from the keyboard" in capture_of(tmp_path).read_bytes(), "the note")
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0


@pytest.fixture
def server_port() -> Iterator[int]:
    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_proxy_forwards_and_records_until_ctrl_c(tmp_path: Path, server_port: int) -> None:
    url = f"http://127.0.0.1:{server_port}/mcp"
    with started(tmp_path, "proxy", url, "--listen", "127.0.0.1:0") as process:
        assert process.stdout is not None
        own = urlsplit(process.stdout.readline().decode())
        for size in (10, 500_000):
            client = http.client.HTTPConnection("127.0.0.1", own.port or 0, timeout=DEADLINE_S)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * size}}).encode()
            client.request("POST", own.path, body, {"Content-Type": "application/json"})
            assert client.getresponse().read() == body
            client.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert sum(isinstance(record, Frame) for record in read(capture_of(tmp_path))) >= 4


def test_replay_against_a_mock_finds_no_difference(tmp_path: Path) -> None:
    capture = str(CAPTURES / "tickets.mcpspy") if (CAPTURES / "tickets.mcpspy").exists() else str(CAPTURES / "cancelled.mcpspy")
    mock = [sys.executable, "-m", "mcpspy", "mock", capture]
    status, out, err = done(tmp_path, "replay", capture, "--", *mock)
    assert status == 0, (out, err)


def test_show_follows_what_run_records(tmp_path: Path) -> None:
    with started(tmp_path, "run", "--", "cat") as process:
        assert process.stdin is not None
        eventually(lambda: list(tmp_path.glob(".mcpspy/captures/*.mcpspy")), "the capture")
        with started(tmp_path, "show", "-f") as shown:
            late = Timer(DEADLINE_S, shown.kill)
            late.start()
            assert shown.stdout is not None
            first = shown.stdout.readline()
            process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n')
            process.stdin.flush()
            has_news = any(b"list_changed" in line for line in iter(shown.stdout.readline, b""))
            late.cancel()
            shown.kill()
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0
    assert (b"cat" in first, has_news) == (True, True)


def test_web_shows_a_page_until_ctrl_c(tmp_path: Path) -> None:
    with started(tmp_path, "web", "--port", "0") as process:
        assert process.stdout is not None
        own = urlsplit(process.stdout.readline().decode().strip())
        client = http.client.HTTPConnection("127.0.0.1", own.port or 0, timeout=DEADLINE_S)
        client.request("GET", own.path)
        assert client.getresponse().read().startswith(b"<!doctype html>")
        client.close()
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE_S)


@pytest.mark.parametrize("variables", [{}, {"APPDATA": "{home}/AppData/Roaming"}], ids=["without APPDATA", "with it"])
def test_wrap_and_unwrap_change_the_files_of_clients_where_they_lie_there(variables: dict[str, str], tmp_path: Path) -> None:
    roaming = tmp_path / "AppData" / "Roaming"
    server = '{"command": "npx", "args": ["-y", "C:\\\\My Server\\\\x.js"]}'
    files = {
        roaming / "Claude" / "claude_desktop_config.json": f'{{"mcpServers": {{"a": {server}}}}}\r\n',
        roaming / "Code" / "User" / "mcp.json": f'{{"servers": {{"b": {server}}}}}\r\n',
        tmp_path / ".cursor" / "mcp.json": f'{{"mcpServers": {{"c": {server}}}}}\r\n',
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
    more = {name: value.format(home=tmp_path) for name, value in variables.items()}
    status, _, err = done(tmp_path, "wrap", "--yes", cwd=tmp_path, **more)
    assert status == 0, err
    for path, text in files.items():
        assert path.read_bytes() != text.encode()
        assert b'"mcpspy"' in path.read_bytes()
    assert done(tmp_path, "unwrap", "--yes", cwd=tmp_path, **more)[0] == 0
    assert [path.read_bytes().decode() for path in files] == list(files.values())


def test_the_demo_records_a_session(tmp_path: Path) -> None:
    status, out, err = done(tmp_path, "demo")
    assert status == 0, err
    assert "given-up" in out


def test_proxy_all_says_that_it_does_not_work_there(tmp_path: Path) -> None:
    status, _, err = done(tmp_path, "proxy", "--all")
    assert (status, "--all does not work on Windows yet; run mcpspy proxy URL for each server." in err) == (2, True)
