"""`mcpspy export pytest`: a module of tests, and the captures that it plays beside it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from ...capture.file.reader import read
from ...capture.store.address import STDIN
from ...capture.store.folder import EXTENSION
from ...errors import AddressError
from ...records import CLIENT, Header
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import CaptureInfo, Row, Transcript
from ...views.pytest.module import pytest_module
from ...views.pytest.sdk import DIALECTS, LINE_1, Dialect
from ..screen import say
from ..transcripts import WhatCommand
from .rows import asked_rows, what_options, write

FOLDER = "captures"
"""Beside the module, where the fixture looks for them."""


@click.command("pytest", cls=WhatCommand)
@click.option(
    "--sdk",
    type=click.Choice(list(DIALECTS)),
    default="2",
    show_default=True,
    help="Which line of the official SDK asks: 1.x or 2.x.",
)
@what_options
def command(what: tuple[str, ...], output: str | None, filters: tuple[str, ...], sdk: str) -> None:
    """Write a test that asks the same again, of the capture (docs/pytest.md). With -o the capture is put beside it.

    \b
    Example:
      mcpspy export pytest weather -o tests/test_weather.py
    """
    asked = asked_rows(what, filters)
    write(list(module(asked.transcript, asked.rows, asked.paths, output, DIALECTS[sdk])), output)


def module(
    transcript: Transcript, rows: list[Row], paths: tuple[str, ...], output: str | None, dialect: Dialect
) -> Iterator[str]:
    """The lines of the module. With `output` its captures are put beside that; without, it is said where they belong.

    Raises: AddressError: if there is nothing to test, or a capture cannot lie there.
    """
    if STDIN in paths:
        raise AddressError(STDIN, "a test plays a file; name the capture's")
    if not any(one.sender == CLIENT and one.response is not None for one in transcript.exchanges):
        reason = "nothing in it was answered, so there is nothing to test; record a session in which something is"
        raise AddressError(" ".join(paths), reason)
    if dialect is LINE_1 and not all(_is_opened_by_initialize(transcript, one) for one in transcript.captures):
        raise AddressError(
            " ".join(paths), "it does not open with initialize, and line 1 of the SDK knows nothing else; leave --sdk out"
        )
    names: dict[int, str] = {}
    for path in paths:
        index = _index(transcript, path)
        if index is not None:
            names[index] = _placed(Path(path), transcript.captures[index].server, output, set(names.values()))
    return pytest_module(transcript, rows, names, dialect)


def _is_opened_by_initialize(transcript: Transcript, source: CaptureInfo) -> bool:
    asked = [one for one in transcript.exchanges if one.capture == source.index and one.sender == CLIENT]
    return not asked or any(one.method == INITIALIZE for one in asked)


def _index(transcript: Transcript, path: str) -> int | None:
    """Which source of the transcript a capture is; None where it has no header."""
    header = next(read(path), None)
    if not isinstance(header, Header):
        return None
    return next(one.index for one in transcript.captures if one.header and one.header.capture_id == header.capture_id)


def _placed(path: Path, server: str, output: str | None, taken: set[str]) -> str:
    """The name of a capture as the fixture knows it."""
    if output is None or output == "-":
        name = _free(path.name if path.suffix == EXTENSION else f"{path.name}{EXTENSION}", taken)
        say(f"mcpspy: the test plays {FOLDER}/{name} beside it: put {path} there, or write the test with -o FILE")
        return name
    folder = Path(output).absolute().parent / FOLDER
    if path.absolute().parent == folder and path.suffix == EXTENSION:
        return path.name
    name = _free(f"{_file_part(server)}{EXTENSION}", taken)
    _copy(path, folder / name)
    return name


def _copy(path: Path, copy: Path) -> None:
    if copy.exists():
        if copy.read_bytes() == path.read_bytes():
            return
        raise AddressError(str(copy), "it is there already, and is another capture; move it away, or write the test elsewhere")
    copy.parent.mkdir(exist_ok=True)
    beside = copy.with_name(f".{copy.name}.{os.getpid()}")
    shutil.copyfile(path, beside)
    beside.replace(copy)
    say(f"mcpspy: copied to {copy}")


def _free(name: str, taken: set[str]) -> str:
    stem, extension = os.path.splitext(name)
    number = 2
    while name in taken:
        name, number = f"{stem}-{number}{extension}", number + 1
    return name


def _file_part(label: str) -> str:
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in label).strip(".-") or "server"
