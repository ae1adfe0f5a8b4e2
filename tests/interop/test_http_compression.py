"""mcpspy before a server that compresses as the client lets it: what passes is as it was, what is shown is what it says."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import mcpspy
from mcpspy.records import SERVER, Frame, Open
from mcpspy.transcript.model import Outcome
from mcpspy.wire.encodings import PACKAGES, decode_body
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S
from tests.interop.scenes import PYSERVER
from tests.interop.serving import HttpScene, recorded, serving
from tests.transcript.traffic import initialize

SCENE = HttpScene(client=(), server=(*PYSERVER[:-1], "http", "0", "stateless_http", "json_response", "compress"), path="/mcp")
HIDING = "import sys; sys.modules.update({name: None for name in ('brotli', 'backports', 'compression')});"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of one server for all tests: it keeps nothing between requests."""
    with serving(SCENE, tmp_path_factory.mktemp("server") / "x") as url:
        yield url


def encoded_answer(url: str, coding: str) -> tuple[str, bytes]:
    """Return the Content-Encoding and the bytes of the answer to `initialize`."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=DEADLINE_S)
    try:
        fields = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": coding,
        }
        connection.request("POST", parts.path, json.dumps(initialize()), fields)
        response = connection.getresponse()
        return response.headers["Content-Encoding"], response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_compressed_answer_passes_as_it_is_and_is_read(coding: str, url: str, tmp_path: Path) -> None:
    with recorded(url, tmp_path) as tap:
        encoding, body = encoded_answer(tap, coding)
    assert encoding == coding
    assert json.loads(decode_body(body, coding.encode()))["result"]
    records = list(mcpspy.read(tmp_path / "a.mcpspy"))
    streams = {record.stream for record in records if isinstance(record, Open) and record.sender == SERVER}
    assert b"".join(record.data for record in records if isinstance(record, Frame) and record.stream in streams) == body
    (exchange,) = mcpspy.transcribe(records).exchanges
    assert exchange.outcome is Outcome.OK
    assert f"of {coding}, decoded" in run("show", "--http", str(tmp_path / "a.mcpspy")).stdout


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_without_the_library_it_is_said_what_to_install(coding: str, url: str, tmp_path: Path) -> None:
    with recorded(url, tmp_path) as tap:
        encoded_answer(tap, coding)
    shown = []
    for option in ([], ["--http"]):
        words = [*option, str(tmp_path / "a.mcpspy")]
        code = f"{HIDING} sys.argv = ['mcpspy', 'show', *{words!r}]; from mcpspy.__main__ import main; sys.exit(main())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    timeline, wire = shown
    assert f"compressed with {coding}: pip install {PACKAGES[coding]}" in timeline
    assert "\n⚑" not in timeline
    assert f"of {coding}: pip install {PACKAGES[coding]}" in wire
