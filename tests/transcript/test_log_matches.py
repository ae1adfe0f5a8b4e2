"""Lines of a log and the messages that they quote."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.log_matches import MAX_LINE_BYTES, MAX_TRIES, LogMatch, line_text, log_matches
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import MS, Dialogue, notification, request, result

CALL = request(0, "tools/call", {"name": "天気", "arguments": {"city": "北京", "days": 1000}})


def logged(words: str, value: Any = None) -> bytes:
    """Add a line of the log: words, then a value as Java's libraries write it."""
    text = "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"[main] DEBUG c.e.McpServer - {words}{text}\n".encode()


def matches_of(scene: Dialogue) -> list[LogMatch]:
    """Return the log matches of a scene, in the order of their lines."""
    return list(log_matches(scene.transcript.rows).values())


def only(scene: Dialogue) -> LogMatch:
    (quote,) = matches_of(scene)
    return quote


def test_a_line_quotes_the_request_that_it_holds() -> None:
    quote = only(Dialogue().client(CALL).stderr(logged("收到请求: ", CALL)))
    assert (quote.row, quote.message.kind, quote.gap_ns) == (1, "request", MS)


def test_a_response_that_is_logged_before_it_is_sent_matches_too() -> None:
    scene = (
        Dialogue().client(CALL).stderr(logged("发送响应: ", result(0, {"text": "小雨"}))).server(result(0, {"text": "小雨"}))
    )
    quote = only(scene)
    assert (quote.message.kind, quote.gap_ns) == ("result", -MS)


def test_a_later_message_of_the_client_does_not_match() -> None:
    assert not matches_of(Dialogue().stderr(logged("收到请求: ", CALL)).client(CALL))


def test_a_notification_matches_too() -> None:
    assert only(Dialogue().client(notification()).stderr(logged("收到请求: ", notification()))).row == 1


def test_the_order_of_members_and_the_spelling_of_strings_make_no_difference() -> None:
    spelled = (
        b'{"params":{"arguments":{"days":1000.0,"city":"\\u5317\\u4eac"},"name":"\xe5\xa4\xa9\xe6\xb0\x97"},'
        b'"id":0,"method":"tools/call","jsonrpc":"2.0"}'
    )
    assert only(Dialogue().client(CALL).stderr(b"received " + spelled + b"\n")).row == 1


@pytest.mark.parametrize(
    "printed",
    [
        repr(CALL),
        repr({**CALL, "params": {"name": "天気", "arguments": {"days": 1000, "city": "北京"}}}),
        (
            "{'jsonrpc': '2.0', 'id': 0, 'method': \"tools/call\", "
            "'params': {'name': '\\u5929\\u6c17', 'arguments': {'city': '北京', 'days': 1000}}}"
        ),
    ],
)
def test_a_value_that_python_printed_matches(printed: str) -> None:
    assert only(Dialogue().client(CALL).stderr(f"DEBUG received {printed} from stdin\n".encode())).row == 1


def test_pythons_words_for_true_false_and_none_are_read() -> None:
    call = request(1, "tools/call", {"name": "it's", "arguments": {"a": True, "b": False, "c": None}})
    assert only(Dialogue().client(call).stderr(f"{call}\n".encode())).row == 1


def test_braces_before_a_quotation_do_not_hide_it() -> None:
    assert only(Dialogue().client(CALL).stderr(b"{main} {} " + logged("", CALL))).row == 1


def test_words_after_a_quotation_do_not_hide_it() -> None:
    line = logged("收到请求: ", CALL).rstrip() + " (134 字节)\n".encode()
    quote = only(Dialogue().client(CALL).stderr(line))
    assert line_text(line)[quote.end :] == " (134 字节)"


def test_of_equal_messages_the_nearest_in_time_matches() -> None:
    scene = Dialogue().client(notification()).wait(500).client(notification()).stderr(logged("", notification()))
    assert only(scene).row == 2


def test_equal_messages_of_two_captures_are_told_apart() -> None:
    first, second = Dialogue("a").client(CALL), Dialogue("b").client(CALL).stderr(logged("", CALL))
    (key,) = log_matches(transcribe(first.records, second.records).rows)
    assert key[0] == 1


@pytest.mark.parametrize(
    "line",
    [
        logged("收到请求: ", {**CALL, "id": 1}),
        logged("收到请求: ", {**CALL, "id": "0"}),
        logged("收到请求: ", CALL["params"]),
        logged("收到请求: ", CALL)[:-8] + "…\n".encode(),
        logged("收到请求: ", CALL)[:60] + b"...\n",
        b"{'jsonrpc': '2.0', 'id': 0, 'method': 'tools/call', 'params': {'name': '...\n",
        logged("收到请求"),
    ],
    ids=["another id", "an id of another type", "a part of it", "cut short", "cut with dots", "printed and cut", "words alone"],
)
def test_a_part_of_a_value_matches_nothing(line: bytes) -> None:
    assert not matches_of(Dialogue().client(CALL).stderr(line))


def test_a_line_that_is_too_long_is_not_read() -> None:
    call = request(0, "tools/call", {"name": "x" * MAX_LINE_BYTES})
    assert not matches_of(Dialogue().client(call).stderr(logged("", call)))


def test_the_tries_in_one_line_are_bounded() -> None:
    assert not matches_of(Dialogue().client(CALL).stderr(b"{ " * MAX_TRIES + logged("", CALL)))


def test_messages_are_not_parsed_where_no_line_can_quote_them(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Dialogue().client(CALL).server(result(0)).stderr(logged("收到请求: ", {**CALL, "id": 5})).transcript

    def refuse(_: Any) -> None:
        raise AssertionError("a message was parsed")

    monkeypatch.setattr("mcpspy.transcript.log_matches._digest_of", refuse)
    assert not log_matches(scene.rows)


PIECES = st.sampled_from(
    ['{"', "{'", '"', "'", "\\", "}", "]", "[", ":", ",", "None", "1e999", "NaN", "\\ud800", "9" * 5000, "\t", "é"]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_no_line_and_no_message_raises(text: str) -> None:
    raw = text.encode() + b"\n"
    scene = Dialogue().client(raw).stderr(b"{" + raw).server(b'{"jsonrpc":"2.0","id":' + raw)
    for key, quote in log_matches(scene.transcript.rows).items():
        assert key[0] == 0
        assert quote.end > quote.begin >= 0


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda value: st.lists(value) | st.dictionaries(st.text(), value)
    )
)
def test_every_value_is_found_in_json_and_as_python_prints_it(value: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 3, "method": "m", "params": {"value": value}}
    scene = Dialogue().client(message)
    for text in (json.dumps(message), json.dumps(message, ensure_ascii=False), repr(message)):
        scene.stderr(text.encode("utf-8", "surrogatepass").replace(b"\n", b" ") + b"\n")
    assert [match.row for match in matches_of(scene)] == [1, 1, 1]


def test_nesting_without_end_matches_nothing() -> None:
    deep = b'{"a":' * 50_000
    assert not matches_of(Dialogue().client(CALL).stderr(deep + b"\n").stderr(deep.replace(b'"', b"'") + b"\n"))


def test_a_line_without_a_python_value_is_tried_as_one_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading may go to the end of the line: eight readings of a million letters took two seconds."""
    read: list[int] = []

    def failing(_: str, at: int) -> None:
        read.append(at)

    monkeypatch.setattr("mcpspy.transcript.log_matches._printed", failing)
    assert not matches_of(Dialogue().client(CALL).stderr(b"{'a'," * 50 + b"\n"))
    assert len(read) == 1
