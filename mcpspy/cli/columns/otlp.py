"""`mcpspy otlp`: recorded sessions as spans and metrics for an OpenTelemetry collector. A process of its own; a tap sends nothing."""

from __future__ import annotations

import os
import time
import uuid
from typing import TYPE_CHECKING, Final

import click

from ... import __version__
from ...capture.store.address import STDIN
from ...capture.store.folder import captures_folder
from ...errors import AddressError, CollectorError
from ...views.text.escape import safe_text, without_logins
from ...views.text.units import counted, wall_time
from ..click_types import WhatCommand
from ..screen import say
from ..since import Since, captures_since, select_captures_since, since_option
from ..transcripts import DEFAULT_WHAT, select_captures
from .extras import require
from .following import FollowedUntil, StoreFollower, heard_ns, recordings_of
from .sending import Delivery, OtlpNotices, SpanSender

if TYPE_CHECKING:
    from ...telemetry.endpoint import CollectorEndpoint

PACKAGES: Final = {
    "opentelemetry.sdk": "opentelemetry-sdk>=1.45",
    "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http>=1.45",
}


@click.command("otlp", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option(
    "-f", "--follow", is_flag=True, help="Keep sending what is recorded in the store; go on where the last -f stopped."
)
@click.option("--endpoint", metavar="URL", help="The collector; the default is OTEL_EXPORTER_OTLP_ENDPOINT, or localhost:4318.")
@click.option("--as-server", is_flag=True, help="Report the server's spans and metrics; the default is the client's.")
@click.option("--payloads", is_flag=True, help="Send arguments and results of tools too, which may be sensitive.")
@click.option("--no-metrics", is_flag=True, help="Send spans only.")
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON, one object a line (docs/json.md).")
@since_option
def command(
    what: tuple[str, ...],
    *,
    follow: bool,
    endpoint: str | None,
    as_server: bool,
    payloads: bool,
    no_metrics: bool,
    as_json: bool,
    since: Since | None,
) -> None:
    """Send recorded calls as spans, and their durations as metrics, to an OpenTelemetry collector (docs/otlp.md).

    WHAT is as in `mcpspy show`. A call that is sent again has the same ids. --since leaves out captures into which nothing was
    recorded since then, and sends the others whole. It needs
    pip install 'opentelemetry-sdk>=1.45' 'opentelemetry-exporter-otlp-proto-http>=1.45'.

    \b
    Examples:
      mcpspy otlp @ --endpoint http://localhost:4318
      mcpspy otlp --since 1h -f
    """
    require("mcpspy otlp", *PACKAGES, packages=PACKAGES)
    from ...telemetry.durations import DurationSums
    from ...telemetry.sending import Collector

    target = _endpoint(endpoint)
    notices = OtlpNotices(without_logins(target.name), as_json=as_json)
    collector = Collector(target, __version__, str(uuid.uuid4()), os.environ)
    for complaint in collector.complaints:
        say(f"mcpspy: OpenTelemetry reports: {safe_text(complaint)}")
    sender = SpanSender(
        collector,
        None if no_metrics else DurationSums(time.time_ns()),
        Delivery(notices, is_endless=follow),
        notices,
        as_server=as_server,
        payloads=payloads,
    )
    try:
        if follow:
            _follow(sender, notices, FollowedUntil(target.name), what, since)
        else:
            _send(sender, notices, what, since, _paths(what, since, follow=False))
            notices.done(sender.count)
    except CollectorError as error:
        notices.failed(error)
        raise
    finally:
        sender.close()
    if sender.rejected.spans or sender.rejected.points:
        raise SystemExit(CollectorError.exit_status)


def _send(sender: SpanSender, notices: OtlpNotices, what: tuple[str, ...], since: Since | None, paths: tuple[str, ...]) -> None:
    """Send captures, those of the store recording by recording. Raises: CollectorError, CaptureError; OSError."""
    for together in [paths] if what or since is None else recordings_of(paths):
        sender.send(together)
    say(f"mcpspy: {counted(sender.count, 'span')} sent to {notices.name}")


def _follow(
    sender: SpanSender,
    notices: OtlpNotices,
    until: FollowedUntil,
    what: tuple[str, ...],
    since: Since | None,
) -> None:
    """Send what was named, or what the collector lacks since it was followed last, and then what is recorded, until the user ends it.

    Raises: CollectorError: of metrics that are refused at once; AddressError, CaptureError; OSError.
    """
    began_ns = time.time_ns()
    kept_ns = None if since is not None and not what else until.read()
    if kept_ns is not None and not what:
        say(f"mcpspy: goes on where it stopped, with what was recorded since {wall_time(kept_ns):%Y-%m-%d %H:%M:%S}")
    else:
        paths = _paths(what, since, follow=True)
        if kept_ns is None:
            until.write(_first_moment(what, since, paths, began_ns))
        if paths:
            _send(sender, notices, what, since, paths)
    StoreFollower(sender, notices, until, began_ns if kept_ns is None else kept_ns).run()


def _first_moment(what: tuple[str, ...], since: Since | None, paths: tuple[str, ...], began_ns: int) -> int:
    """Return the moment since which a collector is sent what is recorded, if it is followed for the first time.

    What is sent first counts too, unless it was named: if mcpspy is killed meanwhile, the next one sends it.
    """
    if what:
        return began_ns
    return min([began_ns, *heard_ns(paths)]) if since is None else since.wall_ns


def _endpoint(option: str | None) -> CollectorEndpoint:
    """Return the collector that was named. Raises: click.UsageError."""
    from ...telemetry.endpoint import DEFAULT, BadEndpointError, endpoint_of

    try:
        return endpoint_of(option, os.environ)
    except BadEndpointError as error:
        example = f"{error.name}={DEFAULT}" if error.name else f"--endpoint {DEFAULT}"
        raise click.UsageError(
            f"{error.name or '--endpoint'} takes a URL with http:// or https://, then its host, as in {example}."
        ) from error


def _paths(what: tuple[str, ...], since: Since | None, *, follow: bool) -> tuple[str, ...]:
    """Return the paths of the captures to send; empty if there are none; with `follow` some may come later.

    Raises: AddressError: also for rows, or `-`.
    """
    try:
        selection = select_captures(what) if since is None else select_captures_since(what, since)[0]
    except AddressError:
        if not follow or what not in ((), (DEFAULT_WHAT,)):
            raise
        say(f"mcpspy: nothing has been recorded yet; waiting for the first capture in {safe_text(captures_folder())}")
        return ()
    if selection.rows is not None:
        raise AddressError(selection.what, "spans are of whole captures; leave out the rows")
    if STDIN in selection.paths:
        raise AddressError(STDIN, "standard input is not sent; write it to a file first")
    return tuple(captures_since(selection.paths, since)) if what and since is not None else selection.paths
