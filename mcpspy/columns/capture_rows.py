"""A whole capture to rows: of the tables `captures`, `findings`, `definitions`, `transactions` and `model_calls`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from shlex import join
from typing import Any

from ..records import CLIENT
from ..transcript.definitions import Definition, DefinitionKind, canonical, offers, value_of
from ..transcript.mcp.codes import CLIENT_INFO, SERVER_INFO
from ..transcript.message import RESULT
from ..transcript.model import CaptureInfo, Exchange, ModelCall, Transcript
from ..transcript.stats.context import definition_text
from ..transcript.stats.tokens import estimated_tokens
from ..wire.json_spans import Slice, members, string
from .batches import Values

INITIALIZE = "initialize"
DISCOVER = "server/discover"


class Peers:
    """The names and versions that client and server gave themselves: those of the first that did. `feed` takes exchanges."""

    __slots__ = ("client_version", "is_done", "revision", "server", "server_version")

    def __init__(self) -> None:
        self.is_done = False
        self.client_version: str | None = None
        self.server: str | None = None
        self.server_version: str | None = None
        self.revision: str | None = None

    def feed(self, row: Exchange) -> None:
        request, response = row.request, row.response
        if request.sender != CLIENT:
            return
        if b"clientInfo" in request.raw and self.client_version is None:
            params = members(members(request.raw).get("params", b""))
            info = params.get("clientInfo") or members(params.get("_meta", b"")).get(CLIENT_INFO, b"")
            self.client_version = _string(members(info).get("version", b""))
        if response is None or response.kind is not RESULT or self.is_done:
            return
        if request.method in (INITIALIZE, DISCOVER):
            result = members(members(response.raw).get("result", b""))
            info = result.get("serverInfo") or members(result.get("_meta", b"")).get(SERVER_INFO, b"")
            about = members(info)
            self.server = _string(about.get("name", b""))
            self.server_version = _string(about.get("version", b""))
            self.revision = response.revision
            self.is_done = self.server is not None


def _string(value: Slice) -> str | None:
    return string(value) or None


def finding_rows(capture_id: str, transcript: Transcript, began_ns: int) -> Iterator[Values]:
    """Yield a row for each finding."""
    for number, finding in enumerate(transcript.findings, 1):
        yield (
            capture_id,
            number,
            finding.rule,
            finding.severity.value,
            finding.culprit,
            finding.row,
            finding.rows,
            finding.number,
            began_ns + finding.at_ns - transcript.captures[0].shift_ns,
            finding.count,
            finding.what,
            finding.blame,
            finding.advice,
        )


def definition_rows(
    capture_id: str, transcript: Transcript, began_ns: int, payload: Callable[[bytes], str] | None
) -> Iterator[Values]:
    """Yield a row for each definition that was ever offered."""
    for offer in offers(transcript):
        current = {id(definition) for kind in offer.current.values() for definition in kind.values()}
        for definition in offer.ever.values():
            yield (
                capture_id,
                definition.kind.value,
                definition.name,
                definition.row,
                definition.message.number,
                began_ns + definition.message.at_ns - offer.capture_info.shift_ns,
                id(definition) in current,
                _digest(definition.raw),
                len(definition.raw),
                estimated_tokens(_read_by_models(definition)),
                None if payload is None else payload(definition.raw),
            )


def _digest(raw: bytes) -> str:
    """Return the digest of the canonical form of a definition; of its bytes, if it has none."""
    try:
        return sha256(canonical(value_of(raw))).hexdigest()
    except (ValueError, RecursionError):
        return sha256(raw).hexdigest()


def _read_by_models(definition: Definition) -> bytes:
    return definition_text(definition.raw) if definition.kind is DefinitionKind.TOOL else definition.raw


def transaction_rows(capture_id: str, info: CaptureInfo, began_ns: int) -> Iterator[Values]:
    """Yield a row for each HTTP transaction."""
    for transaction in info.transactions.values():
        request, response = transaction.request, transaction.response
        yield (
            capture_id,
            transaction.number,
            transaction.row or None,
            began_ns + transaction.at_ns - info.shift_ns,
            transaction.duration_ns,
            transaction.connection,
            transaction.scope.client or info.client,
            transaction.scope.session or None,
            transaction.method,
            transaction.target,
            transaction.status or None,
            0 if request is None else request.body_bytes,
            None if response is None else response.body_bytes,
            0 if response is None else response.events,
            transaction.ended_by or None,
        )


def model_call_row(
    capture_id: str, row: ModelCall, info: CaptureInfo, began_ns: int, payload: Callable[[bytes], str] | None
) -> Values:
    """Return the row of a model call."""
    prompt, answer = row.prompt, row.answer
    usage = None if answer is None else answer.usage
    return (
        capture_id,
        row.row,
        row.number,
        began_ns + row.at_ns - info.shift_ns,
        row.duration_ns,
        row.until_first_ns,
        info.client_of(row),
        row.api,
        row.model or None,
        None if answer is None else answer.model or None,
        row.outcome.value,
        row.transaction.status or None,
        None if answer is None else answer.finish or None,
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cached_tokens,
        None if usage is None else usage.reasoning_tokens,
        len(prompt.turns),
        len(prompt.offers),
        () if answer is None else tuple(use.name for use in answer.turn.uses),
        len(row.payload),
        None if payload is None else payload(row.payload),
    )


def capture_row(capture_id: str, file: str, size_bytes: int, transcript: Transcript, peers: Peers, calls: int) -> Values:
    """Return the row of a capture that could be read, as far as it could."""
    info = transcript.captures[0] if transcript.captures else CaptureInfo(0)
    header, exit = info.header, info.exit
    tapped: dict[str, Any] = {} if header is None else header.tapped
    began_ns = None if header is None else header.wall_ns
    return (
        capture_id,
        file,
        header.label or None if header is not None else None,
        _word(tapped.get("transport")),
        "model" if info.is_model else "mcp",
        began_ns,
        None if began_ns is None else began_ns + info.last_ns,
        info.last_ns,
        info.client,
        peers.client_version,
        peers.server or info.server,
        peers.server_version,
        peers.revision,
        _command(tapped),
        size_bytes,
        info.messages,
        calls,
        len(transcript.findings),
        info.gaps,
        info.damages,
        info.unkept,
        None if exit is None else exit.code,
        None if exit is None or exit.signal is None else str(exit.signal),
        info.now_ns is not None,
        info.complete,
        None,
        None if header is None else header.mcpspy_version or None,
    )


def unreadable_capture_row(capture_id: str, file: str, size_bytes: int, problem: str) -> Values:
    """Return the row of a file of which nothing could be read."""
    unknown = (None,) * 12
    return (capture_id, file, *unknown, size_bytes, 0, 0, 0, 0, 0, 0, None, None, False, False, problem, None)


def _command(tapped: dict[str, Any]) -> str | None:
    argv = tapped.get("argv")
    if isinstance(argv, list):
        return join(map(str, argv))
    return _word(tapped.get("url"))


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
