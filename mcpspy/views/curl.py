"""An HTTP request as a curl command, to be sent again by hand.

Redacted values are read from shell variables: `$REDACTED_AUTHORIZATION`, `$REDACTED_MCP_SESSION_ID`. The prefix is there because a
capture could name a header like a variable of the user's environment, and its value would go to whoever made the capture.
"""

import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ..lazy_pattern import lazy_pattern
from ..records import PSEUDONYM_PATTERN
from ..transcript.http.head import Head, read_head
from ..transcript.http.transaction import Transaction
from ..transcript.model import CaptureInfo
from .text.escape import decoded, safe_text

_LEFT_TO_CURL: Final = frozenset((
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "accept-encoding", "te", "trailer", "upgrade",
    "proxy-connection", "expect",
))  # fmt: skip
"""Header fields that curl writes itself, or that describe the transfer and not the content."""

_PREFIX: Final = "REDACTED_"

_pseudonyms = lazy_pattern(f"({PSEUDONYM_PATTERN})")
_parameter = lazy_pattern(r"([\w.-]+)=[^=&]*\Z")
_no_name = lazy_pattern(r"[^A-Za-z0-9]+")


def curl(transaction: Transaction, capture: CaptureInfo) -> Iterator[str]:
    """Yield the lines of the command. The transcript has to keep frames; a comment says if part of the body was not recorded."""
    head = _head(transaction)
    body = b"".join(frame.data for frame in transaction.request.kept) if transaction.request is not None else b""
    lost = 0 if transaction.request is None else sum(frame.length - len(frame.data) for frame in transaction.request.kept)
    variables = _ShellVariables()
    url = variables.word(_url(head, capture, transaction))
    words = [f"curl -sS -N -g -X {_word(transaction.method)} {url}"]
    for name, value in head.fields:
        if name.startswith("@"):
            yield f"# the field {safe_text(name)} is left out: curl would read its name as that of a file"
        elif name.lower() not in _LEFT_TO_CURL:
            words.append(f"-H {variables.word(f'{name}: {value}' if value else f'{name};', name)}")
    words += [f"--data-raw {_word(decoded(body))}"] if body else []
    for name in variables.names.values():
        yield f"# set ${name} first: its value was redacted"
    if len(_pseudonyms.split(decoded(body))) > 1:
        yield "# redacted values in the body are pseudonyms"
    if lost:
        yield f"# {lost:,} bytes of the body were not recorded"
    yield " \\\n  ".join(words)


class _ShellVariables:
    """The shell variables of a command, by the pseudonyms that they replace."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def word(self, text: str, called: str = "") -> str:
        """Quote `text` as one word of a shell. `called` names its pseudonyms; else each has the name of its parameter."""
        parts = _pseudonyms.split(text)
        words = []
        for at, part in enumerate(parts):
            if at % 2:
                match = _parameter.search("".join(parts[:at]))
                words.append(f'"${self._name(part, called or (match[1] if match else "key"))}"')
            elif part:
                words.append(_word(part))
        return "".join(words)

    def _name(self, pseudonym: str, called: str) -> str:
        if pseudonym not in self.names:
            name = f"{_PREFIX}{_no_name.sub('_', called).strip('_').upper()}".rstrip("_")
            taken = sum(used == name or used.startswith(f"{name}_") for used in self.names.values())
            self.names[pseudonym] = f"{name}_{taken + 1}" if taken else name
        return self.names[pseudonym]


def _head(transaction: Transaction) -> Head:
    """Return the head as it was forwarded to the server, or as it came."""
    if transaction.request is None:
        return read_head(b"")
    request = transaction.request
    return request.head if request.forwarded is None else read_head(request.forwarded)


def _url(head: Head, capture: CaptureInfo, transaction: Transaction) -> str:
    """Return the server's address with the target of this request."""
    base = split_url(str(capture.header.tapped.get("url", ""))) if capture.header else split_url("")
    target = head.target or transaction.target
    if target.startswith(("http://", "https://")):
        return target
    return f"{base.scheme or 'http'}://{base.netloc or head.get('host') or '127.0.0.1'}{target}"


def split_url(text: str) -> SplitResult:
    """Split a captured URL; give no parts where it is none, as `http://[`."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def _word(text: str) -> str:
    r"""Quote `text` as one word of a shell; if it has characters that control a terminal, in the form `$'\x1b'`."""
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
