"""Recorded HTTP heads to their first line and their fields, in order.

Lenient, because a head is recorded whatever it is: parts that cannot be read are empty. `wire/http.py` is the strict reader, before a
head is forwarded. Source: RFC 9112, sections 2 to 5.
"""

from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ...lazy_pattern import lazy_pattern

SESSION: Final = "mcp-session-id"
LAST_EVENT_ID: Final = "last-event-id"
EVENT_STREAM: Final = "text/event-stream"


class Head:
    """A head: the first line, and the fields as name and value, in their order and spelling. What readers ask of each is at hand."""

    __slots__ = ("_values", "body", "fields", "first", "media_type", "method", "raw_bytes", "status", "target")

    def __init__(self, first: str, fields: tuple[tuple[str, str], ...] = (), raw: bytes = b"") -> None:
        self.raw_bytes = raw
        """Its bytes: those of equal heads are one object, so that a capture keeps few."""
        self.first = first
        self.fields = fields
        self._values = {name.lower(): value for name, value in reversed(fields)}
        self.method, _, rest = first.partition(" ")
        """The method of a request."""
        self.target = rest.rpartition(" HTTP/")[0] or rest
        """The target of a request: path and query."""
        self.status = int(rest[:3]) if rest[:3].isascii() and rest[:3].isdecimal() else 0
        """The status of a response; 0 if it cannot be read."""
        self.media_type = self.get("content-type").partition(";")[0].strip().lower()
        """The content type without parameters, in lower case."""
        self.body: tuple[bool, str, str] | None = None
        """Facts of its body, once `decode` has looked for them."""

    def get(self, name: str) -> str:
        """Return the value of the first field with this name, in lower case; empty if there is none."""
        return self._values.get(name, "")

    @property
    def reason(self) -> str:
        """The reason phrase of a response; often empty."""
        return self.first.partition(" ")[2][4:].strip()


_link = lazy_pattern(r"<([^>]*+)>|\"(?:[^\"\\]|\\.)*+\"")
"""The target of a link (RFC 8288, section 3), or a text in quotes."""
_resource_metadata = lazy_pattern(r"(?i)(?<![\w.-])resource_metadata\s*+=[\s\"'<]*+([^\s\"'<>,]++)|\"(?:[^\"\\]|\\.)*+\"?")
"""The parameter of a challenge (RFC 9728, section 5.1), in or without quotes, as lenient clients read it; or another quoted text."""


def next_urls(head: Head) -> Iterator[tuple[str, str]]:
    """Yield the URLs to which a response sends its client, each with its field: those of a redirect, of challenges and of links."""
    for field, value in head.fields:
        name = field.lower()
        if name == "location":
            yield name, value
        elif name in _URLS:
            yield from ((name, url) for url in _URLS[name].findall(value) if url)


_URLS: Final = {"www-authenticate": _resource_metadata, "link": _link}


def decoded_value(value: str) -> str:
    """Decode a field value of the form `=?base64?…?=` (MCP specification 2026-07-28, Streamable HTTP); return others as they are."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return b64decode(value[len("=?base64?") : -2], validate=True).decode()
    except ValueError:
        return value


def read_head(raw: bytes) -> Head:
    r"""Read a head. Bytes that are not UTF-8 are spelled out, as `\xff`; a folded line belongs to the line before it."""
    return _known_head(raw) if len(raw) <= _SHORT_BYTES else _head(raw)


_SHORT_BYTES: Final = 1024


def _head(raw: bytes) -> Head:
    first, *lines = raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n").split("\n")
    fields: list[tuple[str, str]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and fields:
            name, value = fields[-1]
            fields[-1] = name, f"{value} {line.strip()}"
        elif line:
            name, _, value = line.partition(":")
            fields.append((name.strip(), value.strip(" \t")))
    return Head(first, tuple(fields), raw)


_known_head: Final = lru_cache(maxsize=4096)(_head)
"""A session has few heads: most differ in the length of a body alone, which has some hundred values."""


def date_ns(text: str) -> int | None:
    """Return an HTTP date as Unix time; None if it is none."""
    from email.utils import parsedate_to_datetime  # seldom needed, and slow to import

    try:
        return int(parsedate_to_datetime(text).timestamp()) * 1_000_000_000
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


_DATE_NS: Final = 1_000_000_000
"""The precision of dates in HTTP."""


def wait_ns(head: Head, received_ns: int | None) -> int:
    """Return the time span that Retry-After asks for: in seconds, or until a date (RFC 9110, section 10.2.3); 0 if it is unreadable.

    The response's own Date is a better beginning than the Unix time at which it came: the clock of the server may be wrong. Both
    dates are cut to seconds.
    """
    wait = head.get("retry-after")
    if wait.isascii() and wait.isdecimal():
        return int(wait[:9]) * 1_000_000_000
    until_ns, since_ns = date_ns(wait), date_ns(head.get("date"))
    since_ns = received_ns if since_ns is None else since_ns
    return 0 if until_ns is None or since_ns is None else until_ns - since_ns - _DATE_NS
