"""What a mock is to say or do, and of which scene it is: what a script hands to whoever plays it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .replies import RecordedReply

if TYPE_CHECKING:
    from ...transcript.model import Message
    from .generated_ids import CallContext
    from .miss import Miss
    from .replies import ExitProcess, SendMessage

OF_NO_REQUEST: Final = ("/list_changed", "/updated", "/complete", "/status")
"""How the notifications end that are news of a server, and of no request: on stdio nothing else says so."""

NO_REPLY: Final = RecordedReply()
"""The scene of a request that has none, since it was never recorded."""


class ReplyState:
    """A scene that is being played. `id` and `token` are the live request's, empty and None where none began it.

    `call_context` is what it hangs together with; `again` says that it was played on it before, and `was_played` that it was on any.
    `next` is the next step, and `began_ns` when, in the recording, that happened which it followed. `asked` are the live ids of the
    server's requests by the recorded ones, `unanswered` the rows of those that were asked and not answered yet, and `tasks` the live
    ids of what the client runs for the server. `given_up` says how often the client gave it up, and `is_over` that in the recording
    it did not.
    """

    __slots__ = (
        "again", "asked", "began_ns", "given_up", "id", "is_over", "next", "request", "reply", "call_context", "tasks", "token",
        "unanswered", "was_played",
    )  # fmt: skip

    def __init__(self, reply: RecordedReply, call_context: CallContext, request: Message | None = None) -> None:
        self.reply = reply
        self.call_context = call_context
        self.request = request
        self.began_ns = reply.at_ns
        self.id = "" if request is None else request.id or "null"
        self.token = None if request is None else request.correlation_key
        self.again = self.was_played = False
        self.next = 0
        self.asked: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        self.unanswered: set[int] = set()
        self.is_over = False
        self.given_up = 0


class LiveServerBytes(bytes):
    """Bytes that a live server sent: all else that a mock sends is injected. A subclass of bytes, to pass wherever bytes do."""

    __slots__ = ()


class ScheduledSend:
    """What a mock is to do `delay_ns` after what it heard: say `data`, a line, or end its process as the recorded one ended.

    `playing` is the scene that it is of: whose request it belongs to, if any. `say` is the recorded step; there is none where the
    recording has no such words: the answer to a `ping`, and to a miss, of which `miss` tells (without `data` if somebody else
    answers it). `answers` says that it is the answer to the request of `playing`. `since` is how often that had been given up.
    """

    __slots__ = ("answers", "data", "delay_ns", "exit", "miss", "state", "step", "since")

    def __init__(
        self,
        state: ReplyState,
        data: bytes = b"",
        delay_ns: int = 0,
        *,
        step: SendMessage | None = None,
        answers: bool = False,
        miss: Miss | None = None,
        exit: ExitProcess | None = None,
    ) -> None:
        self.state = state
        self.data = data
        self.delay_ns = delay_ns
        self.step = step
        self.answers = answers
        self.miss = miss
        self.exit = exit
        self.since = state.given_up
