"""The lines of `mcpspy export pytest`: a module of tests; shared copies of the captures that its mock plays are put beside it.

The test is made of the copies, so no secret gets into its source. The pseudonyms are the store's, so that a test that is written
again is the same.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from ...capture.file.format import record_line
from ...capture.file.reader import read
from ...capture.store.address import STDIN
from ...capture.store.folder import EXTENSION
from ...errors import AddressError, ShareError
from ...records import CLIENT, End, Header, Record
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import CaptureInfo, Transcript
from ...views.pytest.sdk import DIALECTS, SDK_1, Dialect
from ..fifo import named_file
from ..filter_option import combined_filter, matching_rows
from ..replay.played import playable, probes_of
from ..screen import say
from ..share import leaks_of, report_copy, warn
from ..share_copy import Original, ShareResult, copier_of
from ..transcripts import CaptureSelection, select_captures, transcript_of
from .selection import ExportRequest

FOLDER = "captures"
"""The folder beside the module in which the fixture looks for captures."""


def lines_of_test(view: Callable[..., Iterable[str]], request: ExportRequest) -> list[str]:
    """Call the view of tests. With `-o` shared copies are put beside the module; else stderr says how to make them.

    Raises: AddressError: if there is nothing to test, or a copy cannot be put there. ShareError: if a copy holds a secret.
    """
    condition, captures = combined_filter(request.filters), select_captures(request.what)
    if STDIN in captures.paths:
        raise AddressError(STDIN, "a test needs a file; name the capture's")
    if captures.rows is None and len(request.what) < 2:
        captures = captures._replace(paths=playable(captures.what, captures.paths))
    probes = {path: probes_of(path) for path in captures.paths}
    is_probe = {probe for paths in probes.values() for probe in paths}
    with TemporaryDirectory() as folder:
        sources = tuple(dict.fromkeys((*captures.paths, *is_probe)))
        copies = dict(zip(sources, _shared(sources, folder), strict=True))
        transcript, _ = transcript_of(CaptureSelection(paths=tuple(copies[path].path for path in captures.paths)))
        rows = matching_rows(condition, transcript, captures.rows_in(transcript))
        dialect = DIALECTS[request.options["sdk"] or _installed_sdk()]
        _check(transcript, captures.paths, dialect)
        names: dict[int, str] = {}
        for path in captures.paths:
            index = None if path in is_probe else _index(transcript, copies[path].path)
            if index is not None:
                server = transcript.captures[index].server
                names[index] = _placed(Path(path), copies[path], server, request.output, set(names.values()))
                for number, probe in enumerate(probes[path], 2):
                    _place_run(Path(probe), copies[probe], names[index], number, request.output)
        return list(view(transcript, rows, names, dialect))


def _shared(paths: tuple[str, ...], folder: str) -> list[ShareResult]:
    """Write copies without secrets to a folder. Raises: ShareError: if a known kind of secret is left; CaptureError, OSError."""
    copier = copier_of(personal=False, same_key=True)
    copies: list[ShareResult] = []
    with ExitStack() as files:
        originals = [Original(files.enter_context(open(path, "rb")), path) for path in paths]
        for original in originals:
            copier.learn(original)
        copier.learned()
        for number, original in enumerate(originals):
            path = os.path.join(folder, f"{number}{EXTENSION}")
            with open(path, "wb") as file:
                copies.append(copier.copy(original, file, path))
    leaks = [leaks_of(path, read(copy.path), (), has_rows=False) for path, copy in zip(paths, copies, strict=True)]
    if warn(leaks):
        raise ShareError(
            "a secret would get into the test. Write a copy with mcpspy export share and its options, and export that"
        )
    return copies


def _check(transcript: Transcript, paths: tuple[str, ...], dialect: Dialect) -> None:
    """Raise AddressError if there is nothing to test, or if the SDK cannot send it."""
    if not any(exchange.sender == CLIENT and exchange.response is not None for exchange in transcript.exchanges):
        reason = "no request in it was answered, so there is nothing to test; record a session with an answer"
        raise AddressError(" ".join(paths), reason)
    if dialect is SDK_1 and not all(_begins_with_initialize(transcript, capture) for capture in transcript.captures):
        raise AddressError(
            " ".join(paths), "it does not begin with initialize, which version 1 of the SDK requires; use --sdk 2"
        )


def _installed_sdk() -> str:
    """Return the major version of the official SDK beside mcpspy; the newest that is known if there is none."""
    try:
        major = version("mcp").partition(".")[0]
    except PackageNotFoundError:
        major = ""
    return major if major in DIALECTS else max(DIALECTS)


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


def _placed(path: Path, copy: ShareResult, server: str, output: str | None, taken: set[str]) -> str:
    """Put a shared copy beside the module, or say how to make it. Returns the name by which the fixture finds it."""
    if output is None or output == "-":
        name = _free(path.name if path.suffix == EXTENSION else f"{path.name}{EXTENSION}", taken)
        _advise_copy(path, name)
        return name
    folder = Path(output).absolute().parent / FOLDER
    if path.absolute().parent == folder and path.suffix == EXTENSION:
        if _are_equal(str(path), copy.path):
            return path.name
        say(f"mcpspy: {path} holds secrets, so the test plays a copy; keep {path.name} to yourself")
        stem = f"{path.stem}.shared"
    else:
        stem = _file_part(server)
    content = Path(copy.path).read_bytes()
    names = (f"{stem}{f'-{number}' if number > 1 else ''}{EXTENSION}" for number in count(1))
    name = next(name for name in names if name not in taken and _has_room(folder / name, content))
    if not (folder / name).exists():
        _copy(copy, folder / name)
    return name


def _place_run(path: Path, copy: ShareResult, name: str, number: int, output: str | None) -> None:
    """Put a shared copy of another run of the server beside the one called `name`, where the fixture plays both together."""
    run = f"{name.removesuffix(EXTENSION)}.run{number}{EXTENSION}"
    if output is None or output == "-":
        _advise_copy(path, run)
    else:
        _copy(copy, Path(output).absolute().parent / FOLDER / run)


def _advise_copy(path: Path, name: str) -> None:
    command = f"mcpspy export share {quote(named_file(str(path)))} --same-key -o {quote(f'{FOLDER}/{name}')}"
    say(f"mcpspy: the test reads {FOLDER}/{name} beside it: {command}, or write the test with -o FILE")


def _has_room(copy: Path, content: bytes) -> bool:
    """Return whether a capture can be copied there, or was."""
    return not copy.exists() or copy.read_bytes() == content


def _are_equal(path: str, copy: str) -> bool:
    """Return whether nothing was replaced in a copy."""
    return all(_content(record) == _content(other) for record, other in zip(read(path), read(copy), strict=False))


def _content(record: Record) -> object:
    """Give what a secret could be in: of a header the command and the texts, of the end nothing."""
    if isinstance(record, Header):
        return record.tapped, record.label, record.cwd, record.parent
    return None if isinstance(record, End) else record_line(0, record)


def _copy(shared: ShareResult, target: Path) -> None:
    """Put a shared copy in its place, and say what was replaced."""
    target.parent.mkdir(exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(shared.path, beside)
    beside.replace(target)
    report_copy(replace(shared, path=str(target)))


def _free(name: str, taken: set[str]) -> str:
    stem, extension = os.path.splitext(name)
    number = 2
    while name in taken:
        name, number = f"{stem}-{number}{extension}", number + 1
    return name


def _file_part(label: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in label).strip(".-") or "server"
