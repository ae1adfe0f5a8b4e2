"""Mocks of what others recorded, before clients on both generations of the official Python SDK."""

import subprocess
from pathlib import Path

import pytest

from tests.browser.har_recording import KEPT, Hars
from tests.cli.terminal import run
from tests.conftest import PEERS, BuiltProgram
from tests.deadlines import SCENE_S
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
