"""The page on what replays what, made of what the tests of the matrix do."""

from captures.make import STORIES
from mcpspy.capture.file.reader import read
from mcpspy.records import CLIENT
from mcpspy.transcript.transcribe import transcribe
from tests.interop.matrix import CAPTURES, HTTP_STORIES, LEFT_OUT, OWN_STEPS, REPLAYED, SERVED, TRANSPORTS, UNSAID

HEAD = """\
# What replays what

Each [capture](../captures/README.md) of a session that ended well, played both ways by the tests of the project.
This page is made of what they do, and one of them fails where it is not current
(`MCPSPY_WRITE_DOCS=1 pytest tests/interop/test_matrix_page.py`).

- **Served by [`mcpspy mock`](mock.md)** over each transport to the client that recorded it:
  ✓ says that the client asked the same and got the same: every answer and error, as much progress,
  the same requests of the server, the same news.
  Over the one on which it was recorded, if that was HTTP, methods, paths, statuses, content types, challenges
  and redirections are the same too.
- **Played by [`mcpspy replay`](replay.md)** to the server that made it:
  ✓ says that all was asked again and that nothing differs, beyond what [comparing](diff.md) leaves out anyway.
"""

OTHER_CLIENT = "by the SDK's plain client: the one that recorded it speaks Streamable HTTP alone"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Notes:
    """The notes below the table, each once, in the order in which they are needed."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def cell(self, *notes: str) -> str:
        """Make a tick with the numbers of its notes."""
        numbers = [self._number(note) for note in notes if note]
        return " ".join(["✓", *(str(number).translate(SUPERSCRIPTS) for number in numbers)])

    def _number(self, note: str) -> int:
        if note not in self.said:
            self.said.append(note)
        return self.said.index(note) + 1


def page() -> str:
    """Make the text of the page."""
    notes = Notes()
    lines = [
        f"| capture | requests | recorded on | mock: {' | mock: '.join(TRANSPORTS.values())} | replay |",
        "| --- " * (len(TRANSPORTS) + 4) + "|",
        *(row(name, notes) for name in SERVED),
    ]
    explained = [f"{str(number).translate(SUPERSCRIPTS)} {note}." for number, note in enumerate(notes.said, 1)]
    left_out = [f"Left out: {', '.join(f'`{name}`, since {why}' for name, why in LEFT_OUT.items())}."]
    return "\n".join([HEAD, *lines, "", "\\\n".join(explained), "", *left_out]) + "\n"


def row(name: str, notes: Notes) -> str:
    """Write the row of one capture."""
    cells = [notes.cell(*mocked(name, transport)) for transport in TRANSPORTS]
    replayed = REPLAYED.get(name)
    requests = sum(exchange.sender == CLIENT for exchange in transcribe(read(str(CAPTURES / f"{name}.mcpspy"))).exchanges)
    recorded = TRANSPORTS[HTTP_STORIES.get(name, "stdio")]
    words = [
        f"[`{name}`](../captures/{name}.txt)",
        str(requests),
        recorded,
        *cells,
        notes.cell(replayed.why if replayed else ""),
    ]
    return f"| {' | '.join(words)} |"


def mocked(name: str, transport: str) -> list[str]:
    """List the footnotes of a cell."""
    unsaid = UNSAID.get((name, transport))
    is_other = transport != "streamable" and name in OWN_STEPS and not (name == "oauth" and transport == "sse")
    assert name not in OWN_STEPS or STORIES[name].client
    return [OTHER_CLIENT if is_other else "", unsaid.why if unsaid else ""]
