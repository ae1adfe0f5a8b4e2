"""HAR files that mitmproxy writes are imported: the same rows as in the capture of a tap beside it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captures.make import STORIES, client, put
from captures.serving import play, port, started, tapped
from mcpspy import open as open_captures
from mcpspy.transcript.absent_facts import unproven_rules
from mcpspy.transcript.model import Transcript
from tests.cli.terminal import run
from tests.conftest import PEERS, BuiltProgram
from tests.deadlines import DEADLINE_S, SCENE_S, eventually
from tests.interop.matrix import mocking
from tests.interop.test_generations import SCENE

LISTENING = re.compile(r"listening at (?:http://)?127\.0\.0\.1:(\d+)")


@contextmanager
def mitmproxied(url: str, har: Path, folder: Path, built: BuiltProgram) -> Iterator[str]:
    """A mitmproxy before a server, which writes a HAR when it ends. Yields its URL."""
    log = folder / "mitmdump.log"
    origin, path = url.rpartition("/")[::2]
    options = {"hardump": har, "confdir": folder / "conf", "keep_host_header": "true"}
    words = [built("mitmproxy/bin/mitmdump"), "--mode", f"reverse:{origin}", "--listen-host", "127.0.0.1", "--listen-port", "0"]
    words += [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    with log.open("wb") as file, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file) as proxy:
        try:
            listening = eventually(lambda: LISTENING.search(log.read_text()), "mitmdump's port")
            yield f"http://127.0.0.1:{listening[1]}/{path}"
            proxy.send_signal(signal.SIGINT)
            proxy.wait(DEADLINE_S)
        finally:
            proxy.kill()


def test_a_har_of_mitmproxy_makes_the_rows_of_the_taps_capture(tmp_path: Path, built: BuiltProgram) -> None:
    har, capture, home = tmp_path / "session.har", tmp_path / "tap.mcpspy", tmp_path / "home"
    home.mkdir()
    story = STORIES["stateless"]
    story.prepare(tmp_path)
    with started(put(story.command, PORT="0"), tmp_path, home / "server.log", {}) as said:
        url = f"http://127.0.0.1:{port(said)}{story.path}"
        with mitmproxied(url, har, tmp_path, built) as proxy, tapped(proxy, tmp_path, "--capture", str(capture)) as tap:
            play(put(client(story), URL=tap), tmp_path, {})
    made = run("import", str(har), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    imported, recorded = open_captures(made), open_captures(capture)
    # the last call was cancelled: a HAR does not tell that its stream was closed
    assert answered(imported) == answered(recorded)
    assert len(answered(imported)) == len(imported.exchanges) - 1
    assert rules(imported) == rules(recorded) - set(unproven_rules(imported.captures[0])) - {"given-up"}


@pytest.mark.parametrize("sdk", ["mcp1/bin/python", "mcp2/bin/python"])
def test_a_har_of_mitmproxy_is_played_to_the_client_that_it_recorded(sdk: str, tmp_path: Path, built: BuiltProgram) -> None:
    har, home = tmp_path / "session.har", tmp_path / "home"
    home.mkdir()
    words = [built(sdk), str(PEERS / "sdkclient.py"), "mcp"]

    def printed(url: str) -> str:
        return subprocess.run([*words, url], capture_output=True, text=True, timeout=SCENE_S, check=True).stdout

    server = [sys.executable, str(PEERS / "sdkserver.py"), "mcp", "http"]
    with (
        started(server, tmp_path, home / "server.log", {}) as said,
        mitmproxied(f"http://127.0.0.1:{port(said)}/mcp", har, tmp_path, built) as proxy,
    ):
        assert printed(proxy) == SCENE
    with mocking(har, "streamable", tmp_path) as url:
        assert printed(url) == SCENE


def rules(transcript: Transcript) -> set[str]:
    return {finding.rule for finding in transcript.findings}


def answered(transcript: Transcript) -> list[tuple[object, ...]]:
    """Return what was asked and what was answered."""
    return [
        (row.sender, row.method, row.outcome, row.request.raw.strip(), row.response.raw.strip(), row.progress)
        for row in transcript.exchanges
        if row.response is not None
    ]
