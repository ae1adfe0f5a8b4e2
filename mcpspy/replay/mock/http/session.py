"""A live client's session with a mock over HTTP: what HTTP itself answers to its requests, and the endpoint of HTTP+SSE.

Challenges, refusals and static responses are answered here, in the order of the capture. Everything else is MCP.
Source of the endpoint event: MCP specification 2024-11-05, basic/transports; without a recorded one it is that of the official SDKs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

from ....lazy_pattern import lazy_pattern
from ....records import PSEUDONYM_PATTERN
from ....transcript.http.scopes import endpoint, path_and_query
from ...json_values import read, readable_json
from .answer import HttpAnswer, HttpRequest, MockAddress
from .exchanges import http_match_key, path_of
from .recorded_http import MCP_METHODS, HttpFacts, RefusalKey


class HttpCursor:
    """One client's place in what HTTP answered. Each session has one, and all requests without a session share one."""

    __slots__ = ("_counts", "_facts")

    def __init__(self, facts: HttpFacts) -> None:
        self._facts = facts
        self._counts: Counter[RefusalKey] = Counter()

    def answer(self, request: HttpRequest) -> HttpAnswer | None:
        """Return what HTTP answers; None for MCP, and for an unknown path. It counts: call it once per request."""
        facts = self._facts
        path = facts.recorded_path(request)
        is_mcp = request.method in MCP_METHODS and (path in facts.mcp_paths or path_of(request.target) == request.live.path)
        answer = self._mcp_answer(request, path) if is_mcp else self._static_response(request, path)
        return None if answer is None else facts.names.answer(answer, facts.client_address(request), request.target)

    def _mcp_answer(self, request: HttpRequest, path: str) -> HttpAnswer | None:
        facts = self._facts
        key = (request.method, path, http_match_key(request.message, facts.rules))
        challenge = None if request.is_authorized else facts.challenge(key)
        if challenge is not None:
            return challenge
        if request.method == "GET":
            return facts.get_refusal
        if request.method == "DELETE":
            return facts.delete_answer
        return self._next(key, facts.refusals.get(key, ()))

    def _static_response(self, request: HttpRequest, path: str) -> HttpAnswer | None:
        responses = self._facts.static_responses
        query = request.target.partition("?")[2]
        exact = (request.method, path, query)
        key: RefusalKey = exact if exact in responses else (request.method, path, "")
        return self._next(key, responses.get(key, ()))

    def _next(self, key: RefusalKey, recorded: Sequence[HttpAnswer | None]) -> HttpAnswer | None:
        """Return the next of several answers; after the last, that one again."""
        if not recorded:
            return None
        count = self._counts[key]
        self._counts[key] += 1
        return recorded[min(count, len(recorded) - 1)]


DEFAULT: Final = "/messages/?session_id="
SESSION_PARAMETERS: Final = ("session_id", "sessionid", "session", "sid", "id")
"""Names of the session in a query, in lower case, the commonest first."""

_parameter = lazy_pattern(r"([?&])([^=&#]*)=([^&#]*)")
_random_segment = lazy_pattern(
    rf"(?<=/)(?:{PSEUDONYM_PATTERN}|[0-9a-fA-F]{{8}}-?[0-9a-fA-F]{{4}}-?[0-9a-fA-F-]{{9,}}|[0-9a-fA-F]{{16,}})(?=[/?#]|$)"
)
"""A segment of a path that nobody chose: a pseudonym, or a random number."""


_is_unprintable = lazy_pattern(r"[\x00-\x20\x7f]")


def session_endpoint(facts: HttpFacts, session: str, live: MockAddress) -> tuple[str, bytes]:
    """Return the target of a session's POSTs, and the data of the event that announces it. `session` is fit for a query."""
    recorded = endpoint(facts.announced)
    uri = facts.names.text(_with_session(recorded.uri or DEFAULT, session), live)
    target = _target(live, uri)
    if not target:
        uri = target = DEFAULT + session
    value = None if recorded.is_plain else read(facts.announced)
    data = readable_json({**value, "uri": uri}) if isinstance(value, dict) else uri
    return target, data.encode("utf-8", "replace")


def _target(live: MockAddress, uri: str) -> str:
    """Return the target of a request to this endpoint; empty for a third party's endpoint, and for what is no target."""
    try:
        resolved = urljoin(live.origin + live.path, uri)
        is_own = urlsplit(resolved).netloc == urlsplit(live.origin).netloc
    except ValueError:
        return ""
    target = path_and_query(resolved)
    return target if is_own and target.startswith("/") and not _is_unprintable.search(target + uri) else ""


def _with_session(uri: str, session: str) -> str:
    """Put the live session in place of the recorded one; at the end of the query if there is none."""
    by_name = {match[2].lower().replace("-", "_"): match for match in reversed(list(_parameter.finditer(uri)))}
    for name in SESSION_PARAMETERS:
        if match := by_name.get(name):
            return uri[: match.start(3)] + session + uri[match.end(3) :]
    if match := _random_segment.search(uri):
        return uri[: match.start()] + session + uri[match.end() :]
    base, hash_sign, fragment = uri.partition("#")
    return f"{base}{'&' if '?' in base else '?'}session_id={session}{hash_sign}{fragment}"
