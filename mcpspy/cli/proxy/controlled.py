"""An HTTP tap that controllers can change: intercepts, held messages, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...intercept.decisions import call_record
from ...live.http.intercepting import give_back, held_by, pairs_of, take_over
from ...live.http.own_post import OwnPost, head_for
from ...transcript.message import TO_MCPSPY
from ...wire.http_head import first_value
from ...wire.jsonrpc import cut
from ..call.injected import CallRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...capture.redaction.redactor import NoRedaction, Redactor
    from ...intercept.decisions import Intercepts
    from ...live.http.tap import HttpTap
    from ...live.http.transaction import RequestPlan
    from ...live.waiting_messages import Decider, HeldMessage
    from ...records import Intercept
    from ..controlling import HeldBy

_NO_SESSION: Final = (
    "no client has sent anything in that session lately, or it is over; name a row of a session that runs, "
    "or a server with --url"
)

_NO_ANSWER: Final = "the server ended its response without an answer"


def _ignore(*_: object) -> None:
    """Do nothing."""


class HttpHands:
    """A tap over HTTP, as controllers need it."""

    transport = "http"
    restarts = None

    def __init__(self, tap: HttpTap, redactor: Redactor | NoRedaction) -> None:
        self._tap = tap
        self._redactor = redactor

    @property
    def intercepts(self) -> Decider | None:
        return self._tap.intercepts

    def now_ns(self) -> int:
        return self._tap.now_ns()

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        if self._tap.reactor.watches(fd):
            self._tap.reactor.forget(fd)
        self._tap.reactor.watch(fd, events, callback)

    def follow(self) -> None:
        """Do nothing: its server is somebody else's."""

    def forget(self, fd: int) -> None:
        self._tap.reactor.forget(fd)

    def held(self) -> list[tuple[HeldBy, HeldMessage]]:
        return [*held_by(self._tap)]

    def release_those_of(self, handle: int) -> None:
        for direction, item in self.held():
            if item.decision.held_by == handle:
                direction.release(item.number, item.decision.payload)

    def take_over(self, intercepts: Intercepts) -> None:
        take_over(self._tap, intercepts)

    def route(self, request: dict[str, Any], intercepts: Intercepts) -> HttpRoute:
        """Return the way of a call into the session that the capture knows by a `session` and a `target`, as they are recorded there.

        Raises: CallRefusedError: if the tap knows of no such session.
        """
        match request:
            case {"session": str(session), "target": str(target), "fields": list(fields)}:
                named = [_field(field) for field in fields]
            case _:
                raise CallRefusedError("over HTTP, send needs a session and a target, which are texts, and a list of fields")
        plans = [plan for plan in self._tap.posts() if self._names(plan) == (session, target)]
        if not plans:
            raise CallRefusedError(_NO_SESSION)
        return HttpRoute(self._tap, plans[-1], named, intercepts)

    def _names(self, plan: RequestPlan) -> tuple[str, str] | None:
        """Return the session and the target of a post as the capture has them; None if it carries no message."""
        head = self._redactor.head(plan.forwarded)[0]
        lowered = head.lower()
        if b"json" not in (first_value(head, lowered, b"content-type") or b""):
            return None
        session = first_value(head, lowered, b"mcp-session-id") or b""
        return session.decode("latin-1"), head.split(b" ", 2)[1].decode("latin-1")

    def call_when_idle(self, action: Callable[[], None]) -> None:
        self._tap.reactor.soon(action)

    def give_back(self) -> None:
        give_back(self._tap)

    def send_all(self) -> None:
        for pair in pairs_of(self._tap):
            pair.let_go()


class HttpRoute:
    """The way of one call of a controller into a session: a request of its own, with the head of one by the session's client.

    `fields` are those that repeat parts of the message, which only messages of 2026-07-28 and later have.
    """

    def __init__(self, tap: HttpTap, plan: RequestPlan, fields: Sequence[tuple[bytes, bytes]], intercepts: Intercepts) -> None:
        self._tap = tap
        self._plan = plan
        self._fields = fields
        self._intercepts = intercepts
        self._fail: Callable[[str], None] = _ignore
        self._post: OwnPost | None = None

    def begin(self, on_failed: Callable[[str], None]) -> None:
        """Set what is called if there will be no answer."""
        self._fail = on_failed

    def send(self, payload: bytes, act: Intercept) -> bool:
        """Post the call, or its cancellation: one of 2026-07-28 and later is cancelled by the end of its connection."""
        if self._post is None:
            self._post = self._posted(payload, act, on_message=self._take, on_over=self._on_over)
            return True
        self._post.leave()
        if not self._fields:
            self._posted(payload, act)
        if not self._is_over_stream:
            self._fail("it was cancelled")
        return True

    def _posted(
        self,
        payload: bytes,
        act: Intercept,
        on_message: Callable[[bytes, int], None] = _ignore,
        on_over: Callable[[str], None] = _ignore,
    ) -> OwnPost:
        head = head_for(self._plan.forwarded, payload, self._fields)
        acts = {"unchanged": lambda: act, TO_MCPSPY: lambda: call_record(self._tap.now_ns(), self._intercepts.seed, TO_MCPSPY)}
        return OwnPost(self._tap, head, payload, lambda sent: acts[sent](), on_message=on_message, on_over=on_over)

    def _take(self, payload: bytes, at_ns: int) -> None:
        """Take a message of the server: about the call, or a request, which nobody answers here."""
        if self._intercepts.hand_over(payload, at_ns):
            return
        for piece in cut(payload):
            if piece.kind == "request" and piece.id is not None:
                text = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"mcpspy call answers no requests"}}'
                self._posted(text % piece.id.encode(), call_record(at_ns, self._intercepts.seed))

    @property
    def _is_over_stream(self) -> bool:
        """True with HTTP+SSE: the answer comes on the client's stream of events."""
        return any(pair.announced(self._plan.target) for pair in pairs_of(self._tap))

    def _on_over(self, why: str) -> None:
        if why or not self._is_over_stream:
            self._fail(why or _NO_ANSWER)


def _field(field: object) -> tuple[bytes, bytes]:
    """Read a header field. Raises: CallRefusedError."""
    match field:
        case [str(name), str(value)] if name.lower().startswith("mcp-") and (name + value).isprintable() and name.isascii():
            return name.encode(), value.encode("latin-1", "replace")
    raise CallRefusedError("a field is a pair of texts, whose name begins with Mcp-")
