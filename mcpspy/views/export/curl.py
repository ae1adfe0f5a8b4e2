"""A request that went over HTTP as a curl command, to be sent again by hand.

What was redacted is asked of the environment: `$REDACTED_AUTHORIZATION`, `$REDACTED_MCP_SESSION_ID`. They begin so since a
capture could call a field like a variable that is set for something else, which would go to whoever made the capture.
Refuses to send anything.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...transcript.http.head import read_head
from ..text.escape import decoded, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...transcript.http.head import Head
    from ...transcript.http.transaction import Transaction
    from ...transcript.model import CaptureInfo

_LEFT_TO_CURL: Final = frozenset((
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te", "trailer", "upgrade",
    "proxy-connection", "expect",
))  # fmt: skip
"""Fields that curl makes itself, or that say how bytes came and not what they mean."""

_PREFIX: Final = "REDACTED_"

_pseudonyms = re.compile(r"(redacted-[0-9a-f]{12})").split
_parameter = re.compile(r"([\w.-]+)=[^=&]*\Z").search
_no_name = re.compile(r"[^A-Za-z0-9]+").sub


def curl(transaction: Transaction, capture: CaptureInfo) -> Iterator[str]:
    """The lines of the command. The transcript has to keep frames; what of a body was not kept is missing, which a comment says."""
    head = _head(transaction)
    body = b"".join(frame.data for frame in transaction.request.kept) if transaction.request is not None else b""
    lost = 0 if transaction.request is None else sum(one.length - len(one.data) for one in transaction.request.kept)
    asked = _ShellVariables()
    url = asked.word(_url(head, capture, transaction))
    words = [f"curl -sS -N -g -X {_word(transaction.method)} {url}"]
    for name, value in head.fields:
        if name.lower() not in _LEFT_TO_CURL:
            words.append(f"-H {asked.word(f'{name}: {value}' if value else f'{name};', name)}")
    words += [f"--data-raw {_word(decoded(body))}"] if body else []
    for name in asked.names.values():
        yield f"# ${name}: was redacted; set it before"
    if len(_pseudonyms(decoded(body))) > 1:
        yield "# what was redacted in the body is a pseudonym"
    if lost:
        yield f"# {lost:,} bytes of the body were not kept"
    yield " \\\n  ".join(words)


class _ShellVariables:
    """What is asked of the environment: the names of variables, by the pseudonyms that they stand for."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def word(self, text: str, called: str = "") -> str:
        """`text` as one word of a shell; `called` is what pseudonyms in it are called, else the parameter of each."""
        parts = _pseudonyms(text)
        words = []
        for at, part in enumerate(parts):
            if at % 2:
                found = _parameter("".join(parts[:at]))
                words.append(f'"${self._name(part, called or (found[1] if found else "key"))}"')
            elif part:
                words.append(_word(part))
        return "".join(words)

    def _name(self, pseudonym: str, called: str) -> str:
        if pseudonym not in self.names:
            name = f"{_PREFIX}{_no_name('_', called).strip('_').upper()}".rstrip("_")
            taken = sum(one == name or one.startswith(f"{name}_") for one in self.names.values())
            self.names[pseudonym] = f"{name}_{taken + 1}" if taken else name
        return self.names[pseudonym]


def _head(transaction: Transaction) -> Head:
    """The head as it was sent on to the server, or as it came."""
    if transaction.request is None:
        return read_head(b"")
    opened = transaction.request.opened
    return read_head(opened.head if opened.forwarded is None else opened.forwarded)


def _url(head: Head, capture: CaptureInfo, transaction: Transaction) -> str:
    """The server's address, with the target of this request."""
    base = urlsplit(str(capture.header.tapped.get("url", ""))) if capture.header else urlsplit("")
    target = head.target or transaction.target
    if target.startswith(("http://", "https://")):
        return target
    return f"{base.scheme or 'http'}://{base.netloc or head.get('host') or '127.0.0.1'}{target}"


def _word(text: str) -> str:
    r"""`text` as one word of a shell: quoted, and where it has signs that steer a terminal, in the form `$'\x1b'`."""
    if safe_text(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(map(_letter, text)) + "'"


def _letter(sign: str) -> str:
    if sign in "\\'":
        return f"\\{sign}"
    if safe_text(sign) == sign:
        return sign
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
