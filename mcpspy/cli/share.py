"""`mcpspy export share`: a copy of a capture without secrets, for an issue tracker, that can still be replayed.

It lists secrets that are left, where they are, and the option that removes each; with `--verify`, of captures as they are.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, Final, TypeAlias

import click

from ..capture.store.address import STDIN
from ..capture.store.folder import EXTENSION
from ..errors import ShareError
from ..platform.files import BINARY
from ..records import Record
from ..sharing.excerpt import Excerpt
from ..sharing.verify import Leak, LeakFinder
from ..transcript.http.transaction import Transaction
from ..transcript.model import Exchange, ModelCall, UnpairedMessage
from ..views.text.escape import safe_text
from ..views.text.line import plain
from ..views.text.units import counted
from ..views.verification import CaptureLeaks, LeakLine, leaks_json, report_lines
from .capture_options import UsageError
from .click_types import WhatCommand, Word
from .fifo import named_file
from .progress import ReadingProgress, reading
from .screen import Screen, say
from .share_copy import Copier, Original, ShareResult, copier_of, people, spooled, suspicious_variables
from .transcripts import CaptureSelection, header_of, records_of, select_captures, transcript_of, transcript_of_file

MOST_LISTED = 10
"""Of the leaks that nobody asked for, so many values are listed."""


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from None


@click.command("share", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-o", "--output", metavar="OUT", help="The new capture, or a folder for several. `-` is standard output.")
@click.option("--key", "keys", metavar="NAME", multiple=True, help="Members with this name are secret too.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="The values at this JSON path are secret.")
@click.option(
    "--value",
    "values",
    metavar="REGEX",
    type=Word("regex", _pattern),
    multiple=True,
    help="Text that matches is secret; if REGEX has a group, only the group.",
)
@click.option("--env", "variables", metavar="NAME", multiple=True, help="The value of this environment variable is secret.")
@click.option("--personal", is_flag=True, help="Replace e-mail addresses, home folders, user and host names too.")
@click.option(
    "--keep",
    metavar="REGEX",
    type=Word("regex", _pattern),
    multiple=True,
    help="A value that matches as a whole is not secret.",
)
@click.option("--same-key", is_flag=True, help="Keep the pseudonyms of the store, so that shares can be compared, and linked.")
@click.option(
    "--verify",
    is_flag=True,
    help="Report all secrets that may be left in OUT, or in WHAT without -o; fail also for text that only looks random.",
)
@click.option("--json", "as_json", is_flag=True, help="With --verify: print JSON for programs (docs/json.md).")
def command(
    *,
    what: tuple[str, ...],
    output: str | None,
    keep: tuple[re.Pattern[str], ...],
    verify: bool,
    as_json: bool,
    **secrets: Any,
) -> int:
    """Copy a capture without its secrets, so that you can show it to others, and it can still be replayed.

    Secrets are replaced by pseudonyms in payloads, header fields, URLs, logs and commands. The same secret always gets the same
    pseudonym. mcpspy finds values by the names of their members and parameters, tokens by their form, and what the options name;
    a value that was found once is replaced everywhere. docs/share.md says what is not searched. Then the copy is searched for
    secrets that are left. The exit status is 1 if one of a known kind is.

    WHAT is as in `mcpspy show`; `:7..20` copies only these rows and the handshake. Options that name a secret can be repeated.

    \b
      mcpspy export share @ -o bug.mcpspy --verify
      mcpspy export share @:5..9 -o bug.mcpspy --path '$.arguments.note' --personal
      mcpspy export share --verify bug.mcpspy
    """
    if output is None and not verify:
        raise click.UsageError("Name the new capture with -o OUT, or search for secrets with --verify.")
    if output == STDIN and verify:
        raise click.UsageError("--verify needs a file; name one with -o.")
    if as_json and not verify:
        raise click.UsageError("--json is for --verify; add that.")
    selection = select_captures(what)

    def search(path: str, records: Iterable[Record]) -> CaptureLeaks:
        return leaks_of(path, records, keep, has_rows=verify and path != STDIN)

    if output is None:
        with reading(selection.paths) as progress:
            return _report([search(path, records_of(path, progress)) for path in selection.paths], as_json=as_json)
    searched = _share(selection, " ".join(what) or "@", output, copier_of(keep=keep, **secrets), search)
    return _report(searched, as_json=as_json) if verify else warn(searched)


_PASSES: Final = 3
"""Number of times that a capture is read: to learn its secrets, to copy it, and to search the copy for what is left."""

_Search: TypeAlias = Callable[[str, Iterable[Record]], CaptureLeaks]


def _share(selection: CaptureSelection, what: str, output: str, copier: Copier, search: _Search) -> list[CaptureLeaks]:
    """Write the copies. Returns what `search` finds in them. Raises: ShareError, CaptureError, AddressError, OSError."""
    with ExitStack() as files:
        progress = files.enter_context(reading(selection.paths, passes=_PASSES))
        originals = [_original(path, files, progress) for path in selection.paths]
        excerpts = _excerpts(selection)
        for original, excerpt in zip(originals, excerpts, strict=True):
            copier.learn(original, excerpt)
        copier.learned()
        if copier.known.left_out:
            many = counted(copier.known.left_out, "value")
            say(f"mcpspy: too many secrets: {many} of them are replaced only where they were found")
        if output == STDIN:
            if len(originals) > 1:
                raise ShareError(f"{what} is {len(originals)} captures, which need a folder; name one with -o")
            copy = files.enter_context(TemporaryFile())
            name = "standard output"
            report_copy(copier.copy(originals[0], copy, name, excerpts[0]))
            copy.seek(0)
            copyfileobj(copy, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            return [search(name, Original(copy, name).records())]
        paths = list(_targets(originals, output))
        for original, excerpt, path in zip(originals, excerpts, paths, strict=True):
            report_copy(_copied(copier, original, path, excerpt))
        return [search(path, records_of(path, progress)) for path in paths]


def _original(path: str, files: ExitStack, progress: ReadingProgress) -> Original:
    if path == STDIN:
        return spooled(sys.stdin.buffer, "standard input")
    return Original(files.enter_context(open(path, "rb")), path, progress)


def _excerpts(selection: CaptureSelection) -> list[Excerpt | None]:
    """Make the excerpt of each capture; None for all of it. Of a capture that several clients share, only one client's rows."""
    if selection.rows is None and not selection.clients:
        return [None] * len(selection.paths)
    if STDIN in selection.paths:
        raise ShareError("rows of standard input cannot be copied, as it can be read only once. Write it to a file first")
    transcript, _ = transcript_of(selection)
    rows = selection.rows_in(transcript)
    infos = {info.header.capture_id: info for info in transcript.captures if info.header is not None}
    excerpts: list[Excerpt | None] = []
    for path in selection.paths:
        header = header_of(path)
        if header is None or (selection.rows is None and path not in selection.clients):
            excerpts.append(None)
        else:
            excerpts.append(Excerpt(transcript, infos[header.capture_id], rows))
    return excerpts


def _targets(originals: list[Original], output: str) -> Iterator[str]:
    """Yield the path of each copy. Raises: OSError: if the folder cannot be created."""
    if len(originals) == 1 and not os.path.isdir(output):
        yield output
        return
    os.makedirs(output, mode=0o700, exist_ok=True)
    for original in originals:
        name = os.path.basename(original.name)
        yield os.path.join(output, name if name.endswith(EXTENSION) else f"{name}{EXTENSION}")


def _copied(copier: Copier, original: Original, path: str, excerpt: Excerpt | None) -> ShareResult:
    """Write a copy to a new file, which is removed if that fails."""
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
    except FileExistsError as error:
        raise ShareError(f"{path} exists; name a file that does not") from error
    try:
        with open(target, "wb") as file:
            shared = copier.copy(original, file, path, excerpt)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(path)
        raise
    return shared


_REPLACED: Final = {
    "authorization": ("authorization", "authorizations"),
    "cookie": ("cookie", "cookies"),
    "dpop": ("DPoP proof", "DPoP proofs"),
    "json-path": ("value selected by --path", "values selected by --path"),
    "key": ("password or key", "passwords or keys"),
    "path": ("part of a URL's path", "parts of a URL's path"),
    "personal": ("personal detail", "personal details"),
    "session": ("session id", "session ids"),
    "token": ("token", "tokens"),
    "userinfo": ("login in a URL", "logins in a URL"),
    "value": ("known value", "known values"),
}
"""The words for each kind of replacement, for one and for several."""


_NOTHING: Final = (
    "nothing was replaced: no name of a secret, no token of a known form and no value of an option was found; read the copy"
)
"""A secret without any of these is not found, so this does not say that there is none."""


def report_copy(shared: ShareResult) -> None:
    """Say on stderr what was replaced."""
    kinds = ", ".join(counted(count, *_REPLACED.get(kind, (kind,))) for kind, count in sorted(shared.counts.items()))
    replaced = f"replaced by pseudonyms: {safe_text(kinds)}" if kinds else _NOTHING
    say(f"mcpspy: {shared.path}: {counted(shared.records, 'record')}; {replaced}")
    if shared.unread:
        say(f"mcpspy: {counted(shared.unread, 'body', 'bodies')} could not be read; only the length is kept")


def _report(captures: list[CaptureLeaks], *, as_json: bool) -> int:
    """Print the leaks of captures. Returns the exit status: 1 if there are any."""
    if as_json:
        click.echo(leaks_json(captures), nl=False)
    else:
        screen = Screen()
        screen.lines(line for capture in captures for line in report_lines(capture, width=screen.width))
    return int(any(capture.leaks for capture in captures))


def warn(captures: list[CaptureLeaks]) -> int:
    """Print the leaks of captures to stderr. Returns the exit status: 1 if any is of a known kind of secret."""
    screen = Screen()
    for capture in captures:
        for line in report_lines(capture, width=None, most=MOST_LISTED) if capture.leaks else ():
            say(screen.letters(plain(line)))
    return int(any(capture.known for capture in captures))


def leaks_of(path: str, records: Iterable[Record], keep: tuple[re.Pattern[str], ...], *, has_rows: bool) -> CaptureLeaks:
    """Search the records of a capture. With `has_rows`, its file is read again for the rows of leaks.

    Raises: CaptureError, OSError.
    """
    finder = LeakFinder(environment=suspicious_variables(), people=people(), keep=keep)
    leaks: list[Leak] = []
    for record in records:
        leaks += finder.feed(record)
    leaks += finder.close()
    rows = _rows(path) if leaks and has_rows else {}
    return CaptureLeaks(
        path=named_file(path),
        leaks=tuple(
            LeakLine(
                record=leak.number,
                row=rows.get(leak.number),
                where=leak.where,
                kind=leak.kind,
                name=leak.name or None,
                shown=leak.shown,
                length=leak.length,
                option=leak.option,
                known=leak.is_known,
            )
            for leak in leaks
        ),
        known=finder.known,
        more=finder.more,
        unread=finder.unread,
    )


def _rows(path: str) -> dict[int, int]:
    """Map the numbers of records to their rows."""
    transcript = transcript_of_file(path)
    by_record: dict[int, int] = {}
    for row in transcript.rows:
        match row:
            case Exchange():
                by_record.update((message.number, row.row) for message in row.messages)
            case UnpairedMessage():
                by_record[row.message.number] = row.row
            case Transaction() | ModelCall():
                transaction = row.transaction if isinstance(row, ModelCall) else row
                streams = (transaction.request, transaction.response)
                by_record.update((stream.record, row.row) for stream in streams if stream is not None)
    return by_record
