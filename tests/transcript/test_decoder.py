"""Frames to messages: kinds, flaws, targets, and frames in parts."""

import pytest

from mcpspy.records import Frame, Open
from mcpspy.transcript.model import ChannelEvent, Kind, Log, Outcome, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, notification, progress, request, result, tool_call

# --- Streams ---


def test_stdin_is_the_clients_and_stdout_the_servers() -> None:
    dialogue = Dialogue().client(notification("a")).server(notification("b"))
    assert [(message.sender, message.stream) for message in dialogue.unpaired_messages] == [("client", 0), ("server", 1)]


def test_a_line_on_stderr_is_a_log_line_whatever_it_says() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    dialogue = Dialogue().stderr(line)
    assert [row.raw for row in dialogue.transcript.rows if isinstance(row, Log)] == [line]


def test_streams_without_an_open_record_are_those_of_every_stdio_tap() -> None:
    dialogue = Dialogue().client(request(1)).server(result(1))
    dialogue.records = [record for record in dialogue.records if not isinstance(record, Open)]
    assert dialogue.exchange.outcome is Outcome.OK


def test_a_frame_of_an_unknown_stream_is_a_channel_event() -> None:
    dialogue = Dialogue().line(9, b"{}\n")
    event = dialogue.transcript.rows[-1]
    assert isinstance(event, ChannelEvent)
    assert isinstance(event.record, Frame)


def test_a_frame_in_a_framing_not_yet_understood_is_an_event() -> None:
    dialogue = Dialogue().add(Open(at_ns=0, stream=3, sender="server", name="response", framing="sse")).line(3, b"data: {}\n\n")
    assert isinstance(dialogue.transcript.rows[-1], ChannelEvent)


# --- Flaws of the framing ---


def test_a_message_keeps_its_bytes_with_their_terminator() -> None:
    line = b' {"jsonrpc":"2.0", "method":"x"} \r\n'
    assert Dialogue().client(line).unpaired.raw == line


def test_crlf_is_a_flaw() -> None:
    assert Dialogue().client(b'{"jsonrpc":"2.0","method":"x"}\r\n').unpaired.flaws == ("crlf",)


def test_a_last_line_without_end_is_a_flaw() -> None:
    assert Dialogue().client(b'{"jsonrpc":"2.0","method":"x"}').unpaired.flaws == ("no-final-newline",)


def test_u2028_in_a_string_is_none() -> None:
    dialogue = Dialogue().client('{"jsonrpc":"2.0","method":"x","params":{"a":"\u2028"}}\n'.encode())
    assert (dialogue.unpaired.flaws, dialogue.unpaired.params) == ((), {"a": "\u2028"})


def test_a_malformed_line_keeps_its_bytes() -> None:
    assert Dialogue().server(b"Server ready\n").unpaired.raw == b"Server ready\n"


# --- Parts ---

LINE = b'{"jsonrpc":"2.0","id":1,"result":{"text":"0123456789"}}\n'


def test_a_frame_in_parts_is_one_message() -> None:
    dialogue = Dialogue().client(request(1)).parts(1, LINE[:20], LINE[20:30], LINE[30:])
    response = dialogue.exchange.response
    assert response is not None
    assert (response.raw, response.number, response.at_ns - response.first_ns) == (LINE, len(dialogue.records) - 1, 2_000_000)


def test_parts_of_two_streams_do_not_mix() -> None:
    dialogue = Dialogue().client(request(1)).parts(1, LINE[:20], LINE[20:])
    first = dialogue.records[-2]
    dialogue.records.insert(-1, Frame(0, first.at_ns, first.at_ns, b'{"jsonrpc":"2.0","method":"x"}\n'))
    assert (dialogue.exchange.outcome, dialogue.unpaired.method) == (Outcome.OK, "x")


def test_a_frame_whose_end_never_came_is_cut_short() -> None:
    dialogue = Dialogue().client(request(1)).parts(1, LINE[:20], LINE[20:])
    dialogue.records.pop()
    assert (dialogue.unpaired.reason, dialogue.unpaired.raw) == ("cut short", LINE[:20])


def test_a_line_of_stderr_whose_end_never_came_is_a_log_line() -> None:
    dialogue = Dialogue().parts(2, b"some", b"thing\n")
    dialogue.records.pop()
    assert [row.raw for row in dialogue.transcript.rows if isinstance(row, Log)] == [b"some"]


def test_a_log_line_in_parts_is_one_line() -> None:
    dialogue = Dialogue().parts(2, b"some", b"thing\n")
    assert [row.raw for row in dialogue.transcript.rows if isinstance(row, Log)] == [b"something\n"]


def test_of_noise_in_parts_the_first_and_the_last_are_kept_if_that_is_enough() -> None:
    parts = (b"some", b"thing", b" else\n")
    noise = Dialogue().client(request(1)).parts(1, *parts).server(result(1))
    logged, message = Dialogue().parts(2, *parts), Dialogue().client(request(1)).parts(1, LINE[:20], LINE[20:30], LINE[30:])
    (unpaired,) = (row for row in transcribe(noise.records, keep_noise=False).rows if isinstance(row, UnpairedMessage))
    kept = unpaired.message
    assert (kept.raw, kept.size, kept.flaws, kept.reason) == (b"some else\n", 15, (), "not JSON")
    assert [row.raw for row in transcribe(logged.records, keep_noise=False).rows if isinstance(row, Log)] == [b"some else\n"]
    (exchange,) = transcribe(message.records, keep_noise=False).exchanges
    assert exchange.response is not None
    assert exchange.response.raw == LINE
    assert noise.unpaired.raw == b"".join(parts)


def test_a_message_after_parts_without_an_end_is_read() -> None:
    dialogue = Dialogue().client(request(1)).parts(1, LINE[:20], b"")
    dialogue.records.pop()
    dialogue.damage().server(result(1, "saved"))
    assert (dialogue.exchange.outcome, dialogue.unpaired.reason, dialogue.transcript.captures[0].messages) == (
        Outcome.OK,
        "cut short",
        3,
    )


def test_a_message_that_may_lack_a_part_says_so() -> None:
    dialogue = Dialogue().client(request(1)).parts(1, LINE[:45], b"lost", LINE[45:])
    dialogue.records.pop(-2)
    dialogue.records.insert(-1, Dialogue().damage("number").records[-1])
    response = dialogue.exchange.response
    assert response is not None
    assert response.flaws == ("damaged",)


def test_broken_json_after_missing_records_is_damaged() -> None:
    assert Dialogue().damage("number").server(LINE[20:]).unpaired.flaws == ("damaged",)


def test_a_whole_message_after_missing_records_is_whole() -> None:
    assert Dialogue().damage().server(notification()).unpaired.flaws == ()


def test_a_frame_past_the_size_bound_was_not_recorded() -> None:
    dialogue = Dialogue().add(Frame(1, 5, 5, b"", length=300, sha256="00"))
    assert (dialogue.unpaired.kind, dialogue.unpaired.reason, dialogue.unpaired.raw) == (Kind.MALFORMED, "not recorded", b"")


def test_a_frame_past_the_size_bound_has_the_size_that_it_had_on_the_wire() -> None:
    assert Dialogue().add(Frame(1, 5, 5, b"", length=300, sha256="00")).unpaired.size == 300


def test_a_frame_with_a_part_past_the_size_bound_has_the_size_of_all_its_parts() -> None:
    dialogue = Dialogue().add(Frame(1, 5, 5, LINE[:20], True)).add(Frame(1, 6, 6, b"", length=300, sha256="00"))
    assert dialogue.unpaired.size == 320


def test_a_frame_with_a_part_past_the_size_bound_was_not_recorded() -> None:
    dialogue = Dialogue().add(Frame(1, 5, 5, LINE[:20], True)).add(Frame(1, 6, 6, b"", length=300, sha256="00"))
    assert dialogue.unpaired.reason == "not recorded"


# --- What a message is about ---


@pytest.mark.parametrize(
    ("method", "params", "target"),
    [
        ("tools/call", {"name": "forecast", "arguments": {}}, "forecast"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "lab://café/x"}, "lab://café/x"),
        ("resources/subscribe", {"uri": "a:b"}, "a:b"),
        ("resources/unsubscribe", {"uri": "a:b"}, "a:b"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}, "greet"),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "a:{b}"}}, "a:{b}"),
        ("completion/complete", {"ref": 5}, None),
        ("logging/setLevel", {"level": "debug"}, "debug"),
        ("initialize", {"protocolVersion": "2025-11-25"}, "2025-11-25"),
        ("tasks/get", {"taskId": "t"}, "t"),
        ("tools/list", {"name": "forecast"}, None),
        ("tools/call", {"name": 5}, None),
        ("tools/call", ["forecast"], None),
        ("tools/call", None, None),
    ],
)
def test_a_request_is_about_its_target(method: str, params: object, target: str | None) -> None:
    assert Dialogue().client(request(1, method, params)).exchange.target == target


def test_a_notification_is_about_its_resource() -> None:
    assert Dialogue().server(notification("notifications/resources/updated", {"uri": "a:b"})).unpaired.target == "a:b"


def test_a_target_with_a_lone_surrogate_is_kept() -> None:
    dialogue = Dialogue().client(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}\n')
    assert dialogue.exchange.target == "\ud800"


def test_a_request_gives_out_its_progress_token() -> None:
    assert Dialogue().client(tool_call(1, token=7)).exchange.request.correlation_key == "7"


def test_progress_names_its_token() -> None:
    assert Dialogue().server(progress("a")).unpaired.correlation_key == '"a"'


def test_other_notifications_name_no_request() -> None:
    assert (
        Dialogue().server(notification("notifications/message", {"requestId": 1, "progressToken": 1})).unpaired.correlation_key
        is None
    )


# --- Values ---


def test_the_body_is_read_when_asked_for() -> None:
    message = Dialogue().client(request(1, "x", {"big": 123456789012345678901234567890})).exchange.request
    assert (message.params, message.result, message.size) == ({"big": 123456789012345678901234567890}, None, len(message.raw))


def test_a_malformed_message_has_no_body() -> None:
    assert Dialogue().client(b"[1]\n").unpaired.body is None


def test_rows_are_numbered_from_one_and_log_lines_and_events_are_not() -> None:
    dialogue = Dialogue().stderr(b"x\n").client(request(1)).server(notification()).server(result(1)).server(b"junk\n")
    numbers = [row.row for row in dialogue.transcript.rows if not isinstance(row, Log | ChannelEvent)]
    assert (numbers, [type(row) for row in dialogue.transcript.rows][-1]) == ([1, 2, 3], UnpairedMessage)
