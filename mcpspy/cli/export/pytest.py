"""The lines of `mcpspy export pytest`: a module of tests; the captures that its mock plays are copied beside it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ...capture.file.reader import read
from ...capture.store.address import STDIN
from ...capture.store.folder import EXTENSION
from ...errors import AddressError
from ...records import CLIENT, Header
from ...transcript.mcp.methods import INITIALIZE
from ...views.pytest.sdk import DIALECTS, SDK_1
from ..screen import say
from .selection import select_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...transcript.model import CaptureInfo, Transcript
    from .selection import ExportRequest

FOLDER = "captures"
"""The folder beside the module in which the fixture looks for captures."""


def lines_of_test(view: Callable[..., Iterable[str]], request: ExportRequest) -> list[str]:
    """Call the view of tests. With `-o` the captures are copied beside the module; else stderr says where to put them.

    Raises: AddressError: if there is nothing to test, or a capture cannot be copied there.
    """
    selection = select_rows(request)
    transcript, paths, dialect = selection.transcript, selection.paths, DIALECTS[request.options["sdk"]]
    if STDIN in paths:
        raise AddressError(STDIN, "a test needs a file; name the capture's")
    if not any(exchange.sender == CLIENT and exchange.response is not None for exchange in transcript.exchanges):
        reason = "no request in it was answered, so there is nothing to test; record a session with an answer"
        raise AddressError(" ".join(paths), reason)
    if dialect is SDK_1 and not all(_begins_with_initialize(transcript, capture) for capture in transcript.captures):
        raise AddressError(
            " ".join(paths), "it does not begin with initialize, which version 1 of the SDK requires; leave out --sdk"
        )
    names: dict[int, str] = {}
    for path in paths:
        index = _index(transcript, path)
        if index is not None:
            server = transcript.captures[index].server
            names[index] = _placed(Path(path), server, request.output, set(names.values()))
    return list(view(transcript, selection.rows, names, dialect))


def _begins_with_initialize(transcript: Transcript, capture: CaptureInfo) -> bool:
    exchanges = [
        exchange for exchange in transcript.exchanges if exchange.capture == capture.index and exchange.sender == CLIENT
    ]
    return not exchanges or any(exchange.method == INITIALIZE for exchange in exchanges)


def _index(transcript: Transcript, path: str) -> int | None:
    """Find the index of a capture in the transcript; None if it has no header."""
    header = next(read(path), None)
    if not isinstance(header, Header):
        return None
    return next(
        capture.index for capture in transcript.captures if capture.header and capture.header.capture_id == header.capture_id
    )


def _placed(path: Path, server: str, output: str | None, taken: set[str]) -> str:
    """Copy a capture beside the module, or say where to put it. Returns the name by which the fixture finds it."""
    if output is None or output == "-":
        name = _free(path.name if path.suffix == EXTENSION else f"{path.name}{EXTENSION}", taken)
        say(f"mcpspy: the test reads {FOLDER}/{name} beside it: copy {path} there, or write the test with -o FILE")
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
        raise AddressError(str(copy), "it exists and is another capture; move it, or write the test elsewhere")
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
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in label).strip(".-") or "server"
