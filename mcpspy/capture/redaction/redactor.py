"""Secrets out before anything reaches the disk: pseudonyms in commands, URLs, HTTP heads, `endpoint` events, OAuth bodies.

A value becomes `redacted-` and 12 hex digits of its keyed digest, legal wherever values stand. The key stays with the store, so
equal values stay equal, in one capture and across captures, and nobody can try out guesses who has the capture alone.
Refuses to look into JSON-RPC payloads: that would parse the data path.

Nothing is imported before there is something to redact: the tap's start-up path comes through here.
"""

from __future__ import annotations

from .names import SCHEMES, SECRET_PREFIX_BYTES, SECRET_PREFIXES, is_identifier, kind_of, kind_of_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from ...records import Redaction
    from .names import Redacted
    from .oauth_bodies import Body
    from .spans import Span

    Announced = Literal["value", "credential", "identifier"] | None

PREFIX = "redacted-"
DIGITS = 12
"""Hex digits of a pseudonym: 48 bits, so that a store with a million secrets has two alike once in 500 stores."""

KEY = "--key"
"""An option that may name a file, a column, or whoever calls (`@smithery/cli run … --key UUID`): its value's looks tell."""

_PSEUDONYM_BYTES = len(PREFIX) + DIGITS


class Redactor:
    """Replaces secrets by pseudonyms made with `key` (the store's, at most 64 bytes)."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def pseudonym(self, value: bytes) -> bytes:
        """What stands for `value`. A pseudonym stands for itself, so redacting twice changes nothing."""
        if len(value) == _PSEUDONYM_BYTES and value.startswith(PREFIX.encode()):
            return value
        from hashlib import blake2b

        return PREFIX.encode() + blake2b(value, key=self._key, digest_size=DIGITS // 2).hexdigest().encode()

    def argv(self, arguments: list[str]) -> list[str]:
        """A command without its secrets: options, `NAME=value`, headers, URLs, JSON, tokens known by their beginning."""
        redacted: list[str] = []
        announced: Announced = None
        for one in arguments:
            if announced is None or _is_option(one):
                redacted.append(self._argument(one))
                announced = _announced(one)
            elif announced == "credential" and _is_scheme(one):
                redacted.append(one)
            elif announced == "identifier" and not is_identifier(_bytes(one)):
                redacted.append(self._argument(one))
                announced = _announced(one)
            else:
                redacted.append(self._credential(one))
                announced = None
        return redacted

    def url(self, text: str) -> str:
        """A URL without its user's password, its secret and session parameters, and keys in its path."""
        from .spans import url_spans

        data = _bytes(text)
        return _text(self._replaced(data, url_spans(data, 0, len(data)))[0])

    def head(self, data: bytes) -> Redacted:
        """An HTTP head without the values of secret header fields and without what is secret in its URLs."""
        from .spans import head_spans

        return self._replaced(data, head_spans(data))

    def endpoint(self, data: bytes) -> Redacted:
        """An SSE event without the session id, if it is an `endpoint` event (HTTP+SSE, 2024-11-05), in its JSON dialect too."""
        if b"endpoint" not in data:
            return data, ()
        from .spans import endpoint_spans

        return self._replaced(data, endpoint_spans(data))

    def body(self, data: bytes, content_type: str) -> Redacted:
        """An OAuth form or JSON body without its tokens, codes and secrets. JSON-RPC passes untouched."""
        passing = self.passing(content_type, sealed=False)
        redacted, ranges = passing.feed(data)
        rest, more = passing.close()
        return redacted + rest, (*ranges, *((len(redacted) + at, length, kind) for at, length, kind in more))

    def passing(self, content_type: str, *, sealed: bool) -> Body:
        """What such a body passes through, piece by piece; `sealed`: a compressed one."""
        from . import oauth_bodies as bodies

        if sealed:
            return bodies.SealedBody(self._key, PREFIX.encode(), DIGITS // 2)
        return bodies.body(content_type, self.pseudonym)

    def _argument(self, text: str, *, nested: bool = False) -> str:
        """One argument that nothing before it announced as a secret; or, `nested`, what stands behind its `=`."""
        if text.startswith(SECRET_PREFIXES) and len(text) >= SECRET_PREFIX_BYTES:
            return self._value(text)
        if '"' in text and "{" in text:
            return self._json(text)
        name, equals, value = text.partition("=")
        if (
            equals
            and _is_name(name)
            and (kind_of_option(name.lstrip("-'\"")) or (name == KEY and is_identifier(_bytes(value))))
        ):
            return f"{name}={self._value(value)}"
        field, colon, credential = text.partition(":")
        if colon and not credential.startswith("//") and _is_name(field) and kind_of(field.lstrip("-H'\"")):
            return f"{field}:{self._credential(credential)}"
        if text.startswith("-") and equals and not nested:
            return f"{name}={self._argument(value, nested=True)}"
        if " " in text.strip():
            return " ".join(self.argv(text.split(" ")))
        if "?" in text or "://" in text:
            return self.url(text)
        if ";" in text and equals and not nested:  # a connection string
            return ";".join(self._argument(one, nested=True) for one in text.split(";"))
        return text

    def _value(self, text: str) -> str:
        """The pseudonym of `text`, whose quotes (in the text of a shell) are no part of the secret."""
        bare = text.strip("'\" ")
        if not bare:
            return text
        at = text.index(bare)
        return text[:at] + self.pseudonym(_bytes(bare)).decode() + text[at + len(bare) :]

    def _credential(self, text: str) -> str:
        """A credential on a command line: what comes behind the scheme, if it names one, is secret."""
        scheme, blank, secret = text.strip().partition(" ")
        if blank and _is_scheme(scheme):
            at = text.index(secret, text.index(scheme) + len(scheme))
            return text[:at] + self._value(text[at:])
        return self._value(text)

    def _json(self, text: str) -> str:
        """JSON on a command line (`--config '{"apiKey": …}'`), and the URLs in it."""
        from .spans import member_spans, text_spans

        data, _ = self._replaced(_bytes(text), member_spans(_bytes(text), lambda name: kind_of(name) is not None))
        return _text(self._replaced(data, text_spans(data, 0, len(data)))[0])

    def _replaced(self, data: bytes, spans: Iterable[Span]) -> Redacted:
        pieces: list[bytes] = []
        ranges: list[Redaction] = []
        done = length = 0
        for start, end, kind, secret in spans:
            if start >= end:
                continue
            stand_in = self.pseudonym(secret)
            pieces += (data[done:start], stand_in)
            length += start - done
            ranges.append((length, len(stand_in), kind))
            length += len(stand_in)
            done = end
        if not ranges:
            return data, ()
        return b"".join((*pieces, data[done:])), tuple(ranges)


class NoRedaction:
    """Redacts nothing: `--redact none`, which is explicit and stands in the capture's header."""

    __slots__ = ()

    def argv(self, arguments: list[str]) -> list[str]:
        """The arguments as they are."""
        return arguments

    def url(self, text: str) -> str:
        """The URL as it is."""
        return text

    def head(self, data: bytes) -> Redacted:
        """The head as it is."""
        return data, ()

    def endpoint(self, data: bytes) -> Redacted:
        """The event as it is."""
        return data, ()

    def body(self, data: bytes, content_type: str) -> Redacted:
        """The body as it is."""
        return data, ()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# --- Command lines ---


def _is_name(text: str) -> bool:
    """True for what may name an option, a variable or a header field; a quote or hyphens may stand before it."""
    return text.lstrip("-'\"").replace("-", "").replace("_", "").replace(".", "").isalnum()


def _is_option(text: str) -> bool:
    """True for what is no value of the option before it. A secret may begin with one hyphen, and is longer than `-v`."""
    return text.startswith("--") or (text.startswith("-") and len(text) == len("-v"))


def _is_scheme(text: str) -> bool:
    return text.strip("'\"").lower() in SCHEMES


def _announced(text: str) -> Announced:
    """What the next argument is after `--token`, `Authorization:` or `Bearer`."""
    bare = text.lstrip("'\"")
    if bare.startswith("--") and "=" not in bare and kind_of_option(bare[2:]):
        return "value"
    if bare == KEY:
        return "identifier"
    if bare.endswith(":") and kind_of(bare[:-1]):
        return "credential"
    return "value" if bare.lower() in ("bearer", "basic") else None
