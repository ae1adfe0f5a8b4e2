"""How a server is brought to its end: what to send it, and when. The rules of a stdio tap's last two seconds.

Refuses to act: it is asked what is due and answers. Clients give 2 s from closing stdin to SIGTERM and 2 s more to SIGKILL, and
TypeScript's kill only us; so whatever we do must be done in less (measured with mcp 2.3.0 and SDK 1.32.2).
"""

from __future__ import annotations

GRACE_NS = 500_000_000
"""From a client that is gone to TERM: time for a server that ends by itself at the end of its input."""

TERM_NS = 1_000_000_000
"""From a signal, or from our TERM, to KILL: together with the grace less than a client's 2 s."""

LAST_NS = 300_000_000
"""From KILL to giving up on processes that the system does not let go of."""


class Shutdown:
    """Stages, each with an instant at which the next is due: calm, grace, term, kill, last, given up; and orphaned on the way.

    `due_ns` is that instant on the tap's clock, 0 while calm. `under_way` means that the client has asked for the end.
    """

    __slots__ = ("_kill_ns", "_sent_term", "due_ns", "stage", "why")

    def __init__(self) -> None:
        self.stage = "calm"
        self.due_ns = 0
        self.why = ""
        self._sent_term = False
        self._kill_ns = 0

    @property
    def under_way(self) -> bool:
        return self.stage != "calm"

    def client_gone(self, now_ns: int) -> None:
        """Nobody reads the server's stdout any more."""
        if self.stage == "calm":
            self._enter("grace", now_ns + GRACE_NS, "client gone")

    def signalled(self, now_ns: int, name: str, *, again: bool) -> None:
        """A signal to end came and was forwarded. The same one again means: now."""
        if again:
            self._enter("kill", now_ns, name)
        elif self.stage in ("calm", "grace"):
            self._enter("term", now_ns + TERM_NS, name)

    def leftovers(self, now_ns: int) -> None:
        """The server has gone as the client wanted, but not all that it started: that may not have heard yet."""
        if self.stage in ("calm", "grace"):
            self._enter("grace", now_ns, "processes left behind")
        elif self.stage == "term" and not self._sent_term:
            self._kill_ns = self.due_ns
            self._enter("orphaned", now_ns, self.why)

    def due(self, now_ns: int) -> str:
        """`SIGTERM` or `SIGKILL` if that is to be sent to all that is left now, else nothing."""
        if not self.due_ns or now_ns < self.due_ns:
            return ""
        if self.stage in ("grace", "orphaned"):
            self._enter("term", self._kill_ns or now_ns + TERM_NS, self.why)
            self._sent_term = True
            return "SIGTERM"
        if self.stage in ("term", "kill"):
            self._enter("last", now_ns + LAST_NS, self.why)
            return "SIGKILL"
        self._enter("given up", 0, self.why)
        return ""

    def _enter(self, stage: str, due_ns: int, why: str) -> None:
        self.stage = stage
        self.due_ns = due_ns
        self.why = self.why or why
