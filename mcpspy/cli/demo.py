"""`mcpspy demo`: our small client and server, as real processes with a real tap between them, and what can be seen of them."""

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
from .transcripts import transcript_of

LABEL = "demo"

DEADLINE_S = 60
"""The scene takes 2 s; a machine that needs this long has another trouble."""

NEXT = """
The capture is {path}. Next:
  mcpspy show demo          the timeline again
  mcpspy show demo:3        one exchange whole
  mcpspy export text demo   the diagram as a ladder, here in the terminal
  mcpspy run -- COMMAND     the same for a server of yours: put it before the command in your client's configuration"""


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="The timeline as JSON (docs/json.md), and nothing else.")
def command(as_json: bool) -> None:
    """Watch mcpspy at work: a weather server and a client, a tap between them, and what it saw.

    The scene has a slow call with progress, an error of the tool and one of the protocol, a request of the server, a line on
    stdout that is no message, and a cancelled call. It takes two seconds and needs neither network nor configuration.

    \b
    Example:
      mcpspy demo
    """
    play()
    (path,) = resolve(LABEL).captures
    transcript, live = transcript_of((path,))
    if as_json:
        for piece in transcript_json(transcript, transcript.rows, live=live, whole=False):
            sys.stdout.write(piece)
        return
    screen = Screen()
    screen.lines(timeline(transcript, width=screen.width))
    screen.texts(["", *mermaid(diagram(transcript, transcript.rows))])
    say(NEXT.format(path=path))


def play() -> None:
    """Play the scene through a tap that records into the store. Raises: TapError: if it broke off."""
    python = [sys.executable, "-P", "-m"]  # whatever the folder holds in which somebody tries this
    tap = [*python, "mcpspy", "run", "--quiet", "--label", LABEL, "--", *python, "mcpspy.demo.server"]
    client = [*python, "mcpspy.demo.client", *tap]
    played = subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
    if played.returncode:
        words = played.stderr.decode(errors="replace").strip()
        raise TapError("client", f"the demo broke off with exit status {played.returncode}: {words}")
