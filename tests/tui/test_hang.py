"""The way from a client that hangs to a call that works, with keys alone."""

import sys
import time
from pathlib import Path

from tests.conftest import DebianProgram
from tests.intercept.making import call
from tests.live.client import Client
from tests.tui.piloting import sed_editor
from tests.tui.test_screens import TUI
from tests.tui.tmux import screen

HANGS = """
import json, sys
for text in sys.stdin:
    message = json.loads(text)
    if message["params"]["arguments"]["days"] <= 7:
        answer = {"content": [{"type": "text", "text": "sun"}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""

MAX_S = 60


def test_from_a_hang_to_its_culprit_and_to_an_edited_call_that_works(tmp_path: Path, debian_program: DebianProgram) -> None:
    editor = sed_editor(tmp_path, "s/30/5/")
    with Client([sys.executable, "-I", "-S", "-c", HANGS], "--label", "weather") as client:
        client.send(call(1, "forecast", days=3))
        client.line()
        client.send(call(2, "forecast", days=30))
        begun = time.monotonic()
        with screen(debian_program("tmux"), tmp_path, (80, 24), *TUI, EDITOR=editor, VISUAL="") as shown:
            shown.until("pending")
            shown.press("p", "Right")
            shown.until("the server (weather) was sent this, and has not answered yet")
            shown.press("R")
            shown.until("c  call it")
            shown.press("c")
            text = shown.until('"text": "sun"')
            assert "changed $.arguments.days=5" in text
            assert time.monotonic() - begun < MAX_S
            shown.press("q", "q")
            shown.until("status 0, echo 1")
        client.send(call(3, "forecast", days=1))
        assert b'"id": 3' in client.line()
