"""The server of a replay: the command after `--`, the URL of `--url`, or the recorded one, for which the user is asked first."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from shlex import join
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

import click

from ...lazy_pattern import lazy_pattern
from ...records import PSEUDONYM_PATTERN
from ...transcript.http.transaction import ScopeKind
from ...transcript.model import CaptureInfo
from ...views.text.escape import safe_text, without_logins
from ..click_types import WhatCommand
from ..screen import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

    from ...live.upstream.protocol import ServerListener, UpstreamClient
    from ...records import Sink

Transport: TypeAlias = Literal["stdio", "streamable", "sse", "unknown-http"]
"""`unknown-http` is one of the two over HTTP, whichever the server turns out to speak."""

AUTHORIZATION = "MCPSPY_AUTHORIZATION"
"""The environment variable with an `Authorization` field that should be in no process list. Only a URL from --url gets it."""

_BY_PATH: Final[dict[str, Transport]] = {"sse": "sse", "mcp": "streamable"}
"""Transports by the end of the URL's path."""

MAX_LISTED = 20

GIT_PREFIX = "GIT_PREFIX"
"""A variable that git sets for the programs it runs: in `git bisect run`, hooks, aliases."""

_of_every_client = lazy_pattern(
    r"(accept|content|sec|mcp|x-forwarded)(-.*)?"
    r"|baggage|cache-control|connection|dnt|expect|forwarded|host|keep-alive|last-event-id|origin|pragma|priority|referer|te"
    r"|traceparent|tracestate|transfer-encoding|user-agent|via"
)
"""Header fields that do not identify the caller; an upstream client sends its own."""

SERVER_WORDS = "mcpspy.server"
"""The key under which a `ServerCommand` stores the server's command, in the context's `meta`."""

F = TypeVar("F", bound="Callable[..., object]")

_is_redacted = lazy_pattern(PSEUDONYM_PATTERN)


class ServerCommand(WhatCommand):
    """A command with a server's command after `--`, whose words are no options of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Store the server's command in the context."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[SERVER_WORDS] = tuple(args[at + 1 :])
        if args[at:] == ["--"]:
            raise click.UsageError("The server's command after -- is missing.")
        try:
            return super().parse_args(ctx, args[:at])
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            raise click.UsageError(f"{error.message}. Put -- before the server's command.", ctx) from error


def server_options(command: F) -> F:
    """Give a command the options that name a server with a URL."""
    options = [
        click.option("--url", metavar="URL", help="Send to the HTTP server at this URL."),
        click.option(
            "--transport",
            type=click.Choice(["streamable", "sse"]),
            help="The transport of the URL. The default is that of the recorded URL; else a path that ends in /mcp or /sse decides; "
            "else `initialize` is tried over Streamable HTTP, then over HTTP+SSE.",
        ),
        click.option(
            "--header",
            "headers",
            metavar="'NAME: VALUE'",
            multiple=True,
            help="Send this header field with every HTTP request. Repeatable.",
        ),
        click.option("--insecure", is_flag=True, help="Do not check the certificate of an https server."),
        click.option(
            "--ca", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Trust the certificates in FILE."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def carry_option(command: F) -> F:
    """Give a command `--carry`."""
    option = click.option(
        "--carry",
        "carried",
        metavar="VALUE",
        multiple=True,
        help="Name a value that the server makes up anew each time, such as an id. Requests then send the value of the live answer "
        "instead of the recorded one. VALUE is a JSON path in the result ($.structuredContent.id), the name of a member (id), or the "
        "recorded value as JSON ('\"h1\"'). Repeatable.",
    )
    return option(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server: `argv` on stdio, to be started in `cwd` (empty: the working folder), else `url`.

    One that `is_recorded` was not named on the command line.
    """

    transport: Transport
    argv: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    is_recorded: bool = False
    tls: SSLContext | None = None
    """The context for an https server; None: the usual one."""

    def __str__(self) -> str:
        """The URL or the command, for people."""
        return without_logins(self.url) or join(self.argv)

    @property
    def facts(self) -> dict[str, Any]:
        """The server, for JSON."""
        return {"transport": self.transport} | ({"url": self.url} if self.url else {"argv": self.argv})


def target_of(
    capture: CaptureInfo,
    command: tuple[str, ...],
    url: str | None,
    transport: str | None,
    fields: tuple[str, ...],
    tls: SSLContext | None = None,
) -> Target:
    """Choose the server of a replay of `capture`. Raises: click.UsageError."""
    if command and url:
        raise click.UsageError("Name the server by its command after --, or by --url, not by both.")
    if command and (transport or fields):
        raise click.UsageError(f"--{'transport' if transport else 'header'} is for a server with a URL; add --url.")
    if command:
        return Target(transport="stdio", argv=command)
    tapped = capture.header.tapped if capture.header else {}
    recorded_url = str(tapped.get("url") or "")
    if url or recorded_url:
        checked = _url(url or recorded_url, is_recorded=not url)
        return Target(
            transport=_transport(capture, checked, transport),
            url=checked,
            fields=_fields(fields, os.environ.get(AUTHORIZATION) if url else None),
            is_recorded=not url,
            tls=tls,
        )
    argv = tapped.get("argv")
    if not isinstance(argv, list | tuple) or not argv:
        raise click.UsageError("The capture does not name its server. Name one, as in mcpspy replay @ -- COMMAND….")
    words = tuple(map(str, argv))
    if any(map(_is_redacted.search, words)):
        raise click.UsageError(
            f"The recorded command has redacted values. Name it again, as in `mcpspy replay … -- {safe_text(join(words))}`."
        )
    cwd = capture.header.cwd if capture.header else ""
    return Target(transport="stdio", argv=words, cwd=cwd if os.path.isdir(cwd) else "", is_recorded=True)


def http_client(
    target: Target, *, sink: Sink, now_ns: Callable[[], int], listener: ServerListener, listen: bool = True
) -> UpstreamClient:
    """Make a client of a server with a URL. With `listen` it opens the server stream (GET) of Streamable HTTP."""
    from ...live.upstream.probing import ProbingClient
    from ...live.upstream.sse import SseClient
    from ...live.upstream.streamable import StreamableClient

    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in target.fields]
    if target.transport == "sse":
        return SseClient(target.url, sink=sink, now_ns=now_ns, listener=listener, headers=headers, tls=target.tls)
    kind = ProbingClient if target.transport == "unknown-http" else StreamableClient
    return kind(target.url, sink=sink, now_ns=now_ns, listener=listener, headers=headers, listen=listen, tls=target.tls)


def tls(*, insecure: bool, ca: str | None) -> SSLContext | None:
    """Make the context for an https server; None if it is the usual one."""
    if not insecure and ca is None:
        return None
    import ssl

    context = ssl.create_default_context(cafile=ca)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def missing_fields(capture: CaptureInfo, target: Target) -> list[str]:
    """List header fields that the recorded client added, such as a login, and that are not given now."""
    sent = {name.lower() for name, _ in target.fields}
    missing: dict[str, str] = {}
    for transaction in capture.transactions.values() if target.url else ():
        request = transaction.request
        lines = () if request is None else request.raw_head.split(b"\r\n")[1:]
        for line in lines:
            name = line.partition(b":")[0].decode("latin-1").strip()
            if name and not _of_every_client.fullmatch(name.lower()) and name.lower() not in sent:
                missing.setdefault(name.lower(), name)
    return [missing[name] for name in sorted(missing)]


def confirm(target: Target, changing: list[str], *, yes: bool) -> None:
    """Ask the user before a recorded server is started or called, and before calls that may change something.

    A capture may come from anybody, so a server that it names is not simply started. Raises: click.UsageError: for such a server, if
    there is no user to ask. click.Abort: if the user says no.
    """
    if yes or not (target.is_recorded or changing):
        return
    if not can_ask():
        if target.is_recorded:
            raise click.UsageError(_why_not(target))
        return
    if target.is_recorded:
        say(f"mcpspy: the recorded server: {safe_text(str(target))}{f' in {safe_text(target.cwd)}' if target.cwd else ''}")
    if changing:
        say("mcpspy: calls that may change something:")
        for call in changing[:MAX_LISTED]:
            say(f"  {call}")
        if len(changing) > MAX_LISTED:
            say(f"  and {len(changing) - MAX_LISTED} more; --dry-run lists all")
    click.confirm("Continue?", abort=True, err=True)


def _why_not(target: Target) -> str:
    where = f" in {safe_text(target.cwd)}" if target.cwd else ""
    done, do, name = ("called", "call", "its URL with --url") if target.url else ("started", "start", "a server after --")
    refusal = f"The recorded server is not {done} without your consent: {safe_text(str(target))}{where}"
    return f"{refusal}\nAdd --yes to {do} it, or name {name}."


def can_ask() -> bool:
    """Return whether a user can be asked: on a terminal, and not below git, where a bisection runs unattended."""
    return sys.stdin.isatty() and sys.stderr.isatty() and GIT_PREFIX not in os.environ


def _url(text: str, *, is_recorded: bool) -> str:
    if _is_redacted.search(text):
        raise click.UsageError(
            f"The recorded URL has a redacted value. Give the URL with --url; it was `{safe_text(text)}`."
            if is_recorded
            else f"{safe_text(text)} has a pseudonym in place of the redacted value. Write the value there."
        )
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise click.UsageError(f"{safe_text(text)} is not the URL of a server: http:// or https://, then its host.")
    return text


def _transport(capture: CaptureInfo, url: str, named: str | None) -> Transport:
    """Choose the transport: the one that was named, else that of the recorded URL, else by the path of the URL."""
    if named is not None:
        return "sse" if named == "sse" else "streamable"
    if capture.transactions and capture.header and url == capture.header.tapped.get("url"):
        is_sse = any(transaction.scope.kind is ScopeKind.STREAM for transaction in capture.transactions.values())
        return "sse" if is_sse else "streamable"
    return _BY_PATH.get(urlsplit(url).path.rstrip("/").rpartition("/")[2], "unknown-http")


def _fields(texts: tuple[str, ...], authorization: str | None) -> tuple[tuple[str, str], ...]:
    fields: list[tuple[str, str]] = []
    for text in texts:
        name, colon, value = text.partition(":")
        name = name.strip()
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not colon or not is_name or any(sign in text for sign in "\r\n\0"):
            raise click.UsageError("--header takes 'Name: value', as in --header 'X-Api-Key: …'.")
        if _is_redacted.search(value):
            raise click.UsageError(f"--header {name}: this is a pseudonym, not the redacted value. Write the value itself.")
        fields.append((name, value.strip()))
    if authorization and not any(name.lower() == "authorization" for name, _ in fields):
        fields.append(("Authorization", authorization))
    return tuple(fields)
