"""Exchanges, notifications and records in a few safe words, which are the same in a timeline and in a diagram.

Payloads are read only where the words need them: errors, failed tools, results that are more than text, and the last of a run of
notifications.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ...records import (
    Close,
    Damage,
    Exit,
    Gap,
    Intercept,
    Note,
    Partial,
    Record,
    Spawn,
    Stall,
    Unknown,
)
from ...transcript.absent_facts import imported_facts
from ...transcript.http.transaction import Transaction
from ...transcript.log_lines import json_logger
from ...transcript.mcp.content import content_facts
from ...transcript.mcp.methods import OPENINGS
from ...transcript.mcp.revisions import Era
from ...transcript.message import SEALED, UNREAD, mark_words
from ...transcript.model import HTTP_ERRORS, HTTP_REDIRECTS, CaptureInfo, Exchange, Kind, Message, Outcome, UnpairedMessage
from ...wire.framing import FRAMINGS
from ...wire.lines import Lines
from ..text.escape import PHRASE_LETTERS, decoded, one_line, safe_text
from ..text.line import Line
from ..text.units import SECOND_NS, counted, duration, size
from .about import about_words
from .details import Detail, params_words, result_words

PROGRESS = "notifications/progress"


MAX_CANDIDATES: Final = 3
"""The most requests that are named for a result without an id."""


class Phrase(NamedTuple):
    """A word in a style, and a detail that is added in a plainer style."""

    word: str
    style: str
    detail: str = ""

    def line(self, detail_style: str = "") -> Line:
        """Return the word, and the detail after a colon if there is one."""
        return [(self.word, self.style), *([(f": {self.detail}", detail_style)] if self.detail else [])]


OUTCOME_STYLES = {
    Outcome.ERROR: "bad",
    Outcome.TOOL_ERROR: "bad",
    Outcome.HTTP_ERROR: "bad",
    Outcome.UNANSWERED: "bad",
    Outcome.UNKNOWN: "warn",
    Outcome.CANCELLED: "warn",
    Outcome.REDIRECTED: "warn",
    Outcome.PENDING: "wait",
    Outcome.PROBE: "dim",
    Outcome.OK: "dim",
}
"""The style of each outcome, the worst first."""


def outcome_phrase(exchange: Exchange, detail: Detail = Detail.NAMES) -> Phrase:
    """Return the outcome in words, and what intercepts did."""
    phrase = _outcome_phrase(exchange, detail)
    return _with_marks(phrase, exchange.messages)


def _with_marks(phrase: Phrase, messages: list[Message]) -> Phrase:
    words = mark_words(messages)
    return phrase._replace(word=f"{phrase.word}, {one_line(words)}") if words else phrase


def _outcome_phrase(exchange: Exchange, detail: Detail) -> Phrase:
    """Return the outcome of an exchange, with the message of an error or a tool error; more `detail` adds the head of a result."""
    outcome = exchange.outcome
    if outcome is Outcome.OK:
        return Phrase("ok", OUTCOME_STYLES[outcome], _answer(exchange, with_head=detail is not Detail.NAMES))
    phrase = Phrase(outcome.value, OUTCOME_STYLES[outcome])
    if outcome is Outcome.CANCELLED:
        is_cancelled = exchange.cancelled is not None or exchange.era is Era.MODERN
        phrase = phrase._replace(word=f"{outcome.value if is_cancelled else 'given up'} {given_up_words(exchange)}".rstrip())
    match outcome:
        case Outcome.UNKNOWN:
            return phrase._replace(detail=UNREAD if UNREAD in exchange.request.flaws else "its response could not be read")
        case Outcome.PROBE:
            return phrase._replace(detail=_refusal(exchange))
        case Outcome.ERROR if exchange.response is not None:
            return phrase._replace(detail=error_phrase(exchange.response))
        case Outcome.TOOL_ERROR if exchange.response is not None:
            return phrase._replace(detail=one_line(_tool_text(_member(exchange.response, "result"))))
        case Outcome.CANCELLED if exchange.response is not None:
            return phrase._replace(
                detail="answered anyway" if exchange.cancelled is not None else "answered after the client left"
            )
        case Outcome.CANCELLED if exchange.cancelled is None:
            began = exchange.transaction is not None and exchange.transaction.response is not None
            is_stream = began or exchange.era is Era.MODERN
            return phrase._replace(detail=f"the client closed the {'stream' if is_stream else 'connection'}")
        case Outcome.HTTP_ERROR | Outcome.REDIRECTED if exchange.transaction is not None:
            return phrase._replace(detail=_status_and_text(exchange.transaction))
        case _:
            return phrase


def given_up_words(exchange: Exchange) -> str:
    """Say after what time an exchange was given up: `after 3.0 s`; empty if it was not."""
    if exchange.given_up_ns is None:
        return ""
    waited_ns = exchange.given_up_ns - exchange.at_ns
    return f"after {waited_ns / SECOND_NS:.1f} s" if waited_ns >= SECOND_NS else f"after {duration(waited_ns)}"


MAX_READ_BYTES = 4_000_000
"""Larger results are not read for a row; `show @:7` reads them."""

_READ_RESULTS = frozenset({
    "initialize", "server/discover", "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
    "resources/read", "resources/directory/read", "sampling/createMessage", "elicitation/create", "roots/list",
    "completion/complete", "skills/list", "tasks/get", "tasks/list", "tasks/cancel", "subscriptions/listen",
})  # fmt: skip
"""Methods whose results are read for a row."""

_QUESTIONS = frozenset({"elicitation/create", "completion/complete"})
"""Methods whose row also shows what was requested."""


def _answer(exchange: Exchange, *, with_head: bool) -> str:
    """Return a result in a few words; empty where these would be the payload itself, unless its head is wanted."""
    response, method = exchange.response, exchange.method
    if response is None or len(response.raw) > MAX_READ_BYTES:
        return ""
    is_read = method in _READ_RESULTS or (method == "tools/call" and _holds_more(response.raw))
    if response.result_type is None and not is_read:
        return result_words(response) if with_head else ""
    facts = content_facts(response, method)
    if method not in OPENINGS:
        facts.pop("server", None)  # which every result of the modern era repeats
    elif facts.get("revision") == exchange.target:
        facts.pop("revision", None)  # neither may name one
    if method not in _QUESTIONS or with_head:
        return about_words(facts, heads=with_head)
    request_facts = content_facts(exchange.request, method)
    request_facts = {name: fact for name, fact in request_facts.items() if name not in ("revision", "fields")}
    return " → ".join(words for words in (about_words(request_facts), about_words(facts)) if words)


def _holds_more(raw: bytes) -> bool:
    """Return whether a tool's result may hold more than texts."""
    return b'"image"' in raw or b'"audio"' in raw or b'"resource' in raw


def _refusal(probe: Exchange) -> str:
    """Return the error or the status that answered a probe."""
    if probe.response is not None:
        return error_phrase(probe.response)
    transaction = probe.transaction
    return "no answer" if transaction is None or transaction.status < HTTP_ERRORS else status_words(transaction)


def status_words(transaction: Transaction) -> str:
    """Return status and reason of a response, and the target of a redirect: `404 Not Found`, `307 Temporary Redirect to /mcp/`."""
    response = transaction.response
    head = None if response is None else response.head
    words = f"{transaction.status or '?'} {head.reason if head else ''}".rstrip()
    if head is not None and HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS and head.get("location"):
        words += f" to {head.get('location')}"
    return one_line(words)


def _status_and_text(transaction: Transaction) -> str:
    """Return the status of a response, and how its text begins: `502 Bad Gateway: no upstream`."""
    text = refusal_phrase(transaction)
    return f"{status_words(transaction)}: {text}" if text else status_words(transaction)


def refusal_phrase(transaction: Transaction) -> str:
    """Return how the text of a refusal begins; empty if it has none, or if the status is no error."""
    return raw_phrase(transaction.refusal[:80].strip())


def error_phrase(message: Message) -> str:
    """Return code and message of a JSON-RPC error: `-32601 Method not found`."""
    error = _member(message, "error")
    if not isinstance(error, dict):
        return one_line(_shown(error))
    parts = [_shown(error[name]) for name in ("code", "message") if name in error]
    return one_line(" ".join(parts))


def notification_phrase(messages: list[Message]) -> Phrase:
    """Return the words for one notification or for several of one method: the method, the count, and what the last one says."""
    last = messages[-1]
    method = last.method or ""
    count = f" ×{len(messages)}" if len(messages) > 1 else ""
    if method == PROGRESS:
        return Phrase(f"progress{count}", "", _progress(_member(last, "params")))
    word = one_line(method) + count
    params = _member(last, "params")
    if not isinstance(params, dict):
        return Phrase(word, "")
    match method:
        case "notifications/cancelled":
            return Phrase(word, "warn", _reason(last))
        case "notifications/message":
            heads = [_shown(params[name]) for name in ("level", "logger") if params.get(name)]
            return Phrase(word, "", one_line(f"{' '.join(heads)}: {_shown(params.get('data'))}"))
        case _:
            words = about_words(content_facts(last, method))
            return Phrase(word, "", words or one_line(last.target or "") or params_words(last))


def unpaired_phrase(unpaired: UnpairedMessage, capture: CaptureInfo) -> Phrase:
    """Return the words for a message that belongs to no exchange, and what intercepts did."""
    return _with_marks(_unpaired_phrase(unpaired, capture), [unpaired.message])


def _unpaired_phrase(unpaired: UnpairedMessage, capture: CaptureInfo) -> Phrase:
    message = unpaired.message
    if message.id is not None and unpaired.candidates and message.kind is not Kind.REQUEST:
        detail = error_phrase(message) if message.kind is Kind.ERROR else ""
        return Phrase(f"answer to row {unpaired.candidates[0]}, misdelivered", "bad", detail)
    match message.kind:
        case Kind.NOTIFICATION:
            phrase = notification_phrase([message])
            return phrase if not unpaired.candidates else phrase._replace(detail=f"with row {unpaired.candidates[0]}")
        case Kind.RESULT:
            rows = " or ".join(map(str, unpaired.candidates[:MAX_CANDIDATES]))
            return Phrase("result without a request", "warn", f"perhaps for row {rows}" if rows else "")
        case Kind.ERROR:
            return Phrase("error without a request", "bad", error_phrase(message))
        case Kind.REQUEST:
            return Phrase(one_line(message.method or "request"), "", one_line(message.target or ""))
        case Kind.MALFORMED if message.reason.startswith(SEALED):
            from ...wire.encodings import PACKAGES

            package = PACKAGES.get(message.reason.removeprefix(SEALED).strip(), "a decoder")
            return Phrase(one_line(message.reason), "warn", f"pip install {package} to read it")
        case Kind.MALFORMED:
            return Phrase(f"{_malformed(message)} on {stream_name(capture, message.stream)}", "warn", raw_phrase(message.raw))


def raw_phrase(raw: bytes) -> str:
    """Return captured bytes on one safe line."""
    return one_line(decoded(raw[: 4 * PHRASE_LETTERS]))


def log_text(raw: bytes, limit: int | None = None) -> str:
    """Return a line of stderr, safe, with its indentation. `limit` bounds the letters that are read."""
    line = raw.rstrip(b"\r\n")
    return safe_text(decoded(line if limit is None else line[: 4 * limit]).replace("\t", "    "))


def stream_name(capture: CaptureInfo, stream: int) -> str:
    """Return the name of a stream, from its `open` record; the streams of a stdio tap have fixed names."""
    opened = capture.streams.get(stream)
    if opened is not None:
        return safe_text(opened.name)
    return ("stdin", "stdout", "stderr")[stream] if 0 <= stream <= 2 else f"stream {stream}"


def event_phrase(record: Record, capture: CaptureInfo) -> Phrase | None:
    """Return the words for a channel event; None for records that have no row of their own."""
    match record:
        case Spawn():
            return Phrase("server started", "dim", f"pid {record.pid}")
        case Exit():
            return _exit_phrase(record)
        case Close():
            return _close_phrase(record, stream_name(capture, record.stream))
        case Stall():
            return _stall_phrase(record, stream_name(capture, record.stream))
        case Partial():
            word = f"no {_end_of(capture, record.stream)} on {stream_name(capture, record.stream)} yet"
            return Phrase(word, "warn", f"{size(record.length)} waiting: {raw_phrase(record.data)}")
        case Gap() if imported_facts(capture.header):
            return Phrase("gap", "bad", one_line(record.why))
        case Gap():
            lost = f"{counted(record.frames, 'frame')}, {size(record.bytes)}"
            return Phrase(
                "gap", "bad", f"{lost} {'lost' if record.was_recorded else 'passed but not recorded'}: {one_line(record.why)}"
            )
        case Damage():
            return Phrase("damage", "bad", f"line {record.line} of the capture: {one_line(record.text)}")
        case Intercept():
            return Phrase(
                f"intercepted: {one_line(record.action)}", "warn", f"{_FATES.get(record.sent, '')}{one_line(record.text)}"
            )
        case Note():
            return Phrase(one_line(record.topic), "dim", one_line(record.text))
        case Unknown():
            return Phrase("unknown record", "dim", f"of kind {one_line(record.kind)}")
        case _:
            return None


_FATES: Final = {"nothing": "not passed on, by ", "changed": "passed on changed, by "}
"""The beginning of the words about an intercept, by what the receiver got."""


def _end_of(capture: CaptureInfo, stream: int) -> str:
    """Name the end of a frame of this stream."""
    opened = capture.streams.get(stream)
    return (FRAMINGS.get(opened.framing, Lines) if opened else Lines).end_name


def exit_words(record: Exit) -> str:
    """Return how a server's process ended: `exited 1`, `killed by SIGTERM`, `could not be started: …`."""
    if record.error:
        return f"could not be started: {one_line(record.error)}"
    if record.signal:
        return f"killed by {one_line(record.signal)}"
    return f"exited {record.code}"


def command_words(capture: CaptureInfo) -> str:
    """Return the command or the URL that a capture tapped, or the file it was imported from, safe; empty without a header."""
    tapped = capture.header.tapped if capture.header else {}
    if imported_facts(capture.header):
        return imported_words(capture)
    argv = tapped.get("argv")
    if isinstance(argv, list):
        return one_line(" ".join(map(str, argv)))
    return one_line(str(tapped.get("url", "")))


def imported_words(capture: CaptureInfo) -> str:
    """Return the file that a capture was imported from, and what it does not have."""
    imported = capture.header.tapped["imported"] if capture.header else {}
    missing = [str(name) for name, state in imported_facts(capture.header).items() if state == "missing"]
    without = f", without {', '.join(missing)}" if missing else ""
    return one_line(f"imported from {imported.get('file', '?')} ({imported.get('format', '?')}){without}")


def _malformed(message: Message) -> str:
    """Return the name for a payload that is not a message. A server's line that does not begin like JSON is noise, or is a log's."""
    known = {"blank": "blank line", "not recorded": "not recorded", "cut short": "cut short"}.get(message.reason)
    if known is not None:
        return known
    is_json = message.raw.lstrip()[:1] in (b"{", b"[") and not json_logger(message.raw)
    return "malformed" if message.sender == "client" or is_json else "noise"


def _exit_phrase(record: Exit) -> Phrase:
    left = f"still alive: {_processes(record.descendants)}" if record.descendants else ""
    is_clean = record.code == 0 and not record.descendants
    return Phrase(f"server {exit_words(record)}", "dim" if is_clean else "warn", left)


def _close_phrase(record: Close, name: str) -> Phrase | None:
    by = one_line(record.by)
    if record.how == "eof":
        # A server's stderr ends with its process, which has a row of its own.
        return None if name == "stderr" and record.by == "server" else Phrase(f"{by} closed {name}", "dim")
    how = {"broken": "stopped reading", "reset": "reset", "abort": "aborted"}.get(record.how, one_line(record.how))
    return Phrase(f"{by} {how} {name}", "warn")


def _stall_phrase(record: Stall, name: str) -> Phrase:
    reader = "server" if name in ("stdin", "request") else "client"
    if record.lasted_ns is None:
        return Phrase(f"{reader} does not read {name}", "warn", f"{size(record.waiting_bytes)} waiting")
    return Phrase(f"{reader} reads {name} again", "dim", f"after {duration(record.lasted_ns)}")


def _processes(descendants: Iterable[dict[str, Any]]) -> str:
    return one_line(", ".join(f"{process.get('name', '?')} (pid {process.get('pid', '?')})" for process in descendants))


def _progress(params: Any) -> str:
    if not isinstance(params, dict):
        return ""
    at = _shown(params["progress"]) if "progress" in params else ""
    if params.get("total") is not None:
        at += f"/{_shown(params['total'])}"
    return one_line(f"{at} {_shown(params.get('message', ''))}")


def _reason(cancelled: Message) -> str:
    params = _member(cancelled, "params")
    return one_line(_shown(params.get("reason", ""))) if isinstance(params, dict) else ""


def _tool_text(result: Any) -> str:
    """Return the first text in a tool's result."""
    content = result.get("content") if isinstance(result, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            return str(block["text"])
    return ""


def _shown(value: Any) -> str:
    """Spell a JSON value for a sentence: strings bare, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "…"


def _member(message: Message, name: str) -> Any:
    body = message.body
    return body.get(name) if isinstance(body, dict) else None
