"""What a recorded client answers to what a live server asks it: sampling, elicitation, roots, each as it was answered then.

A question that was never recorded is answered with an error that says so. Refuses to make up an answer, but to a `ping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...records import CLIENT
from ...transcript.mcp.methods import PROGRESS
from ...transcript.model import Exchange
from ..mock.miss import Miss, error_line
from .outgoing import ID, TOLD_TOKEN, value_edit
from .plan import message_key

if TYPE_CHECKING:
    from ...transcript.model import Message
    from ...wire.edits import ValueEdit
    from .plan import MessageKey

PING: Final = "ping"
INTERNAL_ERROR: Final = -32603
NOT_RECORDED: Final = ("", "")


class AnswerMatcher(Protocol):
    """Finds for what the server asks the recorded exchange in which it asked the same."""

    def match(self, request: Message) -> Exchange | Miss:
        """The exchange, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessage:
    """One thing to say to a question, `after_ns` after it: `recorded` with these values exchanged, or `data` where nothing was."""

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
    """What to say to a question: in order, nothing where nothing was said. `miss` says why a question is answered with an error."""

    answers: tuple[AnswerMessage, ...] = ()
    recorded: Exchange | None = None
    miss: Miss | None = None


class RecordedAnswers:
    """Answers the questions of one live server; `matcher` finds the recorded ones."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: AnswerMatcher) -> None:
        self._matcher = matcher

    def feed(self, question: Message) -> AnswerMessages:
        """What is said to a request of the server's."""
        found = self._matcher.match(question)
        id = question.id or "null"
        if isinstance(found, Exchange):
            return AnswerMessages(answers=tuple(_recorded(found, question, id)), recorded=found)
        if question.method == PING and found.is_unknown:  # every client answers it (basic/utilities/ping)
            pong = f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}'.encode()
            return AnswerMessages(answers=(AnswerMessage(row=0, id=id, data=pong),))
        data = self.refusal(id, found.sentence, found.code, found.data)
        return AnswerMessages(answers=(AnswerMessage(row=0, id=id, data=data),), miss=found)

    def refusal(self, id: str, why: str, code: int = INTERNAL_ERROR, data: dict[str, Any] | None = None) -> bytes:
        """The error that a question gets which has no recorded answer."""
        return error_line(id, code, f"mcpspy replay: {why}", data or {}).rstrip(b"\n")


def _recorded(found: Exchange, question: Message, id: str) -> list[AnswerMessage]:
    """All that the recorded client said to it, in order; nothing if it never answered."""
    if found.response is None:
        return []
    said: list[AnswerMessage] = []
    for one in sorted((*found.notifications, found.response), key=lambda one: (one.at_ns, one.number)):
        if one.sender != CLIENT:
            continue
        if one is found.response:
            edits = (value_edit(ID, id),)
        elif one.method == PROGRESS and question.correlation_key is not None:
            edits = (value_edit(TOLD_TOKEN, question.correlation_key),)
        else:
            continue  # who gives out no token is told nothing
        is_last = one is found.response
        after_ns = max(0, one.at_ns - found.at_ns)
        said.append(
            AnswerMessage(
                row=found.row,
                id=id,
                key=message_key(found.request),
                recorded=one,
                edits=edits,
                after_ns=after_ns,
                is_last=is_last,
            )
        )
    return said
