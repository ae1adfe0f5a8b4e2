"""The loop of an HTTP tap: calls in their order and time, whatever some of them do."""

import os
import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from mcpspy.live.http.reactor import Reactor
from mcpspy.platform.sockets import IN
from tests.deadlines import DEADLINE_S


class Loop(Reactor):
    """A reactor that keeps its faults, and ends by itself."""

    def __init__(self) -> None:
        self.faults: list[Exception] = []
        super().__init__(self.faults.append)
        self.later(DEADLINE_S, self.stop)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


def fail(*_: object) -> None:
    raise ZeroDivisionError


def test_timers_call_in_the_order_of_their_times_and_not_once_cancelled(loop: Loop) -> None:
    called: list[int] = []
    loop.later(0.02, loop.stop)
    loop.later(0.01, lambda: called.append(2))
    loop.later(0.015, lambda: called.append(3)).cancel()
    loop.later(0.0, lambda: called.append(1))
    loop.run()
    assert called == [1, 2]


def test_cancelled_timers_are_sorted_out_long_before_they_are_due(loop: Loop) -> None:
    for _ in range(100_000):
        loop.later(DEADLINE_S, fail).cancel()
    assert len(loop._timers) < 5_000
    kept = [loop.later(DEADLINE_S, fail) for _ in range(10_000)]
    assert sum(timer.call is not None for *_, timer in loop._timers) == len(kept) + 1


def test_a_call_that_raises_ends_nothing_but_itself(loop: Loop) -> None:
    called: list[str] = []
    reading, writing = socket.socketpair()
    writing.send(b"x")

    def readable(events: int) -> None:
        loop.forget(reading.fileno())
        fail()

    loop.watch(reading.fileno(), IN, readable)
    loop.soon(fail)
    loop.soon(lambda: called.append("soon"))
    loop.later(0.0, fail)
    loop.later(0.01, lambda: called.append("later"))
    loop.wake(fail)
    loop.wake(lambda: called.append("wake"))
    loop.later(0.05, loop.stop)
    loop.run()
    reading.close()
    writing.close()
    assert sorted(called) == ["later", "soon", "wake"]
    assert [type(fault) for fault in loop.faults] == [ZeroDivisionError] * 4


def test_a_callback_that_was_forgotten_in_the_same_round_is_not_called(loop: Loop) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    called: list[int] = []

    def readable(events: int) -> None:
        called.append(events)
        for reading, _ in pairs:
            loop.forget(reading.fileno())

    for reading, writing in pairs:
        writing.send(b"x")
        loop.watch(reading.fileno(), IN, readable)
    loop.later(0.05, loop.stop)
    loop.run()
    assert called == [IN]
    assert loop.faults == []
    for both in pairs:
        for end in both:
            end.close()


def test_another_thread_wakes_it(loop: Loop) -> None:
    thread = threading.Thread(target=lambda: loop.wake(loop.stop), daemon=True)
    loop.soon(thread.start)
    loop.run()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def test_a_signal_wakes_it(loop: Loop) -> None:
    handler = signal.signal(signal.SIGUSR1, lambda *_: loop.stop())
    written = signal.set_wakeup_fd(loop.wake_fd, warn_on_full_buffer=False)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        loop.run()
    finally:
        signal.set_wakeup_fd(written)
        signal.signal(signal.SIGUSR1, handler)
        timer.join()


def test_to_wake_it_when_it_is_closed_does_nothing() -> None:
    loop = Loop()
    loop.close()
    loop.wake(fail)
