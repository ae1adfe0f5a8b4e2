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
from tests.deadlines import DEADLINE_S

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
        until_full(send, b"anybody?")
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
