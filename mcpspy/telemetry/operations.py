"""Exchanges of MCP, model calls and agent runs to spans, and the durations of MCP sessions, by the semantic conventions.

On stdio a capture is a session, from its first request to its last record. Over HTTP a session has an id, and lasts from its
first HTTP transaction to the end of its last; without an id there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ..transcript.findings.rule import Finding
from ..transcript.findings.timeout_signs import is_timeout
from ..transcript.http.transaction import Transaction
from ..transcript.llm.agent_runs import AgentRun, agent_runs
from ..transcript.llm.model_call import ModelCall
from ..transcript.llm.tool_trips import tool_trips
from ..transcript.model import CaptureInfo, Exchange, Outcome, Transcript
from ..views.json.rows import failure_object
from ..wire.json_spans import Slice, members, string
from .span import LARGEST, Attributes, SpanEvent, TelemetrySpan, TraceContext, own_context, sendable, trace_context

TOOL_ERROR: Final = "tool_error"
TIMEOUT: Final = "timeout"
OTHER: Final = "_OTHER"
_NAMED: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}

PROVIDERS: Final = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
"""By its API, whose provider may be another one that speaks it."""


class OperationSpans:
    """Spans of the exchanges of a transcript that are over. `as_server` reports them as the server's.

    `parents` has the spans of agent runs by the rows of the calls that a model wanted. `payload` masks payloads, which are left out
    without it.
    """

    def __init__(
        self,
        transcript: Transcript,
        parents: dict[int, TraceContext],
        *,
        as_server: bool = False,
        payload: Callable[[bytes], str] | None = None,
    ) -> None:
        self._transcript = transcript
        self._parents = parents
        self._as_server = as_server
        self._payload = payload
        self._findings: dict[int, list[Finding]] = {}
        for finding in transcript.findings:
            for row in finding.rows:
                self._findings.setdefault(row, []).append(finding)

    def spans(self) -> Iterable[TelemetrySpan]:
        """Yield a span for each exchange that is over."""
        for row in self._transcript.rows:
            if isinstance(row, Exchange) and row.outcome is not Outcome.PENDING:
                info = self._transcript.captures[row.capture]
                if info.header is not None:
                    yield self._span(row, info)

    def _span(self, row: Exchange, info: CaptureInfo) -> TelemetrySpan:
        assert info.header is not None
        capture_id = info.header.capture_id
        began_ns = info.header.wall_ns - info.shift_ns
        meta = members(members(members(row.request.raw).get("params", b"")).get("_meta", b""))
        parent = trace_context(_text(meta, "traceparent"), _text(meta, "tracestate")) or self._parents.get(row.row)
        attributes, error = _attributes(row, info), None
        kind = _error_type(row)
        if kind is not None:
            attributes["error.type"] = kind
            words = failure_object(row).get("error", {}).get("message")
            error = words if isinstance(words, str) else ""
        if self._payload is not None and row.method == "tools/call":
            attributes |= self._payloads(row, self._payload)
        target = row.target if row.method in _NAMED else None
        ended_ns = (
            row.at_ns + (row.duration_ns or 0) if row.duration_ns is not None else max(row.at_ns, info.last_ns + info.shift_ns)
        )
        return TelemetrySpan(
            name=f"{row.method} {target}" if target else row.method,
            is_server=self._as_server,
            context=own_context(capture_id, row.request.number, row.request.id, row.method, parent=parent),
            parent=parent,
            began_ns=began_ns + row.at_ns,
            ended_ns=began_ns + ended_ns,
            attributes=attributes,
            error=error,
            links=_links(row),
            events=[_event(finding, began_ns) for finding in self._findings.get(row.row, ())],
        )

    def _payloads(self, row: Exchange, payload: Callable[[bytes], str]) -> Attributes:
        arguments = members(members(row.request.raw).get("params", b"")).get("arguments", b"")
        attributes: Attributes = {"gen_ai.tool.call.arguments": sendable(payload(bytes(arguments)))} if arguments else {}
        if row.response is not None and (result := members(row.response.raw).get("result", b"")):
            attributes["gen_ai.tool.call.result"] = sendable(payload(bytes(result)))
        return attributes


def _attributes(row: Exchange, info: CaptureInfo) -> Attributes:
    attributes: Attributes = {"mcp.method.name": row.method}
    code = failure_object(row).get("error", {}).get("code")
    if isinstance(code, int) and not isinstance(code, bool):
        attributes["rpc.response.status_code"] = str(code)
    if row.target is not None and row.method in _NAMED:
        attributes[_NAMED[row.method]] = row.target
    if row.method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    if row.request.id is not None and row.request.id != "null":
        attributes["jsonrpc.request.id"] = _id_text(row.request.id)
    version = string(members(row.request.raw).get("jsonrpc", b""))
    if version != "2.0":
        attributes["jsonrpc.protocol.version"] = version or "1.0"
    if row.target is not None and row.method.startswith("resources/"):
        attributes["mcp.resource.uri"] = row.target
    if row.revision is not None:
        attributes["mcp.protocol.version"] = row.revision
    return attributes | _transport_attributes(row, info)


def _id_text(key: str) -> str:
    """Return an id as text: a string without its quotes, a number as it was spelled."""
    return string(key.encode("utf-8", "surrogatepass")) or key if key.startswith('"') else key


def _transport_attributes(row: Exchange | None, info: CaptureInfo) -> Attributes:
    """Return the attributes of the transport; of HTTP those of the upstream."""
    tapped = {} if info.header is None else info.header.tapped
    if tapped.get("transport") != "http":
        return {"network.transport": "pipe"}
    attributes: Attributes = {"network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1"}
    if row is not None and row.transaction is not None and row.transaction.scope.session:
        attributes["mcp.session.id"] = row.transaction.scope.session
    try:
        url = urlsplit(str(tapped.get("url") or ""))
        port = url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        return attributes
    if url.hostname:
        attributes |= {"server.address": url.hostname, "server.port": port}
    return attributes


def _error_type(row: Exchange) -> str | None:
    """Return the type of the error; None for what did not fail, such as a call that its user cancelled."""
    match row.outcome:
        case Outcome.ERROR:
            code = failure_object(row).get("error", {}).get("code")
            return str(code) if isinstance(code, int) and not isinstance(code, bool) else OTHER
        case Outcome.TOOL_ERROR:
            return TOOL_ERROR
        case Outcome.HTTP_ERROR | Outcome.REDIRECTED:
            return OTHER if row.transaction is None else str(row.transaction.status)
        case Outcome.CANCELLED:
            given_up_ns = row.given_up_ns
            return TIMEOUT if given_up_ns is not None and is_timeout(row, given_up_ns) else None
        case Outcome.UNANSWERED:
            return OTHER
    return None


def _links(row: Exchange) -> list[TraceContext]:
    """Return the context of the HTTP request that carried it: another one than that of the call."""
    if row.transaction is None or row.transaction.request is None:
        return []
    head = row.transaction.request.head
    linked = trace_context(head.get("traceparent"), head.get("tracestate"))
    return [] if linked is None else [linked]


def _event(finding: Finding, began_ns: int) -> SpanEvent:
    attributes: Attributes = {
        "mcpspy.rule": finding.rule,
        "mcpspy.severity": finding.severity.value,
        "mcpspy.culprit": finding.culprit,
        "mcpspy.what": finding.what,
    }
    return SpanEvent(name="mcpspy.finding", at_ns=began_ns + finding.at_ns, attributes=attributes)


def _text(values: dict[str, Slice], name: str) -> str:
    return string(values.get(name, b"")) or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTime:
    """The time that a session took which is over. Times are Unix time; `span_id` is the id that a span of it would have."""

    is_server: bool
    attributes: Attributes
    began_ns: int
    ended_ns: int
    span_id: int


def session_times(transcript: Transcript, *, as_server: bool) -> Iterator[SessionTime]:
    """Yield a time for each session that is over and in which there was a request."""
    revisions: dict[tuple[int, str], str | None] = {}
    began_ns: dict[tuple[int, str], int] = {}
    for row in transcript.rows:
        if isinstance(row, Exchange):
            of_session = row.capture, "" if row.transaction is None else row.transaction.scope.session
            began_ns.setdefault(of_session, row.at_ns)
            revisions[of_session] = revisions.get(of_session) or row.revision
    for (index, session), first_ns in began_ns.items():
        info = transcript.captures[index]
        span = _http(info, session) if info.transactions else (first_ns, info.last_ns + info.shift_ns) if info.closed else None
        if span is None or info.header is None:
            continue
        attributes = _transport_attributes(None, info)
        revision = revisions[index, session]
        if revision is not None:
            attributes["mcp.protocol.version"] = revision
        wall_ns = info.header.wall_ns - info.shift_ns
        yield SessionTime(
            is_server=as_server,
            attributes=attributes,
            began_ns=wall_ns + span[0],
            ended_ns=wall_ns + max(span),
            span_id=own_context(info.header.capture_id, "session", session).span_id,
        )


def _http(info: CaptureInfo, session: str) -> tuple[int, int] | None:
    """Return the beginning and the end of a session over HTTP; None if it has no id, or is not over."""
    own = [transaction for transaction in info.transactions.values() if transaction.scope.session == session]
    is_over = info.closed or any(transaction.method == "DELETE" and transaction.status for transaction in own)
    if not session or not own or not is_over:
        return None
    return min(transaction.at_ns for transaction in own), max(_ended_ns(transaction) for transaction in own)


def _ended_ns(transaction: Transaction) -> int:
    return transaction.at_ns + (transaction.duration_ns or 0)


class ModelSpans:
    """Spans of the model calls of a transcript and of the agent runs that they belong to."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._runs: list[AgentRun] = []
        self.parents: dict[int, TraceContext] = {}
        """The span of its run, by the row of each model call, and of each call that a model wanted."""
        if transcript.model_calls:
            self._runs = agent_runs(transcript, tool_trips(transcript))
        for run in self._runs:
            context = self._context(run)
            self.parents |= {call.row: context for call in run.calls}
            self.parents |= {trip.call.row: context for trip in run.tool_trips if trip.call is not None and trip.candidates < 2}

    def spans(self) -> Iterator[TelemetrySpan]:
        """Yield a span for each model call that is over, and for each run that is."""
        for run in self._runs:
            info = self._info(run.calls[0])
            if all(call.outcome is not Outcome.PENDING for call in run.calls) and (run.is_whole or info.closed):
                yield self._run(run, info)
            for call in run.calls:
                if call.outcome is not Outcome.PENDING:
                    yield self._call(call, self._info(call))

    def _info(self, call: ModelCall) -> CaptureInfo:
        return self._transcript.captures[call.capture]

    def _context(self, run: AgentRun) -> TraceContext:
        call = run.calls[0]
        return own_context(_capture_id(self._info(call)), "run", call.number)

    def _run(self, run: AgentRun, info: CaptureInfo) -> TelemetrySpan:
        began_ns = _began_ns(info)
        return TelemetrySpan(
            name="invoke_agent",
            is_server=False,
            context=self._context(run),
            parent=None,
            began_ns=began_ns + run.began_ns,
            ended_ns=began_ns + max(run.began_ns, run.ended_ns),
            attributes={"gen_ai.operation.name": "invoke_agent"},
            is_operation=False,
        )

    def _call(self, call: ModelCall, info: CaptureInfo) -> TelemetrySpan:
        began_ns, parent, answer = _began_ns(info), self.parents.get(call.row), call.answer
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS[call.api],
        }
        if call.model:
            attributes["gen_ai.request.model"] = call.model
        if answer is not None:
            named = {"gen_ai.response.model": answer.model, "gen_ai.response.id": answer.id}
            attributes |= {name: value for name, value in named.items() if value}
            usage = {
                "gen_ai.usage.input_tokens": answer.usage.input_tokens,
                "gen_ai.usage.output_tokens": answer.usage.output_tokens,
            }
            attributes |= {name: min(count, LARGEST) for name, count in usage.items() if count is not None}
            if answer.finish:
                attributes["gen_ai.response.finish_reasons"] = [answer.finish]
        error = None
        if call.outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED, Outcome.ERROR, Outcome.UNANSWERED):
            has_status = call.outcome in (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
            attributes["error.type"] = str(call.transaction.status) if has_status else "_OTHER"
            error = "" if answer is None else answer.error
        return TelemetrySpan(
            name=f"chat {call.model}" if call.model else "chat",
            is_server=False,
            context=own_context(_capture_id(info), "chat", call.number, parent=parent),
            parent=parent,
            began_ns=began_ns + call.at_ns,
            ended_ns=began_ns + call.at_ns + max(0, call.duration_ns or 0),
            attributes=attributes,
            error=error,
            is_operation=False,
        )


def _capture_id(info: CaptureInfo) -> str:
    return "" if info.header is None else info.header.capture_id


def _began_ns(info: CaptureInfo) -> int:
    return -info.shift_ns if info.header is None else info.header.wall_ns - info.shift_ns
