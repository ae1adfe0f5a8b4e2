"""How an HTTP tap's capture begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...capture.redaction.redactor import NoRedaction, Redactor
from ...capture.redaction.sink import RedactingSink
from ...capture.store.folder import key
from ...live.http.listener import after_origin
from ..new_capture import CaptureStart, open_writer, with_quota_guard
from .address import sync_later

if TYPE_CHECKING:
    from ...capture.file.writer import Writer
    from ...live.http.tap import HttpTap


def record_to(tap: HttpTap, start: CaptureStart, url: str, *, leg: str = "") -> tuple[Writer | None, str, str]:
    """Begin the tap's capture. Returns its writer and path, if there can be one, and the URL to give to clients.

    `leg` is what the channel speaks, where that is not MCP.
    """
    redactor = NoRedaction() if start.redact == "none" else Redactor(key())
    own_url = f"http://{tap.own}{after_origin(url)}"
    tapped = {"transport": "http", "url": redactor.url(url), "listen": redactor.url(own_url)}
    writer, path = open_writer(start, {**tapped, "leg": leg} if leg else tapped)
    if writer is not None:
        writer.later = with_quota_guard(sync_later, writer, path)
        writer(())  # the header at once, so that `list` and `show -f` see the tap
        tap.record_to(writer if isinstance(redactor, NoRedaction) else RedactingSink(writer, redactor))
    return writer, path, own_url
