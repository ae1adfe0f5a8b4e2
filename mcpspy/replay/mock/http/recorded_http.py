"""What a recording says over HTTP beside its messages, made ready for a mock: where, with which statuses and fields, in which form.

Of one recording and for one transport; it never changes, and all live sessions share it. Captures of stdio, and what was recorded
over the other transport, get what the official SDKs do. Source: MCP specification, basic/transports of each revision.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from ....records import CLIENT
from ....transcript.mcp.codes import METHOD_NOT_FOUND
from ....transcript.mcp.methods import INITIALIZE
from ....transcript.mcp.revisions import Era
from ....transcript.model import HTTP_REDIRECTS, Kind
from ....wire.sse import SseEvent, parse
from ...compare.ignore import Ignore
from ..match_key import RequestRules, Strictness
from .answer import AnswerShape, EventStyle, HttpAnswer, HttpRequest, MockAddress, Transport, playable_fields, without_type
from .exchanges import RecordedTransaction, http_match_key, path_of, recorded_transactions
from .names import HostNames, known_origins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ....transcript.model import Exchange, Transcript
    from ..match_key import MatchRules


_MODERN_STATUSES: Final = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, METHOD_NOT_FOUND: 404}
"""2026-07-28, basic/transports/streamable-http; other errors have 200."""


def status_of_error(code: int, era: Era | None) -> int:
    """The HTTP status of a JSON-RPC error that nobody recorded: before the modern era any answer has 200."""
    return _MODERN_STATUSES.get(code, 200) if era is Era.MODERN else 200


def _error(status: int, reason: str, code: int, message: str) -> HttpAnswer:
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None}
    return HttpAnswer(status, reason, (("Content-Type", "application/json"),), json.dumps(body).encode())


ACCEPTED: Final = {"streamable": HttpAnswer(202, "Accepted"), "sse": HttpAnswer(202, "Accepted", body=b"Accepted")}
DELETED: Final = HttpAnswer(200, "OK", ends_session=True)
NOT_OFFERED: Final = HttpAnswer(405, "Method Not Allowed", (("Allow", "POST"),))
GONE: Final = _error(404, "Not Found", -32001, "Session not found")
LACKING: Final = _error(400, "Bad Request", -32000, "Bad Request: Missing session ID")
"""What is said where nobody recorded it: as both official SDKs do."""


class HttpFacts:
    """What `transcript` says for `transport`. `rules` says which questions are the same, as for the matcher beside it.

    `paths` are those at which the recorded server was asked in MCP, the most used first; none if it was not over this transport.
    `accepted` is what a POST gets that asks nothing, over HTTP+SSE any. `gone` is said of a session that is no more or never was,
    `lacking` where there is none. `no_stream` is what a GET gets where no stream is offered, else None; `deleted` what a DELETE gets.
    """

    __slots__ = (
        "_challenges", "_shapes", "accepted", "announced", "rules", "deleted", "static_responses", "events", "gone", "has_sessions",
        "lacking", "mcp_paths", "names", "no_stream", "paths", "refusals", "transport",
    )  # fmt: skip

    def __init__(self, transcript: Transcript, transport: Transport = "streamable", rules: MatchRules | None = None) -> None:
        self.transport = transport
        self.rules: MatchRules = rules or RequestRules(Strictness.DEFAULT, Ignore.of(()))
        every = recorded_transactions(transcript)
        self.mcp_paths = frozenset(one.path for one in every if one.is_mcp)
        of_mcp = [one for one in every if one.path in self.mcp_paths and one.method in MCP_METHODS]
        living, gone = among_the_living(of_mcp)
        own = [one for one in living if one.is_of_sse == (transport == "sse")]
        self.paths = _paths(own, transport)
        streams_and_calls = [one for one in living if one.method == "GET" or not one.is_of_sse]
        self.names = HostNames(
            known_origins(transcript, {one.host for one in every}),
            (self.paths or _paths(streams_and_calls, "streamable") or ("",))[0],
        )
        others = (one for one in every if one.path not in self.mcp_paths or one.method not in MCP_METHODS)
        self.static_responses = _static_responses(others)
        self._challenges = challenges(living, self.rules)
        self.refusals = refusals(living, self.rules)
        self.announced = _announced(living)
        self.events = events_of(own)
        is_modern = _is_modern_alone(transcript.exchanges)
        self.has_sessions = _has_sessions(transcript.exchanges, own)
        self.accepted = _accepted(own, transport)
        self.gone = next((one.answer for one in gone if one.is_refused_alone and one.is_kept), GONE)
        self.lacking = next((one.answer for one in own if self.has_sessions and _lacks_session(one)), LACKING)
        self.no_stream = None if transport == "sse" else _no_stream(own, is_modern=is_modern)
        self.deleted = _deleted(own, is_modern=is_modern)
        self._shapes = _shapes(transcript.exchanges, own if transport == "streamable" else ())

    def shape(self, row: int) -> AnswerShape:
        """How the answer to the exchange of this row went out, or would have gone."""
        found = self._shapes.get(row, _USUAL)
        if isinstance(found, RecordedTransaction):
            fields = without_type(playable_fields(found.head))
            found = self._shapes[row] = AnswerShape(found.status, found.is_stream, fields, found.is_lost)
        return found

    def challenge(self, key: RefusalKey) -> HttpAnswer | None:
        """What is said to a request that does not say who asks; None if it is let through."""
        if key in self._challenges:
            return self._challenges[key]
        said = list(self._challenges.values())
        return said[0] if said and None not in said else None

    def recorded_path(self, asked: HttpRequest) -> str:
        """The path of a live request as it was recorded: what is asked at the mock's own path was asked at the server's."""
        path, live, own = path_of(asked.target), asked.live.path, self.names.path
        is_known = path in self.mcp_paths or (asked.method, path, "") in self.static_responses
        if is_known or not own or not live.strip("/") or not path.endswith(live):
            return path
        return path.removesuffix(live) + own

    def client_address(self, asked: HttpRequest) -> MockAddress:
        """As what a client knows the mock: one that asks where the recorded one did goes on to do so."""
        is_own = path_of(asked.target) != self.recorded_path(asked) or not self.names.path
        return asked.live if is_own else asked.live._replace(path=self.names.path)


_USUAL: Final = AnswerShape()
_ANSWERED_ELSEWHERE: Final = (202, 204)


def _paths(own: Iterable[RecordedTransaction], transport: Transport) -> tuple[str, ...]:
    """The paths that were asked with success, the most used first; if there are none, all that were asked."""
    asked = [one for one in own if transport != "sse" or one.method == "GET"]
    well = Counter(one.path for one in asked if 0 < one.status < HTTP_REDIRECTS)
    return tuple(path for path, _ in (well or Counter(one.path for one in asked)).most_common())


def _is_modern_alone(exchanges: Iterable[Exchange]) -> bool:
    """Whether all that was answered well is of the modern era."""
    eras = {one.era for one in exchanges if one.response is not None and one.response.kind is Kind.RESULT}
    return eras == {Era.MODERN}


def _has_sessions(exchanges: Iterable[Exchange], own: Iterable[RecordedTransaction]) -> bool:
    """Whether who initializes gets one. Where nobody did, as in a recording of the middle of something, nobody has to."""
    openings = [one for one in own if any(other.method == INITIALIZE and other.response for other in one.exchanges)]
    if openings:
        return any(_names_session(one) for one in openings)
    return any(one.method == INITIALIZE and one.sender == CLIENT and one.response is not None for one in exchanges)


def _names_session(one: RecordedTransaction) -> bool:
    response = one.transaction.response
    return response is not None and bool(response.head.get("mcp-session-id"))


def _accepted(own: Iterable[RecordedTransaction], transport: Transport) -> HttpAnswer:
    asked = (one for one in own if one.method == "POST" and one.messages and (transport == "sse" or not one.exchanges))
    return next((one.answer for one in asked if 0 < one.status < HTTP_REDIRECTS and one.is_kept), ACCEPTED[transport])


def _lacks_session(one: RecordedTransaction) -> bool:
    is_opening = any(other.method == INITIALIZE for other in one.messages)
    return (
        one.method == "POST"
        and not one.session
        and not is_opening
        and not one.is_challenged
        and one.is_refused_alone
        and one.is_kept
    )


def _no_stream(own: Iterable[RecordedTransaction], *, is_modern: bool) -> HttpAnswer | None:
    asked = [one for one in own if one.method == "GET" and one.status and not one.is_challenged]
    if any(one.status < HTTP_REDIRECTS for one in asked):
        return None
    return asked[-1].answer if asked else NOT_OFFERED if is_modern else None


def _deleted(own: Iterable[RecordedTransaction], *, is_modern: bool) -> HttpAnswer:
    asked = [one.answer for one in own if one.method == "DELETE" and one.status and not one.is_challenged]
    answer = asked[0] if asked else NOT_OFFERED if is_modern else DELETED
    return answer._replace(ends_session=answer.status < HTTP_REDIRECTS)


def _announced(every: Iterable[RecordedTransaction]) -> bytes:
    """The data of the first `endpoint` event, as the client got it; empty if there is none."""
    for one in every:
        if not one.is_of_sse or one.transaction.response is None:
            continue
        for frame in one.transaction.response.kept:
            event = parse(frame.data if frame.forwarded is None else frame.forwarded, is_first=True)
            if event.type == "endpoint" and event.data:
                return event.data
    return b""


def _shapes(exchanges: Iterable[Exchange], own: Iterable[RecordedTransaction]) -> dict[int, AnswerShape | RecordedTransaction]:
    """The shapes by row, or what they are made of once somebody asks."""
    found: dict[int, AnswerShape | RecordedTransaction] = {
        one.row: AnswerShape(_status(one)) for one in exchanges if one.response is not None and one.response.kind is Kind.ERROR
    }
    for one in own:
        if one.status and one.status not in _ANSWERED_ELSEWHERE and not one.is_refused_alone:
            found.update((other.row, one) for other in one.exchanges)
    return found


def _status(one: Exchange) -> int:
    error = None if one.response is None else one.response.error
    code = error.get("code") if isinstance(error, dict) else None
    return status_of_error(code, one.era) if isinstance(code, int) else 200


RefusalKey: TypeAlias = tuple[str, str, str]
"""HTTP method, path as it was recorded, and what is asked in JSON-RPC; of a document its query, or nothing for any."""

MCP_METHODS: Final = ("POST", "GET", "DELETE")


def challenges(asked: Sequence[RecordedTransaction], rules: MatchRules) -> dict[RefusalKey, HttpAnswer | None]:
    """What was said to the first request of each kind that did not say who asks; None if it was let through."""
    found: dict[RefusalKey, HttpAnswer | None] = {}
    if not any(one.is_challenged for one in asked):  # reading the params of all would take half of the time
        return found
    for one in asked:
        if not one.is_authorized and one.status:
            found.setdefault(_key(one, rules), one.answer if one.is_challenged else None)
    return found


def refusals(asked: Sequence[RecordedTransaction], rules: MatchRules) -> dict[RefusalKey, list[HttpAnswer | None]]:
    """What was said to equal POSTs, one after the other; None where they were let through. Those that always were are left out."""
    found: defaultdict[RefusalKey, list[HttpAnswer | None]] = defaultdict(list)
    refused = {_method(one) for one in asked if one.is_refused_alone}
    for one in asked:
        if one.method == "POST" and one.messages and not one.is_challenged and _method(one) in refused:
            said = one.answer if one.is_refused_alone else None
            if said is not None and one.is_lost:
                said = said._replace(ends_session=True)
            found[_key(one, rules)].append(said)
    return {key: some for key, some in found.items() if any(some)}


def _static_responses(others: Iterable[RecordedTransaction]) -> dict[RefusalKey, list[HttpAnswer]]:
    """What was said to all that is no MCP, by its path with and without its query."""
    found: defaultdict[RefusalKey, list[HttpAnswer]] = defaultdict(list)
    for one in others:
        if one.status and one.is_kept:
            _, _, query = one.target.partition("?")
            for told in {query, ""}:
                found[one.method, one.path, told].append(one.answer)
    return dict(found)


def among_the_living(every: Iterable[RecordedTransaction]) -> tuple[list[RecordedTransaction], list[RecordedTransaction]]:
    """Transactions, and apart from them those in sessions that were deleted or lost before."""
    living: list[RecordedTransaction] = []
    gone: list[RecordedTransaction] = []
    over: set[int] = set()
    for one in every:
        scope = one.transaction.scope
        (gone if id(scope) in over else living).append(one)
        if one.session and (one.is_lost or (one.method == "DELETE" and 0 < one.status < HTTP_REDIRECTS)):
            over.add(id(scope))
    return living, gone


def _method(one: RecordedTransaction) -> str | None:
    return one.messages[0].method if one.messages else None


def _key(one: RecordedTransaction, rules: MatchRules) -> RefusalKey:
    return one.method, one.path, http_match_key(one.messages[0] if one.messages else None, rules)


MAX_LOOKED_AT: Final = 1_000
"""So many events show how a server writes them: it writes all alike."""


def events_of(every: Iterable[RecordedTransaction]) -> EventStyle:
    """The style of all streams of these transactions; that of the official SDKs if they bring none."""
    style = EventStyle()
    found = list(islice(_events(every), MAX_LOOKED_AT))
    told = [event for event, _ in found if event.data]
    if not told:
        return style
    retries = [event.retry_ms for event, _ in found if event.retry_ms is not None]
    return EventStyle(
        ids=any(event.id for event in told),
        primes=any(event.id and event.data == b"" for event, _ in found),
        retry_ms=retries[0] if retries else None,
        is_crlf=any(raw.endswith(b"\r\n") for event, raw in found if event.data),
        names_type=any(b"event:" in raw for event, raw in found if event.data and event.type == "message"),
    )


def _events(every: Iterable[RecordedTransaction]) -> Iterator[tuple[SseEvent, bytes]]:
    """The events of streams, and their bytes. Parts of long ones are left out."""
    for one in every:
        response = one.transaction.response
        if response is None or response.opened.framing != "sse":
            continue
        for at, frame in enumerate(response.kept):
            if not frame.part and len(frame.data) < 1_000_000:
                yield parse(frame.data, is_first=at == 0), frame.data
