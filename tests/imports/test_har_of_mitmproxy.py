"""HAR files that mitmproxy writes are imported: the same rows as in the capture of a tap beside it."""

import re
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

from captures.make import STORIES, client, put
from captures.serving import play, port, started, tapped
from mcpspy import open as open_captures
from mcpspy.transcript.model import Transcript
from tests.cli.terminal import run
from tests.conftest import BuiltProgram
from tests.deadlines import DEADLINE_S, eventually

LISTENING = re.compile(r"listening at (?:http://)?127\.0\.0\.1:(\d+)")


def test_a_har_of_mitmproxy_makes_the_rows_of_the_taps_capture(tmp_path: Path, built: BuiltProgram) -> None:
    har, capture = tmp_path / "session.har", tmp_path / "tap.mcpspy"
    log, home = tmp_path / "mitmdump.log", tmp_path / "home"
    home.mkdir()
    story = STORIES["stateless"]
    story.prepare(tmp_path)
    with ExitStack() as running:
        said = running.enter_context(started(put(story.command, PORT="0"), tmp_path, home / "server.log", {}))
        options = {"hardump": har, "confdir": tmp_path / "conf", "keep_host_header": "true"}
        mitmdump = [built("mitmproxy/bin/mitmdump"), "--mode", f"reverse:http://127.0.0.1:{port(said)}"]
        mitmdump += ["--listen-host", "127.0.0.1", "--listen-port", "0"]
        mitmdump += [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        with log.open("wb") as file:
            proxy = running.enter_context(subprocess.Popen(mitmdump, stdin=subprocess.DEVNULL, stdout=file, stderr=file))
        try:
            eventually(lambda: LISTENING.search(log.read_text()) is not None, "mitmdump's port")
            listening = LISTENING.search(log.read_text())
            assert listening is not None
            url = f"http://127.0.0.1:{listening[1]}{story.path}"
            with tapped(url, tmp_path, "--capture", str(capture)) as tap:
                play(put(client(story), URL=tap), tmp_path, {})
            proxy.send_signal(signal.SIGINT)
            proxy.wait(DEADLINE_S)
        finally:
            proxy.kill()
    made = run("import", str(har), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    imported, recorded = open_captures(made), open_captures(capture)
    # the last call was cancelled: a HAR does not tell that its stream was closed
    assert answered(imported) == answered(recorded)
    assert len(answered(imported)) == len(imported.exchanges) - 1
    assert {finding.rule for finding in imported.findings} <= {finding.rule for finding in recorded.findings}


def answered(transcript: Transcript) -> list[tuple[object, ...]]:
    """Return what was asked and what was answered."""
    return [
        (row.sender, row.method, row.outcome, row.request.raw.strip(), row.response.raw.strip(), row.progress)
        for row in transcript.exchanges
        if row.response is not None
    ]
