"""`mcpspy proxy`: a tap before an HTTP server, and the live timeline beside it, in a process of its own."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import monotonic_ns, time_ns
from typing import Any

import click
from click.core import ParameterSource

from ...live.http.listener import HttpOrigin, origin
from ...live.http.tap import HttpTap
from ..new_capture import CaptureStart
from ..options import NO_FILE, UsageError, size_bytes
from .address import DEFAULT_LISTEN, address, allow_many_connections
from .captures import record_to
from .llm import base_url, variables


def _upstream(_context: object, _parameter: object, value: str | None) -> tuple[HttpOrigin, str] | None:
    if value is None:
        return None
    found = origin(value)
    if found is None:
        raise click.BadParameter(f"{value} is not the URL of a server: http:// or https://, then its host")
    return found, value


def _origin(text: str) -> HttpOrigin:
    found = origin(text)
    if found is None:
        raise click.UsageError(f"{text} is no origin: http:// or https://, then host and port.")
    return found


def _field(text: str) -> tuple[bytes, bytes]:
    name, colon, value = text.partition(":")
    name = name.strip()
    if (
        not colon
        or not name.isascii()
        or not name.replace("-", "").replace("_", "").isalnum()
        or any(one in text for one in "\r\n\0")
    ):
        raise click.UsageError("--header takes 'Name: value', as in --header 'Authorization: Bearer …'.")
    if name.lower() in ("content-length", "transfer-encoding"):
        raise click.UsageError(f"--header cannot set {name}: it says where a request ends. Leave it out.")
    return name.encode(), value.strip().encode()


def _size(text: str | None) -> int:
    try:
        return size_bytes(text) if text else 0
    except UsageError as error:
        raise click.UsageError(f"--max-size: {error}.") from error


def _address(text: str, *, remote: bool) -> tuple[str, int]:
    try:
        return address(text, remote=remote, behind="the server behind it")
    except UsageError as error:
        raise click.UsageError(str(error)) from error


def _tls(*, insecure: bool, ca: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@click.command("proxy")
@click.argument("url", callback=_upstream, required=False)
@click.option(
    "--model", "is_model", is_flag=True, help="URL is the API of a language model: OpenAI's, Anthropic's, or one like them."
)
@click.option("--all", "everything", is_flag=True, help="Serve every HTTP server that `mcpspy wrap` has wrapped.")
@click.option(
    "--listen", metavar="ADDRESS", default=DEFAULT_LISTEN, show_default=True, help="Where clients connect; port 0 picks one."
)
@click.option("--label", metavar="NAME", help="What to call the server; by default its host and port.")
@click.option("--capture", metavar="FILE", help="Where to record; by default a new file in the store.")
@click.option(
    "--redact",
    type=click.Choice(["credentials", "none"]),
    default="credentials",
    show_default=True,
    help="Record secrets as pseudonyms, or as they are.",
)
@click.option(
    "--max-size", metavar="SIZE", help="Past this many bytes (20mb, 1gb) payloads are kept as length and SHA-256 only."
)
@click.option("--quiet", is_flag=True, help="Print the address and nothing else.")
@click.option(
    "--header", "headers", metavar="'NAME: VALUE'", multiple=True, help="Put this field into every request to the server."
)
@click.option(
    "--allow-endpoint", "endpoints", metavar="ORIGIN", multiple=True, help="Map `endpoint` events that name this origin too."
)
@click.option("--allow-remote", is_flag=True, help="Listen at an address that other machines reach.")
@click.option(
    "--allowed-host", "hosts", metavar="NAME", multiple=True, help="A name beside the loopback ones by which clients may call."
)
@click.option("--insecure", is_flag=True, help="Do not check the certificate of an https server.")
@click.option("--ca", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Trust the certificates in FILE.")
@click.pass_context
def command(
    context: click.Context,
    /,
    url: tuple[HttpOrigin, str] | None,
    is_model: bool,
    everything: bool,
    redact: str,
    max_size: str | None,
    quiet: bool,
    insecure: bool,
    ca: str | None,
    **about_one: Any,
) -> int | None:
    """Stand before the HTTP server at URL: forward every byte, record it, show it.

    Every path below the server's origin is reached. The first line on stdout is the address to give to the client. Ctrl-C ends it.

    With --model, before the API of a language model: chat completions, responses or messages. The lines behind the first say what
    to set, so that programs ask there. Keys reach no disk.

    With --all, before every HTTP server that `mcpspy wrap` has wrapped, each at the port that it got there, with a capture of its
    own; a line on stdout for each. What is wrapped meanwhile is served too.

    \b
    Example:
      mcpspy proxy http://127.0.0.1:3001/sse
      mcpspy proxy https://mcp.example.com/mcp --header 'Authorization: Bearer …'
      mcpspy proxy --model https://api.openai.com/v1
      mcpspy proxy --all
    """
    tls = partial(_tls, insecure=insecure, ca=ca)
    max_bytes = _size(max_size)
    if everything:
        _refuse_beside_all(context)
        from .all import serve_all
        from .taps import Manner

        return serve_all(Manner(redact=redact, max_bytes=max_bytes, tls=tls), quiet=quiet)
    if url is None:
        raise click.UsageError("Name the URL of a server; or --all, which serves what mcpspy wrap has wrapped.")
    _serve(*url, is_model=is_model, tls=tls, redact=redact, max_bytes=max_bytes, quiet=quiet, **about_one)
    return None


def _serve(
    upstream: HttpOrigin,
    url: str,
    *,
    is_model: bool,
    tls: Callable[[], ssl.SSLContext],
    redact: str,
    max_bytes: int,
    quiet: bool,
    listen: str,
    label: str | None,
    capture: str | None,
    headers: tuple[str, ...],
    endpoints: tuple[str, ...],
    allow_remote: bool,
    hosts: tuple[str, ...],
) -> None:
    if capture == "":
        raise click.UsageError(f"{NO_FILE}.")
    if is_model and endpoints:
        raise click.UsageError("--allow-endpoint is about servers of MCP; before a model leave it out.")
    host, port = _address(listen, remote=allow_remote)
    tap = HttpTap(
        upstream,
        monotonic_ns(),
        allowed_hosts=frozenset(name.lower() for name in hosts),
        allowed_endpoints=tuple(map(_origin, endpoints)),
        extra_fields=tuple(map(_field, headers)),
        tls=tls() if upstream.scheme == "https" else None,
        speaks_mcp=not is_model,
    )
    start = CaptureStart(
        wall_ns=time_ns(),
        begin_ns=tap.begin_ns,
        label=label or (upstream.host_field if is_model else str(upstream.authority)),
        file=capture,
        redact=redact,
        max_bytes=max_bytes,
        quiet=quiet,
    )
    listener = tap.listen(host, port)
    _record_and_serve(tap, listener, start, base_url(url) if is_model else url, is_model=is_model)


def _refuse_beside_all(context: click.Context) -> None:
    """What is said of one server makes no sense for all of them."""
    for name in ("url", "is_model", "listen", "label", "capture", "headers", "endpoints", "allow_remote", "hosts"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params.get(name):
            option = next(one for one in context.command.params if one.name == name)
            raise click.UsageError(f"{option.opts[0] if name != 'url' else 'A URL'} is about one server, and --all about many.")


def _record_and_serve(tap: HttpTap, listener: socket.socket, start: CaptureStart, url: str, *, is_model: bool) -> None:
    writer, path, own_url = record_to(tap, start, url, leg="model" if is_model else "")
    shown: subprocess.Popen[bytes] | None = None

    def ready() -> None:
        nonlocal shown
        click.echo(own_url)
        if is_model and not start.quiet:
            click.echo("\n".join(variables(f"http://{tap.own}", url)))
        sys.stdout.flush()
        if writer is not None and not start.quiet and sys.stdout.isatty():
            # -P: not the `mcpspy` of whatever folder this is
            shown = subprocess.Popen([sys.executable, "-P", "-m", "mcpspy", "show", "-f", path])

    allow_many_connections()
    try:
        tap.run(listener, ready)
    finally:
        if writer is not None:
            writer.close(tap.now_ns(), "stopped")
        if shown is not None:
            shown.terminate()
            shown.wait()
