"""The end of a client connection whose client closed its half before it was answered: did it take the answer, or had it left?

A client that waits acknowledges what it is sent. One that has left resets the connection. Only the kernel knows, and only after the
answer was sent: so a copy of the socket stays open until it does, for at most a second.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from ...records import CLIENT
from .context import TapContext
from .recorder import note

_FIRST_S = 0.005
_LAST_S = 0.64
"""Waits between two looks: each is twice the one before. A connection on the same machine needs none."""

_CLOSED = 7
_STATE_AND_UNACKNOWLEDGED = struct.Struct("=B23xI")
"""`tcpi_state` and `tcpi_unacked` of Linux's `struct tcp_info`, and the state TCP_CLOSE."""


class TakenAnswer:
    """A watch over the end of connection `number`; `transactions` were answered after the client had closed its half."""

    __slots__ = ("_number", "_socket", "_tap", "_transactions", "_wait_s")

    def __init__(self, tap: TapContext, number: int, transactions: list[int], connected: socket.socket) -> None:
        self._tap = tap
        self._number = number
        self._transactions = transactions
        self._socket = connected
        self._wait_s = _FIRST_S
        tap.reactor.soon(self._begin)  # a TLS connection says first that it ends

    def _begin(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is reset already
        self._look()

    def _look(self) -> None:
        is_taken = _is_taken(self._socket)
        if is_taken is None and self._wait_s <= _LAST_S:
            self._tap.reactor.later(self._wait_s, self._look)
            self._wait_s *= 2
            return
        self._socket.close()
        if is_taken is not None:
            note_taken(self._tap, self._number, self._transactions, is_taken=is_taken)


def note_taken(tap: TapContext, number: int, transactions: list[int], *, is_taken: bool) -> None:
    """Note whether a client took the answers to these transactions."""
    topic = "answer-taken" if is_taken else "answer-refused"
    text = "took the response" if is_taken else "had left: it took no response"
    now_ns = tap.now_ns()
    tap.sink(
        [
            note(now_ns, topic, f"the client that had closed its half of the connection {text}", number, transaction, by=CLIENT)
            for transaction in transactions
        ]
    )


def _is_taken(connected: socket.socket) -> bool | None:
    """Return whether the other side has taken all that was sent, or has reset the connection; None if neither is known yet."""
    option: Callable[..., bytes] = connected.getsockopt
    if connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        return False
    if not hasattr(socket, "TCP_INFO"):
        return None
    state, unacknowledged = _STATE_AND_UNACKNOWLEDGED.unpack(option(socket.IPPROTO_TCP, socket.TCP_INFO, 28))
    return True if state == _CLOSED or not unacknowledged else None
