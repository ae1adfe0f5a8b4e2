"""Messages on which an intercept acted: decoded as the receiver saw them, and marked; and findings that blame nobody for them.

A mark is a flaw of the message, `intercepted: delay 3 s`, so every view shows it. docs/intercept.md says what each action means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from ..records import RESTART, Frame, Intercept
from .exchange import Exchange, UnpairedMessage
from .http.transaction import Transaction
from .message import CALL_OF_MCPSPY, CALLED, ERROR, MARK, NOT_PASSED_ON, REQUEST, RESULT, Message, mark_words
from .model import CaptureInfo, ChannelEvent, Log

if TYPE_CHECKING:
    from .findings.rule import Hit
    from .model import Row, Transcript

FrameContent: TypeAlias = Message | Log | ChannelEvent

_ENDINGS: Final = ("disconnect", "stall", "kill")
"""The actions after which a channel does not work any more. A number may follow."""

MAX_LOOKED_AT: Final = 5000
"""The rows among which the request of an answer is sought that the receiver did not get."""

BY_MCPSPY: Final = f"{MARK}: sent by mcpspy"

_LOSERS: Final = ("disk", "file", "mcpspy")
"""The culprits of what the capture lacks."""

NO_ANSWER: Final = f"{MARK}: the answer was not passed on"

_BLAME: Final = "Unclear: an intercept changed the traffic of this capture, so this may be its consequence."


def unblamed(transcript: Transcript, hits: Iterator[tuple[int, Hit]]) -> Iterator[tuple[int, Hit]]:
    """Leave out hits about rows on which an intercept acted, and all about the time after one that ended a channel.

    Nobody is blamed for the others of such a capture: a client may repeat a call because an intercept failed the first one.
    Rows of `mcpspy call` are left out too, and those on which a restart acted, but they change nothing about the others.
    What the capture lacks was not lost by an intercept.
    """
    records = ((row.capture, row.record) for row in transcript.rows if isinstance(row, ChannelEvent))
    acted = {capture for capture, record in records if isinstance(record, Intercept) and record.text != RESTART}
    left_out = {
        row.row for row in transcript.rows if isinstance(row, Exchange | UnpairedMessage) and mark_words(_messages(row))
    }
    left_out.update(row.row for row in transcript.rows if isinstance(row, Transaction) and row.intercepted)
    ended_ns = _ended_ns(transcript)
    for row in transcript.rows if ended_ns else ():
        if isinstance(row, Exchange) and row.capture in ended_ns:
            is_answered = row.response is not None and row.response.at_ns < ended_ns[row.capture]
            left_out.update(() if is_answered else (row.row,))
    for capture, hit in hits:
        finding = hit.finding
        if finding.culprit in _LOSERS:
            yield capture, hit
            continue
        is_later = finding.capture in ended_ns and finding.at_ns >= ended_ns[finding.capture]
        if is_later or finding.row in left_out or not left_out.isdisjoint(finding.rows):
            continue
        is_unclear = finding.capture in acted
        yield capture, hit._replace(finding=replace(finding, culprit="unclear", blame=_BLAME)) if is_unclear else hit


def _ended_ns(transcript: Transcript) -> dict[int, int]:
    """Return when an intercept ended the channel of a capture, by the capture."""
    ended_ns: dict[int, int] = {}
    for row in transcript.rows:
        if isinstance(row, ChannelEvent) and isinstance(row.record, Intercept) and ends_channel(row.record):
            ended_ns.setdefault(row.capture, row.at_ns)
    return ended_ns


def ends_channel(record: Intercept) -> bool:
    """Return whether a channel does not work any more after what an intercept did."""
    return record.action.partition(" ")[0] in _ENDINGS


def _messages(row: Exchange | UnpairedMessage) -> list[Message]:
    return row.messages if isinstance(row, Exchange) else [row.message]


class InterceptedFrames:
    """Frames of one capture from its first intercept record on: an intercept acts on the next frame that ends."""

    __slots__ = ("_info", "_lost", "_pending")

    def __init__(self, info: CaptureInfo) -> None:
        self._info = info
        self._pending: list[Intercept] = []
        self._lost: list[tuple[Message, list[str]]] = []

    def add(self, record: Intercept) -> None:
        """Take in what was done to the next frame."""
        info = self._info
        if info.intercepted_ns is None and record.text != RESTART:
            info.intercepted_ns = record.at_ns
        self._pending.append(record)

    def decoded(
        self, frame: Frame, decode: Callable[[Frame], Sequence[FrameContent]], forget: Callable[[], object]
    ) -> Sequence[FrameContent]:
        """Return the messages of a frame as the receiver saw them, and the intercepts that acted on it.

        `decode` is for the last part of a frame; `forget` forgets the parts before it. A request that nobody received is kept,
        for its sender waits for the answer; of other messages that nobody received there is only the intercept.
        """
        pending, self._pending = self._pending, []
        if pending and pending[-1].text == CALL_OF_MCPSPY:
            return _marked(decode(frame), [CALLED])
        if not pending:
            return _marked(decode(frame), [BY_MCPSPY]) if frame.injected else decode(frame)
        info = self._info
        flaws = [f"{MARK}: {record.action}" for record in pending]
        forwarded = frame.forwarded
        contents = decode(frame)
        answers = [content for content in contents if isinstance(content, Message) and content.kind in (RESULT, ERROR)]
        if forwarded == b"":
            kept = [content for content in contents if isinstance(content, Message) and content.kind is REQUEST]
            contents, flaws = kept, [*flaws, NOT_PASSED_ON]
        elif forwarded:
            forget()
            contents = decode(Frame(frame.stream, frame.at_ns, frame.first_ns, forwarded, number=frame.number))
        received = {content.id for content in contents if isinstance(content, Message)}
        self._lost += [(answer, flaws) for answer in answers if answer.id not in received]
        events = [ChannelEvent(info.index, record.at_ns + info.shift_ns, record) for record in pending]
        return [*_marked(contents, flaws), *events]

    def mark_requests(self, rows: Sequence[Row]) -> list[Row]:
        """Mark the requests among `rows` whose answers did not come through, and return their rows."""
        lost, self._lost = self._lost, []
        marked: list[Row] = []
        for answer, flaws in lost:
            for row in islice(reversed(rows), MAX_LOOKED_AT):
                if isinstance(row, Exchange) and row.request.id == answer.id and row.sender != answer.sender:
                    _marked([row.request], [NO_ANSWER if flaw == NOT_PASSED_ON else flaw for flaw in flaws])
                    marked.append(row)
                    break
        return marked


def _marked(contents: Sequence[FrameContent], flaws: list[str]) -> Sequence[FrameContent]:
    for content in contents:
        if isinstance(content, Message):
            content.flaws = (*content.flaws, *flaws)
    return contents
