"""Where lines go: in colour and at its width on a terminal, plain and unbounded on a pipe. Words for people go to stderr."""

import shutil
import sys
from collections.abc import Iterable

import click

from ..views.line import PALETTE, Line, plain


def width() -> int | None:
    """How many cells a line on stdout may take; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def show_lines(lines: Iterable[Line]) -> None:
    """Write `lines` to stdout, each as it comes."""
    if not sys.stdout.isatty():
        for line in lines:
            sys.stdout.write(plain(line) + "\n")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, PALETTE[style]) for text, style in line)))


def say(words: str) -> None:
    """Write words for a person to stderr."""
    click.echo(words, err=True)
