"""The names of the recorded server, and of the tap before it, put into those of the mock wherever a client might follow them.

Refuses to touch what names a third party: an authorization server of its own stays who it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from ....transcript.model import Transcript
    from .answer import HttpAnswer, MockAddress

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")  # noqa: S104 - the names under which one machine knows itself
_is_authority = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?").fullmatch
_SLASH: Final = r"\\?/"


class HostNames:
    """`origins` are the recorded server's and tap's, as `http://host:port`; `path` is where the server was asked in MCP."""

    __slots__ = ("_find", "path")

    def __init__(self, origins: Iterable[str], path: str) -> None:
        self.path = path
        known = sorted({alias for one in origins for alias in _aliases(one.lower())}, key=len, reverse=True)
        spelled = "|".join(re.escape(one).replace("/", _SLASH) for one in known)
        at = re.escape(path.rstrip("/")).replace("/", _SLASH) if path.strip("/") else "(?!)"
        self._find = (
            re.compile(
                rf"(?P<origin>(?i:{spelled}))(?![\w:-]|\.\w)"
                rf"(?P<known>(?:{_SLASH}\.well-known{_SLASH}[\w-]+)?)(?P<path>(?:{at}(?![\w.~%-]))?)"
            )
            if known
            else None
        )

    def text(self, text: str, live: MockAddress) -> str:
        """`text` with the mock's own names in it."""
        if self._find is None:
            return text

        def renamed(found: re.Match[str]) -> str:
            path = live.path.rstrip("/") if found["path"] else ""
            slash = r"\/" if r"\/" in found["origin"] else "/"
            return live.origin.replace("/", slash) + found["known"] + path.replace("/", slash)

        return self._find.sub(renamed, text)

    def answer(self, answer: HttpAnswer, live: MockAddress, target: str) -> HttpAnswer:
        """An answer with the mock's own names in its fields and its body; a login hands back what was sent along with `target`."""
        fields = tuple(
            (name, _handed_back(self.text(value, live), target) if name.lower() == "location" else self.text(value, live))
            for name, value in answer.fields
        )
        return answer._replace(fields=fields, body=self.data(answer.body, live))

    def data(self, data: bytes, live: MockAddress) -> bytes:
        """The same for bytes; those that are no UTF-8 stay as they are."""
        try:
            return self.text(data.decode(), live).encode()
        except UnicodeDecodeError:
            return data


def known_origins(transcript: Transcript, hosts: Iterable[str]) -> set[str]:
    """As what servers and taps were known: the URL that was tapped, and what clients wrote into their Host fields."""
    found = {f"http://{host}" for host in hosts if _is_authority(host)}
    for source in transcript.captures:
        url = str(source.header.tapped.get("url", "")) if source.header else ""
        scheme, mark, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest)[0].rpartition("@")[2]
        if mark and _is_authority(authority):
            found.add(f"{scheme.lower()}://{authority}")
    return found


def _aliases(origin: str) -> list[str]:
    """The names of one origin: a machine's own are all one."""
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":") if re.search(r":\d+$", authority) else (authority, "", "")
    return [f"{scheme}://{one}{colon}{port}" for one in (LOOPBACK if host in LOOPBACK else (host,))]


def _handed_back(location: str, target: str) -> str:
    """Where a login sends its user (RFC 6749, section 4.1.2): to the live client, with its own `state`."""
    try:
        asked, goal = parse_qs(urlsplit(target).query), urlsplit(location)
        told = parse_qsl(goal.query, keep_blank_values=True)
        if not {"code", "error"} & {name for name, _ in told}:
            return location  # on the way there
        base = urlsplit(asked["redirect_uri"][0]) if "redirect_uri" in asked else goal
    except ValueError:
        return location
    told = [(name, asked.get("state", [value])[0] if name == "state" else value) for name, value in told]
    return urlunsplit(base._replace(query=urlencode(told)))
