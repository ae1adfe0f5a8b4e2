"""The HTTP of a transcript as a HAR 1.2 file, with the events of streams in `_eventSourceMessages`, where browsers put them.

Source: http://www.softwareishard.com/blog/har-12-spec/. Whoever reads one sees each request with its response, secrets as pseudonyms.
Refuses stdio: there is no HTTP in it.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from ...wire.encodings import decoded
from ...wire.sse import parse
from ..text.json_text import as_json
from ..text.units import wall_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...records import Frame
    from ...transcript.http.head import Head
    from ...transcript.http.transaction import Stream, Transaction
    from ...transcript.model import CaptureInfo, Transcript

_MS_NS: Final = 1_000_000
_UNKNOWN: Final = -1
"""What HAR has for numbers that nobody knows."""


def har(transcript: Transcript, transactions: Iterable[Transaction], *, version: str) -> Iterator[str]:
    """The text of the file, an entry a line. The transcript has to keep frames; `version` is mcpspy's."""
    creator = as_json({"name": "mcpspy", "version": version})
    yield f'{{"log":{{"version":"1.2","creator":{creator},"entries":['
    mark = ""
    for one in transactions:
        yield mark + as_json(_entry(one, transcript.captures[one.capture]))
        mark = ","
    yield "]}}"


def _entry(one: Transaction, capture: CaptureInfo) -> dict[str, Any]:
    request, response = one.request, one.response
    began_ns = one.at_ns
    sent_ns = _end(request, began_ns)
    head_ns = sent_ns if response is None else max(response.at_ns, sent_ns)
    end_ns = max(head_ns, one.ended_ns or capture.last_ns + capture.shift_ns)
    made: dict[str, Any] = {
        "startedDateTime": _wall(capture, began_ns),
        "time": (end_ns - began_ns) / _MS_NS,
        "request": _request(one, capture),
        "response": _response(one),
        "cache": {},
        "timings": {
            "send": (sent_ns - began_ns) / _MS_NS,
            "wait": (head_ns - sent_ns) / _MS_NS,
            "receive": (end_ns - head_ns) / _MS_NS,
        },
        "connection": str(one.connection),
    }
    if one.is_stream and response is not None:
        made["_resourceType"] = "eventsource"
        made["_eventSourceMessages"] = list(_events(response, capture))
    return made


def _request(one: Transaction, capture: CaptureInfo) -> dict[str, Any]:
    head = None if one.request is None else one.request.head
    url = _url(head, one, capture)
    made: dict[str, Any] = {
        "method": one.method or "GET",
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(head),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)
        ],
        "headersSize": _UNKNOWN if one.request is None else len(one.request.opened.head),
        "bodySize": 0 if one.request is None else one.request.body_bytes,
    }
    if head is not None and one.request is not None and one.request.body_bytes:
        text, _ = _body(one.request, head)
        made["postData"] = {"mimeType": head.get("content-type"), "text": text}
    return made


def _response(one: Transaction) -> dict[str, Any]:
    response = one.response
    if response is None:  # as browsers say it of a request that failed
        nothing = {"size": 0, "mimeType": "x-unknown"}
        return {
            "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [], "content": nothing, "redirectURL": "",
            "headersSize": _UNKNOWN, "bodySize": _UNKNOWN, "_error": f"{one.left_by or 'nobody'} ended it",
        }  # fmt: skip
    head = response.head
    text, encoding = _body(response, head)
    content: dict[str, Any] = {
        "size": len(text.encode()) if not encoding else response.body_bytes,
        "mimeType": head.get("content-type") or "x-unknown",
        "text": text,
    }
    if encoding:
        content["encoding"] = encoding
    return {
        "status": one.status, "statusText": head.reason, "httpVersion": "HTTP/1.1", "cookies": [], "headers": _fields(head),
        "content": content, "redirectURL": head.get("location"), "headersSize": len(response.opened.head),
        "bodySize": response.body_bytes,
    }  # fmt: skip


def _body(stream: Stream, head: Head) -> tuple[str, str]:
    """The text of a body, or its Base64 and that it is; content codings are undone where that can be done."""
    data = b"".join(frame.data for frame in stream.kept)
    try:
        data = decoded(data, head.get("content-encoding").encode())
        return data.decode(), ""
    except ValueError:
        return b64encode(data).decode(), "base64"


def _events(response: Stream, capture: CaptureInfo) -> Iterator[dict[str, Any]]:
    for data, at_ns in _whole(response.kept):
        event = parse(data)
        if event.data is not None:
            yield {
                "time": _seconds(capture, at_ns + capture.shift_ns),
                "eventName": event.type or "message",
                "eventId": event.id or "",
                "data": event.data.decode("utf-8", "replace"),
            }


def _whole(frames: Sequence[Frame]) -> Iterator[tuple[bytes, int]]:
    """Frames with their parts joined, and when the last of these came."""
    held = b""
    for frame in frames:
        held += frame.data
        if not frame.part:
            yield held, frame.at_ns
            held = b""


def _fields(head: Head | None) -> list[dict[str, str]]:
    return [] if head is None else [{"name": name, "value": value} for name, value in head.fields]


def _url(head: Head | None, one: Transaction, capture: CaptureInfo) -> str:
    """The address that the client asked: its own name for the server."""
    listen = str(capture.header.tapped.get("listen", "")) if capture.header else ""
    host = (head.get("host") if head else "") or urlsplit(listen).netloc or "127.0.0.1"
    return one.target if "://" in one.target else f"http://{host}{one.target}"


def _end(stream: Stream | None, began_ns: int) -> int:
    if stream is None:
        return began_ns
    return max(began_ns, stream.last_ns or stream.at_ns)


def _wall(capture: CaptureInfo, at_ns: int) -> str:
    return wall_time(_wall_ns(capture, at_ns), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(capture: CaptureInfo, at_ns: int) -> float:
    return _wall_ns(capture, at_ns) / 1_000_000_000


def _wall_ns(capture: CaptureInfo, at_ns: int) -> int:
    """Unix time of a point on the transcript's clock."""
    return (capture.header.wall_ns - capture.shift_ns if capture.header else 0) + at_ns
