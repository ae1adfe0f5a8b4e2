"""Requests as curl commands: a shell reads back what was sent, and a server gets it."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.views.curl import _word, curl
from tests.conftest import DebianProgram
from tests.deadlines import SCENE_S
from tests.transcript.dialogue import request
from tests.transcript.traffic import Traffic

CAPTURES = Path(__file__).parents[2] / "captures"


def commands(name: str, number: int) -> str:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"), keep_frames=True)
    source = transcript.captures[0]
    return "\n".join(curl(source.transactions[number], source))


def test_a_request_is_a_command_that_sends_the_same_to_the_server() -> None:
    words = shlex.split(commands("stateless", 4).replace("\\\n", ""))
    assert words[:7] == ["curl", "-sS", "-N", "-g", "-X", "POST", "http://127.0.0.1:8000/mcp"]
    assert "mcp-name: greet" in words
    assert json.loads(words[-1])["params"]["name"] == "greet"
    assert not [word for word in words if word.lower().startswith(("host:", "content-length:"))]


def test_redacted_values_are_shell_variables() -> None:
    arguments = commands("oauth", 6)
    assert "# set $REDACTED_AUTHORIZATION first: its value was redacted" in arguments
    assert "'Authorization: Bearer '\"$REDACTED_AUTHORIZATION\"" in arguments
    assert "redacted-" not in arguments


def test_a_comment_names_bytes_that_were_not_recorded() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200)
    source = traffic.ends().transcript.captures[0]
    assert "not kept" not in "\n".join(curl(source.transactions[1], source))


class Heard(NamedTuple):
    """The requests that a server received."""

    method: str
    target: str
    fields: dict[str, str]
    body: bytes


@pytest.fixture
def listening() -> Iterator[tuple[str, list[Heard]]]:
    """Start a server that answers anything; return its address and the requests it received."""
    heard: list[Heard] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heard.append(Heard(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"ok\n")

        do_GET = do_DELETE = do_POST  # noqa: N815 - the names that BaseHTTPRequestHandler looks for

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp", heard
        server.shutdown()
        thread.join()


HOSTILE_BODY = json.dumps(request(1, 'it\'s "$HOME" `id` $(id) \\ !x\n天気 \x1b[31m'), ensure_ascii=False).encode()


@pytest.mark.parametrize("name", ["stateless", "oauth", "sse", "agent-model", "hostile"])
def test_the_commands_send_a_server_the_same_requests_again(
    name: str, listening: tuple[str, list[Heard]], debian_program: DebianProgram
) -> None:
    debian_program("curl")
    traffic = Traffic()
    traffic.post(HOSTILE_BODY, "/mcp?a='b%20c'&d=$e&f={g,h}[1-2]", Last_Event_Id="").answer(200)
    traffic.post(b"@/etc/hostname\n").answer(200)
    transcript = transcribe(
        traffic.ends().records if name == "hostile" else read(CAPTURES / f"{name}.mcpspy"), keep_frames=True
    )
    (source,) = transcript.captures
    address, heard = listening
    assert source.header is not None
    source.header.tapped["url"] = address
    transactions = [transaction for transaction in source.transactions.values() if transaction.request is not None]
    script = "set -e\n" + "\n".join(line for transaction in transactions for line in curl(transaction, source))
    secrets = {f"REDACTED_{name}": "s3cret" for name in ("AUTHORIZATION", "MCP_SESSION_ID", "SESSION_ID")}
    words = ["bash", "-c", script]
    done = subprocess.run(words, capture_output=True, timeout=SCENE_S, check=False, env={**os.environ, **secrets})
    assert (done.returncode, done.stderr, done.stdout) == (0, b"", b"ok\n" * len(transactions))
    for before, now in zip(transactions, heard, strict=True):
        assert before.request is not None
        assert (now.method, now.body) == (before.method, b"".join(frame.data for frame in before.request.kept))
        assert _told(now.target) == _told(before.target)
        fields = {name.lower(): value for name, value in before.request.head.fields if name.lower() in MEANT}
        heard_fields = {name: _told(value) for name, value in now.fields.items() if name in MEANT}
        assert heard_fields == {name: _told(value) for name, value in fields.items()}


@pytest.mark.parametrize("target", ["-K/tmp/options://", "file:///etc/hostname"])
def test_no_target_is_an_option_of_curl_or_a_local_file(target: str) -> None:
    traffic = Traffic()
    traffic.call("GET", target).answer(200)
    source = traffic.ends().transcript.captures[0]
    words = shlex.split("\n".join(curl(source.transactions[1], source)).replace("\\\n", ""))
    assert words[6].startswith("http://")


def test_a_field_that_curl_would_take_for_a_file_is_left_out() -> None:
    traffic = Traffic()
    traffic.get("/mcp", **{"@/etc/passwd": "1", "X": "@y"}).answer(200)
    source = traffic.ends().transcript.captures[0]
    lines = "\n".join(curl(source.transactions[1], source))
    assert "# the field @/etc/passwd is left out" in lines
    assert [word for word in shlex.split(lines.replace("\\\n", ""), comments=True) if "@" in word] == ["X: @y"]


def _told(text: str) -> str:
    """Replace a secret by `R`, be it a pseudonym or a shell variable."""
    return re.sub("s3cret|redacted-[0-9a-f]{12}", "R", text)


def test_several_secrets_of_one_field_are_several_variables() -> None:
    traffic = Traffic()
    traffic.post(request(1), Cookie="a=redacted-0123456789ab; b=redacted-ba9876543210; c=redacted-0123456789ab").answer(200)
    source = traffic.ends().transcript.captures[0]
    lines = "\n".join(curl(source.transactions[1], source))
    assert '"$REDACTED_COOKIE"\'; b=\'"$REDACTED_COOKIE_2"\'; c=\'"$REDACTED_COOKIE"' in lines
    assert "# set $REDACTED_COOKIE_2 first: its value was redacted" in lines


MEANT = {"authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "content-type", "last-event-id"}
"""Fields that say what is asked."""


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_shell_reads_every_word_back(text: str) -> None:
    word = _word(text)
    if not word.startswith("$'"):
        assert shlex.split(word) == [text]


def test_bash_reads_back_words_with_control_characters() -> None:
    texts = ["\x1b[31mred", "a\nb'c\\d", "\u202etxt", "tab\there", "\x85", "é\x01ü"]
    script = "printf '%s\\0' " + " ".join(map(_word, texts))
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=SCENE_S, check=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout.decode().split("\0")[:-1] == texts


def test_a_server_s_address_that_is_none_is_left_out() -> None:
    traffic = Traffic(url="http://[")
    traffic.get("/x", Host="127.0.0.1:3001").answer(200, b"")
    capture = traffic.wire.captures[0]
    assert "http://127.0.0.1:3001/x" in "\n".join(curl(next(iter(capture.transactions.values())), capture))
