"""The `endpoint` event of HTTP+SSE, said anew for each session: in the recorded form, with the live session in the place of that one.

Source: MCP specification 2024-11-05, basic/transports. What no recording said is as the official SDKs say it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from ..transcript.scopes import endpoint, path_and_query
from ..wire.sse import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .http_answer import Live
    from .http_names import Names
    from .http_recorded import Recorded

DEFAULT: Final = "/messages/?session_id="
NAMES: Final = ("session_id", "sessionid", "session", "sid", "id")
"""How servers call the session in a query, in lower case, the commonest first."""

_parameter = re.compile(r"([?&])([^=&#]*)=([^&#]*)").finditer
_made_up = re.compile(
    r"(?<=/)(?:redacted-[0-9a-f]{12}|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F-]{9,}|[0-9a-fA-F]{16,})(?=[/?#]|$)"
).search
"""A part of a path that nobody gave a name: a pseudonym, or a number made up for it."""


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
    target = path_and_query(_resolved(live, uri))
    if not target or urlsplit(_resolved(live, uri)).netloc != urlsplit(live.origin).netloc:
        uri = target = DEFAULT + session  # a third party's, which a mock is not
    if told.is_plain or not told.uri:
        return target, uri.encode("utf-8", "replace")
    value = json.loads(announced)
    return target, json.dumps({**value, "uri": uri}, ensure_ascii=False).encode("utf-8", "replace")


def _resolved(live: Live, uri: str) -> str:
    try:
        return urljoin(live.origin + live.path, uri)
    except ValueError:
        return ""


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
