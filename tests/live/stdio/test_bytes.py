"""Every byte passes unchanged and at once, and is recorded unchanged, whatever client and server send."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.records import Damage, Frame, Record
from tests.live.client import OVER, Channels, Client, puppet, stream
from tests.systems.lacking import WINDOWS
from tests.tiers import Tier, current_tier

AWKWARD = {
    "invalid UTF-8": b'{"id":1,"x":"\xff\xfe\xc3("}\n',
    "a UTF-8 surrogate": b'{"id":1,"x":"\xed\xa0\x80"}\n',
    "an escaped lone surrogate": b'{"id":1,"x":"\\ud800"}\n',
    "a cut character": b'{"id":1,"x":"\xf0\x9f\n\x98\x80"}\n',
    "overlong UTF-8": b"\xc0\xaf\xe0\x80\xaf\n",
    "NUL": b'{"id":\x00}\n\x00\n',
    "every control": bytes(range(256)) + b"\n",
    "a byte order mark": b'\xef\xbb\xbf{"id":1}\n',
    "UTF-16": '{"id":1}\n'.encode("utf-16"),
    "CRLF": b'{"id":1}\r\n{"id":2}\r\n',
    "a lone CR": b'{"id":1,\r"x":2}\n',
    "line ends that are none": '{"id":1,"x":"\x0b\x0c\x1c\x85\u2028\u2029"}\n'.encode(),
    "empty lines": b"\n\n\r\n \n",
    "no final newline": b'{"id":1}',
    "half a message": b'{"id":1,"method":"to',
    "two messages on a line": b'{"id":1}{"id":2}\n',
    "a message on many lines": b'{\n  "id": 1,\n  "method": "ping"\n}\n',
    "a banner": b"Server v1.0 is listening on stdio\n\x1b[31mred\x1b[0m\n",
    "what a capture's own lines look like": b'{"n":1,"kind":"end","crc":"00000000"}\n","crc":"00000000"}\n',
    "quotes and backslashes": b'\\"\\\\"\\n\\u0000' * 3000 + b"\n",
    "nothing": b"",
}

SIZES = [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 18) + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20]

LARGE = {
    "ASCII": b"0123456789abcdef",
    "accents": b'"0123456789abcdef\xc3\xa9",',
    "Chinese": "天気".encode(),
    "emoji": "🎉".encode(),
    "JSON": b'"a":"b",',
    "JSON in JSON": rb"\"a\":\"b\",",
    "backslashes": b"\\",
    "tabs": b"a\tb\tc\t",
    "terminal escapes": b"\x1b[31mred\x1b[0m ",
    "no UTF-8": bytes(range(0x80, 0x100)),
}
"""Contents of messages of many megabytes: the capture writes each in its own way, and each grows by another factor."""

MAX_GROWTH_KIB = (10 if WINDOWS else 8) << 10  # the thread of a pipe holds what it writes beside what is read
"""Measured: 3,900 for ASCII to 6,700 for backslashes, whatever the length of the message (docs/performance.md)."""


def echoed(data: bytes, *options: str, over: Channels = "pipes") -> tuple[bytes, list[Record]]:
    """Return what comes back through a tap on a server that echoes `data`, and what was recorded."""
    with Client(puppet("echo"), *options, over=over) as client:
        client.send(data)
        client.close(client.stdin)
        back = client.rest()
        client.wait()
        return back, client.records()


def assert_intact(data: bytes, back: bytes, records: list[Record]) -> None:
    assert back == data
    assert stream(records, 0) == data
    assert stream(records, 1) == data
    assert not [record for record in records if isinstance(record, Damage)]


@pytest.mark.grid(8)
@pytest.mark.parametrize("redact", ["none", "credentials"])
@pytest.mark.parametrize("data", AWKWARD.values(), ids=AWKWARD)
def test_awkward_bytes_pass_and_are_recorded(data: bytes, redact: str) -> None:
    assert_intact(data, *echoed(data, "--redact", redact))


@pytest.mark.parametrize("over", OVER)
def test_a_secret_in_a_message_is_forwarded_and_recorded_as_it_is(over: Channels) -> None:
    data = b'{"params":{"Authorization":"Bearer 0123456789abcdef","api_key":"sk-12345678"}}\n'
    assert_intact(data, *echoed(data, over=over))


@pytest.mark.grid(4)
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("size", SIZES)
def test_no_length_of_a_line_is_special(size: int, over: Channels) -> None:
    text = "é€😀x".encode()
    line = (text * (size // len(text) + 1))[: size - 1] + b"\n"
    data = b'{"before":1}\n' + line + b'{"after":1}\n'
    assert_intact(data, *echoed(data, over=over))


def test_lines_of_many_lengths_one_after_the_other_are_cut_where_they_end() -> None:
    lines = [b"x" * size + b"\n" for size in (0, 1, 4095, 4096, 65534, 65535, 65536, 131071, 131072)]
    _, records = echoed(b"".join(lines))
    assert [record.data for record in records if isinstance(record, Frame) and record.stream == 0] == lines


def test_the_parts_of_a_long_line_are_marked() -> None:
    _, records = echoed(b"x" * (5 << 20) + b"\n")
    frames = [record for record in records if isinstance(record, Frame) and record.stream == 0]
    assert [frame.part for frame in frames] == [True] * (len(frames) - 1) + [False]
    assert len(frames) > 4


def test_a_character_that_is_cut_in_two_reads_arrives_and_is_recorded_whole() -> None:
    data = '{"x":"é€😀"}\n'.encode()
    with Client(puppet("echo")) as client:
        for byte in data:
            client.send(bytes([byte]))
            assert client.take(1) == bytes([byte])
        client.close(client.stdin)
        client.wait()
        assert [record.data for record in client.records() if isinstance(record, Frame) and record.stream == 0] == [data]


@pytest.mark.parametrize("over", OVER)
def test_half_a_line_is_forwarded_before_the_other_half_is_written(over: Channels) -> None:
    with Client(puppet("write={half", "await=go on", "say=done"), over=over) as client:
        assert client.take(5) == b"{half"
        client.send(b"go on\n")
        assert client.line() == b"done\n"


def test_the_two_halves_of_a_line_are_one_frame_that_knows_when_both_came() -> None:
    with Client(puppet("write={half", "await=go on", "say=done")) as client:
        client.take(5)
        client.send(b"go on\n")
        client.wait()
        (frame,) = (record for record in client.records() if isinstance(record, Frame) and record.stream == 1)
        assert frame.data == b"{halfdone\n"
        assert frame.first_ns < frame.at_ns


@pytest.mark.grid(4)
@pytest.mark.parametrize("made_of", LARGE)
def test_a_message_of_many_megabytes_passes_in_little_memory(made_of: str, tier: Tier, tmp_path: Path) -> None:
    size = tier(sample=16, more=64, full=200) * 1_000_000
    unit = LARGE[made_of]
    data = unit * (size // len(unit)) + b"\n"
    copy = tmp_path / "copy"
    with Client(puppet("say=up", f"swallow={copy}", "say=all"), "--redact", "none") as client:
        client.line()
        idle_kib = client.peak_kib()
        client.send(data)
        peak_kib = client.peak_kib()
        client.close(client.stdin)
        assert client.line() == b"all\n"
        client.wait()
        assert copy.read_bytes() == data
        assert stream(client.records(), 0) == data
        assert peak_kib - idle_kib < MAX_GROWTH_KIB


chunks = st.lists(
    st.one_of(st.binary(max_size=300), st.sampled_from([b"\n", b"x" * 100_000, "é€😀\n".encode(), b'{"id":1}\n'])), max_size=20
)


@settings(max_examples=current_tier()(sample=8, more=60, full=600))
@given(chunks)
def test_any_cutting_gives_the_same_stream(data: list[bytes]) -> None:
    with Client(puppet("echo")) as client:
        for chunk in data:
            client.send(chunk)
        client.close(client.stdin)
        back = client.rest()
        client.wait()
        assert_intact(b"".join(data), back, client.records())


def test_the_three_streams_do_not_mix() -> None:
    with Client(puppet("say=out", "complain=err", "await=in")) as client:
        client.send(b"in\n")
        assert client.rest(client.stderr) == b"err\n"
        assert client.rest() == b"out\n"
        client.wait()
        assert [stream(client.records(), number) for number in range(3)] == [b"in\n", b"out\n", b"err\n"]


def test_nothing_of_ours_is_on_stdout_or_stderr() -> None:
    with Client(puppet("echo")) as client:
        client.close(client.stdin)
        assert (client.rest(), client.rest(client.stderr)) == (b"", b"")


def test_the_capture_is_private() -> None:
    with Client(puppet("echo")) as client:
        assert client.capture.stat().st_mode & 0o777 == 0o600
        assert os.stat(client.capture.parent).st_mode & 0o777 == 0o700
