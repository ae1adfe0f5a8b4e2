"""What HTTP alone says to what is asked live: logins, refusals and documents, in the order of the recording.

A machine that is fed each live request once. Refuses to serve MCP: where the recording let a request through, it says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from ....transcript.http.scopes import endpoint, path_and_query
from ...json.canonical import read, spelled
from .exchanges import http_match_key, path_of
from .recorded_http import MCP_METHODS, RefusalKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answer import HttpAnswer, HttpRequest, MockAddress
    from .recorded_http import HttpFacts


class HttpCursor:
    """One client's way through the refusals of a recording. Each session has one, and so has what comes without a session."""

    __slots__ = ("_facts", "_given")

    def __init__(self, facts: HttpFacts) -> None:
        self._facts = facts
        self._given: Counter[RefusalKey] = Counter()

    def answer(self, asked: HttpRequest) -> HttpAnswer | None:
        """What is said to this request; None if it goes on to MCP, or nobody knows its path. It counts: ask once per request."""
        facts = self._facts
        path = facts.recorded_path(asked)
        is_mcp = asked.method in MCP_METHODS and (path in facts.mcp_paths or path_of(asked.target) == asked.live.path)
        found = self._of_mcp(asked, path) if is_mcp else self._document(asked, path)
        return None if found is None else facts.names.answer(found, facts.client_address(asked), asked.target)

    def _of_mcp(self, asked: HttpRequest, path: str) -> HttpAnswer | None:
        facts = self._facts
        key = (asked.method, path, http_match_key(asked.message, facts.rules))
        challenge = None if asked.is_authorized else facts.challenge(key)
        if challenge is not None:
            return challenge
        if asked.method == "GET":
            return facts.no_stream
        if asked.method == "DELETE":
            return facts.deleted
        return self._next(key, facts.refusals.get(key, ()))

    def _document(self, asked: HttpRequest, path: str) -> HttpAnswer | None:
        documents = self._facts.static_responses
        query = asked.target.partition("?")[2]
        exact = (asked.method, path, query)
        key: RefusalKey = exact if exact in documents else (asked.method, path, "")
        return self._next(key, documents.get(key, ()))

    def _next(self, key: RefusalKey, recorded: Sequence[HttpAnswer | None]) -> HttpAnswer | None:
        """The next of several; after the last, that one again."""
        if not recorded:
            return None
        given = self._given[key]
        self._given[key] += 1
        return recorded[min(given, len(recorded) - 1)]


DEFAULT: Final = "/messages/?session_id="
NAMES: Final = ("session_id", "sessionid", "session", "sid", "id")
"""How servers call the session in a query, in lower case, the commonest first."""

_parameter = re.compile(r"([?&])([^=&#]*)=([^&#]*)").finditer
_made_up = re.compile(
    r"(?<=/)(?:redacted-[0-9a-f]{12}|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F-]{9,}|[0-9a-fA-F]{16,})(?=[/?#]|$)"
).search
"""A part of a path that nobody gave a name: a pseudonym, or a number made up for it."""


_is_odd = re.compile(r"[\x00-\x20\x7f]").search


def session_endpoint(facts: HttpFacts, session: str, live: MockAddress) -> tuple[str, bytes]:
    """The target at which a session's POSTs come, and the data that announces it. `session` is fit to stand in a query."""
    told = endpoint(facts.announced)
    uri = facts.names.text(_with_session(told.uri or DEFAULT, session), live)
    target = _target(live, uri)
    if not target:
        uri = target = DEFAULT + session
    value = None if told.is_plain else read(facts.announced)
    data = spelled({**value, "uri": uri}) if isinstance(value, dict) else uri
    return target, data.encode("utf-8", "replace")


def _target(live: MockAddress, uri: str) -> str:
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
