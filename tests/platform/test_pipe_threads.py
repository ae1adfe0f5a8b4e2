"""Pipes by threads, as on Windows: every byte in order, no call that blocks, and descriptors that are closed when it can be seen."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.platform import pipe_threads
from mcpspy.platform.pipe_threads import POLLERR, POLLHUP, POLLIN, POLLOUT
from tests.deadlines import DEADLINE_S, eventually

PATIENCE_MS = DEADLINE_S * 1000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:
            pass  # the test did


def watching(fd: int, events: int) -> pipe_threads.poll:
    made = pipe_threads.poll()
    made.register(fd, events)
    return made


def until_full(send: Callable[[bytes | memoryview], int], data: bytes | memoryview) -> int | None:
    """Send, and return how much was taken; None if nothing was."""
    try:
        return send(data)
    except BlockingIOError:
        return None


def test_what_is_written_can_be_read(pipe: tuple[int, int]) -> None:
    ready = watching(pipe[0], POLLIN)
    assert ready.poll(0) == []
    os.write(pipe[1], b"hello")
    assert ready.poll(PATIENCE_MS) == [(pipe[0], POLLIN)]
    assert pipe_threads.read(pipe[0], 100) == b"hello"
    with pytest.raises(BlockingIOError):
        pipe_threads.read(pipe[0], 100)
    os.close(pipe[1])
    assert ready.poll(PATIENCE_MS) == [(pipe[0], POLLIN | POLLHUP)]
    assert pipe_threads.read(pipe[0], 100) == b""
    pipe_threads.release(pipe[0])


def test_the_end_of_a_pipe_is_seen_by_who_waits_for_nothing_of_it(pipe: tuple[int, int]) -> None:
    ready = watching(pipe[0], POLLIN)
    ready.modify(pipe[0], 0)
    os.close(pipe[1])
    assert ready.poll(PATIENCE_MS) == [(pipe[0], POLLHUP)]
    pipe_threads.release(pipe[0])


@given(sent=st.lists(st.binary(min_size=1, max_size=200_000), min_size=1, max_size=4), size=st.sampled_from([7, 4096, 1 << 17]))
def test_all_bytes_come_in_their_order(sent: list[bytes], size: int) -> None:
    reading, writing = os.pipe()
    send = pipe_threads.sender(writing)
    ready = watching(reading, POLLIN)
    ready.register(writing, 0)
    received, rest = b"", memoryview(b"".join(sent))
    while rest or len(received) < sum(map(len, sent)):
        if rest:
            try:
                rest = rest[send(rest) :]
            except BlockingIOError:
                ready.modify(writing, POLLOUT)
        for fd, events in ready.poll(PATIENCE_MS if not rest else 0):
            if fd == reading and events & POLLIN:
                received += pipe_threads.read(reading, size)
    assert received == b"".join(sent)
    ready.unregister(writing)
    pipe_threads.release(writing)
    assert ready.poll(PATIENCE_MS) == [(reading, POLLIN | POLLHUP)]
    pipe_threads.release(reading)


def test_a_pipe_that_is_full_takes_nothing_and_says_when_it_takes_more(pipe: tuple[int, int]) -> None:
    send, data = pipe_threads.sender(pipe[1]), b"x" * (1 << 20)
    ready = watching(pipe[1], POLLOUT)
    rest = memoryview(data)
    while (taken_now := until_full(send, rest)) is not None:
        rest = rest[taken_now:]
    assert ready.poll(0) == []
    taken = len(os.read(pipe[0], 1 << 16))
    os.set_blocking(pipe[0], False)
    while rest:
        while not ready.poll(0):
            with contextlib.suppress(BlockingIOError):  # its thread has not written on yet
                taken += len(os.read(pipe[0], 1 << 16))
        rest = rest[send(rest) :]
    os.set_blocking(pipe[0], True)
    pipe_threads.release(pipe[1])
    while piece := os.read(pipe[0], 1 << 16):
        taken += len(piece)
    assert taken == len(data)


def test_who_writes_where_nobody_reads_is_told(pipe: tuple[int, int]) -> None:
    send = pipe_threads.sender(pipe[1])
    os.close(pipe[0])
    with pytest.raises(BrokenPipeError):
        eventually(lambda: until_full(send, b"anybody?"), "an error")  # its thread may not have tried yet
    assert watching(pipe[1], 0).poll(0) == [(pipe[1], POLLERR)]
    pipe_threads.release(pipe[1])


def test_a_descriptor_is_closed_once_its_thread_does_not_block_with_it(pipe: tuple[int, int]) -> None:
    ready = watching(pipe[0], POLLIN)
    ready.unregister(pipe[0])
    pipe_threads.release(pipe[0])  # returns at once, though a thread is in `read`
    closed = threading.Event()

    def write_until_broken() -> None:
        try:
            while True:
                os.write(pipe[1], b"x")
        except BrokenPipeError:
            closed.set()

    threading.Thread(target=write_until_broken, daemon=True).start()
    assert closed.wait(DEADLINE_S)


def test_the_rest_of_a_pipe_is_all_that_was_written(pipe: tuple[int, int]) -> None:
    ready = watching(pipe[0], POLLIN)
    os.write(pipe[1], b"a" * 1000)
    assert ready.poll(PATIENCE_MS)
    os.write(pipe[1], b"b" * 60_000)
    assert pipe_threads.rest_of(pipe[0]) == (b"a" * 1000 + b"b" * 60_000, False)
    os.close(pipe[1])
    assert pipe_threads.rest_of(pipe[0]) == (b"", True)
    pipe_threads.release(pipe[0])


class Calls:
    """Callbacks that a poll shares, and a thread that polls for them until one interrupts it."""

    def __init__(self) -> None:
        self.callbacks: dict[int, Callable[[int], None]] = {}
        self.callback_of: Callable[[int], Callable[[int], None] | None] = self.callbacks.get
        self.interrupted = False
        self.ready = pipe_threads.poll()
        self.ready.share(self)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._turn, daemon=True)

    def watch(self, fd: int, callback: Callable[[int], None], events: int = POLLIN) -> None:
        self.callbacks[fd] = callback
        self.ready.register(fd, events)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    def _turn(self) -> None:
        try:
            while not self.interrupted:
                for fd, events in self.ready.poll():
                    self.callbacks[fd](events)
        except ValueError as error:
            self.error = error


def end_of(pipe: tuple[int, int]) -> None:
    """Close a pipe once its thread has seen the end."""
    os.close(pipe[1])
    assert watching(pipe[0], 0).poll(PATIENCE_MS) == [(pipe[0], POLLHUP)]
    pipe_threads.release(pipe[0])


def test_a_call_is_made_by_the_thread_that_has_read(pipe: tuple[int, int]) -> None:
    calls, threads = Calls(), []

    def end(events: int) -> None:
        threads.append(threading.current_thread())
        pipe_threads.read(pipe[0], 100)
        calls.interrupted = len(threads) == 2
        if not calls.interrupted:
            os.write(pipe[1], b"x")

    calls.watch(pipe[0], end)
    calls.begin()
    os.write(pipe[1], b"x")
    calls.end()
    assert isinstance(threads[1], threading._DummyThread)  # one that `threading` has not started
    end_of(pipe)


def test_an_error_in_a_call_reaches_who_polls(pipe: tuple[int, int]) -> None:
    calls = Calls()

    def fail(events: int) -> None:
        pipe_threads.read(pipe[0], 100)
        raise ValueError(events)

    calls.watch(pipe[0], fail)
    calls.begin()
    os.write(pipe[1], b"x")
    calls.end()
    assert isinstance(calls.error, ValueError)
    end_of(pipe)


def test_a_write_within_a_call_that_takes_long_holds_up_no_other_call(pipe: tuple[int, int]) -> None:
    calls, full, waiting, data = Calls(), os.pipe(), [memoryview(b"")], b"x" * (1 << 18)
    other, other_writing = os.pipe()
    late, heard = threading.Event(), threading.Event()

    def on_late(sent: bytes) -> None:
        assert sent == data
        waiting[0] = memoryview(sent)
        calls.watch(full[1], on_writable, POLLOUT)
        late.set()

    def on_writable(events: int) -> None:
        waiting[0] = waiting[0][send(waiting[0]) :]
        if not waiting[0]:
            calls.interrupted = True

    def copy(events: int) -> None:
        pipe_threads.read(pipe[0], 100)
        assert last(data) == len(data)

    def hear(events: int) -> None:
        pipe_threads.read(other, 100)
        heard.set()

    send = pipe_threads.sender(full[1])
    last = calls.ready.last_sender(full[1], on_late)
    calls.watch(pipe[0], copy)
    calls.watch(other, hear)
    calls.begin()
    os.write(pipe[1], b"x")
    assert late.wait(DEADLINE_S)
    os.write(other_writing, b"x")
    assert heard.wait(DEADLINE_S)
    received = b""
    while len(received) < len(data):
        received += os.read(full[0], 1 << 16)
    calls.end()
    assert received == data
    end_of(pipe)
    end_of((other, other_writing))
    pipe_threads.release(full[1])
    os.close(full[0])


@given(st.lists(st.binary(min_size=1, max_size=150_000), min_size=1, max_size=6), st.sampled_from([1, 100, 1 << 16]))
def test_all_bytes_that_are_copied_within_calls_come_in_their_order(sent: list[bytes], size: int) -> None:
    calls, (reading, writing), (result, target) = Calls(), os.pipe(), os.pipe()
    pending = [memoryview(b"")]

    def hold(data: bytes | memoryview) -> None:
        pending[0] = memoryview(data)
        calls.watch(reading, copy, 0)
        calls.watch(target, go_on, POLLOUT)

    def copy(events: int) -> None:
        data = pipe_threads.read(reading, size)
        if not data:
            calls.interrupted = True
            return
        try:
            taken = last(data)
        except BlockingIOError:
            taken = 0
        if taken != len(data):
            hold(memoryview(data)[taken:])

    def go_on(events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            pending[0] = pending[0][send(pending[0]) :]
        if not pending[0]:
            calls.watch(target, go_on, 0)
            calls.watch(reading, copy)

    def write() -> None:
        for data in sent:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(writing, rest) :]
        os.close(writing)

    send, last = pipe_threads.sender(target), calls.ready.last_sender(target, hold)
    calls.watch(reading, copy)
    calls.begin()
    threading.Thread(target=write, daemon=True).start()
    received, expected = b"", b"".join(sent)
    while len(received) < len(expected):
        received += os.read(result, 1 << 16)
    calls.end()
    assert received == expected
    pipe_threads.release(reading)
    pipe_threads.release(target)
    os.close(result)
