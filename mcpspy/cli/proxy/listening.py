"""The parts that verbs share that listen: the address, the number of connections, and the capture of what passes over HTTP."""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol

from ...capture.file.writer import Writer
from ...capture.redaction.redactor import NoRedaction, Redactor
from ...capture.redaction.sink import RedactingSink
from ...capture.store.folder import key
from ...live.http.listener import after_origin, authority
from ...live.http.tap import HttpTap
from ...records import Sink
from ..capture_options import UsageError
from ..new_capture import CaptureStart, open_writer, with_quota_guard

if TYPE_CHECKING:
    from ..controlling import ControlHands

DEFAULT_LISTEN = "127.0.0.1:8765"

SYNC_S = 1.0
"""The time from the first byte that is not on disk to the request to write it there, as for stdio."""

LOOK_S = 60.0
"""Time between two such requests while nothing is recorded: the capture may be removed."""


class Recordable(Protocol):
    """A tap or a mock over HTTP."""

    def record_to(self, sink: Sink) -> None:
        """Send all records to a sink."""


def address(text: str, *, remote: bool, what: str) -> tuple[str, int]:
    """Read the host and port to listen at. One that other machines can reach, and through it `what`, needs --allow-remote.

    Raises: UsageError.
    """
    parsed = authority(text)
    if parsed is None or ":" not in text.rpartition("]")[2]:
        raise UsageError(f"--listen takes HOST:PORT, like {DEFAULT_LISTEN}; not {text}.")
    if not parsed.is_loopback and not remote:
        raise UsageError(
            f"other machines can reach {text}, and through it {what}. If you want that, add --allow-remote,"
            " and --allowed-host with the host name that clients use."
        )
    return parsed.host, parsed.port


def sync_later(sync: Callable[[], None]) -> None:
    """Call `sync` after a second, in a thread of its own: the disk may be slow."""

    def wait_and_sync() -> None:
        sleep(SYNC_S)
        sync()

    start_new_thread(wait_and_sync, ())


def redactor_of(start: CaptureStart) -> Redactor | NoRedaction:
    """Make the redactor that a capture asks for."""
    return NoRedaction() if start.redact == "none" else Redactor(key())


def begin_capture(
    recordable: Recordable, start: CaptureStart, redactor: Redactor | NoRedaction, tapped: dict[str, Any], *, is_guarded: bool
) -> tuple[Writer | None, str]:
    """Begin the capture of a tap or mock over HTTP. Returns its writer and path; None if it cannot be created.

    `tapped` goes into the header as it is. One that `is_guarded` enforces the store's quota.
    """
    writer, path = open_writer(start, tapped)
    if writer is not None:
        writer.later = with_quota_guard(sync_later, writer, path) if is_guarded else sync_later
        writer(())  # the header at once, so that `list` and `show -f` see it
        recordable.record_to(writer if isinstance(redactor, NoRedaction) else RedactingSink(writer, redactor))
    return writer, path


def record_tap(tap: HttpTap, start: CaptureStart, url: str, *, leg: str = "") -> tuple[Writer | None, str, str]:
    """Begin the capture of a tap. Returns its writer and path, if it can be created, and the URL to give to clients.

    `leg` is the protocol of the channel, if that is not MCP.
    """
    redactor = redactor_of(start)
    own_url = f"http://{tap.own}{after_origin(url)}"
    tapped = {"transport": "http", "url": redactor.url(url), "listen": redactor.url(own_url)}
    writer, path = begin_capture(tap, start, redactor, {**tapped, "leg": leg} if leg else tapped, is_guarded=True)

    def look() -> None:
        if writer is not None:
            writer.later(writer.sync)
            tap.reactor.later(LOOK_S, look)

    tap.reactor.later(LOOK_S, look)
    return writer, path, own_url


def open_control(tap: HttpTap, start: CaptureStart, path: str) -> Callable[[], None] | None:
    """Open the control socket of a tap, and return what closes it."""
    from ..run import open_control_socket

    def hands() -> ControlHands:
        from .controlled import HttpHands

        return HttpHands(tap, redactor_of(start))

    def watch(fd: int, events: int, callback: Callable[[int], None]) -> None:
        tap.reactor.watch(fd, events, callback)

    return open_control_socket(watch, hands, tap.sink, start, path)
