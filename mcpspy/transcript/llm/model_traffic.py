"""Records of a capture of a model API to rows: a model call for each prompt, a transaction for any other request.

The counterpart of `http.assemble`, without sessions, scopes and JSON-RPC, which a model API does not have. Each record gives the rows
that are new or changed. How an API spells what is in a body is left to `apis` and `bodies`.

A prompt repeats the whole conversation, so that n calls hold n² turns. Only one or two digests are kept of each turn, and no prompts:

    call  turns of its prompt
    1     user: hi                                         begins a conversation
    2     user: hi  assistant: hello  user: weather?       continues call 1: begins with all of its turns
    3     user: hi  assistant: hello  user: what time?     continues call 2: shares a turn of the model's with it
    4     user: hi  user: bye                              begins a conversation: shares no turn of the model's
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ...records import CLIENT, Close, Frame, Intercept, Note, Open
from ...usual_lines import CloseLine, OpenLine
from ..correlator import appended
from ..digests import digest
from ..http.head import Head
from ..http.payloads import add_note, measure
from ..http.transaction import MAX_INJECTED_BYTES, Anomaly, Scope, ScopeKind, Stream, Transaction, opened_stream, stream_end
from ..model import CaptureInfo, Row
from .apis import api_of, prompt
from .bodies import AnswerDecoder, Payload
from .model_call import ModelCall
from .prompt import Prompt, Turn

_HTTP_OK: Final = 200
_SWITCHING_PROTOCOLS: Final = 101
_INSTRUCTIONS: Final = ("system", "developer")


class _OpenModelTransaction:
    """A transaction that is not over: the payload of its request, and the decoder of its answer."""

    __slots__ = ("call", "decoder", "head", "request_payload", "transaction")

    def __init__(self, transaction: Transaction, head: Head) -> None:
        self.transaction = transaction
        self.head = head
        self.request_payload = Payload(head)
        self.call: ModelCall | None = None
        self.decoder: AnswerDecoder | None = None

    @property
    def rows(self) -> list[Row]:
        """The row that stands for it; none until it has one."""
        if self.call is not None:
            return [self.call]
        return [self.transaction] if self.transaction.row else []


class _OpenModelStream:
    """A stream that is not over."""

    __slots__ = ("owner", "stream")

    def __init__(self, stream: Stream, owner: _OpenModelTransaction) -> None:
        self.stream = stream
        self.owner = owner


class ModelTrafficAssembler:
    """The traffic of one capture of a model API. New rows are appended to `rows`, numbered by `next_row`.

    `frame`, `close` and `note` return None for records that are not HTTP's. With `keeps_frames` each stream keeps its frames.
    """

    __slots__ = ("_capture", "_conversations", "_keeps_frames", "_next_row", "_rows", "_streams", "_transactions")

    def __init__(self, capture: CaptureInfo, rows: list[Row], next_row: Callable[[], int], *, keeps_frames: bool) -> None:
        self._capture = capture
        self._rows = rows
        self._next_row = next_row
        self._keeps_frames = keeps_frames
        self._conversations = _Conversations()
        self._streams: dict[int, _OpenModelStream] = {}
        self._transactions: dict[int, _OpenModelTransaction] = {}

    def open(self, record: Open | OpenLine) -> Sequence[Row]:
        """Begin a stream: a request or a response."""
        stream, head = opened_stream(record, self._capture.shift_ns)
        self._capture.streams[record.stream] = stream
        if record.sender == CLIENT:
            owner = self._begin(record, stream, head)
            owner.transaction.request = stream
            self._streams[record.stream] = _OpenModelStream(stream, owner)
            return ()
        return self._response(record, stream, head)

    def frame(self, record: Frame, *_: object) -> Sequence[Row] | None:
        """Take in bytes of a stream."""
        body = self._streams.get(record.stream)
        if body is None:
            return None
        measure(body.stream, record, self._capture.shift_ns, keeps_frame=self._keeps_frames)
        owner, at_ns = body.owner, record.at_ns + self._capture.shift_ns
        if body.stream is owner.transaction.request:
            owner.request_payload.add(record)
            return ()
        if body.stream is not owner.transaction.response:
            return ()
        if body.stream.injected:
            anomaly = Anomaly(record.number, at_ns, "injected", record.data[:MAX_INJECTED_BYTES])
            owner.transaction.anomalies = appended(owner.transaction.anomalies, anomaly)
        if owner.decoder is None:
            return owner.rows
        owner.decoder.feed(record, at_ns)
        return self._update(owner, body.stream)

    def close(self, record: Close | CloseLine) -> Sequence[Row] | None:
        """End a stream."""
        body = self._streams.pop(record.stream, None)
        if body is None:
            opened = self._capture.streams.get(record.stream)
            return () if opened is not None and opened.transaction else None
        stream, owner = body.stream, body.owner
        stream.close = stream_end(record)
        stream.closed_ns = record.at_ns + self._capture.shift_ns
        transaction = owner.transaction
        if stream is transaction.request:
            self._add_row(owner)
            return self._end_transaction(owner) if transaction.over else owner.rows
        if stream is not transaction.response:
            return owner.rows
        if owner.decoder is not None:
            owner.decoder.close(stream.last_ns or stream.closed_ns, is_cut=record.how != "eof")
            self._update(owner, stream)
        is_early = transaction.request is not None and transaction.request.close is None
        return owner.rows if is_early else self._end_transaction(owner)

    def intercept(self, record: Intercept) -> tuple[()]:
        """Take in an intercept, which no tap of a model API has."""
        return ()

    def note(self, record: Note) -> Sequence[Row] | None:
        """Add the tap's note to a transaction that is not over."""
        number = record.extra.get("transaction")
        owner = self._transactions.get(number) if isinstance(number, int) else None
        if owner is None:
            return None
        is_over = add_note(owner.transaction, record, self._capture.shift_ns)
        return self._end_transaction(owner) if is_over else owner.rows

    def damage(self, at_ns: int) -> None:
        """Mark all answers that are not over: records were lost here, which may have been theirs."""
        for body in self._streams.values():
            if body.owner.decoder is not None:
                body.owner.decoder.damage()

    def end(self) -> Sequence[Row]:
        """End the capture, and with it all that is not over."""
        streams = (body.owner for body in self._streams.values())
        owners = {id(owner): owner for owner in (*self._transactions.values(), *streams)}
        rows: list[Row] = []
        for owner in owners.values():
            if owner.decoder is not None:
                response = owner.transaction.response
                owner.decoder.close((response and response.last_ns) or owner.transaction.at_ns, is_cut=True)
            self._add_row(owner)
            rows += owner.rows
        self._streams.clear()
        self._transactions.clear()
        return rows

    # Steps

    def _begin(self, record: Open | OpenLine, stream: Stream, head: Head) -> _OpenModelTransaction:
        number = record.transaction
        scope = Scope(ScopeKind.TRANSACTION)
        transaction = Transaction(self._capture.index, number, record.connection, scope, stream.at_ns, head.method, head.target)
        self._capture.transactions[number] = transaction
        owner = self._transactions[number] = _OpenModelTransaction(transaction, head)
        return owner

    def _response(self, record: Open | OpenLine, stream: Stream, head: Head) -> Sequence[Row]:
        owner = self._transactions.get(record.transaction) or self._begin(record, stream, Head(""))
        transaction, status = owner.transaction, head.status
        self._streams[record.stream] = _OpenModelStream(stream, owner)
        if 0 < status < _HTTP_OK and status != _SWITCHING_PROTOCOLS:
            transaction.interim = appended(transaction.interim, stream)
            return ()
        transaction.response, transaction.status = stream, status
        self._add_row(owner)
        if owner.call is not None:
            owner.decoder = AnswerDecoder(owner.call.api, head, is_cut_into_events=record.framing == "sse")
            owner.call.assembly = owner.decoder
        return owner.rows

    def _add_row(self, owner: _OpenModelTransaction) -> None:
        """Give a transaction its row, when its request has ended or is answered before that."""
        transaction = owner.transaction
        if transaction.row:
            return
        payload = owner.request_payload.take()
        api = api_of(owner.head, payload)
        transaction.row = self._next_row()
        if api is None:
            self._rows.append(transaction)
            return
        call = owner.call = ModelCall(row=transaction.row, api=api, transaction=transaction, payload=payload)
        self._rows.append(call)
        call_prompt = prompt(api, payload)
        call.model = call_prompt.model
        self._conversations.feed(call, call_prompt)

    def _update(self, owner: _OpenModelTransaction, stream: Stream) -> Sequence[Row]:
        """Copy to a call the figures of its decoder."""
        decoder, call = owner.decoder, owner.call
        if decoder is None or call is None:
            return ()
        stream.events, stream.comments = decoder.events, decoder.comments
        call.first_ns = decoder.first_ns
        if decoder.id:
            self._conversations.add_answer(call, decoder.id)
        return [call]

    def _end_transaction(self, owner: _OpenModelTransaction) -> Sequence[Row]:
        self._transactions.pop(owner.transaction.number, None)
        self._add_row(owner)
        return owner.rows


class _KnownPrompt(NamedTuple):
    """A prompt that began with certain turns: its call, its number of turns, and whether instructions preceded these turns."""

    row: int
    turns: int
    is_instructed: bool


class _Conversations:
    """The conversations of one capture.

    A prompt continues an earlier one if it begins with all of its turns, or with some of them that include a turn of the model's:
    clients rewrite old turns, but prompts that share only a beginning without an answer have nothing in common. Some clients write
    new instructions each time; if the turns agree only without the instructions, the turn after them has to be the model's.
    """

    __slots__ = ("_answers", "_known")

    def __init__(self) -> None:
        self._known: dict[bytes, _KnownPrompt] = {}
        """By the digest of the first so many turns, with instructions and without: the last prompt that began so."""
        self._answers: dict[str, int] = {}
        """By the id of an answer: the row of the call that it answered."""

    def feed(self, call: ModelCall, prompt: Prompt) -> None:
        """Take in a prompt, and set the `before` and `added` of its call."""
        turns = prompt.turns
        first = next((at for at, turn in enumerate(turns) if turn.role not in _INSTRUCTIONS), len(turns))
        whole, bare = _digests(turns) if first else [], _digests(turns[first:])
        if prompt.continues:
            call.before = self._answers.get(prompt.continues, 0)
        elif not self._join(call, turns, whole, 0):
            self._join(call, turns, bare, first)
        for digests, begin in ((whole, 0), (bare, first)):
            known = _KnownPrompt(call.row, len(turns) - begin, is_instructed=begin > 0)
            self._known.update(dict.fromkeys(digests, known))

    def add_answer(self, call: ModelCall, id: str) -> None:
        """Take in the id of a call's answer, by which a prompt may continue it."""
        self._answers[id] = call.row

    def _join(self, call: ModelCall, turns: Sequence[Turn], digests: Sequence[bytes], begin: int) -> bool:
        """Join a call with the known prompt that shares the longest beginning, if it shares enough. Returns True if one does."""
        has_answer = False
        for count, key in enumerate(digests, 1):
            at = begin + count
            has_answer = has_answer or turns[at - 1].role == "assistant"
            known = self._known.get(key)
            if known is None:
                break
            is_all = known.turns == count
            if (begin or known.is_instructed) and is_all:
                is_all = at < len(turns) and turns[at].role == "assistant"
            if is_all or has_answer:
                call.before, call.added = known.row, at
        return call.before > 0


def _digests(turns: Sequence[Turn]) -> list[bytes]:
    """Digest the first turn, the first two, and so on."""
    return [*accumulate(turns, digest, initial=b"")][1:]
