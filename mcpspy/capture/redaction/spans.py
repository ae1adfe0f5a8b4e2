"""Secrets in HTTP heads, URLs, SSE events and JSON: bytes in, spans out, each with its kind and its decoded value.

Values are decoded so that one secret is one value in a query, a header and a body. Work is linear in the bytes.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from ...records import PLACEHOLDER_PATTERN, PSEUDONYM_PATTERN
from .names import SCHEMES, is_credential, is_identifier, is_public_field, kind_of_field, kind_of_parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .names import Kind

    Span = tuple[int, int, Kind, bytes]
    """First byte, byte after the last, kind, and decoded value of a secret."""

_TO_BLANKS = bytes.maketrans(b"\t\r\n\"'<>\\`{}", b" " * 11)
"""Characters that end a URL in a text, mapped to blanks."""

_SLASHES = re.compile(rb"(?:\\?/){2,}+")
_SCHEME_END = re.compile(rb":(?:\\?/){2,}+")
"""The mark before a host: two slashes, which JSON may spell with a backslash each."""

MAX_REMEMBERED_BYTES = 1 << 10
"""Longer lines of heads are searched each time; of shorter ones the result is remembered, as most heads differ in one line only."""

_URL_FIELDS = {b"location", b"content-location", b"referer"}
_BASE64_OBJECTS = (b"ewo", b"eyA", b"eyI", b"eyJ")
"""The beginnings of a JSON object in base64: a brace, then an end of line, a blank, or a quote and a letter."""
_SHORTEST_VALUE = 10
"""No shorter value of a parameter is looked at, which takes 2 µs: a scheme and a credential have as many letters."""
_WHOLE_VALUES = 32
"""So many first values are looked at up to the end, later ones to the next semicolon: else time would grow with their square."""
_BOM = b"\xef\xbb\xbf"
"""A stream of events may begin with it (HTML §9.2.5)."""
_HEX = b"0123456789abcdefABCDEF"
_MEMBER = re.compile(rb'"([\w.-]{1,64})"[ \t\r\n]*+:[ \t\r\n]*+"((?:[^"\\]|\\.)*+)', re.DOTALL)


# or a word for a setting, the place of a parameter in SQL, or a sign that something was left out
_PLACEHOLDER = re.compile(
    PLACEHOLDER_PATTERN.encode()
    + rb"|(?i:disabled|enabled|include|n/a|nil|no|none|not|off|omit|on|optional|required|same-origin|string|true|false|unset|yes)"
    rb"|\$[A-Z][A-Z_]{0,63}|[$:@][0-9]{1,2}|[?]|%s|\.{3}|<[A-Za-z][A-Za-z _-]{0,40}>|\[[A-Z][\w -]{0,40}\]"
    rb"|[A-Z_]{0,40}(?:KEY|TOKEN)|[A-Z]{1,40}_(?:PASSWORD|SECRET)"
)
_MAX_PLACEHOLDER_BYTES = 120


def is_placeholder(value: bytes) -> bool:
    """Return whether a value is what stands for a secret that nobody filled in, such as `${API_KEY}`: it gives nothing away.

    So is the sign before a brace, where braces end a text.
    """
    return value == b"$" or (len(value) <= _MAX_PLACEHOLDER_BYTES and _PLACEHOLDER.fullmatch(value.strip(b"'\"")) is not None)


# --- HTTP heads ---


def head_spans(data: bytes) -> Iterator[Span]:
    """Yield the secrets of an HTTP head: in the target of its request line and in its header fields."""
    request_line, *lines = _unfolded_lines(data)
    first, last = request_line.find(b" "), request_line.rfind(b" ")
    if 0 <= first < last and not data.startswith(b"HTTP/"):
        yield from url_spans(data, first + 1, last)
    at = len(request_line) + 1
    for line in lines:
        spans = _remembered_line_spans(line) if len(line) <= MAX_REMEMBERED_BYTES else _line_spans(line)
        for start, end, kind, secret in spans:
            yield at + start, at + end, kind, secret
        at += len(line) + 1


def _unfolded_lines(data: bytes) -> list[bytes]:
    """Return the lines of a head; one that begins with a blank belongs to the line before it (RFC 9112 §5.2)."""
    lines = data.split(b"\n")
    if b"\n " not in data and b"\n\t" not in data:
        return lines
    starts = [at for at, line in enumerate(lines) if not at or not line.startswith((b" ", b"\t"))]
    return [b"\n".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _line_spans(line: bytes) -> tuple[Span, ...]:
    """Return the secrets of a header field."""
    name, _, value = line.partition(b":")
    start, end = _stripped(line, len(name) + 1, len(line))
    name = name.strip()
    field = name.lower()
    kind = _kind_of_field(name)
    if kind == "cookie":
        return tuple(_cookie_spans(line, start, end, every=not field.startswith(b"set-cookie")))
    if kind is not None:
        return tuple(_credential_spans(line, start, end, kind))
    if is_credential(line[start:end].decode("latin-1")) and not is_public_field(name.decode("latin-1")):
        return tuple(_credential_spans(line, start, end, "authorization"))
    if field in _URL_FIELDS:
        return tuple(url_spans(line, start, end))
    return tuple(text_spans(line, start, end)) if b"?" in value or b"://" in value else ()


_remembered_line_spans = lru_cache(1_000)(_line_spans)


@lru_cache(1_000)
def _kind_of_field(name: bytes) -> Kind | None:
    return kind_of_field(name.decode("latin-1"))


def _stripped(data: bytes, start: int, end: int) -> tuple[int, int]:
    value = data[start:end]
    return start + len(value) - len(value.lstrip()), start + len(value.rstrip())


def _credential_spans(data: bytes, start: int, end: int, kind: Kind) -> Iterator[Span]:
    """Yield the value without its scheme: a token is the same in `Authorization: Bearer` and in the body that granted it."""
    scheme = (data[start:end].split(None, 1) or [b""])[0].lower()
    if len(scheme) < end - start and scheme.strip(b"'\"").decode("latin-1") in SCHEMES:
        start, end = _stripped(data, start + len(scheme), end)
        if data[start:end].lower().startswith(scheme + b" "):  # `Bearer Bearer …`, a common mistake that should show
            start, end = _stripped(data, start + len(scheme), end)
    if start < end and not is_placeholder(data[start:end]):
        yield start, end, kind, data[start:end]


def _cookie_spans(data: bytes, start: int, end: int, *, every: bool) -> Iterator[Span]:
    """Yield the values of `Cookie`'s pairs, or the value that `Set-Cookie` sets, whose attributes are no secrets."""
    at = start
    while at < end:
        stop = data.find(b";", at, end)
        stop = end if stop < 0 else stop
        equals = data.find(b"=", at, stop)
        first, last = _stripped(data, at if equals < 0 else equals + 1, stop)
        yield first, last, "cookie", data[first:last].strip(b'"')
        if not every:
            return
        at = stop + 1


# --- Events ---


_PSEUDONYMS = f"(?:{PSEUDONYM_PATTERN})+".encode()


def endpoint_spans(data: bytes) -> Iterator[Span]:
    """Yield the secrets of the address in an SSE event, if it is an `endpoint` event; as plain data, or in JSON."""
    lines = list(_event_lines(data))
    if not any(data[start:end].removeprefix(_BOM).replace(b" ", b"") == b"event:endpoint" for start, end in lines):
        return
    values = [_stripped(data, start + len(b"data:"), end) for start, end in lines if data.startswith(b"data:", start)]
    address = b"".join(data[start:end] for start, end in values)  # readers of URLs leave out ends of lines
    spans = text_spans if address.startswith(b"{") else url_spans
    for begin, finish, kind, secret in spans(address, 0, len(address)):
        if len(values) > 1 and re.fullmatch(_PSEUDONYMS, secret):
            continue  # the parts of a secret over several lines were replaced before
        at = 0
        for start, end in values:
            first, last = max(begin - at, 0), min(finish - at, end - start)
            if first < last:
                yield start + first, start + last, kind, secret
            at += end - start


def _event_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line of an SSE event, which ends in CR, LF or CRLF."""
    start = 0
    for line in data.splitlines(keepends=True):
        yield start, start + len(line.rstrip(b"\r\n"))
        start += len(line)


# --- URLs ---


def text_spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the secrets of the URLs in the text `data[start:end]`, where they may be in quotes and between other words."""
    for word in data[start:end].replace(b"\\/", b"//").translate(_TO_BLANKS).split(b" "):
        yield from url_spans(data, start, start + len(word))
        start += len(word) + 1


def url_spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the secrets of the URL `data[start:end]`, which is whole or begins with its path."""
    path_end = min((at for at in (data.find(b"?", start, end), data.find(b"#", start, end)) if at >= 0), default=end)
    slashes = _SLASHES.match(data, start, path_end)
    before = slashes or _SCHEME_END.search(data, start, path_end)
    if before is not None:
        start = before.end()
        slash = data.find(b"/", start, path_end)
        slash = path_end if slash < 0 else slash
        yield from _userinfo_spans(data, start, slash)
        start = slash if slashes is None else start  # in a request line, a path may begin with two slashes
    for segment in data[start:path_end].split(b"/"):
        if is_identifier(decode_percent(segment.rpartition(b":")[2])) or is_credential(
            segment.decode("latin-1")
        ):  # `/bot123:KEY/`
            yield start, start + len(segment), "path", segment
        elif b";" in segment:  # `/x;jsessionid=…`
            name, _, parameters = segment.partition(b";")
            yield from _one_parameter_spans(data, start + len(name) + 1, start + len(name) + 1 + len(parameters))
        start += len(segment) + 1
    yield from _parameter_spans(data, path_end + 1, end)


def _userinfo_spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the password, or if there is none the user, for a token may be given so."""
    at_sign = data.rfind(b"@", start, end)
    if at_sign >= 0:
        colon = data.find(b":", start, at_sign)
        first = start if colon < 0 else colon + 1
        yield first, at_sign, "userinfo", decode_percent(data[first:at_sign])


def _parameter_spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the values of secret parameters."""
    for parameter in data[start:end].replace(b"#", b"&").split(b"&"):
        yield from _one_parameter_spans(data, start, start + len(parameter))
        start += len(parameter) + 1


def _one_parameter_spans(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the value of a secret parameter. `;` and `?` may separate parameters or be in a value: a secret goes to the end."""
    for number, part in enumerate(data[start:end].replace(b"?", b";").split(b";")):
        name, equals, value = part.partition(b"=")
        kind = kind_of_parameter(decode_percent(name).decode("latin-1")) if equals else None
        first = start + len(name) + 1
        if number < _WHOLE_VALUES:
            value = data[first:end]
        if equals and kind is None and _is_secret_value(name, decode_percent(value)):
            kind = "token"
        if kind is not None:
            value = decode_percent(data[first:end])
            if not is_placeholder(value):
                yield first, end, kind, value
            return
        start += len(part) + 1


def _is_secret_value(name: bytes, value: bytes) -> bool:
    """Return whether a parameter's value is secret under any name: a credential, or a URL that has one.

    So is a configuration as JSON or in base64, which has the keys of a server.
    """
    if len(value) < _SHORTEST_VALUE:
        return False
    if is_credential(value.replace(b"+", b" ").decode("latin-1")):
        return True
    if name.lower() == b"config":
        return value.startswith((b"{", *_BASE64_OBJECTS))
    return b"://" in value and any(kind != "path" for _, _, kind, _ in url_spans(value, 0, len(value)))


def decode_percent(data: bytes) -> bytes:
    """Decode percent signs as in `%41`; any other `%` means itself."""
    if b"%" not in data:
        return data
    first, *rest = data.split(b"%")
    pieces = [first]
    for piece in rest:
        if len(piece) >= 2 and piece[0] in _HEX and piece[1] in _HEX:
            pieces.append(bytes((int(piece[:2], 16),)) + piece[2:])
        else:
            pieces.append(b"%" + piece)
    return b"".join(pieces)


# --- JSON ---


def member_spans(data: bytes, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the string values of secret members at any depth, also one that was cut off. A scan: nothing is parsed."""
    for match in _MEMBER.finditer(data):
        if is_secret(match[1].decode("latin-1")):
            yield match.start(2), match.end(2), "token", unescape(match[2])


def unescape(data: bytes) -> bytes:
    """Return the text that the inside of a JSON string's quotes means; bytes that are no JSON mean themselves."""
    if b"\\" not in data:
        return data
    try:
        value: str = json.loads(b'"%s"' % data)
        return value.encode("utf-8", "surrogatepass")
    except ValueError:
        return data
