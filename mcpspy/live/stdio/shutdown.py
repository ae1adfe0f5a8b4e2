"""The last two seconds of a stdio server: which signal is due, and when.

    calm ── client gone ──► grace ── 0.5 s ──► SIGTERM, term ── 1 s ──► SIGKILL, last ── 0.3 s ──► given up
      └──────────── a signal came ────────────────► term      the same signal again: SIGKILL at once

`Shutdown` only answers what is due; the tap acts. Clients give 2 s from closing stdin to SIGTERM and 2 s more to SIGKILL, and those
on the TypeScript SDK kill only us; so everything must be done in less (measured with mcp 2.3.0 and SDK 1.32.2).
"""

from __future__ import annotations

GRACE_NS = 500_000_000
"""From the client's end to SIGTERM: time for a server that ends by itself at the end of its input, and for what it leaves behind."""

TERM_NS = 1_000_000_000
"""From a signal, or from our SIGTERM, to SIGKILL: together with the grace less than a client's 2 s."""

LAST_NS = 300_000_000
"""From SIGKILL to giving up on processes that do not end."""


class Shutdown:
    """The stage of a shutdown: calm, grace, term, kill, last or given up; orphaned is an extra wait before the second SIGTERM.

    `due_ns` is when the next stage begins, on the tap's clock; 0 while calm. `under_way` means that the client has asked for the end.
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

    def on_client_gone(self, now_ns: int) -> None:
        """Begin the end: nobody reads the server's stdout any more."""
        if self.stage == "calm":
            self._enter("grace", now_ns + GRACE_NS, "client gone")

    def on_signal(self, now_ns: int, name: str, *, again: bool) -> None:
        """Take note of a signal to end, which was forwarded. The same one again means at once."""
        if again:
            self._enter("kill", now_ns, name)
        elif self.stage in ("calm", "grace"):
            self._enter("term", now_ns + TERM_NS, name)

    def on_leftovers(self, now_ns: int) -> None:
        """Take note that the server has ended and processes that it started have not: they may not know yet, or end by themselves."""
        if self.stage == "calm":
            self._enter("grace", now_ns + GRACE_NS, "processes left behind")
        elif self.stage == "term" and not self._sent_term:
            self._kill_ns = self.due_ns
            self._enter("orphaned", now_ns, self.why)

    def due(self, now_ns: int) -> str:
        """Return `SIGTERM` or `SIGKILL` if that is to be sent now to all that is left, else the empty string."""
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
