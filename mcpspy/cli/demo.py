"""`mcpspy demo`: a small client and server, as real processes with a real tap between them, and the timeline of their capture."""

import subprocess
import sys

import click

from ..capture.store.address import resolve
from ..errors import TapError
from ..views.json.rows import transcript_json
from ..views.sequence.layout import diagram
from ..views.sequence.mermaid import mermaid
from ..views.timeline.timeline import timeline
from .screen import Screen, say
from .transcripts import CaptureSelection, transcript_of

LABEL = "demo"

DEADLINE_S = 60
"""The demo takes 2 s. If it takes this long, the machine has another problem."""

NEXT = """
The capture is {path}. Next:
  mcpspy show demo          show the timeline again
  mcpspy show demo:3        show row 3 in full
  mcpspy export text demo   draw the diagram here in the terminal
  mcpspy wrap               record your own servers: insert mcpspy between your clients and them"""


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Print the timeline as JSON (docs/json.md), and nothing else.")
def command(as_json: bool) -> None:
    """Record a small weather server and its client, and show the timeline and a diagram.

    The session has a slow call with progress, a tool error and a protocol error, a request from the server, a line on stdout that
    is not a message, and a cancelled call. It takes two seconds and needs neither network nor configuration.

    \b
    Example:
      mcpspy demo
    """
    play()
    (path,) = resolve(LABEL).captures
    transcript, live = transcript_of(CaptureSelection(paths=(path,)))
    if as_json:
        for piece in transcript_json(transcript, transcript.rows, live=live, whole=False):
            sys.stdout.write(piece)
        return
    screen = Screen()
    screen.lines(timeline(transcript, width=screen.width))
    screen.texts(["", *mermaid(diagram(transcript, transcript.rows))])
    say(NEXT.format(path=path))


def play() -> None:
    """Run client and server with a tap between them that records to the store. Raises: TapError: if that fails."""
    python = [sys.executable, "-P", "-m"]  # not a `mcpspy` in the working folder
    tap = [*python, "mcpspy", "run", "--quiet", "--label", LABEL, "--", *python, "mcpspy.demo.server"]
    client = [*python, "mcpspy.demo.client", *tap]
    done = subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise TapError("client", f"the demo failed with exit status {done.returncode}: {message}")
