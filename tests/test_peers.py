"""The peers do what tests/peers/README.md says: tests of mcpspy lean on that."""

import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.conftest import PEERS, MermaidReader, NpmProgram, Peer
from tests.deadlines import DEADLINE_S, eventually

INITIALIZE = b'{"jsonrpc":"2.0","id":"a","method":"initialize"}\n'


@contextmanager
def running(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A peer, which is killed when its test is done with it."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def get(port: int, path: str) -> tuple[int, str]:
    """Return the status and the `WWW-Authenticate` header of a GET."""
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.getheader("WWW-Authenticate", "")
    connection.close()
    return answer


def wait_for(log: Path, words: str) -> str:
    """Wait for the first line of a log that holds these words."""

    def line() -> str | None:
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return next((line for line in lines if words in line), None)

    return eventually(line, f"{words!r} in {log}")


def test_the_stubborn_server_answers(peer: Peer, tmp_path: Path) -> None:
    with running([*peer("stubborn.py"), str(tmp_path / "log")]) as server:
        assert server.stdin is not None
        server.stdin.write(INITIALIZE)
        server.stdin.flush()
        assert b'"id": "a"' in first_line(server)


def test_the_stubborn_server_outlives_its_input_and_a_signal(peer: Peer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running([*peer("stubborn.py"), str(log)]) as server:
        assert server.stdin is not None
        wait_for(log, "start")
        server.stdin.close()
        wait_for(log, "EOF")
        server.send_signal(signal.SIGTERM)
        wait_for(log, f"SIG {int(signal.SIGTERM)}")
        assert server.poll() is None


def test_the_stubborn_server_ends_by_itself(peer: Peer, tmp_path: Path) -> None:
    with running([*peer("stubborn.py"), "--life", "1", str(tmp_path / "log")]) as server:
        assert server.wait(DEADLINE_S) == 0


def test_the_grandchild_holds_the_pipe_after_its_parent_is_gone(peer: Peer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running([*peer("stubborn.py"), "--grandchild", "--life", "2", str(log)]) as server:
        grandchild = int(wait_for(log, "grandchild").split()[-1])
        wait_for(log, f"{grandchild} start")
        server.kill()
        server.wait(DEADLINE_S)
        os.kill(grandchild, signal.SIGTERM)
        wait_for(log, f"{grandchild} SIG {int(signal.SIGTERM)}")
        assert first_line(server) == b"", "the pipe ends when the grandchild does, of its own accord"


@pytest.mark.parametrize("options", [[], ["--sockets"]], ids=["pipes", "sockets"])
def test_the_byte_logger_keeps_what_passes_and_ends_as_the_command_does(peer: Peer, tmp_path: Path, options: list[str]) -> None:
    command = ["sh", "-c", "cat; echo said >&2; exit 3"]
    done = subprocess.run(
        [*peer("bytelog.py"), *options, str(tmp_path / "log"), *command],
        input=INITIALIZE,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    logs = [(tmp_path / "log" / name).read_bytes() for name in ("stdin", "stdout", "stderr")]
    assert (done.returncode, done.stdout, done.stderr, logs) == (3, INITIALIZE, b"said\n", [INITIALIZE, INITIALIZE, b"said\n"])


def test_the_tcp_logger_keeps_what_either_side_sends_and_passes_the_end_on(peer: Peer, tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, running([*peer("tcplog.py"), str(tmp_path / "log"), str(listener.getsockname()[1])]) as logger:
        client = socket.create_connection(("127.0.0.1", int(first_line(logger))), DEADLINE_S)
        server, _ = listener.accept()
        with client, server:
            client.sendall(b"from the client")
            client.shutdown(socket.SHUT_WR)
            assert server.makefile("rb").read() == b"from the client"
            server.sendall(b"from the server")
            server.shutdown(socket.SHUT_WR)
            assert client.makefile("rb").read() == b"from the server"
    logs = {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    ends = b"client eof\nserver eof\n"
    assert logs == {"1.client": b"from the client", "1.server": b"from the server", "1.ends": ends}


def test_the_tcp_logger_passes_on_what_was_sent_by_who_has_gone_before_it_ends(peer: Peer, tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, running([*peer("tcplog.py"), str(tmp_path / "log"), str(listener.getsockname()[1])]) as logger:
        port = int(first_line(logger))
        logger.send_signal(signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
            client.sendall(b"last words")
        assert logger.stdin is not None
        logger.stdin.close()
        logger.send_signal(signal.SIGCONT)
        with listener.accept()[0] as server:
            assert server.makefile("rb").read() == b"last words"
        assert logger.wait(DEADLINE_S) == 0


def test_the_tcp_logger_says_who_tore_a_connection_down(peer: Peer, tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, running([*peer("tcplog.py"), str(tmp_path / "log"), str(listener.getsockname()[1])]) as logger:
        client = socket.create_connection(("127.0.0.1", int(first_line(logger))), DEADLINE_S)
        server, _ = listener.accept()
        with client, server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            server.close()
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    assert (tmp_path / "log" / "1.ends").read_bytes().startswith(b"server reset\n")


def test_badsse_sends_the_endpoint_it_was_told_to(peer: Peer) -> None:
    with running([*peer("badsse.py"), "0", r"http://other/\u202e"]) as server:
        port = int(first_line(server))
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:
            connection.sendall(b"GET /sse HTTP/1.1\r\n\r\n")
            stream = connection.makefile("rb")
            assert b"data: http://other/\xe2\x80\xae\n" in [stream.readline() for _ in range(5)]


def test_authserver_names_its_metadata_to_who_has_no_token(peer: Peer) -> None:
    with running([*peer("authserver.py"), "0"]) as server:
        port = int(first_line(server))
        status, challenge = get(port, "/mcp")
        assert status == 401
        assert f'resource_metadata="http://127.0.0.1:{port}/' in challenge


@pytest.mark.parametrize("kind", ["sse", "http"])
def test_pyserver_takes_a_free_port_and_says_which(peer: Peer, kind: str) -> None:
    with running([*peer("pyserver.py"), kind, "0"]) as server:
        assert get(int(first_line(server)), "/elsewhere")[0] == 404


def test_the_preload_keeps_a_node_server_on_the_loopback(npm_program: NpmProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", f"--require={PEERS / 'bind-loopback.cjs'}")
    monkeypatch.setenv("PORT", "0")
    with running([*npm_program("mcp-server-everything"), "streamableHttp"]) as server:
        assert server.stderr is not None
        stderr = iter(server.stderr.readline, b"")
        port = next(int(line.rsplit(b":", 1)[1]) for line in stderr if line.startswith(b"listening 127.0.0.1:"))
        assert get(port, "/elsewhere")[0] == 404


def test_mermaids_parser_says_what_a_page_would_show(read_mermaid: MermaidReader) -> None:
    (diagram,) = read_mermaid(["sequenceDiagram\nparticipant c as a #35; b\nc->>c: one#59; two #lt;b#gt;\n"])
    assert diagram["participants"] == [{"id": "c", "text": "a # b"}]
    assert diagram["signals"] == [{"type": "solid", "from": "c", "to": "c", "text": "one; two <b>"}]


def test_mermaids_parser_refuses_what_is_no_sequence_diagram(read_mermaid: MermaidReader) -> None:
    assert all("error" in diagram for diagram in read_mermaid(["graph TD; a-->b", "sequenceDiagram\na ~~ b"]))
