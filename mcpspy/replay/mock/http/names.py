"""Host names: the addresses of the recorded server and of the tap before it, replaced by the mock's in fields and bodies.

Addresses of third parties, such as an authorization server, stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from ....transcript.model import Transcript
    from .answer import HttpAnswer, MockAddress

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")  # noqa: S104 - the names of one machine for itself
_is_authority = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?").fullmatch
_SLASH: Final = r"\\?/"


class HostNames:
    """`origins` are those of the recorded server and of the tap, as `http://host:port`; `path` is that of the MCP endpoint."""

    __slots__ = ("_find", "path")

    def __init__(self, origins: Iterable[str], path: str) -> None:
        self.path = path
        known = sorted({alias for origin in origins for alias in _aliases(origin.lower())}, key=len, reverse=True)
        alternatives = "|".join(re.escape(origin).replace("/", _SLASH) for origin in known)
        at = re.escape(path.rstrip("/")).replace("/", _SLASH) if path.strip("/") else "(?!)"
        self._find = (
            re.compile(
                rf"(?P<origin>(?i:{alternatives}))(?![\w:-]|\.\w)"
                rf"(?P<known>(?:{_SLASH}\.well-known{_SLASH}[\w-]+)?)(?P<path>(?:{at}(?![\w.~%-]))?)"
            )
            if known
            else None
        )

    def text(self, text: str, live: MockAddress) -> str:
        """Replace the names in a text."""
        if self._find is None:
            return text

        def renamed(match: re.Match[str]) -> str:
            path = live.path.rstrip("/") if match["path"] else ""
            slash = r"\/" if r"\/" in match["origin"] else "/"
            return live.origin.replace("/", slash) + match["known"] + path.replace("/", slash)

        return self._find.sub(renamed, text)

    def answer(self, answer: HttpAnswer, live: MockAddress, target: str) -> HttpAnswer:
        """Replace the names in an answer to `target`; the redirect of a login also gets the live `state`."""
        fields = tuple(
            (name, _redirect(self.text(value, live), target) if name.lower() == "location" else self.text(value, live))
            for name, value in answer.fields
        )
        return answer._replace(fields=fields, body=self.data(answer.body, live))

    def data(self, data: bytes, live: MockAddress) -> bytes:
        """Replace the names in bytes, if they are UTF-8."""
        try:
            return self.text(data.decode(), live).encode()
        except UnicodeDecodeError:
            return data


def known_origins(transcript: Transcript, hosts: Iterable[str]) -> set[str]:
    """List the origins of the servers and taps: of the URLs that were tapped, and of the clients' Host fields."""
    origins = {f"http://{host}" for host in hosts if _is_authority(host)}
    for capture in transcript.captures:
        url = str(capture.header.tapped.get("url", "")) if capture.header else ""
        scheme, colon, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest)[0].rpartition("@")[2]
        if colon and _is_authority(authority):
            origins.add(f"{scheme.lower()}://{authority}")
    return origins


def _aliases(origin: str) -> list[str]:
    """List the names of one origin: the loopback names are all one."""
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":") if re.search(r":\d+$", authority) else (authority, "", "")
    return [f"{scheme}://{alias}{colon}{port}" for alias in (LOOPBACK if host in LOOPBACK else (host,))]


def _redirect(location: str, target: str) -> str:
    """Send the user of a login (RFC 6749, section 4.1.2) back to the live client, with its own `state`."""
    try:
        live_query, goal = parse_qs(urlsplit(target).query), urlsplit(location)
        parameters = parse_qsl(goal.query, keep_blank_values=True)
        if not {"code", "error"} & {name for name, _ in parameters}:
            return location  # the login is not over
        base = urlsplit(live_query["redirect_uri"][0]) if "redirect_uri" in live_query else goal
    except ValueError:
        return location
    parameters = [(name, live_query.get("state", [value])[0] if name == "state" else value) for name, value in parameters]
    return urlunsplit(base._replace(query=urlencode(parameters)))
