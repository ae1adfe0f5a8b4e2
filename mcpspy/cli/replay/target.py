"""Where a replay goes: the command behind `--`, the URL of `--url`, or what was recorded, which is asked for first."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from shlex import join
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import click

from ...transcript.decode import stdio_framing
from ...transcript.http.transaction import ScopeKind
from ...views.text.escape import safe_text
from ...wire.lines import Lines
from ..screen import say

if TYPE_CHECKING:
    from ssl import SSLContext

    from ...transcript.model import CaptureInfo
    from ...wire.framing import StdioFraming

Transport: TypeAlias = Literal["stdio", "streamable", "sse"]

AUTHORIZATION = "MCPSPY_AUTHORIZATION"
"""The variable that holds the `Authorization` field for those who want it in no process list. Only a URL that was named gets it."""

MAX_LISTED = 20

GIT_PREFIX = "GIT_PREFIX"
"""What git sets for all that it runs: `git bisect run`, hooks, aliases."""

_of_every_client = re.compile(
    r"(accept|content|sec|mcp|x-forwarded)(-.*)?"
    r"|baggage|cache-control|connection|dnt|expect|forwarded|host|keep-alive|last-event-id|origin|pragma|priority|referer|te"
    r"|traceparent|tracestate|transfer-encoding|user-agent|via"
).fullmatch
"""Header fields that say nothing of who asks: a peer sends its own."""

_is_redacted = re.compile(r"redacted-[0-9a-f]{12}").search


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server: `argv` on stdio, to be started in `cwd` (empty: here), else `url`. `is_recorded` says that nobody named it now."""

    transport: Transport
    argv: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    is_recorded: bool = False
    tls: SSLContext | None = None
    """How an https server is trusted; None: as usual."""
    framing: type[StdioFraming] = Lines
    """In which the messages go on stdio."""

    def __str__(self) -> str:
        """As people write it."""
        return self.url or join(self.argv)

    @property
    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {"transport": self.transport} | ({"url": self.url} if self.url else {"argv": self.argv})


def target_of(
    source: CaptureInfo,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    fields: tuple[str, ...],
    tls: SSLContext | None = None,
) -> Target:
    """What was asked for. Raises: click.UsageError."""
    if command and url:
        raise click.UsageError("Name a server's command behind --, or its URL with --url, not both.")
    if command and (transport or fields):
        raise click.UsageError(f"--{'transport' if transport else 'header'} is for a server with a URL; add --url.")
    if command:
        return Target(transport="stdio", argv=command, framing=stdio_framing([source]))
    tapped = source.header.tapped if source.header else {}
    recorded_url = str(tapped.get("url") or "")
    if url or recorded_url:
        found = _url(url or recorded_url, is_recorded=not url)
        return Target(
            transport=_transport(source, found, transport),
            url=found,
            fields=_fields(fields, os.environ.get(AUTHORIZATION) if url else None),
            is_recorded=not url,
            tls=tls,
        )
    argv = tapped.get("argv")
    if not isinstance(argv, list | tuple) or not argv:
        raise click.UsageError("The capture does not say which server it was: name one, as in mcpspy replay @ -- COMMAND….")
    words = tuple(map(str, argv))
    if any(map(_is_redacted, words)):
        raise click.UsageError(
            f"The recorded command holds values that were redacted: name it anew, as in mcpspy replay … -- {safe_text(join(words))}"
        )
    cwd = source.header.cwd if source.header else ""
    return Target(
        transport="stdio", argv=words, cwd=cwd if os.path.isdir(cwd) else "", is_recorded=True, framing=stdio_framing([source])
    )


def tls(*, insecure: bool, ca: str | None) -> SSLContext | None:
    """How an https server is trusted, where that is not as usual."""
    if not insecure and ca is None:
        return None
    import ssl

    context = ssl.create_default_context(cafile=ca)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def fields_wanted(source: CaptureInfo, target: Target) -> list[str]:
    """Names of header fields that the recorded client sent of its own, as a login, and that are not given now."""
    given = {name.lower() for name, _ in target.fields}
    found: dict[str, str] = {}
    for one in source.transactions.values() if target.url else ():
        lines = () if one.request is None else one.request.opened.head.split(b"\r\n")[1:]
        for line in lines:
            name = line.partition(b":")[0].decode("latin-1").strip()
            if name and not _of_every_client(name.lower()) and name.lower() not in given:
                found.setdefault(name.lower(), name)
    return [found[name] for name in sorted(found)]


def confirm(target: Target, changing: list[str], *, yes: bool) -> None:
    """Let whoever watches say no: to a server that nobody named now, and to calls that may change something.

    A capture may come from anybody, so what it names is no order. Raises: click.UsageError: for such a server where there is nobody
    to ask. click.Abort: for a no.
    """
    if yes or not (target.is_recorded or changing):
        return
    if not _is_watched():
        if target.is_recorded:
            raise click.UsageError(_unasked(target))
        return
    if target.is_recorded:
        say(f"mcpspy: the recorded server: {safe_text(str(target))}{f' in {safe_text(target.cwd)}' if target.cwd else ''}")
    if changing:
        say("mcpspy: calls that may change something:")
        for one in changing[:MAX_LISTED]:
            say(f"  {one}")
        if len(changing) > MAX_LISTED:
            say(f"  and {len(changing) - MAX_LISTED} more; --dry-run lists all")
    click.confirm("Go on?", abort=True, err=True)


def _unasked(target: Target) -> str:
    where = f" in {safe_text(target.cwd)}" if target.cwd else ""
    do, name = ("ask", "its URL with --url") if target.url else ("start", "a server behind --")
    asked = f"The recorded server is {do}ed only if that is meant: {safe_text(str(target))}{where}"
    return f"{asked}\nAdd --yes to {do} it, or name {name}."


def _is_watched() -> bool:
    """Whether there is somebody to ask: at a terminal, and not beneath git, which answers no questions in a bisection."""
    return sys.stdin.isatty() and sys.stderr.isatty() and GIT_PREFIX not in os.environ


def _url(text: str, *, is_recorded: bool) -> str:
    if _is_redacted(text):
        raise click.UsageError(
            f"The recorded URL holds a value that was redacted: give it with --url. It is {safe_text(text)}"
            if is_recorded
            else f"{safe_text(text)} holds a pseudonym, not the value that was redacted."
        )
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise click.UsageError(f"{safe_text(text)} is not the URL of a server: http:// or https://, then its host.")
    return text


def _transport(source: CaptureInfo, url: str, named: str | None) -> Transport:
    """The one that was named; else the recorded one; else what the URL looks like."""
    if named is not None:
        return "sse" if named == "sse" else "streamable"
    kinds = {one.scope.kind for one in source.transactions.values()}
    if kinds:
        return "sse" if ScopeKind.STREAM in kinds else "streamable"
    return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "streamable"


def _fields(texts: tuple[str, ...], authorization: str | None) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for text in texts:
        name, colon, value = text.partition(":")
        name = name.strip()
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not colon or not is_name or any(one in text for one in "\r\n\0"):
            raise click.UsageError("--header takes 'Name: value', as in --header 'X-Api-Key: …'.")
        if _is_redacted(value):
            raise click.UsageError(f"--header {name}: that is a pseudonym, not the value that was redacted.")
        found.append((name, value.strip()))
    if authorization and not any(name.lower() == "authorization" for name, _ in found):
        found.append(("Authorization", authorization))
    return tuple(found)
