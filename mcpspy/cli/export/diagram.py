"""The options that all formats of diagrams have, and the diagram that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from ...views.sequence.layout import Drawing, diagram
from ...views.sequence.model import Detail
from ...views.text.escape import safe_text
from .rows import asked_rows, what_options

if TYPE_CHECKING:
    from ...transcript.model import Transcript
    from ...views.sequence.model import Diagram

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = (
    click.option("--title", metavar="TEXT", default="", help="A title above the diagram."),
    click.option(
        "--lane", "lanes", metavar="NAME=TEXT", multiple=True, help="What to call a lane, as in --lane weather='the server'."
    ),
    click.option(
        "--detail",
        type=click.Choice([one.value for one in Detail]),
        default=Detail.NAMES.value,
        help="How much is told of each message: its name (the default), its params in one line, or its payload too.",
    ),
    click.option(
        "--max-messages", metavar="N", type=click.IntRange(min=1), help="Draw no more than N messages, and say how many more."
    ),
    click.option("--show-proxy", is_flag=True, help="Draw mcpspy as a lane between client and server."),
    click.option("--http", is_flag=True, help="Of HTTP draw long streams as lanes, and the 202 that a POST was answered with."),
    click.option("--flat", is_flag=True, help="Leave out phases and rounds."),
)


def drawing_options(command: F) -> F:
    """Give a command WHATs and the options of diagrams; they are for `drawn`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return what_options(command)


def drawn(
    what: tuple[str, ...], filters: tuple[str, ...], *, lanes: tuple[str, ...], title: str, detail: str, max_messages: int | None,
    show_proxy: bool, http: bool, flat: bool,
) -> Diagram:  # fmt: skip
    """The diagram that was asked for. Raises: click.UsageError; AddressError, CaptureError, FilterError; OSError."""
    names = dict(map(_name, lanes))
    transcript, rows, _ = asked_rows(what, filters)
    _refuse_unknown(names, transcript, http=http)
    drawing = Drawing(
        title=title, names=names, detail=Detail(detail), max_messages=max_messages, is_proxy_shown=show_proxy, is_http_told=http,
        is_grouped=not flat,
    )  # fmt: skip
    return diagram(transcript, rows, drawing)


def _name(word: str) -> tuple[str, str]:
    name, sign, text = word.partition("=")
    if not sign or not text:
        raise click.UsageError(f"--lane takes NAME=TEXT, as in --lane weather='the server'; not {safe_text(word)}")
    return name, text


def _refuse_unknown(names: dict[str, str], transcript: Transcript, *, http: bool) -> None:
    known = [lane.name for lane in transcript.lanes] + ["mcpspy"]
    known += ["user"] if any(source.is_model for source in transcript.captures) else []
    for name in names:
        if name not in known and not (http and name.startswith("GET ")):
            there = ", ".join(map(safe_text, known))
            raise click.UsageError(f"there is no lane {safe_text(name)}; there is {there}")
