"""`mcpspy demo`: a small client and server, as real processes with a real tap between them, and a picture of their capture."""

import os
import subprocess
import sys
from collections.abc import Iterator
from shutil import which

import click

from ..capture.store.address import resolve
from ..errors import TapError
from ..transcript.model import Transcript
from ..views.json.rows import transcript_json
from ..views.sequence.ladder import ladder
from ..views.sequence.layout import diagram
from ..views.text.line import Line, fitted
from ..views.timeline.findings import finding_lines
from ..views.timeline.summary import capture_lines, summary
from .export.formats import LADDER_CELLS
from .screen import Screen, say
from .transcripts import CaptureSelection, transcript_of

LABEL = "demo"

DEADLINE_S = 60
"""The demo takes 2 s. If it takes this long, the machine has another problem."""

NEXT = """
The capture is {path}
Next:
  {mcpspy} web --open     open the page of all recordings in the browser
  {mcpspy} show demo      show its rows; demo:10 shows row 10 in full
  {mcpspy} check demo     show what went wrong, and who is to blame
  {mcpspy} wrap           record the servers of your own clients"""


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print the timeline as JSON (docs/json.md), and nothing else.")
def command(as_json: bool) -> None:
    """Record a small weather server and its client, and draw what they said, with what went wrong.

    The session has a slow call with progress, a tool error and a protocol error, a request from the server, a line on stdout that
    is not a message, and a cancelled call. It takes two seconds and needs neither network nor configuration.

    \b
    Example:
      mcpspy demo
    """
    if not as_json:
        say("mcpspy: recording a client and a server for two seconds")
    play()
    (path,) = resolve(LABEL).captures
    transcript, live = transcript_of(CaptureSelection(paths=(path,)))
    if as_json:
        for piece in transcript_json(transcript, transcript.rows, live=live, whole=False):
            sys.stdout.write(piece)
        return
    screen = Screen()
    width = screen.width or LADDER_CELLS
    screen.lines(fitted(line, width) for line in _picture(transcript, width))
    say(NEXT.format(path=path, mcpspy=_own_name()))


def _own_name() -> str:
    """Return what starts mcpspy in this shell: its name, or where that is not found, the path that started this process."""
    return "mcpspy" if which("mcpspy") else os.path.relpath(sys.argv[0])


def _picture(transcript: Transcript, width: int) -> Iterator[Line]:
    """Yield the diagram, and below it the summary and the findings, where somebody reads them."""
    yield from ladder(diagram(transcript, transcript.rows), width=width)
    yield []
    yield from summary(transcript, width=width)
    yield from capture_lines(transcript, width=width)
    yield []
    yield from finding_lines(transcript, width=width)


def play() -> None:
    """Run client and server with a tap between them that records to the store. Raises: TapError: if that fails."""
    python = [sys.executable, "-P", "-m"]  # not a `mcpspy` in the working folder
    tap = [*python, "mcpspy", "run", "--quiet", "--label", LABEL, "--", *python, "mcpspy.demo.server"]
    client = [*python, "mcpspy.demo.client", *tap]
    done = subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise TapError("client", f"the demo failed with exit status {done.returncode}: {message}")
