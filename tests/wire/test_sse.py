"""The SSE framing and the reading of events (WHATWG HTML, section 9.2), row by row what real streams have."""

import codecs

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcpspy.wire import sse
from mcpspy.wire.lines import MAX_HELD_BYTES
from mcpspy.wire.sse import BOM, SseEvent, SseEvents, _cut, parse, with_data
from tests.wire.cutting import CUTS, reads

PARTICLES = [
    b"\n",
    b"\r\n",
    b"\r",
    b"data: a",
    b"data",
    b"id: 1",
    b": ping",
    "é".encode(),
    b"\xff",
    BOM,
    "\u2028".encode(),
    b"\0",
]
STREAMS = st.lists(st.sampled_from(PARTICLES)).map(b"".join)
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def cut(data: list[bytes]) -> list[bytes]:
    """Join pieces that may be parts to events."""
    machine = SseEvents()
    events: list[bytes] = []
    is_part = False
    for read in data:
        for piece in machine.feed(read):
            if is_part:
                events[-1] += piece
            else:
                events.append(piece)
            is_part = False
        is_part = machine.is_part
    (rest,) = machine.close() or [b""]
    assert rest or not is_part, "something completes an event that has begun"
    return [*events[:-1], events[-1] + rest] if is_part else events + [rest] * bool(rest)


def dispatched(data: bytes) -> list[tuple[str, str, str | None]]:
    """List type, data and last event id of each event as the specification does: line by line, without our framing."""
    text = codecs.decode(data, "utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    dispatches: list[tuple[str, str, str | None]] = []
    kind, last_id = "", None
    lines: list[str] = []
    for line in text.split("\n")[:-1]:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if lines:
                dispatches.append((kind or "message", "\n".join(lines), last_id))
            kind, lines = "", []
        elif name == "data":
            lines.append(value)
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            last_id = value
    return dispatches


def by_parse(events: list[bytes]) -> list[tuple[str, str, str | None]]:
    """List the same from frames."""
    dispatches: list[tuple[str, str, str | None]] = []
    last_id = None
    for number, raw in enumerate(events):
        event = parse(raw, is_first=number == 0)
        last_id = last_id if event.id is None else event.id
        if event.is_dispatched:
            dispatches.append((event.type, event.text, last_id))
    return dispatches


# --- The framing ---


@given(STREAMS, CUTS)
@example(b"data: a\r\r\n\r\n", [1])
@example(b"data: a\n\r\n\r\r", [1])
@example(b"data: a\r\rdata: b\r\r", [6])
@example(b"\rdata: a\n\n", [1])
def test_any_cutting_of_the_input_gives_the_same_events(data: bytes, sizes: list[int]) -> None:
    assert cut(reads(data, sizes)) == cut([data])


@given(st.lists(STREAMS | st.binary()))
def test_the_pieces_joined_are_the_stream(data: list[bytes]) -> None:
    assert b"".join(cut(data)) == b"".join(data)


@given(STREAMS, CUTS)
@example(b"data: \n\r\ndata: b\n\n", [1])
def test_long_dispatchescome_in_parts_that_join_to_the_same_events(data: bytes, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "MAX_HELD_BYTES", 8)
        parts = cut(reads(data, sizes))
    assert parts == cut([data])


@given(STREAMS)
def test_the_dispatchesthat_are_dispatched_are_those_of_the_specification(data: bytes) -> None:
    assert by_parse(cut([data])) == dispatched(data)


@given(st.text(alphabet="aé\U0001f600\n:", min_size=1), CUTS)
def test_parts_of_utf8_are_utf8(text: str, sizes: list[int]) -> None:
    machine = SseEvents()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "MAX_HELD_BYTES", 8)
        for read in reads(text.encode(), sizes):
            for piece in machine.feed(read):
                piece.decode()


def test_every_event_ends_with_its_empty_line() -> None:
    assert cut([b"data: a\n\nid: 1\ndata: b\n\n: ping\n\n"]) == [b"data: a\n\n", b"id: 1\ndata: b\n\n", b": ping\n\n"]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n"])
def test_an_event_is_complete_with_the_last_byte_of_its_end(end: bytes) -> None:
    machine = SseEvents()
    assert machine.feed(b"data: a" + end) == [b"data: a" + end]


@pytest.mark.parametrize("end", [b"\n\r", b"\r\n\r"])
def test_a_cr_that_may_be_half_of_a_crlf_waits_for_the_lf(end: bytes) -> None:
    machine = SseEvents()
    assert machine.feed(b"data: a" + end) == []
    assert machine.feed(b"\n") == [b"data: a" + end + b"\n"]


@pytest.mark.parametrize("end", [b"\n\r", b"\r\n\r"])
def test_a_cr_that_was_an_end_of_line_is_one_when_other_bytes_follow(end: bytes) -> None:
    machine = SseEvents()
    machine.feed(b"data: a" + end)
    assert machine.feed(b"data: b") == [b"data: a" + end]


def test_an_end_split_between_cr_and_lf_makes_no_event_more() -> None:
    machine = SseEvents()
    machine.feed(b"data: a\r")
    assert machine.feed(b"\n\r") == []
    assert machine.feed(b"\ndata: b\r\n\r\n") == [b"data: a\r\n\r\n", b"data: b\r\n\r\n"]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_empty_lines_between_dispatchesare_pieces_of_their_own(line_end: bytes) -> None:
    event = b"data: a" + 2 * line_end
    assert cut([line_end + event]) == [line_end, event]
    assert cut([event + line_end + event]) == [event, line_end, event]


def test_an_event_without_its_empty_line_comes_at_the_close() -> None:
    machine = SseEvents()
    machine.feed(b"data: a\n\ndata: b\n")
    assert machine.close() == [b"data: b\n"]


def test_after_the_close_nothing_is_held() -> None:
    machine = SseEvents()
    machine.feed(b"data: b")
    machine.close()
    assert (machine.close(), machine.held_bytes, machine.held) == ([], 0, b"")


def test_bytes_that_wait_for_their_end_can_be_looked_at() -> None:
    machine = SseEvents()
    machine.feed(b"data: a\n\ndata:")
    machine.feed(b" b")
    assert (machine.held, machine.held_bytes) == (b"data: b", 7)


def test_a_part_differs_from_the_piece_that_completes_the_event() -> None:
    machine = SseEvents()
    assert len(machine.feed(b"data: " + b"x" * MAX_HELD_BYTES)) == 1
    assert machine.is_part
    assert machine.feed(b"y\n\n") == [b"xy\n\n"]
    assert not machine.is_part


def test_an_event_may_end_before_a_part_of_the_next() -> None:
    machine = SseEvents()
    assert len(machine.feed(b"data: a\n\ndata: " + b"x" * MAX_HELD_BYTES)) == 2
    assert machine.is_part


def test_no_more_than_the_bound_and_one_read_is_held() -> None:
    machine = SseEvents()
    for _ in range(64):
        machine.feed(b"x" * (1 << 16))
        assert machine.held_bytes < MAX_HELD_BYTES


def test_of_the_bytes_that_wait_only_the_last_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched_folder: list[int] = []

    def count(whole: bytes, *, begun: bool) -> list[bytes]:
        searched_folder.append(len(whole))
        return _cut(whole, begun=begun)

    monkeypatch.setattr(sse, "_cut", count)
    data = b"data: a\r" * 50 + b"\r"
    assert cut(reads(data, [1])) == [data]
    assert searched_folder == [1, 4]  # a whole event would be 401: so the work is linear


# --- An event ---

EVENTS = [
    (b"data: a\n\n", SseEvent(data=b"a")),
    (b"data:a\n\n", SseEvent(data=b"a")),
    (b"data:  a\n\n", SseEvent(data=b" a")),
    (b"data: a:b\n\n", SseEvent(data=b"a:b")),
    (b"data: a\r\ndata:\r\ndata: b\r\n\r\n", SseEvent(data=b"a\n\nb")),
    (b"data: a\rdata: b\r\r", SseEvent(data=b"a\nb")),
    (b"data\n\n", SseEvent(data=b"")),
    (b"id: 7\ndata: \n\n", SseEvent(id="7", data=b"")),
    (b"id: 7\n\n", SseEvent(id="7")),
    (b"id\ndata: a\n\n", SseEvent(id="", data=b"a")),
    (b"id: a\0b\ndata: a\n\n", SseEvent(data=b"a", others=((b"id", b"a\0b"),))),
    (b"id: 1\nid: 2\n\n", SseEvent(id="2")),
    (b"event: endpoint\ndata: /m\n\n", SseEvent(type="endpoint", data=b"/m")),
    (b"event:\ndata: a\n\n", SseEvent(data=b"a")),
    (b"retry: 3000\n\n", SseEvent(retry_ms=3000)),
    (b"retry: 3s\n\n", SseEvent(others=((b"retry", b"3s"),))),
    (b"retry: -3\n\n", SseEvent(others=((b"retry", b"-3"),))),
    (b"retry: \xd9\xa3\n\n", SseEvent(others=((b"retry", b"\xd9\xa3"),))),
    (b"retry:\n\n", SseEvent(others=((b"retry", b""),))),
    (b"retry: " + b"9" * 5000 + b"\n\n", SseEvent(others=((b"retry", b"9" * 5000),))),
    (b": ping\n:pong\n:\n\n", SseEvent(comments=(b"ping", b"pong", b""))),
    (b"Data: a\ndatabase: b\n data: c\n\n", SseEvent(others=((b"Data", b"a"), (b"database", b"b"), (b" data", b"c")))),
    (b"data: a\n", SseEvent(data=b"a", is_terminated=False)),
    (b"data: a", SseEvent(data=b"a", is_terminated=False)),
    (b"\n", SseEvent()),
    (b"", SseEvent(is_terminated=False)),
    (BOM + b"data: a\n\n", SseEvent(others=((BOM + b"data", b"a"),))),
    ("data: \u2028\x85\x0b\n\n".encode("utf-8"), SseEvent(data="\u2028\x85\x0b".encode())),
]


@pytest.mark.parametrize(("raw", "expected"), EVENTS, ids=[repr(row[0][:40]) for row in EVENTS])
def test_an_event_is_read_as_the_specification_says(raw: bytes, expected: SseEvent) -> None:
    assert parse(raw) == expected


def test_a_byte_order_mark_is_no_part_of_the_first_event_of_a_stream() -> None:
    assert parse(BOM + b"data: a\n\n", is_first=True) == SseEvent(data=b"a")


def test_only_one_byte_order_mark_is_taken_away() -> None:
    assert parse(BOM + BOM + b"data: a\n\n", is_first=True).others == ((BOM + b"data", b"a"),)


@pytest.mark.parametrize(
    ("raw", "expected"), [(b"data:\n\n", True), (b"id: 1\n\n", False), (b"data: a\n", False), (b": ping\n\n", False)]
)
def test_an_event_is_dispatched_if_it_has_a_data_line_and_an_end(raw: bytes, *, expected: bool) -> None:
    assert parse(raw).is_dispatched == expected


def test_invalid_utf8_is_replaced_in_text_and_kept_in_data() -> None:
    event = parse(b"id: \xff\nevent: \xff\ndata: \xff\n\n")
    assert (event.id, event.type, event.text, event.data) == ("\ufffd", "\ufffd", "\ufffd", b"\xff")


@given(st.binary())
def test_arbitrary_bytes_are_an_event_and_raise_nothing(data: bytes) -> None:
    assert isinstance(parse(data), SseEvent)


# --- Other data ---


def test_the_value_of_the_data_line_is_replaced_and_nothing_else() -> None:
    raw = b": c\r\nevent: endpoint\ndata:http://a/m?x=1\rid: 1\r\n\n"
    assert with_data(raw, b"http://b/m?x=1") == raw.replace(b"http://a/", b"http://b/")


def test_each_line_of_the_data_goes_where_one_was() -> None:
    assert with_data(b"data: {\r\nid: 1\r\ndata:}\n\n", b"[\n]") == b"data: [\r\nid: 1\r\ndata:]\n\n"


def test_data_lines_that_are_not_needed_go() -> None:
    assert with_data(b"data: a\nid: 1\ndata: b\n\n", b"c") == b"data: c\nid: 1\n\n"


def test_more_lines_follow_the_last_data_line() -> None:
    assert with_data(b"data:a\r\nid: 1\r\n\r\n", b"b\nc") == b"data:b\r\ndata:c\r\nid: 1\r\n\r\n"


def test_space_that_the_data_begins_with_is_kept() -> None:
    assert parse(with_data(b"data:a\n\n", b" b")).data == b" b"


def test_the_byte_order_mark_stays_where_it_was() -> None:
    assert with_data(BOM + b"data: a\n\n", b"b", is_first=True) == BOM + b"data: b\n\n"


@pytest.mark.parametrize("raw", [b"id: 1\n\n", b": ping\n\n", b"database: a\n\n", b""])
def test_an_event_without_data_gets_none(raw: bytes) -> None:
    with pytest.raises(ValueError, match="no data"):
        with_data(raw, b"a")


def test_data_with_cr_is_refused() -> None:
    with pytest.raises(ValueError, match="CR"):
        with_data(b"data: a\n\n", b"a\rb")


LINES = st.lists(st.sampled_from([b"data: a", b"data:b", b"data", b"id: 1", b"event: x", b": c", b"data:  d"]), min_size=1)


@given(LINES, LINE_ENDS, st.lists(st.binary(max_size=5), min_size=1).map(b"\n".join))
def test_data_that_was_put_in_is_read_back_and_the_rest_is_as_it_was(lines: list[bytes], line_end: bytes, data: bytes) -> None:
    raw = line_end.join([*lines, b"", b""])
    before = parse(raw)
    assume(b"\r" not in data and before.data is not None)
    after = parse(with_data(raw, data))
    assert after.data == data
    assert (after.id, after.type, after.comments, after.others) == (before.id, before.type, before.comments, before.others)


@given(LINES, LINE_ENDS)
def test_the_same_data_makes_the_same_bytes(lines: list[bytes], line_end: bytes) -> None:
    raw = line_end.join([*lines, b"", b""]).replace(b"data" + line_end, b"data:" + line_end)
    data = parse(raw).data
    assume(data is not None)
    assert data is None or with_data(raw, data) == raw
