"""HTTP side of a capture, besides its messages, prepared for a mock: paths, statuses, fields, challenges, refusals, event style.

Of one transport; it never changes, and all live sessions share it. Captures of stdio, and of the other transport, get what the
official SDKs do. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....transcript.http.decode import carries_message
from ....transcript.mcp.codes import METHOD_NOT_FOUND
from ....transcript.mcp.methods import INITIALIZE
from ....transcript.mcp.revisions import Era
from ....transcript.model import HTTP_REDIRECTS, Exchange, Kind, Transcript
from ....wire.sse import SseEvent, parse
from ...compare.ignore import Ignore
from ..match_key import MatchRules, RequestRules, Strictness
from .answer import JSON_FIELDS, AnswerShape, EventStyle, HttpAnswer, HttpRequest, MockAddress, Transport, playable_fields
from .events import event_frames
from .exchanges import ANSWERED_ELSEWHERE, RecordedTransaction, http_match_key, path_of, recorded_transactions

RefusalKey: TypeAlias = tuple[str, str, str]
"""HTTP method, recorded path, and the match key of the message; of a static response its query, or nothing for any query."""

MCP_METHODS: Final = ("POST", "GET", "DELETE")

MAX_EVENTS: Final = 1_000
"""The most events that are read to learn their style: a server writes all of them alike."""

MAX_EVENT_BYTES: Final = 1_000_000

_MODERN_STATUSES: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, METHOD_NOT_FOUND: 404}
"""2026-07-28, basic/transports/streamable-http; other errors have 200."""


def status_of_error(code: int, era: Era | None) -> int:
    """Return the HTTP status of a JSON-RPC error that nobody recorded: before the modern era any answer has 200."""
    return _MODERN_STATUSES.get(code, 200) if era is Era.MODERN else 200


def _error(status: int, reason: str, code: int, message: str) -> HttpAnswer:
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}
    return HttpAnswer(status, reason, JSON_FIELDS, json.dumps(body).encode())


ACCEPTED: Final = {"streamable": HttpAnswer(202, "Accepted"), "sse": HttpAnswer(202, "Accepted", body=b"Accepted")}
DELETED: Final = HttpAnswer(200, "OK", ends_session=True)
NOT_OFFERED: Final = HttpAnswer(405, "Method Not Allowed", (("Allow", "POST"),))
UNKNOWN_SESSION: Final = _error(404, "Not Found", -32001, "Session not found")
MISSING_SESSION: Final = _error(400, "Bad Request", -32000, "Bad Request: Missing session ID")
"""Answers where nothing was recorded: those of both official SDKs."""

_USUAL: Final = AnswerShape()


class HttpFacts:
    """The facts of a transcript for one transport. `rules` say which requests are equal, as for the matcher beside it.

    `announced` is the data of the `endpoint` event, `announcement` the stream up to its end. `paths` are those of the recorded MCP
    endpoint, the most used first; none if the capture is not of this transport. `accepted` answers a POST without a request, over
    HTTP+SSE any POST; `media_types` are those of bodies that are read. `unknown_session` answers in a session that is over or never
    was, `missing_session` without one. `get_refusal` answers a GET if no stream is offered, else it is None; `offers_stream` means
    that a GET got one; `delete_answer` answers a DELETE.
    """

    __slots__ = (
        "_challenges", "_shapes", "accepted", "announced", "announcement", "delete_answer", "event_style", "get_refusal",
        "has_sessions", "mcp_paths", "media_types", "missing_session", "names", "offers_stream", "paths", "refusals", "rules",
        "static_responses", "transport", "unknown_session",
    )  # fmt: skip

    def __init__(self, transcript: Transcript, transport: Transport = "streamable", rules: MatchRules | None = None) -> None:
        self.transport = transport
        self.rules: MatchRules = rules or RequestRules(Strictness.DEFAULT, Ignore.of(()))
        transactions = recorded_transactions(transcript)
        self.mcp_paths = frozenset(transaction.path for transaction in transactions if transaction.is_mcp)
        of_mcp, others = _split(transactions, self.mcp_paths)
        in_sessions, after_sessions = _split_by_session_end(of_mcp)
        own = [transaction for transaction in in_sessions if transaction.is_of_sse == (transport == "sse")]
        self.paths = _paths(own, transport)
        streams_and_calls = [
            transaction for transaction in in_sessions if transaction.method == "GET" or not transaction.is_of_sse
        ]
        self.names = HostNames(
            known_origins(transcript, {transaction.host for transaction in transactions}),
            (self.paths or _paths(streams_and_calls, "streamable") or ("",))[0],
        )
        self.static_responses = _static_responses(others)
        self._challenges = _recorded_challenges(in_sessions, self.rules)
        self.refusals = _recorded_refusals(in_sessions, self.rules)
        self.announced, self.announcement = _announced(in_sessions)
        self.event_style = _event_style(own)
        is_modern = _is_only_modern(transcript.exchanges)
        self.has_sessions = _has_sessions(transcript.exchanges, own)
        self.accepted = _accepted(own, transport)
        self.unknown_session = _first_answer(after_sessions, UNKNOWN_SESSION)
        without_session = (transaction for transaction in own if self.has_sessions and _lacks_session(transaction))
        self.missing_session = _first_answer(without_session, MISSING_SESSION)
        self.get_refusal = None if transport == "sse" else _get_refusal(own, is_modern=is_modern)
        self.offers_stream = any(get.is_stream and get.status < HTTP_REDIRECTS for get in _answered(own, "GET"))
        self.delete_answer = _delete_answer(own, is_modern=is_modern)
        self.media_types = _media_types(in_sessions)
        self._shapes = _shapes(transcript.exchanges, own if transport == "streamable" else ())

    def shape(self, row: int) -> AnswerShape:
        """Return the form in which the answer to the exchange of this row went out, or would have gone."""
        shape = self._shapes.get(row, _USUAL)
        if isinstance(shape, RecordedTransaction):
            fields, requests = playable_fields(shape.head), len(shape.exchanges)
            shape = AnswerShape(shape.status, shape.is_stream, fields, shape.is_of_unknown_session, requests)
            self._shapes[row] = shape
        return shape

    def challenge(self, key: RefusalKey) -> HttpAnswer | None:
        """Return the answer to a request without an Authorization field; None if it is let through."""
        if key in self._challenges:
            return self._challenges[key]
        answers = list(self._challenges.values())
        return answers[0] if answers and None not in answers else None

    def recorded_path(self, request: HttpRequest) -> str:
        """Return the recorded path of a live request: the mock's own path stands for the server's."""
        path, live, recorded = path_of(request.target), request.live.path, self.names.path
        is_known = path in self.mcp_paths or (request.method, path, "") in self.static_responses
        if is_known or not recorded or not live.strip("/") or not path.endswith(live):
            return path
        return path.removesuffix(live) + recorded

    def client_address(self, request: HttpRequest) -> MockAddress:
        """Return the mock's address as this client knows it: a client that uses the recorded path goes on to do so."""
        is_mocks = path_of(request.target) != self.recorded_path(request) or not self.names.path
        return request.live if is_mocks else request.live._replace(path=self.names.path)


# Which transactions


def _split(
    transactions: Iterable[RecordedTransaction], mcp_paths: frozenset[str]
) -> tuple[list[RecordedTransaction], list[RecordedTransaction]]:
    """Separate MCP from everything else."""
    of_mcp: list[RecordedTransaction] = []
    others: list[RecordedTransaction] = []
    for transaction in transactions:
        is_mcp = transaction.path in mcp_paths and transaction.method in MCP_METHODS
        (of_mcp if is_mcp else others).append(transaction)
    return of_mcp, others


def _split_by_session_end(
    transactions: Iterable[RecordedTransaction],
) -> tuple[list[RecordedTransaction], list[RecordedTransaction]]:
    """Separate transactions from those in sessions that were already deleted or unknown: these were refused for that reason."""
    before: list[RecordedTransaction] = []
    after: list[RecordedTransaction] = []
    ended: set[int] = set()
    for transaction in transactions:
        scope = transaction.transaction.scope
        (after if id(scope) in ended else before).append(transaction)
        is_deleted = transaction.method == "DELETE" and 0 < transaction.status < HTTP_REDIRECTS
        if transaction.session and (transaction.is_of_unknown_session or is_deleted):
            ended.add(id(scope))
    return before, after


def _paths(own: Iterable[RecordedTransaction], transport: Transport) -> tuple[str, ...]:
    """List the paths of successful requests, the most used first; without any, the paths of all requests."""
    relevant = [transaction for transaction in own if transport != "sse" or transaction.method == "GET"]
    successful = Counter(transaction.path for transaction in relevant if 0 < transaction.status < HTTP_REDIRECTS)
    return tuple(path for path, _ in (successful or Counter(transaction.path for transaction in relevant)).most_common())


def _is_only_modern(exchanges: Iterable[Exchange]) -> bool:
    """Return whether every result is of the modern era."""
    responses = ((exchange.era, exchange.response) for exchange in exchanges)
    return {era for era, response in responses if response is not None and response.kind is Kind.RESULT} == {Era.MODERN}


def _has_sessions(exchanges: Iterable[Exchange], own: Iterable[RecordedTransaction]) -> bool:
    """Return whether `initialize` begins a session. A capture without `initialize` demands none."""
    openings = [transaction for transaction in own if _is_answered_opening(transaction)]
    if openings:
        return any(_begins_session(transaction) for transaction in openings)
    return any(
        exchange.method == INITIALIZE and exchange.sender == CLIENT and exchange.response is not None for exchange in exchanges
    )


def _is_answered_opening(transaction: RecordedTransaction) -> bool:
    return any(exchange.method == INITIALIZE and exchange.response for exchange in transaction.exchanges)


def _begins_session(transaction: RecordedTransaction) -> bool:
    response = transaction.transaction.response
    return response is not None and bool(response.head.get("mcp-session-id"))


def _lacks_session(transaction: RecordedTransaction) -> bool:
    """Return whether this is a POST that was refused because it names no session."""
    is_opening = any(message.method == INITIALIZE for message in transaction.messages)
    is_without_session = transaction.method == "POST" and not transaction.session and not is_opening
    return is_without_session and not transaction.is_challenged and transaction.is_refused_by_http and transaction.is_kept


# Answers of HTTP


def _first_answer(transactions: Iterable[RecordedTransaction], default: HttpAnswer) -> HttpAnswer:
    """Return the first refusal by HTTP that is kept."""
    return next(
        (transaction.answer for transaction in transactions if transaction.is_refused_by_http and transaction.is_kept), default
    )


def _accepted(own: Iterable[RecordedTransaction], transport: Transport) -> HttpAnswer:
    posts = (transaction for transaction in own if transaction.method == "POST" and transaction.messages)
    without_request = (post for post in posts if transport == "sse" or not post.exchanges)
    accepted = (post.answer for post in without_request if 0 < post.status < HTTP_REDIRECTS and post.is_kept)
    return next(accepted, ACCEPTED[transport])


def _media_types(transactions: Iterable[RecordedTransaction]) -> frozenset[str]:
    """Return JSON's type, and the types that the recorded server also took for JSON."""
    posts = (transaction for transaction in transactions if transaction.method == "POST" and transaction.messages)
    return frozenset(("application/json", *(post.media_type for post in posts if 0 < post.status < HTTP_REDIRECTS)))


def _get_refusal(own: Iterable[RecordedTransaction], *, is_modern: bool) -> HttpAnswer | None:
    gets = _answered(own, "GET")
    if any(get.status < HTTP_REDIRECTS for get in gets):
        return None
    return gets[-1].answer if gets else NOT_OFFERED if is_modern else None


def _delete_answer(own: Iterable[RecordedTransaction], *, is_modern: bool) -> HttpAnswer:
    deletes = _answered(own, "DELETE")
    answer = deletes[0].answer if deletes else NOT_OFFERED if is_modern else DELETED
    return answer._replace(ends_session=answer.status < HTTP_REDIRECTS)


def _answered(own: Iterable[RecordedTransaction], method: str) -> list[RecordedTransaction]:
    """List the requests with this method that were answered, and not with a challenge."""
    return [
        transaction
        for transaction in own
        if transaction.method == method and transaction.status and not transaction.is_challenged
    ]


def _recorded_challenges(transactions: Sequence[RecordedTransaction], rules: MatchRules) -> dict[RefusalKey, HttpAnswer | None]:
    """Return, by key, the answer to the first request without an Authorization field; None if it was let through."""
    challenges: dict[RefusalKey, HttpAnswer | None] = {}
    if not any(transaction.is_challenged for transaction in transactions):  # reading all params would take half of the time
        return challenges
    for transaction in transactions:
        if not transaction.is_authorized and transaction.status:
            answer = transaction.answer if transaction.is_challenged else None
            challenges.setdefault(_key(transaction, rules), answer)
    return challenges


def _recorded_refusals(
    transactions: Sequence[RecordedTransaction], rules: MatchRules
) -> dict[RefusalKey, list[HttpAnswer | None]]:
    """Return, by key, what HTTP alone answered to equal POSTs, in order; None where a message did. Keys without any are left out."""
    answers: defaultdict[RefusalKey, list[HttpAnswer | None]] = defaultdict(list)
    refused_methods = {_method(transaction) for transaction in transactions if transaction.is_answered_by_http}
    for post in transactions:
        if post.method != "POST" or not post.messages or post.is_challenged or _method(post) not in refused_methods:
            continue
        answer = post.answer if post.is_answered_by_http else None
        if answer is not None and post.is_of_unknown_session:
            answer = answer._replace(ends_session=True)
        answers[_key(post, rules)].append(answer)
    return {key: in_order for key, in_order in answers.items() if any(in_order)}


def _static_responses(others: Iterable[RecordedTransaction]) -> dict[RefusalKey, list[HttpAnswer]]:
    """Return the responses to everything that is not MCP, by path with and without the query."""
    responses: defaultdict[RefusalKey, list[HttpAnswer]] = defaultdict(list)
    for transaction in others:
        if transaction.status and transaction.is_kept:
            _, _, query = transaction.target.partition("?")
            for keyed_query in {query, ""}:
                responses[transaction.method, transaction.path, keyed_query].append(transaction.answer)
    return dict(responses)


def _method(transaction: RecordedTransaction) -> str | None:
    return transaction.messages[0].method if transaction.messages else None


def _key(transaction: RecordedTransaction, rules: MatchRules) -> RefusalKey:
    message = transaction.messages[0] if transaction.messages else None
    return transaction.method, transaction.path, http_match_key(message, rules)


# The form of answers and events


def _shapes(exchanges: Iterable[Exchange], own: Iterable[RecordedTransaction]) -> dict[int, AnswerShape | RecordedTransaction]:
    """Return the shapes by row, or the transactions from which they are made when they are needed."""
    shapes: dict[int, AnswerShape | RecordedTransaction] = {
        exchange.row: AnswerShape(_error_status(exchange))
        for exchange in exchanges
        if exchange.response is not None and exchange.response.kind is Kind.ERROR
    }
    for transaction in own:
        if transaction.status and transaction.status not in ANSWERED_ELSEWHERE and not transaction.is_refused_by_http:
            shapes.update((exchange.row, transaction) for exchange in transaction.exchanges)
    return shapes


def _error_status(exchange: Exchange) -> int:
    error = None if exchange.response is None else exchange.response.error
    code = error.get("code") if isinstance(error, dict) else None
    return status_of_error(code, exchange.era) if isinstance(code, int) else 200


def _announced(transactions: Iterable[RecordedTransaction]) -> tuple[bytes, bytes]:
    """Return the data of the first `endpoint` event, and its stream up to its end, as the client got it; empty if there is none."""
    for transaction in transactions:
        if not transaction.is_of_sse or transaction.transaction.response is None:
            continue
        before = b""
        for frame in event_frames(transaction.transaction.response):
            data = frame.data if frame.forwarded is None else frame.forwarded
            event = parse(data, is_first=True)
            if event.type == "endpoint" and event.data:
                return event.data, before + data
            before += b"" if carries_message(event) else data
    return b"", b""


def _event_style(transactions: Iterable[RecordedTransaction]) -> EventStyle:
    """Return the style of the recorded events; that of the official SDKs without any."""
    events = list(islice(_events(transactions), MAX_EVENTS))
    with_data = [(event, raw) for event, raw in events if event.data]
    if not with_data:
        return EventStyle()
    return EventStyle(
        ids=any(event.id for event, _ in with_data),
        primes=any(event.id and event.data == b"" for event, _ in events),
        retry_ms=next((event.retry_ms for event, _ in events if event.retry_ms is not None), None),
        is_crlf=any(raw.endswith(b"\r\n") for _, raw in with_data),
        names_type=any(b"event:" in raw for event, raw in with_data if event.type == "message"),
    )


def _events(transactions: Iterable[RecordedTransaction]) -> Iterator[tuple[SseEvent, bytes]]:
    """Yield the events of all streams with their bytes, without large ones."""
    for transaction in transactions:
        response = transaction.transaction.response
        for at, frame in enumerate(() if response is None else event_frames(response)):
            if len(frame.data) < MAX_EVENT_BYTES:
                yield parse(frame.data, is_first=at == 0), frame.data


# --- Host names: addresses of the recorded server and of the tap before it, replaced by the mock's in fields and bodies ---
#
# Addresses of third parties, such as an authorization server, stay.


LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")  # noqa: S104 - the names of one machine for itself
_is_authority = lazy_pattern(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
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
    origins = {f"http://{host}" for host in hosts if _is_authority.fullmatch(host)}
    for capture in transcript.captures:
        url = str(capture.header.tapped.get("url", "")) if capture.header else ""
        scheme, colon, rest = url.partition("://")
        authority = re.split(r"[/?#]", rest)[0].rpartition("@")[2]
        if colon and _is_authority.fullmatch(authority):
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
