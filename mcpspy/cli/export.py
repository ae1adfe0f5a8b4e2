"""`mcpspy export`: a transcript in the form that another program or a page wants."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from ..transcript.model import Row, Transcript
from ..views.diagram import diagram
from ..views.ladder import ladder
from ..views.line import Line, fitted, plain
from ..views.mermaid import MAX_TEXT_LETTERS, mermaid
from ..views.messages_json import message_lines
from ..views.timeline import selected
from .filtering import filter_option, passed, wanted_of
from .reading import WhatCommand, chosen, row_of, transcript_of
from .screen import Screen, say

FORMATS = ("mermaid", "text", "jsonl", "pytest", "share")

LADDER_CELLS = 100
"""How wide a ladder is that goes to a file or a pipe, unless COLUMNS says otherwise."""


class _Formats(WhatCommand):
    """The formats; one with options of its own is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the format that is named first, where it has one."""
        if args[:1] == ["share"]:
            from .share import command as share

            return share.make_context(f"{info_name} share", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("export", cls=_Formats)
@click.argument("format", type=click.Choice(FORMATS))
@click.argument("what", nargs=-1)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to FILE instead of standard output."
)
@filter_option
def command(format: str, what: tuple[str, ...], output: str | None, filters: tuple[str, ...]) -> None:
    """Write what was said as a diagram or as data.

    \b
    mermaid  a sequence diagram for Mermaid: in Markdown, on a page, at mermaid.live
    text     the same as a ladder of characters
    jsonl    the decoded messages, one JSON object per line (docs/json.md)
    pytest   a test that asks the same again, of the capture (docs/pytest.md); with -o the capture is put beside it
    share    a capture that can be shown to anybody, and still be played (mcpspy export share --help)

    WHAT is as in `mcpspy show`: captures, sittings, labels; `:7..20` takes rows 7 to 20 only.
    """
    if format == "share":
        raise click.UsageError("share comes first, and has options of its own: mcpspy export share WHAT -o OUT.")
    wanted = wanted_of(filters)
    asked = chosen(what)
    transcript, _ = transcript_of(asked.paths)
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
    rows = passed(wanted, transcript, selected(transcript.rows, asked.rows))
    screen = Screen()
    if format == "text" and output is None:
        screen.lines(_ladder(transcript, rows, screen.width))
        return
    if format == "pytest":
        from .export_pytest import module

        module_lines = list(module(transcript, rows, asked.paths, output))
        with _opened(output) as file:
            _write(file, module_lines)
        return
    texts = {"mermaid": _mermaid, "text": _ladder_texts, "jsonl": message_lines}[format](transcript, rows)
    with _opened(output) as file:
        _write(file, texts)


def _mermaid(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    letters = 0
    for line in mermaid(diagram(transcript, rows)):
        letters += len(line) + 1
        yield line
    if letters > MAX_TEXT_LETTERS:
        say(
            f"mcpspy: the diagram has {letters:,} letters, and Mermaid draws no more than {MAX_TEXT_LETTERS:,} unless its"
            " maxTextSize is raised. Take fewer rows, as in @:1..40."
        )


def _ladder_texts(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    return map(plain, _ladder(transcript, rows, None))


def _ladder(transcript: Transcript, rows: list[Row], width: int | None) -> Iterator[Line]:
    width = width or LADDER_CELLS
    return (fitted(line, width) for line in ladder(diagram(transcript, rows), width=width))


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO]:
    """Standard output, or the file at `path`, written anew."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        yield file


def _write(file: TextIO, texts: Iterable[str]) -> None:
    file.writelines(text + "\n" for text in texts)
