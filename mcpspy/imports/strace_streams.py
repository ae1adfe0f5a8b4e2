r"""Standard streams among all that a server reads and writes: calls in, the same calls after the number of their stream out.

Descriptors 0, 1 and 2 are the standard streams, but a server may move its messages to others, as the Python SDK does from its
version 2 on, and strace does not show that when it comes later. So a descriptor above 2 is stdin if messages are read from it that
only a client sends, and stdout if messages are written to it that only a server sends:

    read(6<pipe:[81]>, "{…\"id\":1,\"method\":\"tools/list\"}\n"      only a client asks that: 6 is stdin
    write(9<pipe:[90]>, "{…\"id\":1,\"method\":\"tools/list\"}\n"     to another server: not stdout
    write(7<pipe:[82]>, "{…\"id\":1,\"result\":{…}}\n"                it answers what was read on 6: 7 is stdout

With `-y` a stream is the pipe that strace names, whatever its descriptor and its process, and not a pipe that is both read and
written, as that is one between traced processes. Without, it is the descriptor, of all processes.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from ..records import CLIENT, OTHER_SIDE, SERVER, Side
from .log_messages import is_message
from .log_senders import Senders
from .session import STDERR, STDIN, STDOUT
from .strace_calls import SystemCall, plain
from .text_lines import WholeLines

MAX_HELD_BYTES: Final = 1 << 20
MAX_HELD_CALLS: Final = 256
"""So much is held of a descriptor until it is known what it is; then it is let go, and judged anew."""

MAX_DESCRIPTORS: Final = 256
"""The most descriptors of which something is held."""

MAX_NOTED: Final = 10_000
"""So many reads or writes of one stream are looked at for requests, by whose answers the other one is found."""

StreamCall: TypeAlias = tuple[int, SystemCall]

_SENDERS: Final[dict[int, Side]] = {STDIN: CLIENT, STDOUT: SERVER}


class _Candidate:
    """A descriptor of which it is not known yet whether it is a standard stream: its calls, and the line that has not ended."""

    __slots__ = ("calls", "line", "size_bytes")

    def __init__(self) -> None:
        self.calls: list[SystemCall] = []
        self.line = b""
        self.size_bytes = 0


class StandardStreams:
    """Tells the calls on the standard streams of the server from all others."""

    __slots__ = ("_candidates", "_foreign", "_inner", "_keys", "_lines", "_noted", "_senders", "_stderr")

    def __init__(self) -> None:
        self._keys: dict[int, bytes] = {}
        self._lines = WholeLines()  # of the stream that is known while the other is not
        self._noted = 0
        self._stderr: bytes | None = None
        self._candidates: dict[tuple[int, bytes], _Candidate] = {}
        self._inner: dict[bytes, int] = {}
        self._foreign = 0
        self._senders = Senders()

    def knows(self, stream: int) -> bool:
        """Return whether it is known which descriptor this stream has."""
        return stream in self._keys

    def passed_over(self) -> list[str]:
        """Say what was read and written as a client does."""
        count = self._foreign
        if not count:
            return []
        return [
            f"not read: {count} call{'s' * (count > 1)} with messages of a client to its server; trace the server's process"
        ]

    def begin(self, call: SystemCall) -> None:
        """Take a write that has not ended: what it writes may be read before that."""
        self._note(call, _key(call))

    def take(self, call: SystemCall) -> list[StreamCall]:
        """Return the calls that are now known to be on a standard stream, each with the stream; mostly this one, or none."""
        key, stream = _key(call), STDIN if call.is_read else STDOUT
        known = self._keys.get(stream)
        is_diverted = call.descriptor == STDERR and call.target.startswith(b"</")
        if known is not None and (key == known or not key) and not is_diverted:
            if len(self._keys) == 1 and self._noted < MAX_NOTED:
                self._note_requests(call, stream)
            return [(stream, call)]
        if not call.is_read and (call.descriptor == STDERR or (call.target and call.target == self._stderr)):
            if self._stderr is None:
                self._stderr = call.target
            return [(STDERR, call)] if call.target == self._stderr else []
        if known is not None:
            return []
        self._note(call, key)
        is_inner = self._inner.get(call.target, 0) == 3
        return [] if is_inner or not call.count else [(stream, held) for held in self._judged(call, key, stream)]

    def _note(self, call: SystemCall, key: bytes) -> None:
        if call.target.startswith(b"<pipe:") and len(self._inner) < MAX_DESCRIPTORS * 16:
            self._inner[key] = self._inner.get(key, 0) | (1 if call.is_read else 2)

    def _note_requests(self, call: SystemCall, stream: int) -> None:
        """Take note of what is asked on a known stream: who answers it is on the other one.

        The first request may be missing, as strace may come while the server reads it.
        """
        self._noted += 1
        for line in self._lines.feed(plain(call.text)):
            if (value := _message(line)) is not None:
                self._senders.take(value, _SENDERS[stream])

    def _judged(self, call: SystemCall, key: bytes, stream: int) -> list[SystemCall]:
        """Return the calls of a descriptor that turns out to be this stream."""
        is_standard = call.descriptor in (stream, -1)
        if not is_standard and call.target.startswith(b"</"):
            return []  # a file, such as a log
        candidate = self._candidates.get((stream, key))
        begins = call.text[:400].lstrip().startswith((b"{", b"["))
        if candidate is None:
            if not begins and not is_standard:
                return []
            if len(self._candidates) >= MAX_DESCRIPTORS:
                self._candidates.clear()
            candidate = self._candidates[stream, key] = _Candidate()
        data = plain(call.text)
        candidate.calls.append(call)
        candidate.size_bytes += len(data)
        lines = (candidate.line + data).split(b"\n")
        candidate.line = lines.pop()
        is_cut = is_standard and begins and len(data) < call.count
        own = [line for line in lines if self._is_of(line, stream, is_standard=is_standard)]
        if own or is_cut:
            if not key:  # which descriptor it is will be seen when it is read from again
                del self._candidates[stream, key]
                return candidate.calls
            self._keys[stream] = key
            self._lines = WholeLines()
            self._lines.feed(candidate.line)
            for value in filter(None, map(_message, lines)):
                if self._senders.sender(value, "") is None:  # which either side may send
                    self._senders.take(value, _SENDERS[stream])
            self._candidates = {place: other for place, other in self._candidates.items() if place[0] != stream}
            return _without_tails(candidate.calls)
        if candidate.size_bytes > MAX_HELD_BYTES or len(candidate.calls) > MAX_HELD_CALLS:
            del self._candidates[stream, key]
        return []

    def _is_of(self, line: bytes, stream: int, *, is_standard: bool) -> bool:
        """Return whether a line is a message of the stream's sender."""
        value = _message(line)
        if value is None:
            return False
        expected = _SENDERS[stream]
        sender = self._senders.sender(value, "")
        if sender is not None:
            self._senders.take(value, sender)
        self._foreign += sender == OTHER_SIDE[expected]
        if sender is None and is_standard and stream == STDOUT and "method" not in value:
            return not self.knows(STDIN)  # else it answers what was asked elsewhere: another process may have been
        return sender == expected or (sender is None and is_standard)


def _key(call: SystemCall) -> bytes:
    """Return what tells one descriptor from another; empty for a read of which strace saw only the end."""
    return b"" if call.descriptor < 0 else call.target or b"%d" % call.descriptor


def _message(line: bytes) -> Any:
    """Return the message that a line is; None if it is none."""
    if b'"jsonrpc"' not in line:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if is_message(value) else None


def _without_tails(calls: list[SystemCall]) -> list[SystemCall]:
    """Leave out calls before the first message that may be the end of one: strace may have come within it."""
    for place, call in enumerate(calls):
        if call.text.lstrip().startswith((b"{", b"[")):
            return [
                *(noise for noise in calls[:place] if not noise.text.endswith((b"}\\n", b"]\\n", b"}", b"]"))),
                *calls[place:],
            ]
    return calls
