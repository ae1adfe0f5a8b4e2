"""OAuth's bodies, whole or in parts: bytes in, bytes without secrets out, the same however they were cut, in bounded memory.

    client_secret=hun|ter2&grant_type=…    →    client_secret=|redacted-5f1d0c2a9b7e&grant_type=…        (| where parts end)

Other bytes are passed on at once; a secret, and any text in JSON, is held until it ends. JSON-RPC passes unread.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b

from .names import FORM_TYPE, is_credential, is_oauth_member, kind_of_parameter
from .spans import decode_percent, text_spans, unescape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .names import Kind, Redacted

    BodyFilter: TypeAlias = "FormBody | SealedBody | TextBody"

MAX_SECRET_BYTES = 1 << 16
"""A longer secret is left out as a whole too; its pseudonym is made of so many of its bytes. A longer text is not looked into."""

MAX_UNDECIDED_BYTES = 1 << 20
"""So much of a JSON object is held to see whether it is JSON-RPC, whose mark may come last: as much as comes in one part."""

_MAX_NAME_BYTES = 256
"""So much is remembered of a parameter's name: its end, by which it is recognized."""

_MAX_MEMBER_BYTES = 64


class _Output:
    """The output for one piece of a body."""

    __slots__ = ("_length", "_pieces", "_ranges")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._ranges: list[tuple[int, int, str]] = []
        self._length = 0

    def put(self, data: bytes) -> None:
        self._pieces.append(data)
        self._length += len(data)

    def replace(self, pseudonym: bytes, kind: Kind) -> None:
        self._ranges.append((self._length, len(pseudonym), kind))
        self.put(pseudonym)

    def redacted(self) -> Redacted:
        return b"".join(self._pieces), tuple(self._ranges)


class JsonBody:
    """A filter for a JSON object, whole or cut off: replaces the values of OAuth's secret members, at any depth, without parsing.

    So are tokens of well-known services and codes under any name, and secrets in URLs (RFC 8628 `verification_uri_complete`), and
    the value in an object that a secret member holds: `{"token":{"value":"…","type":"Bearer"}}`, alone or in an array (RFC 9635
    §3.2.2), and the texts in such an array.
    """

    __slots__ = ("_depth", "_is_array", "_is_escaped", "_is_secret", "_name", "_pseudonym", "_state", "_value")

    def __init__(self, pseudonym: Callable[[bytes], bytes]) -> None:
        self._pseudonym = pseudonym
        self._state = "text"
        self._name = b""
        self._is_array = False  # the values are those of an array that a secret member holds
        self._is_escaped = False  # the value's last byte was a backslash
        self._is_secret = False  # by its name
        self._depth = 0  # of objects and arrays below a secret member
        self._value: bytearray | None = None  # None for a long text, which is passed on

    def feed(self, data: bytes) -> Redacted:
        """Take the body's next bytes, and return those to pass on."""
        out, at = _Output(), 0
        while at < len(data):
            match self._state:
                case "text":
                    at = self._text(data, at, out)
                case "name":
                    at = self._in_name(data, at, out)
                case "value":
                    at = self._in_value(data, at, out)
                case _:
                    at = self._between(data, at, out)
        return out.redacted()

    def close(self) -> Redacted:
        """End the body: a secret that was cut off is a secret too."""
        out = _Output()
        self._end_value(out)
        return out.redacted()

    def _text(self, data: bytes, at: int, out: _Output) -> int:
        quote = data.find(b'"', at)
        end = len(data) if quote < 0 else quote + 1
        out.put(data[at:end])
        if self._depth:
            self._depth = max(0, self._depth + _depth(data[at:end]))
        if quote >= 0:
            self._begin_name()
        return end

    def _begin_name(self) -> None:
        """Begin a name: every quote may begin one, so that no name is missed in a text that is no JSON."""
        self._state, self._name = "name", b""

    def _in_name(self, data: bytes, at: int, out: _Output) -> int:
        end = _end(_NAME, data, at)
        self._name = (self._name + data[at:end])[: _MAX_MEMBER_BYTES + 1]
        if end < len(data):
            if data[end] != _QUOTE or len(self._name) > _MAX_MEMBER_BYTES:
                self._state = "text"
            else:
                end += 1
                self._state = "after name" if self._name else "name"
        out.put(data[at:end])
        return end

    def _between(self, data: bytes, at: int, out: _Output) -> int:
        """Take the bytes after a name: blanks, a colon, blanks, a quote; anything else, and it was no name."""
        end = _end(_BLANKS, data, at)
        if self._state == "after name" and end > at:
            self._state = "before colon"
        if end < len(data):
            if data[end] == _COLON and self._state != "before value":
                self._state, end = "before value", end + 1
            elif data[end] == _QUOTE and self._state == "before value":
                self._state, end = "value", end + 1
                self._value, self._is_secret = bytearray(), self._holds_secret()
            elif self._state == "after name":
                self._begin_name()  # with the quote that was to end one
            elif data[end] == _COMMA and self._state == "after element":
                self._state, end = "before value", end + 1
            elif not self._depth and data[end] in b"{[" and self._state == "before value" and self._holds_secret():
                self._depth, self._is_array = 1, data[end] == _BRACKET
                self._state, end = ("before value" if self._is_array else "text"), end + 1
            else:
                self._state, self._is_array = "text", False
        out.put(data[at:end])
        return end

    def _holds_secret(self) -> bool:
        """Return whether the member with the name that came last holds a secret."""
        name = unescape(self._name).decode("latin-1")
        return is_oauth_member(name) or (self._depth > 0 and name.lower() in _VALUES)

    def _in_value(self, data: bytes, at: int, out: _Output) -> int:
        if self._is_escaped:
            end, self._is_escaped = at + 1, False
        else:
            end = _end(_STRING, data, at)
            if end < len(data) and data[end] == _BACKSLASH:  # the last byte: what it escapes is yet to come
                end, self._is_escaped = end + 1, True
        self._keep_value(data[at:end], out)
        if end < len(data) and data[end] == _QUOTE and not self._is_escaped:
            self._end_value(out)
            out.put(b'"')
            if self._is_array:
                self._state = "after element"
            else:
                self._begin_name()
            end += 1
        return end

    def _keep_value(self, data: bytes, out: _Output) -> None:
        if self._value is None:
            out.put(data)
        elif self._is_secret:
            _keep(self._value, data)
        else:
            self._value += data
            if len(self._value) > MAX_SECRET_BYTES:
                out.put(bytes(self._value))
                self._value = None

    def _end_value(self, out: _Output) -> None:
        raw = bytes(self._value or b"")
        self._value = None
        value = unescape(raw)
        if not raw:
            return
        if self._is_secret or is_credential(value.decode("latin-1")) or (self._name == b"code" and _CODE(value)):
            out.replace(self._pseudonym(value), "token")
            return
        done = 0
        may_have_url = b"?" in raw or b"://" in raw.replace(b"\\/", b"/")
        for start, end, kind, secret in text_spans(raw, 0, len(raw)) if may_have_url else ():
            if kind != "path" and start < end:  # paths of metadata have ids of tenants, which clients need
                out.put(raw[done:start])
                out.replace(self._pseudonym(secret), kind)
                done = end
        out.put(raw[done:])


class FormBody:
    """A filter for a form: replaces the values of secret parameters. `;` and `?` separate parameters too, but not in a secret."""

    __slots__ = ("_kind", "_name", "_pseudonym", "_secret", "_state")
    is_rpc = False

    def __init__(self, pseudonym: Callable[[bytes], bytes]) -> None:
        self._pseudonym = pseudonym
        self._state = "name"
        self._name = b""
        self._kind: Kind = "token"
        self._secret = bytearray()

    def feed(self, data: bytes) -> Redacted:
        """Take the body's next bytes, and return those to pass on."""
        out, at = _Output(), 0
        while at < len(data):
            end = _end(_PARAMETERS[self._state], data, at)
            if self._state == "secret":
                _keep(self._secret, data[at:end])
            else:
                out.put(data[at:end])
            if self._state == "name":
                self._name = (self._name + data[at:end])[-_MAX_NAME_BYTES:]
            if end < len(data):
                self._end_secret(out)
                self._begin(data[end])
                out.put(data[end : end + 1])
            at = end + 1
        return out.redacted()

    def close(self) -> Redacted:
        """End the body, and with it its last value. The next bytes begin another body."""
        out = _Output()
        self._end_secret(out)
        self._state, self._name = "name", b""
        return out.redacted()

    def _begin(self, mark: int) -> None:
        """Begin what follows this separator: a name or a value."""
        if mark != _EQUALS:
            self._state, self._name = "name", b""
            return
        kind = kind_of_parameter(decode_percent(self._name).decode("latin-1"))
        self._state, self._kind = ("value", self._kind) if kind is None else ("secret", kind)

    def _end_secret(self, out: _Output) -> None:
        if self._secret:
            value = decode_percent(bytes(self._secret).replace(b"+", b" "))
            out.replace(self._pseudonym(value), self._kind)
            self._secret.clear()


class SealedBody:
    """A filter for a compressed body: where its secrets are is unknown, so the whole body becomes one pseudonym."""

    __slots__ = ("_begin", "_digest", "_is_empty", "_word")
    is_rpc = False

    def __init__(self, key: bytes, word: bytes, digest_bytes: int) -> None:
        self._begin = blake2b(key=key, digest_size=digest_bytes)
        self._digest = self._begin.copy()
        self._word = word
        self._is_empty = True

    def feed(self, data: bytes) -> Redacted:
        """Take the body's next bytes; pass on nothing before the end."""
        self._digest.update(data)
        self._is_empty = self._is_empty and not data
        return b"", ()

    def close(self) -> Redacted:
        """Return the pseudonym of the body. The next bytes begin another body."""
        if self._is_empty:
            return b"", ()
        pseudonym = self._word + self._digest.hexdigest().encode()
        self._digest, self._is_empty = self._begin.copy(), True
        return pseudonym, ((0, len(pseudonym), "token"),)


class TextBody:
    """A filter for a body that may be OAuth's JSON, a form or, if it `may_be_rpc`, JSON-RPC, which its bytes have to show.

    `sealed` is the filter for a token without JSON around it (RFC 9701 §5), and for HTML or XML if it `seals_markup`; without it,
    such a body is read as JSON is.
    """

    __slots__ = ("_filter", "_held", "_is_decided", "_may_be_rpc", "_pseudonym", "_sealed", "_seals_markup", "is_rpc")

    def __init__(
        self,
        pseudonym: Callable[[bytes], bytes],
        *,
        may_be_rpc: bool,
        sealed: SealedBody | None = None,
        seals_markup: bool = False,
    ) -> None:
        self._pseudonym = pseudonym
        self._may_be_rpc = may_be_rpc
        self._sealed = sealed
        self._seals_markup = seals_markup
        self._held = b""
        self._is_decided = False
        self._filter: JsonBody | FormBody | SealedBody | None = None
        self.is_rpc = False
        """True once it turned out to be JSON-RPC."""

    def feed(self, data: bytes) -> Redacted:
        """Take the body's next bytes, and return those to pass on."""
        if self._is_decided:
            return (data, ()) if self._filter is None else self._filter.feed(data)
        self._held += data
        is_json = self._held.lstrip(_BEFORE_JSON)[:1] in (b"", b"{", b"[")
        if len(self._held) < (MAX_UNDECIDED_BYTES if is_json and self._may_be_rpc else _MAX_NAME_BYTES):
            return b"", ()
        return self._decide()

    def close(self) -> Redacted:
        """End the body. The next bytes begin another body."""
        data, ranges = (b"", ()) if self._is_decided else self._decide()
        if self._filter is not None:
            rest, more = self._filter.close()
            data, ranges = data + rest, (*ranges, *((len(data) + at, length, kind) for at, length, kind in more))
        self._is_decided, self._filter = False, None
        return data, ranges

    def _decide(self) -> Redacted:
        held, self._held, self._is_decided = self._held, b"", True
        self.is_rpc = self._may_be_rpc and _JSON_RPC(held, 0, MAX_UNDECIDED_BYTES) is not None
        if self.is_rpc:
            return held, ()
        is_markup = self._seals_markup and held.lstrip(_BEFORE_JSON)[:1] == b"<"
        if self._sealed is not None and (is_markup or held.startswith(_GZIP) or _BARE_TOKEN(held[:_MAX_NAME_BYTES])):
            self._filter = self._sealed
        else:
            self._filter = (FormBody if _FORM(held) else JsonBody)(self._pseudonym)
        return self._filter.feed(held)


def filter_for(
    content_type: str, pseudonym: Callable[[bytes], bytes], *, may_be_rpc: bool, sealed: SealedBody, seals_markup: bool
) -> FormBody | TextBody:
    """Make the filter for a body of this type that is not compressed."""
    if content_type.startswith(FORM_TYPE):
        return FormBody(pseudonym)
    return TextBody(pseudonym, may_be_rpc=may_be_rpc, sealed=sealed, seals_markup=seals_markup)


def is_grant(body: bytes) -> bool:
    """Return whether a request's body, whatever its type, asks for tokens or logs in: a short form or JSON object, no JSON-RPC."""
    if len(body) > MAX_SECRET_BYTES or b'"jsonrpc"' in body:
        return False
    if not _GRANT(body):
        return _FORM_GRANT(body) is not None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body.lstrip(_BEFORE_JSON)[:1] == b"{"
    return isinstance(value, dict) and any(_GRANT(b'"%b":"' % name.encode("utf-8", "replace")) for name in value)


_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_JSON_RPC = re.compile(rb'"jsonrpc"[ \t\r\n]*+:').search
_GRANT = re.compile(
    rb'"(?:access[_-]?[tT]oken|api[_-]?[kK]ey|assertion|[aA]uth_?(?:[fF]low|[rR]eq_?[iI]d)'
    rb"|client[_-]?(?:[aA]ssertion|[sS]ecret)|code_?[vV]erifier|device_?[cC]ode|grant_?[tT]ype|id_?[tT]oken|otp"
    rb"|pass(?:code|phrase|wd|word)?|private_?[kK]ey|pwd|redirect_?[uU]ris|refresh(?:_?[tT]oken)?"
    rb'|secret(?:_?(?:[aA]ccess_?)?[kK]ey)?|subject_?[tT]oken|Password)"[ \t\r\n]*+:[ \t\r\n]*+"'
    rb'|"(?:access_token|[aA]uth_?[pP]arameters|redirect_?[uU]ris)"[ \t\r\n]*+:[ \t\r\n]*+[\[{]'
).search
"""A member of a request for a token (RFC 6749, 7523, 7636, 8628, 8693, 9635), of a registration (RFC 7591) or of a login."""
_FORM_GRANT = re.compile(
    rb'(?:[^\s{}\[\]"]*&)?(?:assertion|client_assertion|client_secret|code_verifier|device_code|grant_type|password|refresh_token'
    rb"|subject_token)=\S"
).match
"""A form that asks for tokens, whose type says something else, as where a client sends it as text."""
_FORM = re.compile(rb"[\w.%-]{1,64}=").match
_CODE = re.compile(rb"(?=.*[0-9])[\w./~+-]{16,}+\Z").match
"""An authorization code (RFC 6749 §4.1.3), unlike the code of an error."""
_BARE_TOKEN = re.compile(rb'\s*+"?(?=.*[0-9])[\w./~+-]{20,}+=*+"?\s*+\Z').match
"""A token alone in a body, or its beginning: a JWT (RFC 9701 §5, OpenID Connect Core §5.3.2), a metadata service's token."""
_GZIP = b"\x1f\x8b"
"""The beginning of a compressed body whose head does not say that it is one (RFC 1952 §2.3.1)."""
_QUOTE, _COLON, _BACKSLASH, _EQUALS, _COMMA, _BRACKET = b'":\\=,['
_VALUES = {"data", "encoded", "plain", "plaintext", "raw", "string", "text", "value"}
"""Members of an object that hold the secret itself, where the name of the object's own member says that it is one."""
_NAME = re.compile(rb"[\w.\\-]*+")
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_PARAMETERS = {
    "name": re.compile(rb"[^&#;?=]*+"),
    "value": re.compile(rb"[^&#;?]*+"),
    "secret": re.compile(rb"[^&#]*+"),
}


def _depth(data: bytes) -> int:
    """Return how much deeper JSON is nested after bytes that are in none of its strings."""
    return data.count(b"{") + data.count(b"[") - data.count(b"}") - data.count(b"]")


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return the end of the pattern's match at `at`; the pattern also matches nothing."""
    match = pattern.match(data, at)
    return at if match is None else match.end()


def _keep(secret: bytearray, data: bytes) -> None:
    secret += data[: max(0, MAX_SECRET_BYTES - len(secret))]
