"""What the formats of `mcpspy export` have in common: the rows that are asked for, and where the text goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar

import click

from ...capture.store.folder import EXTENSION, captures_folder
from ...transcript.http.transaction import Transaction
from ...transcript.model import Exchange, ModelCall, UnpairedMessage
from ...views.timeline.timeline import rows_between
from ..filter_option import filter_option, passed, wanted_of
from ..transcripts import chosen, row_of, transcript_of

if TYPE_CHECKING:
    from ...transcript.model import Row, Transcript

F = TypeVar("F", bound=Callable[..., object])


def what_options(command: F) -> F:
    """Give a command WHATs, `-o` and `--filter`: they come in as `what`, `output` and `filters`."""
    output = click.option(
        "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to FILE instead of standard output."
    )
    return click.argument("what", nargs=-1)(output(filter_option(command)))


class Asked(NamedTuple):
    """A transcript, the rows of it that are asked for, and the captures it was made of."""

    transcript: Transcript
    rows: list[Row]
    paths: tuple[str, ...]


def asked_rows(what: tuple[str, ...], filters: tuple[str, ...], *, keeps_frames: bool = False) -> Asked:
    """What `what` and `filters` ask for. Raises: AddressError, CaptureError, FilterError; OSError."""
    wanted = wanted_of(filters)
    asked = chosen(what)
    transcript, _ = transcript_of(asked.paths, keeps_frames=keeps_frames)
    if asked.rows is not None:
        row_of(transcript, " ".join(what), asked.rows[0])
    return Asked(transcript, passed(wanted, transcript, rows_between(transcript.rows, asked.rows)), asked.paths)


def addresses_of(paths: Iterable[str]) -> list[str]:
    """What to call captures on a command line, quoted for a shell: those of the store by their names there, others by their paths."""
    folder = captures_folder()
    return [
        quote(os.path.basename(path).removesuffix(EXTENSION) if os.path.dirname(path) == folder else path) for path in paths
    ]


def carried_by(asked: Asked) -> list[Transaction]:
    """The HTTP transactions that carried these rows, in the order in which they began."""
    found: dict[tuple[int, int], Transaction] = {}
    for row in asked.rows:
        if isinstance(row, Exchange | UnpairedMessage | Transaction | ModelCall):
            found |= {(one.capture, one.number): one for one in asked.transcript.captures[row.capture].transactions_of(row)}
    return sorted(found.values(), key=lambda one: (one.at_ns, one.capture, one.number))


def write(texts: Iterable[str], output: str | None) -> None:
    """Write lines to standard output, or to the file at `output`. Raises: OSError."""
    write_text((text + "\n" for text in texts), output)


def write_text(texts: Iterable[str], output: str | None) -> None:
    """The same for texts that have their line ends. Raises: OSError."""
    with _opened(output) as file:
        file.writelines(texts)


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO]:
    """Standard output, or the file at `path`, written anew."""
    if path is None or path == "-":
        yield sys.stdout
        return
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        yield file
