"""The HTTP of a transcript as a HAR 1.2 file, with the events of streams in `_eventSourceMessages`, where browsers put them.

Source: http://www.softwareishard.com/blog/har-12-spec/. Each request is shown with its response, secrets as pseudonyms. Captures of
stdio hold no HTTP, and so have no entries.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any, Final
from urllib.parse import parse_qsl

from ..records import Frame
from ..transcript.http.head import Head
from ..transcript.http.transaction import Stream, Transaction
from ..transcript.model import CaptureInfo, Transcript
from ..wire.encodings import decode_body
from ..wire.sse import parse
from .curl import split_url
from .text.json_text import as_json
from .text.units import wall_time

_MS_NS: Final = 1_000_000
_UNKNOWN: Final = -1
"""HAR's value for unknown numbers."""


def har(transcript: Transcript, transactions: Iterable[Transaction], *, version: str) -> Iterator[str]:
    """Yield the text of the file, one entry per line. The transcript has to keep frames; `version` is mcpspy's."""
    creator = as_json({"name": "mcpspy", "version": version})
    yield f'{{"log":{{"version":"1.2","creator":{creator},"entries":['
    separator = ""
    for transaction in transactions:
        yield separator + as_json(_entry(transaction, transcript.captures[transaction.capture]))
        separator = ","
    yield "]}}"


def _entry(transaction: Transaction, capture: CaptureInfo) -> dict[str, Any]:
    request, response = transaction.request, transaction.response
    began_ns = transaction.at_ns
    sent_ns = _end(request, began_ns)
    head_ns = sent_ns if response is None else max(response.at_ns, sent_ns)
    end_ns = max(head_ns, transaction.ended_ns or capture.last_ns + capture.shift_ns)
    members: dict[str, Any] = {
        "startedDateTime": _wall(capture, began_ns),
        "time": (end_ns - began_ns) / _MS_NS,
        "request": _request(transaction, capture),
        "response": _response(transaction),
        "cache": {},
        "timings": {
            "send": (sent_ns - began_ns) / _MS_NS,
            "wait": (head_ns - sent_ns) / _MS_NS,
            "receive": (end_ns - head_ns) / _MS_NS,
        },
        "connection": str(transaction.connection),
    }
    if server := _server(capture):
        members["_server"] = server
    if transaction.is_stream and response is not None:
        members["_resourceType"] = "eventsource"
        members["_eventSourceMessages"] = list(_events(response, capture))
    return members


def _request(transaction: Transaction, capture: CaptureInfo) -> dict[str, Any]:
    head = None if transaction.request is None else transaction.request.head
    url = _url(head, transaction, capture)
    members: dict[str, Any] = {
        "method": transaction.method or "GET",
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(head),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(split_url(url).query, keep_blank_values=True)
        ],
        "headersSize": _UNKNOWN if transaction.request is None else len(transaction.request.raw_head),
        "bodySize": 0 if transaction.request is None else transaction.request.body_bytes,
    }
    if head is not None and transaction.request is not None and transaction.request.body_bytes:
        text, _ = _body(transaction.request, head)
        members["postData"] = {"mimeType": head.get("content-type"), "text": text}
    return members


def _response(transaction: Transaction) -> dict[str, Any]:
    response = transaction.response
    if response is None:  # browsers write a failed request like this
        nothing = {"size": 0, "mimeType": "x-unknown"}
        error = f"connection closed by {transaction.ended_by}" if transaction.left_by else "no response"
        return {
            "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [], "content": nothing, "redirectURL": "",
            "headersSize": _UNKNOWN, "bodySize": _UNKNOWN, "_error": error,
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
        "status": transaction.status, "statusText": head.reason, "httpVersion": "HTTP/1.1", "cookies": [], "headers": _fields(head),
        "content": content, "redirectURL": head.get("location"), "headersSize": len(response.raw_head),
        "bodySize": response.body_bytes,
    }  # fmt: skip


def _body(stream: Stream, head: Head) -> tuple[str, str]:
    """Return the text of a body and "", or its Base64 and "base64". Content codings are decoded where possible."""
    data = b"".join(frame.data for frame in stream.kept)
    try:
        data = decode_body(data, head.get("content-encoding").encode())
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
    """Yield frames with their parts joined, each with the time of its last part."""
    joined = b""
    for frame in frames:
        joined += frame.data
        if not frame.part:
            yield joined, frame.at_ns
            joined = b""


def _fields(head: Head | None) -> list[dict[str, str]]:
    return [] if head is None else [{"name": name, "value": value} for name, value in head.fields]


def _url(head: Head | None, transaction: Transaction, capture: CaptureInfo) -> str:
    """Return the URL that the client requested."""
    listen = str(capture.header.tapped.get("listen", "")) if capture.header else ""
    host = (head.get("host") if head else "") or split_url(listen).netloc or "127.0.0.1"
    return transaction.target if "://" in transaction.target else f"http://{host}{transaction.target}"


def _server(capture: CaptureInfo) -> str:
    """Return the URL of the server, if clients reached it at another; else empty. Addresses in its answers are its own."""
    tapped = capture.header.tapped if capture.header else {}
    return str(tapped.get("url", "")) if tapped.get("listen") else ""


def _end(stream: Stream | None, began_ns: int) -> int:
    if stream is None:
        return began_ns
    return max(began_ns, stream.last_ns or stream.at_ns)


def _wall(capture: CaptureInfo, at_ns: int) -> str:
    return wall_time(_wall_ns(capture, at_ns), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(capture: CaptureInfo, at_ns: int) -> float:
    return _wall_ns(capture, at_ns) / 1_000_000_000


def _wall_ns(capture: CaptureInfo, at_ns: int) -> int:
    """Convert a point on the transcript's clock to Unix time."""
    return (capture.header.wall_ns - capture.shift_ns if capture.header else 0) + at_ns
