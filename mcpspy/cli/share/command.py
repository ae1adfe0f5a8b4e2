"""`mcpspy export share`: a copy of a capture for an issue tracker, without what is secret, that can still be played."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import click

from ...capture.store.address import STDIN
from ...capture.store.folder import EXTENSION, key
from ...errors import ShareError
from ...replay.compare.ignore import Ignore
from ...sharing.excerpt import Excerpt
from ...sharing.finder import FinderOptions
from ...sharing.known import KnownValues
from ...sharing.names import SecretNames
from ...sharing.user_paths import UserPaths
from ...views.text.units import counted
from ...views.timeline.timeline import rows_between
from ..screen import say
from ..transcripts import CaptureSelection, WhatCommand, row_of, select_captures, transcript_of
from .copy import Copier, Original, Pseudonyms, Shared, spooled
from .environment import named_values, people, secret_variables


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """Compile it."""
        try:
            return re.compile(str(value))
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


@click.command("share", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-o", "--output", metavar="OUT", help="The new capture; for several captures a folder. `-` is standard output.")
@click.option("--key", "keys", metavar="NAME", multiple=True, help="Members of this name hold secrets too.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="All that stands at this JSON path is secret.")
@click.option(
    "--value", "values", metavar="REGEX", type=Pattern(), multiple=True, help="What this matches is secret, or its group."
)
@click.option("--env", "variables", metavar="NAME", multiple=True, help="The value of this environment variable is secret.")
@click.option("--personal", is_flag=True, help="E-mail addresses, home folders, user and host names too.")
@click.option("--keep", metavar="REGEX", type=Pattern(), multiple=True, help="A value that is this as a whole is no secret.")
@click.option("--same-key", is_flag=True, help="The pseudonyms of the store, so that shares can be compared, and linked.")
@click.option(
    "--verify", is_flag=True, help="Look for what slipped through, in OUT, or without -o in WHAT; exit status 1 if any did."
)
@click.option("--json", "as_json", is_flag=True, help="With --verify: one JSON document (docs/json.md).")
def command(
    *,
    what: tuple[str, ...],
    output: str | None,
    keys: tuple[str, ...],
    paths: tuple[str, ...],
    values: tuple[re.Pattern[str], ...],
    variables: tuple[str, ...],
    personal: bool,
    keep: tuple[re.Pattern[str], ...],
    same_key: bool,
    verify: bool,
    as_json: bool,
) -> int:
    """Copy a capture so that it can be shown to anybody, and still be played.

    Secrets become pseudonyms, equal ones equal, wherever they stand: in payloads, header fields, URLs, logs and commands. Found are
    members and parameters whose names say so, tokens by their looks, what the options name, and each value found once wherever
    else it stands. docs/share.md says what is not looked into.

    WHAT is as in `mcpspy show`; `:7..20` shares these rows alone, and the handshake.

    \b
      mcpspy export share @ -o bug.mcpspy --verify
      mcpspy export share @:5..9 -o bug.mcpspy --path '$.arguments.note' --personal
      mcpspy export share --verify bug.mcpspy
    """
    if output is None and not verify:
        raise click.UsageError("Name the new capture with -o OUT, or look for secrets with --verify.")
    if output == STDIN and verify:
        raise click.UsageError("--verify looks into a file; name one with -o.")
    if as_json and not verify:
        raise click.UsageError("--json is what --verify found; add --verify.")
    asked = select_captures(what)
    looked_into = asked.paths
    if output is not None:
        wanted = _Asked(keys, paths, values, variables, keep, personal=personal)
        looked_into = _share(asked, " ".join(what) or "@", output, wanted, same_key=same_key)
    if not verify:
        return 0
    from .verify import report

    return report(looked_into, keep, as_json=as_json)


class _Asked:
    """What the options ask to be taken out."""

    def __init__(
        self,
        keys: tuple[str, ...],
        paths: tuple[str, ...],
        values: tuple[re.Pattern[str], ...],
        variables: tuple[str, ...],
        keep: tuple[re.Pattern[str], ...],
        *,
        personal: bool,
    ) -> None:
        self._paths = UserPaths(Ignore.of(paths)) if paths else None
        self._names, self._values, self._keep, self._personal = SecretNames(keys), values, keep, personal
        self._variables = named_values(variables)

    def wanted(self, stand_in: Callable[[bytes], bytes]) -> FinderOptions:
        return FinderOptions(
            stand_in=stand_in,
            names=self._names,
            paths=self._paths,
            values=self._values,
            keep=self._keep,
            personal=self._personal,
        )

    def known(self, stand_in: Callable[[bytes], bytes]) -> KnownValues:
        """What is known to be secret before anything was read."""
        known = KnownValues(stand_in)
        for _, value in secret_variables():
            known.add(value)
        for value in self._variables:
            known.add(value, telling=True)
        if self._personal:
            for _, value in people():
                known.add(value, "personal", telling=True)
        return known


def _share(asked: CaptureSelection, what: str, output: str, wanted: _Asked, *, same_key: bool) -> tuple[str, ...]:
    """Write the copies; their paths. Raises: ShareError, CaptureError, AddressError, OSError."""
    pseudonyms = Pseudonyms(key(), same_key=same_key)
    known = wanted.known(pseudonyms)
    copier = Copier(wanted.wanted(pseudonyms), known, pseudonyms)
    with ExitStack() as files:
        originals = [_original(path, files) for path in asked.paths]
        excerpts = _excerpts(asked, what)
        for original, excerpt in zip(originals, excerpts, strict=True):
            copier.learn(original, excerpt)
        copier.learned()
        if known.left_out:
            say(f"mcpspy: {counted(known.left_out, 'value')} more than can be sought are replaced only where they were found")
        if output == STDIN:
            if len(originals) > 1:
                raise ShareError(f"{what} is {len(originals)} captures, which need a folder: name one with -o")
            _say(copier.copy(originals[0], sys.stdout.buffer, "standard output", excerpts[0]))
            sys.stdout.buffer.flush()
            return ()
        made: list[str] = []
        for original, excerpt, path in zip(originals, excerpts, _targets(originals, output), strict=True):
            _say(_copied(copier, original, path, excerpt))
            made.append(path)
        return tuple(made)


def _original(path: str, files: ExitStack) -> Original:
    if path == STDIN:
        return spooled(sys.stdin.buffer, "standard input")
    return Original(files.enter_context(open(path, "rb")), path)


def _excerpts(asked: CaptureSelection, what: str) -> list[Excerpt | None]:
    """For each capture the part of it that was asked for; None for all of it."""
    if asked.rows is None:
        return [None] * len(asked.paths)
    if STDIN in asked.paths:
        raise ShareError("rows of standard input cannot be shared: it is read only once. Write it to a file first")
    transcript, _ = transcript_of(asked.paths)
    row_of(transcript, what, asked.rows[0])
    rows = rows_between(transcript.rows, asked.rows)
    return [Excerpt(transcript, transcript.captures[at], rows) for at in range(len(asked.paths))]


def _targets(originals: list[Original], output: str) -> Iterator[str]:
    """Where the copies go. Raises: OSError: if the folder cannot be made."""
    if len(originals) == 1 and not os.path.isdir(output):
        yield output
        return
    os.makedirs(output, mode=0o700, exist_ok=True)
    for original in originals:
        name = os.path.basename(original.name)
        yield os.path.join(output, name if name.endswith(EXTENSION) else f"{name}{EXTENSION}")


def _copied(copier: Copier, original: Original, path: str, excerpt: Excerpt | None) -> Shared:
    """A new file with the copy; no file if that fails."""
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
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


def _say(shared: Shared) -> None:
    """What was done, on stderr."""
    total = shared.counts.total()
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(shared.counts.items()))
    said = f"{counted(total, 'pseudonym')} ({kinds})" if total else "nothing secret was found"
    say(f"mcpspy: {shared.path}: {counted(shared.records, 'record')}, {said}")
    if shared.unread:
        say(f"mcpspy: {counted(shared.unread, 'body', 'bodies')} could not be read, and kept by length alone")
