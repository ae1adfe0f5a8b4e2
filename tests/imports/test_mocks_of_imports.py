"""Mocks of what others recorded, before clients on both generations of the official Python SDK."""

import subprocess
from pathlib import Path

import pytest

from mcpspy import read
from tests.browser.har_recording import KEPT, Hars
from tests.cli.terminal import run
from tests.conftest import PEERS, BuiltProgram, DebianProgram
from tests.deadlines import SCENE_S
from tests.imports.http_packets import packets_of
from tests.imports.test_follow_stream import followed, streams_of
from tests.interop.matrix import mocking

SDKS = {"1": "mcp1/bin/python", "2": "mcp2/bin/python"}
TRANSPORTS = ("streamable", "sse")
PRINTED = """\
add, slow, greet
3
1 of 2: step 0
2 of 2: step 1
done
hello Zoë → €
Unknown tool: sing
"""


def played(sdk: str, file: Path, transport: str, folder: Path, built: BuiltProgram) -> str:
    """Return what the client prints that speaks to a mock of this file."""
    with mocking(file, transport, folder) as url:
        words = [built(SDKS[sdk]), str(PEERS / "labclient.py"), url]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SCENE_S, check=False)
    return done.stdout + done.stderr * bool(done.returncode)


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_har_of_devtools_is_played(transport: str, sdk: str, tmp_path: Path, built: BuiltProgram) -> None:
    assert played(sdk, Hars.of(transport, KEPT).devtools, transport, tmp_path, built) == PRINTED


@pytest.mark.parametrize("sdk", SDKS)
def test_the_har_of_playwright_is_played_over_streamable_http(sdk: str, tmp_path: Path, built: BuiltProgram) -> None:
    assert played(sdk, Hars.of("streamable", KEPT).playwright, "streamable", tmp_path, built) == PRINTED


def test_the_har_of_playwright_over_http_sse_is_refused_as_it_has_no_answers(tmp_path: Path) -> None:
    done = run("mock", str(Hars.of("sse", KEPT).playwright), "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    assert "none of their answers" in done.stderr


@pytest.mark.parametrize("form", ["hex", "raw", "yaml"])
@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_followed_streams_are_played(
    transport: str, sdk: str, form: str, tmp_path: Path, built: BuiltProgram, debian_program: DebianProgram
) -> None:
    packets, dump = tmp_path / "dump.pcapng", tmp_path / "streams.txt"
    packets.write_bytes(packets_of(list(read(Hars.of(transport, KEPT).capture))))
    dump.write_bytes(followed(packets, form, streams_of(packets, "8000", debian_program), debian_program))
    assert played(sdk, dump, transport, tmp_path, built) == PRINTED


def test_one_of_the_streams_of_http_sse_is_refused(tmp_path: Path, debian_program: DebianProgram) -> None:
    packets, dump = tmp_path / "dump.pcapng", tmp_path / "stream.txt"
    packets.write_bytes(packets_of(list(read(Hars.of("sse", KEPT).capture))))
    dump.write_bytes(followed(packets, "hex", streams_of(packets, "8000", debian_program)[1:], debian_program))
    done = run("mock", str(dump), "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    assert "follow all streams" in done.stderr
