"""`mcpspy proxy`: a tap before an HTTP server, and the live timeline beside it, in a process of its own."""

import socket
import ssl
import subprocess
import sys
from functools import partial
from time import monotonic_ns, time_ns

import click
from click.core import ParameterSource

from ..live.authority import Origin, origin
from ..live.http import HttpTap
from .beginning import Beginning
from .listening import DEFAULT_LISTEN, address, allow_many_connections
from .options import NO_FILE, UsageError, size_bytes
from .proxy_recording import record_to


def _upstream(_context: object, _parameter: object, value: str | None) -> tuple[Origin, str] | None:
    if value is None:
        return None
    found = origin(value)
    if found is None:
        raise click.BadParameter(f"{value} is not the URL of a server: http:// or https://, then its host")
    return found, value


def _origin(text: str) -> Origin:
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
        raise click.UsageError("--header takes 'Name: value'.")
    if name.lower() in ("content-length", "transfer-encoding"):
        raise click.UsageError(f"--header cannot set {name}: it says where a request ends.")
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
    url: tuple[Origin, str] | None,
    everything: bool,
    listen: str,
    label: str | None,
    capture: str | None,
    redact: str,
    max_size: str | None,
    quiet: bool,
    headers: tuple[str, ...],
    endpoints: tuple[str, ...],
    allow_remote: bool,
    hosts: tuple[str, ...],
    insecure: bool,
    ca: str | None,
) -> int | None:
    """Stand before the HTTP server at URL: forward every byte, record it, show it.

    Every path below the server's origin is reached. The first line on stdout is the address to give to the client. Ctrl-C ends it.

    With --all, before every HTTP server that `mcpspy wrap` has wrapped, each at the port that it got there, with a capture of its
    own; a line on stdout for each. What is wrapped meanwhile is served too.

    \b
    Example:
      mcpspy proxy http://127.0.0.1:3001/sse
      mcpspy proxy https://mcp.example.com/mcp --header 'Authorization: Bearer …'
      mcpspy proxy --all
    """
    if everything:
        return _serve_all(context)
    if url is None:
        raise click.UsageError("Name the URL of a server; or --all, which serves what mcpspy wrap has wrapped.")
    if capture == "":
        raise click.UsageError(f"{NO_FILE}.")
    upstream, text = url
    host, port = _address(listen, remote=allow_remote)
    tap = HttpTap(
        upstream,
        monotonic_ns(),
        allowed_hosts=frozenset(name.lower() for name in hosts),
        allowed_endpoints=tuple(map(_origin, endpoints)),
        extra_fields=tuple(map(_field, headers)),
        tls=_tls(insecure=insecure, ca=ca) if upstream.scheme == "https" else None,
    )
    beginning = Beginning(
        wall_ns=time_ns(),
        begin_ns=tap.begin_ns,
        label=label or str(upstream.authority),
        named=capture,
        redact=redact,
        max_bytes=_size(max_size),
        quiet=quiet,
    )
    listener = tap.listen(host, port)
    _record_and_serve(tap, listener, beginning, text)
    return None


def _serve_all(context: click.Context) -> int:
    """`--all`, with those of the options that say how and not what."""
    _refuse_beside_all(context)
    from .proxy_all import serve_all
    from .proxy_taps import Manner

    said = context.params
    tls = partial(_tls, insecure=said["insecure"], ca=said["ca"])
    return serve_all(Manner(redact=said["redact"], max_bytes=_size(said["max_size"]), tls=tls), quiet=said["quiet"])


def _refuse_beside_all(context: click.Context) -> None:
    """What is said of one server makes no sense for all of them."""
    for name in ("url", "listen", "label", "capture", "headers", "endpoints", "allow_remote", "hosts"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params.get(name):
            option = next(one for one in context.command.params if one.name == name)
            raise click.UsageError(f"{option.opts[0] if name != 'url' else 'A URL'} is about one server, and --all about many.")


def _record_and_serve(tap: HttpTap, listener: socket.socket, beginning: Beginning, url: str) -> None:
    writer, path, own_url = record_to(tap, beginning, url)
    shown: subprocess.Popen[bytes] | None = None

    def ready() -> None:
        nonlocal shown
        click.echo(own_url)
        sys.stdout.flush()
        if writer is not None and not beginning.quiet and sys.stdout.isatty():
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
