"""Answers of a recorded client to the requests of a live server: sampling, elicitation, roots, each as it was answered then.

A request that was never recorded is answered with an error that says so. No answer is made up, except to `ping`.
"""

from dataclasses import dataclass
from typing import Any, Final

from ...records import CLIENT
from ...transcript.mcp.codes import INTERNAL_ERROR
from ...transcript.mcp.methods import PROGRESS
from ...transcript.model import Exchange, Message
from ...wire.edits import ValueEdit
from ..mock.matching import MatchCursor
from ..mock.miss import Miss, error_line
from .outgoing import ID, TOKEN_OF_PROGRESS, value_edit
from .plan import MessageKey, message_key

PING: Final = "ping"
NOT_RECORDED: Final = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessage:
    """One message to send `after_ns` after a request: `recorded` with these edits, or `data` if nothing was recorded."""

    row: int
    id: str
    key: MessageKey = NOT_RECORDED
    recorded: Message | None = None
    edits: tuple[ValueEdit, ...] = ()
    data: bytes = b""
    after_ns: int = 0
    is_last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessages:
    """The messages to send after a request, in order; none if the recorded client never answered. `miss` explains an error."""

    answers: tuple[AnswerMessage, ...] = ()
    recorded: Exchange | None = None
    miss: Miss | None = None


class RecordedAnswers:
    """The answers to the requests of one live server; `matcher` finds the recorded ones."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: MatchCursor) -> None:
        self._matcher = matcher

    def feed(self, request: Message) -> AnswerMessages:
        """Take a request of the server; return what to send."""
        match = self._matcher.match(request)
        id = request.id or "null"
        if isinstance(match, Exchange):
            return AnswerMessages(answers=tuple(_recorded_messages(match, request, id)), recorded=match)
        if request.method == PING and match.is_unknown:  # every client answers it (basic/utilities/ping)
            pong = f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}'.encode()
            return AnswerMessages(answers=(AnswerMessage(row=0, id=id, data=pong),))
        data = self.refusal(id, match.sentence, match.code, match.data)
        return AnswerMessages(answers=(AnswerMessage(row=0, id=id, data=data),), miss=match)

    def refusal(self, id: str, why: str, code: int = INTERNAL_ERROR, data: dict[str, Any] | None = None) -> bytes:
        """Return the error that answers a request without a recorded answer."""
        return error_line(id, code, f"mcpspy replay: {why}", data or {}).rstrip(b"\n")


def _recorded_messages(exchange: Exchange, request: Message, id: str) -> list[AnswerMessage]:
    """List all messages of the recorded client about a request, in order; none if it never answered."""
    response = exchange.response
    if response is None:
        return []
    messages: list[AnswerMessage] = []
    for message in sorted((*exchange.notifications, response), key=lambda message: (message.at_ns, message.number)):
        if message.sender != CLIENT:
            continue
        if message is response:
            edits = (value_edit(ID, id),)
        elif message.method == PROGRESS and request.correlation_key is not None:
            edits = (value_edit(TOKEN_OF_PROGRESS, request.correlation_key),)
        else:
            continue  # a server that gives no progress token gets no progress
        answer = AnswerMessage(
            row=exchange.row,
            id=id,
            key=message_key(exchange.request),
            recorded=message,
            edits=edits,
            after_ns=max(0, message.at_ns - exchange.at_ns),
            is_last=message is response,
        )
        messages.append(answer)
    return messages
