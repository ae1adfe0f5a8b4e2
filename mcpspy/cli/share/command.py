"""`mcpspy export share`: a copy of a capture without secrets, for an issue tracker, that can still be replayed."""

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
from .copy import Copier, Original, Pseudonyms, ShareResult, spooled
from .environment import named_values, people, secret_variables


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """Compile the expression."""
        try:
            return re.compile(str(value))
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)


@click.command("share", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-o", "--output", metavar="OUT", help="The new capture, or a folder for several. `-` is standard output.")
@click.option("--key", "keys", metavar="NAME", multiple=True, help="Members with this name are secret too.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="The values at this JSON path are secret.")
@click.option(
    "--value",
    "values",
    metavar="REGEX",
    type=Pattern(),
    multiple=True,
    help="What this matches is secret, or only its group.",
)
@click.option("--env", "variables", metavar="NAME", multiple=True, help="The value of this environment variable is secret.")
@click.option("--personal", is_flag=True, help="Replace e-mail addresses, home folders, user and host names too.")
@click.option(
    "--keep",
    metavar="REGEX",
    type=Pattern(),
    multiple=True,
    help="A value that this matches as a whole is not secret.",
)
@click.option("--same-key", is_flag=True, help="Keep the pseudonyms of the store, so that shares can be compared, and linked.")
@click.option(
    "--verify", is_flag=True, help="Search OUT, or WHAT without -o, for secrets that are left; exit status 1 if there are any."
)
@click.option("--json", "as_json", is_flag=True, help="With --verify: print one JSON document (docs/json.md).")
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
    """Copy a capture without its secrets, so that you can show it to others, and it can still be replayed.

    Secrets are replaced by pseudonyms in payloads, header fields, URLs, logs and commands. The same secret always gets the same
    pseudonym. mcpspy finds values by the names of their members and parameters, tokens by their form, and what the options name;
    a value that was found once is replaced everywhere. docs/share.md says what is not searched.

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
    searched = selection.paths
    if output is not None:
        secrets = _SecretOptions(keys, paths, values, variables, keep, personal=personal)
        searched = _share(selection, " ".join(what) or "@", output, secrets, same_key=same_key)
    if not verify:
        return 0
    from .verify import report

    return report(searched, keep, as_json=as_json)


class _SecretOptions:
    """The options that say what is secret."""

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

    def finder_options(self, pseudonym: Callable[[bytes], bytes]) -> FinderOptions:
        """Make the options of the finder."""
        return FinderOptions(
            pseudonym=pseudonym,
            names=self._names,
            paths=self._paths,
            values=self._values,
            keep=self._keep,
            personal=self._personal,
        )

    def known(self, pseudonym: Callable[[bytes], bytes]) -> KnownValues:
        """Collect the values that are known to be secret before a capture is read."""
        known = KnownValues(pseudonym)
        for _, value in secret_variables():
            known.add(value)
        for value in self._variables:
            known.add(value, telling=True)
        if self._personal:
            for _, value in people():
                known.add(value, "personal", telling=True)
        return known


def _share(selection: CaptureSelection, what: str, output: str, secrets: _SecretOptions, *, same_key: bool) -> tuple[str, ...]:
    """Write the copies. Returns their paths. Raises: ShareError, CaptureError, AddressError, OSError."""
    pseudonyms = Pseudonyms(key(), same_key=same_key)
    known = secrets.known(pseudonyms)
    copier = Copier(secrets.finder_options(pseudonyms), known, pseudonyms)
    with ExitStack() as files:
        originals = [_original(path, files) for path in selection.paths]
        excerpts = _excerpts(selection, what)
        for original, excerpt in zip(originals, excerpts, strict=True):
            copier.learn(original, excerpt)
        copier.learned()
        if known.left_out:
            many = counted(known.left_out, "value")
            say(f"mcpspy: too many secrets: {many} of them are replaced only where they were found")
        if output == STDIN:
            if len(originals) > 1:
                raise ShareError(f"{what} is {len(originals)} captures, which need a folder; name one with -o")
            _report(copier.copy(originals[0], sys.stdout.buffer, "standard output", excerpts[0]))
            sys.stdout.buffer.flush()
            return ()
        copies: list[str] = []
        for original, excerpt, path in zip(originals, excerpts, _targets(originals, output), strict=True):
            _report(_copied(copier, original, path, excerpt))
            copies.append(path)
        return tuple(copies)


def _original(path: str, files: ExitStack) -> Original:
    if path == STDIN:
        return spooled(sys.stdin.buffer, "standard input")
    return Original(files.enter_context(open(path, "rb")), path)


def _excerpts(selection: CaptureSelection, what: str) -> list[Excerpt | None]:
    """Make the excerpt of each capture; None for all of it."""
    if selection.rows is None:
        return [None] * len(selection.paths)
    if STDIN in selection.paths:
        raise ShareError("rows of standard input cannot be copied, as it can be read only once. Write it to a file first")
    transcript, _ = transcript_of(selection.paths)
    row_of(transcript, what, selection.rows[0])
    rows = rows_between(transcript.rows, selection.rows)
    return [Excerpt(transcript, transcript.captures[at], rows) for at in range(len(selection.paths))]


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


def _report(shared: ShareResult) -> None:
    """Say on stderr what was replaced."""
    total = shared.counts.total()
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(shared.counts.items()))
    replaced = f"{counted(total, 'pseudonym')} ({kinds})" if total else "no secret was found"
    say(f"mcpspy: {shared.path}: {counted(shared.records, 'record')}, {replaced}")
    if shared.unread:
        say(f"mcpspy: {counted(shared.unread, 'body', 'bodies')} could not be read; only the length is kept")
