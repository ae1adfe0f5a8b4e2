"""`mcpspy proxy`: a tap in front of an HTTP server or a model API; on a terminal with the live timeline, in its own process."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import monotonic_ns, time_ns
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from ...live.http.listener import HttpOrigin, after_origin, origin
from ...live.http.tap import HttpTap
from ...platform.open_files import allow_many_open_files
from ...platform.processes import CAN_FORK
from ..capture_options import NO_FILE, UsageError
from ..click_types import SIZE
from ..new_capture import CaptureStart
from .listening import DEFAULT_LISTEN, address, open_control, record_tap

API_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages")
"""The paths of a model API below its base URL. A URL with one was copied from a request."""

OF_ONE_SERVER = (
    "url", "is_model", "listen", "label", "capture", "headers", "endpoints", "allow_remote", "hosts", "intercepts", "intercept_files",
    "seed",
)  # fmt: skip
"""The parameters that cannot be combined with --all."""

API_VERSION = "/v1"
"""The end of OpenAI's base URL; Anthropic's client adds it by itself."""


def _upstream(_context: object, _parameter: object, value: str | None) -> tuple[HttpOrigin, str] | None:
    if value is None:
        return None
    upstream = origin(value)
    if upstream is None:
        raise click.BadParameter(f"{value} is not the URL of a server: http:// or https://, then its host")
    return upstream, value


def _origin(text: str) -> HttpOrigin:
    parsed = origin(text)
    if parsed is None:
        raise click.UsageError(f"{text} is not an origin: http:// or https://, then host and port.")
    return parsed


def _field(text: str) -> tuple[bytes, bytes]:
    name, colon, value = text.partition(":")
    name = name.strip()
    if (
        not colon
        or not name.isascii()
        or not name.replace("-", "").replace("_", "").isalnum()
        or any(sign in text for sign in "\r\n\0")
    ):
        raise click.UsageError("--header takes 'Name: value', as in --header 'Authorization: Bearer …'.")
    if name.lower() in ("content-length", "transfer-encoding"):
        raise click.UsageError(f"--header cannot set {name}: it marks the end of a request. Leave it out.")
    return name.encode(), value.strip().encode()


def _address(text: str, *, remote: bool) -> tuple[str, int]:
    try:
        return address(text, remote=remote, what="the server")
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
@click.option("--model", "is_model", is_flag=True, help="URL is a model API: OpenAI's, Anthropic's, or one like them.")
@click.option("--all", "everything", is_flag=True, help="Serve every HTTP server that `mcpspy wrap` has wrapped.")
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=DEFAULT_LISTEN,
    show_default=True,
    help="Where clients connect; port 0 picks a free one.",
)
@click.option("--label", metavar="NAME", help="A name for the server. The default is its host and port.")
@click.option("--capture", metavar="FILE", help="Where to record. The default is a new file in the store.")
@click.option(
    "--redact",
    type=click.Choice(["credentials", "none"]),
    default="credentials",
    show_default=True,
    help="`credentials` replaces secrets with pseudonyms; `none` records everything.",
)
@click.option(
    "--max-size",
    "max_bytes",
    metavar="SIZE",
    type=SIZE,
    default=0,
    help="Once the capture has this size (20mb, 1gb), keep only the length and SHA-256 of payloads.",
)
@click.option("--quiet", is_flag=True, help="Print the URL for clients and nothing else.")
@click.option(
    "--header",
    "headers",
    metavar="'NAME: VALUE'",
    multiple=True,
    help="Set this header field in every request to the server. Repeatable.",
)
@click.option(
    "--allow-endpoint",
    "endpoints",
    metavar="ORIGIN",
    multiple=True,
    help="Rewrite `endpoint` events and `Location` with this origin too. Repeatable.",
)
@click.option("--allow-remote", is_flag=True, help="Allow --listen with an address that other machines can reach.")
@click.option(
    "--allowed-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Another host name that clients may use, besides the loopback ones. Repeatable.",
)
@click.option(
    "--intercept",
    "intercepts",
    metavar="TEXT",
    multiple=True,
    help="Change traffic: FILTER => ACTION, as in 'tool:search => delay 3s'. Repeatable.",
)
@click.option(
    "--intercepts",
    "intercept_files",
    metavar="FILE",
    multiple=True,
    help="A file of intercepts, one per line; # begins a comment.",
)
@click.option(
    "--seed",
    metavar="NUMBER",
    help="The seed of the random choices of intercepts. By default it is random; the capture has it.",
)
@click.option(
    "--no-control", is_flag=True, help="Open no socket for mcpspy control. Without this, only your own programs can use it."
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
    max_bytes: int,
    quiet: bool,
    insecure: bool,
    ca: str | None,
    no_control: bool,
    **single: Any,
) -> int | None:
    """Record the HTTP server at URL: listen at a local URL, forward every byte, and record it. On a terminal, show the calls too.

    Every path of the server's origin can be reached. The first line on stdout is the URL to give to the client. Ctrl-C ends it.

    With --model, record a model API: chat completions, responses or messages. The next lines on stdout are the environment
    variables that point programs to it. API keys are not recorded.

    With --all, record every HTTP server that `mcpspy wrap` has wrapped, each at its reserved port and in its own capture, with a
    line on stdout for each. Servers that are wrapped later are added. The service that `mcpspy wrap` sets up runs it by itself.

    \b
    Examples:
      mcpspy proxy http://127.0.0.1:3001/sse
      mcpspy proxy https://mcp.example.com/mcp --header 'Authorization: Bearer …'
      mcpspy proxy http://127.0.0.1:3001/mcp --intercept 'tool:search => status 503 p=0.1' --seed 7
      mcpspy proxy --model https://api.openai.com/v1
      mcpspy proxy --all
    """
    tls = partial(_tls, insecure=insecure, ca=ca)
    if everything:
        _refuse_beside_all(context)
        if not CAN_FORK:
            raise click.UsageError("--all does not work on Windows yet; run mcpspy proxy URL for each server.")
        from .taps import TapSettings, serve_all

        return serve_all(TapSettings(redact=redact, max_bytes=max_bytes, tls=tls, has_control=not no_control), quiet=quiet)
    if url is None:
        raise click.UsageError("Name the URL of a server; or use --all, for the servers that mcpspy wrap has wrapped.")
    _serve(
        *url, is_model=is_model, tls=tls, redact=redact, max_bytes=max_bytes, quiet=quiet, has_control=not no_control, **single
    )
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
    intercepts: tuple[str, ...],
    intercept_files: tuple[str, ...],
    seed: str | None,
    has_control: bool,
) -> None:
    if capture == "":
        raise click.UsageError(f"{NO_FILE}.")
    if is_model and endpoints:
        raise click.UsageError("--allow-endpoint is for MCP servers; leave it out with --model.")
    put_intercepts = _interceptor(intercepts, intercept_files, seed, is_model=is_model)
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
    put_intercepts(tap)
    listener = tap.listen(host, port)
    has_control = has_control and not is_model
    _record_and_serve(tap, listener, start, base_url(url) if is_model else url, is_model=is_model, has_control=has_control)


def _interceptor(
    intercepts: tuple[str, ...], files: tuple[str, ...], seed: str | None, *, is_model: bool
) -> Callable[[HttpTap], None]:
    """Return what puts these intercepts into a tap. Raises: click.UsageError: if one cannot be read."""
    if not intercepts and not files:
        if seed is not None:
            raise click.UsageError("--seed needs --intercept or --intercepts; leave it out.")
        return lambda _: None
    if is_model:
        raise click.UsageError("--intercept is for messages of MCP; leave it out with --model.")
    from ...live.http.intercepting import take_over
    from ..intercepting import intercepts_of

    values = {"intercept": list(intercepts), "intercepts": list(files), **({} if seed is None else {"seed": [seed]})}
    try:
        rules = intercepts_of(values, "http")
    except UsageError as error:
        raise click.UsageError(f"{error}.") from None
    return lambda tap: take_over(tap, rules)


def _refuse_beside_all(context: click.Context) -> None:
    """Refuse options that are for one server. Raises: click.UsageError."""
    for name in (
        "url",
        "is_model",
        "listen",
        "label",
        "capture",
        "headers",
        "endpoints",
        "allow_remote",
        "hosts",
        "intercepts",
        "intercept_files",
        "seed",
    ):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params.get(name):
            option = next(option for option in context.command.params if option.name == name)
            raise click.UsageError(
                f"{option.opts[0] if name != 'url' else 'A URL'} is for one server, and --all is for many; leave one out."
            )


def _record_and_serve(
    tap: HttpTap, listener: socket.socket, start: CaptureStart, url: str, *, is_model: bool, has_control: bool
) -> None:
    writer, path, own_url = record_tap(tap, start, url, leg="model" if is_model else "")
    close_control = open_control(tap, start, path) if writer is not None and has_control else None
    live_view: subprocess.Popen[bytes] | None = None

    def ready() -> None:
        nonlocal live_view
        click.echo(own_url)
        if is_model and not start.quiet:
            click.echo("\n".join(api_variables(f"http://{tap.own}", url)))
        sys.stdout.flush()
        if writer is not None and not start.quiet and sys.stdout.isatty():
            # -P: not a `mcpspy` in the working folder
            live_view = subprocess.Popen([sys.executable, "-P", "-m", "mcpspy", "show", "-f", path])

    allow_many_open_files()
    try:
        tap.run(listener, ready)
    finally:
        if close_control is not None:
            close_control()
        if writer is not None:
            writer.close(tap.now_ns(), "stopped")
        if live_view is not None:
            live_view.terminate()
            live_view.wait()


def base_url(url: str) -> str:
    """Find the base URL of a model API, without a slash at its end, from a URL of it or of one of its endpoints."""
    base = url.partition("#")[0].partition("?")[0].rstrip("/")
    return next((base.removesuffix(end) for end in API_ENDPOINTS if base.endswith(end)), base)


def api_variables(own_origin: str, url: str) -> list[str]:
    """List the environment variables, `NAME=value`, that point clients of the API at `url` to `own_origin`.

    If host or path name Anthropic or OpenAI, only the variable of that company's clients.
    """
    base = after_origin(url)
    root = base.removesuffix(API_VERSION)
    host, lower = urlsplit(url).hostname or "", url.lower()
    lines = []
    if "anthropic" not in lower:
        lines.append(f"OPENAI_BASE_URL={own_origin}{base or API_VERSION}")
    if "openai" not in lower or "anthropic" in host:
        lines.append(f"ANTHROPIC_BASE_URL={own_origin}{root}")
    return lines
