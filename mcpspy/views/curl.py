"""A request that went over HTTP as a curl command, to be sent again by hand.

What was redacted is asked of the environment: `$AUTHORIZATION`, `$MCP_SESSION_ID`. Refuses to send anything.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..transcript.head import read_head
from .escape import decoded, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..transcript.head import Head
    from ..transcript.model import Source
    from ..transcript.transaction import Transaction

_LEFT_TO_CURL: Final = frozenset((
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te", "trailer", "upgrade",
    "proxy-connection", "expect",
))  # fmt: skip
"""Fields that curl makes itself, or that say how bytes came and not what they mean."""

_pseudonyms = re.compile(r"redacted-[0-9a-f]{12}").search
_blanked = re.compile(r"redacted-[0-9a-f]{12}").sub
_no_name = re.compile(r"[^A-Za-z0-9]+").sub


def curl(transaction: Transaction, source: Source) -> Iterator[str]:
    """The lines of the command. The transcript has to keep frames; what of a body was not kept is missing, which a comment says."""
    head = _head(transaction)
    body = b"".join(frame.data for frame in transaction.request.kept) if transaction.request is not None else b""
    lost = 0 if transaction.request is None else sum(one.length - len(one.data) for one in transaction.request.kept)
    words = [f"curl -sS -N -X {_word(transaction.method)} {_word(_url(head, source, transaction))}"]
    words += [_field(name, value) for name, value in head.fields if name.lower() not in _LEFT_TO_CURL]
    words += [f"--data-binary {_word(decoded(body))}"] if body else []
    for name in sorted({name for name, value in _asked(head)}):
        yield f"# {name}: was redacted; set it before"
    if lost:
        yield f"# {lost:,} bytes of the body were not kept"
    yield " \\\n  ".join(words)


def _head(transaction: Transaction) -> Head:
    """The head as it was sent on to the server, or as it came."""
    if transaction.request is None:
        return read_head(b"")
    opened = transaction.request.opened
    return read_head(opened.head if opened.forwarded is None else opened.forwarded)


def _url(head: Head, source: Source, transaction: Transaction) -> str:
    """The server's address, with the target of this request."""
    base = urlsplit(str(source.header.tapped.get("url", ""))) if source.header else urlsplit("")
    target = head.target or transaction.target
    if "://" in target:
        return target
    return f"{base.scheme or 'http'}://{base.netloc or head.get('host') or '127.0.0.1'}{target}"


def _asked(head: Head) -> Iterator[tuple[str, str]]:
    """The names of variables for fields whose values were redacted, with these."""
    for name, value in head.fields:
        if _pseudonyms(value) and name.lower() not in _LEFT_TO_CURL:
            yield f"${_variable(name)}", value


def _field(name: str, value: str) -> str:
    if not _pseudonyms(value):
        return f"-H {_word(f'{name}: {value}')}"
    before, _, after = _blanked("\0", value).partition("\0")
    return f'-H {_word(f"{name}: {before}")}"${_variable(name)}"{_word(after) if after else ""}'


def _variable(name: str) -> str:
    return _no_name("_", name).strip("_").upper()


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
