"""The `endpoint` event of HTTP+SSE, said anew for each session: in the recorded form, with the live session in the place of that one.

Source: MCP specification 2024-11-05, basic/transports. What no recording said is as the official SDKs say it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from ....transcript.http.scopes import endpoint, path_and_query
from ....wire.sse import parse
from ...json.canonical import read, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .answer import Live
    from .exchanges import Recorded
    from .names import Names

DEFAULT: Final = "/messages/?session_id="
NAMES: Final = ("session_id", "sessionid", "session", "sid", "id")
"""How servers call the session in a query, in lower case, the commonest first."""

_parameter = re.compile(r"([?&])([^=&#]*)=([^&#]*)").finditer
_made_up = re.compile(
    r"(?<=/)(?:redacted-[0-9a-f]{12}|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F-]{9,}|[0-9a-fA-F]{16,})(?=[/?#]|$)"
).search
"""A part of a path that nobody gave a name: a pseudonym, or a number made up for it."""


_is_odd = re.compile(r"[\x00-\x20\x7f]").search


def announced(every: Iterable[Recorded]) -> bytes:
    """The data of the first `endpoint` event, as the client got it; empty if there is none."""
    for one in every:
        if not one.is_of_sse or one.transaction.response is None:
            continue
        for frame in one.transaction.response.kept:
            event = parse(frame.data if frame.forwarded is None else frame.forwarded, is_first=True)
            if event.type == "endpoint" and event.data:
                return event.data
    return b""


def said(announced: bytes, session: str, names: Names, live: Live) -> tuple[str, bytes]:
    """The target at which a session's POSTs come, and the data that announces it. `session` is fit to stand in a query."""
    told = endpoint(announced)
    uri = names.text(_with_session(told.uri or DEFAULT, session), live)
    target = _target(live, uri)
    if not target:
        uri = target = DEFAULT + session
    value = None if told.is_plain else read(announced)
    data = spelled({**value, "uri": uri}) if isinstance(value, dict) else uri
    return target, data.encode("utf-8", "replace")


def _target(live: Live, uri: str) -> str:
    """The target of a request to this endpoint; empty if it is a third party's, which a mock is not, or nothing that can be asked."""
    try:
        resolved = urljoin(live.origin + live.path, uri)
        is_own = urlsplit(resolved).netloc == urlsplit(live.origin).netloc
    except ValueError:
        return ""
    target = path_and_query(resolved)
    return target if is_own and target.startswith("/") and not _is_odd(target + uri) else ""


def _with_session(uri: str, session: str) -> str:
    """The URI with the live session where the recorded one stood; else behind it."""
    named = {found[2].lower().replace("-", "_"): found for found in reversed(list(_parameter(uri)))}
    for name in NAMES:
        if found := named.get(name):
            return uri[: found.start(3)] + session + uri[found.end(3) :]
    if found := _made_up(uri):
        return uri[: found.start()] + session + uri[found.end() :]
    base, mark, fragment = uri.partition("#")
    return f"{base}{'&' if '?' in base else '?'}session_id={session}{mark}{fragment}"
