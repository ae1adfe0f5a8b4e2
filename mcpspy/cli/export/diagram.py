"""The options of all formats of sequence diagrams, and the diagram that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...views.sequence.diagram import Detail
from ...views.text.escape import safe_text
from .selection import select_rows

if TYPE_CHECKING:
    from ...transcript.model import Transcript
    from ...views.sequence.diagram import Diagram
    from .selection import ExportRequest

DIAGRAM_OPTIONS = (
    click.Option(["--title"], metavar="TEXT", default="", help="A title above the diagram."),
    click.Option(
        ["--lane", "lanes"], metavar="NAME=TEXT", multiple=True, help="Rename a lane, as in --lane weather='the server'."
    ),
    click.Option(
        ["--detail"],
        type=click.Choice([detail.value for detail in Detail]),
        default=Detail.NAMES.value,
        help="What to show of each message: its name (the default), its params on one line, or its payload too.",
    ),
    click.Option(
        ["--max-messages"],
        metavar="N",
        type=click.IntRange(min=1),
        help="Draw at most N messages, and say how many are left out.",
    ),
    click.Option(["--show-proxy"], is_flag=True, help="Draw mcpspy as a lane between client and server."),
    click.Option(["--http"], is_flag=True, help="Draw long HTTP streams as lanes, and the 202 answers to POSTs."),
    click.Option(["--flat"], is_flag=True, help="Do not group messages by phase and round."),
)


def diagram_of(request: ExportRequest) -> Diagram:
    """Lay out the diagram that was asked for. Raises: click.UsageError; AddressError, CaptureError, FilterError; OSError."""
    return _layout(request, **request.options)


def _layout(
    request: ExportRequest, *, lanes: tuple[str, ...], title: str, detail: str, max_messages: int | None, show_proxy: bool,
    http: bool, flat: bool,
) -> Diagram:  # fmt: skip
    from ...views.sequence.layout import Drawing, diagram

    names = dict(map(_name, lanes))
    transcript, rows, _ = select_rows(request)
    _refuse_unknown(names, transcript, http=http)
    drawing = Drawing(
        title=title, names=names, detail=Detail(detail), max_messages=max_messages, with_proxy=show_proxy, with_http=http,
        with_fragments=not flat,
    )  # fmt: skip
    return diagram(transcript, rows, drawing)


def _name(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not text:
        raise click.UsageError(f"--lane takes NAME=TEXT, as in --lane weather='the server'; not {safe_text(word)}")
    return name, text


def _refuse_unknown(names: dict[str, str], transcript: Transcript, *, http: bool) -> None:
    """Refuse a name for a lane that the diagram does not have. Raises: click.UsageError."""
    known = [lane.name for lane in transcript.lanes] + ["mcpspy"]
    known += ["user"] if any(capture.is_model for capture in transcript.captures) else []
    for name in names:
        if name not in known and not (http and name.startswith("GET ")):
            lanes = ", ".join(map(safe_text, known))
            raise click.UsageError(f"there is no lane {safe_text(name)}; the lanes are {lanes}")
