"""The wire view: heads, chunks, events and bodies as they were, at every width."""

import json
from typing import Any

import pytest

from mcpspy.transcript.model import Transcript
from mcpspy.views.json.transactions import http_lines
from mcpspy.views.text.escape import decoded, safe_text
from mcpspy.views.text.line import Line, line_cells, plain
from mcpspy.views.timeline.exchange import carrying_transactions
from mcpspy.views.timeline.http_wire import MAX_BODY_LINES, MAX_LETTERS, MAX_LINES, wire_lines
from tests.transcript.dialogue import notification, request, result
from tests.transcript.traffic import Call, Traffic
from tests.views.golden import same_as_golden
from tests.views.http_scenes import http_scene

WIDTHS = (80, 200, None)


def lines_of(transcript: Transcript, **options: Any) -> list[Line]:
    return list(wire_lines(transcript, carrying_transactions(transcript, transcript.rows), **options))


def shown(traffic: Traffic, **options: Any) -> list[str]:
    return [plain(line).strip() for line in lines_of(traffic.wire, **options)]


def words(traffic: Traffic, **options: Any) -> list[str]:
    """Return the shown lines, without times and arrows."""
    return [line.split(" ", 2)[-1] if line[:1].isdigit() else line for line in shown(traffic, **options)]


def answered() -> Call:
    return Traffic().post(request(1)).stream()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_scene_with_everything_looks_as_it_did(width: int | None) -> None:
    assert same_as_golden(f"wire-{width or 'pipe'}", lines_of(http_scene().wire, width=width))


@pytest.mark.parametrize("width", [1, 10, 20, 33, 52, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert [plain(line) for line in lines_of(http_scene().wire, width=width) if line_cells(line) > width] == []


# --- Chunks ---


def test_chunk_sizes_are_shown_in_hex_and_in_decimal_before_their_event() -> None:
    traffic = answered().event(result(1), chunks=(81, 16)).close().traffic
    lines = words(traffic)
    at = lines.index("chunks 0x51 81, 0x10 16")
    assert lines[at + 1].startswith("data: ")


def test_events_that_share_a_chunk_say_so() -> None:
    traffic = answered().event(notification(), chunks=(1000,)).event(result(1), chunks=(1000,)).close().traffic
    lines = words(traffic)
    assert lines.count("chunk 0x3e8 1000") == 1
    assert lines.count("in the chunk above") == 1


def test_a_note_explains_that_chunk_sizes_are_not_event_ids() -> None:
    traffic = answered().event(result(1)).close().traffic
    assert "It is not an event id" in shown(traffic)[-1]


def test_without_chunks_nothing_is_explained() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    assert not any("chunk" in line for line in shown(traffic))


# --- Events ---


def test_events_are_shown_as_they_were_sent() -> None:
    traffic = answered().raw(b"id: 7\r\nevent: message\r\nretry: 500\r\ndata: {}\r\n\r\n").raw(b": ping\n\n").close().traffic
    lines = words(traffic)
    at = lines.index("id: 7")
    assert lines[at : at + 5] == ["id: 7", "event: message", "retry: 500", "data: {}", ": ping"]


def test_a_rewritten_event_is_shown_in_both_forms() -> None:
    traffic = Traffic()
    traffic.get("/sse").stream().event("http://a/m", kind="endpoint", forwarded=b"event: endpoint\ndata: http://b/m\n\n")
    lines = words(traffic)
    at = lines.index("forwarded as")
    assert (lines[at - 1], lines[at + 2]) == ("data: http://a/m", "data: http://b/m")


def test_a_redelivered_event_is_marked() -> None:
    traffic = http_scene()
    assert sum("redelivered" in line for line in shown(traffic)) == 1


def test_a_long_line_is_cut_on_a_screen_with_the_number_of_bytes_left_out() -> None:
    traffic = answered().event(result(1, "x" * 5_000)).close().traffic
    lines = [line for line in words(traffic, width=80) if "x" * 20 in line]
    (last_line,) = [line for line in words(traffic, width=80) if line.endswith("more bytes")]
    sent = len("data: " + json.dumps(result(1, "x" * 5_000)))
    assert len(lines) == MAX_LINES
    assert last_line == f"… {sent - sum(map(len, lines)):,} more bytes"


def test_a_long_line_is_cut_on_a_pipe_too() -> None:
    traffic = answered().event(result(1, "x" * 5_000)).close().traffic
    (line,) = [line for line in words(traffic) if line.startswith("data: ")]
    assert len(line) == MAX_LETTERS
    sent = len("data: " + json.dumps(result(1, "x" * 5_000)))
    assert f"… {sent - MAX_LETTERS:,} more bytes" in words(traffic)


@pytest.mark.parametrize("text", ["x" * 5_000, "慕雪" * 2_000, "\x1b[31m" * 900, "\ud800" * 900, "e\u0301" * 3_000])
@pytest.mark.parametrize("width", [40, 80, None])
def test_the_shown_part_and_the_rest_are_the_line(text: str, width: int | None) -> None:
    traffic = Traffic()
    sent = text.encode("utf-8", "surrogatepass")
    traffic.get("/page").answer(200, sent, Content_Type="text/html")
    (last_line,) = [line for line in words(traffic, width=width) if line.endswith("more bytes")]
    left = int(last_line.split(" ")[1].replace(",", ""))
    begin = safe_text(decoded(sent[: len(sent) - left]))
    shown_text = "".join(words(traffic, width=width))
    assert begin in shown_text
    assert 0 < left < len(sent)


@pytest.mark.parametrize(("width", "letters"), [(None, MAX_LETTERS + 100), (80, (MAX_LINES + 1) * 60)])
def test_a_line_is_not_cut_to_save_less_than_the_note_takes(width: int | None, letters: int) -> None:
    traffic = Traffic()
    traffic.get("/page").answer(200, b"x" * letters, Content_Type="text/html")
    assert "".join(words(traffic, width=width)).count("x") >= letters
    assert not any(line.endswith("more bytes") for line in words(traffic, width=width))


@pytest.mark.parametrize("width", WIDTHS)
def test_every_byte_of_a_selected_row_is_shown(width: int | None) -> None:
    traffic = answered().event(result(1, "x" * 5_000)).close().traffic
    assert "".join(words(traffic, width=width, whole=True)).count("x") == 5_000 + 2 * 2  # two sizes of chunks, in hex
    assert not [line for line in words(traffic, width=width, whole=True) if line.startswith("…")]


@pytest.mark.parametrize(
    ("whats", "command"),
    [
        ((), "mcpspy show --http @:ROW"),
        (("weather",), "mcpspy show --http weather:ROW"),
        (("x.mcpspy:3..9",), "mcpspy show --http x.mcpspy:ROW"),
        (("a b",), "mcpspy show --http 'a b:ROW'"),
        (("one", "two"), "mcpspy show --http WHAT:ROW"),
    ],
)
def test_a_note_names_the_command_that_shows_everything(whats: tuple[str, ...], command: str) -> None:
    traffic = answered().event(result(1, "x" * 5_000)).close().traffic
    assert f"`{command}`" in words(traffic, whats=whats)[-1]


def test_without_cuts_there_is_no_note() -> None:
    traffic = answered().event(result(1)).close().traffic
    assert not any("cut here" in line for line in words(traffic))


def test_a_body_of_many_lines_is_cut_on_a_screen() -> None:
    traffic = Traffic()
    traffic.get("/page").answer(200, b"<p>\n" * 100, Content_Type="text/html")
    assert any(line == f"… {100 - MAX_BODY_LINES} more lines" for line in words(traffic, width=80))
    assert words(traffic).count("<p>") == 100


# --- Heads ---


def test_a_change_in_a_head_is_shown_below_its_line() -> None:
    traffic = Traffic()
    traffic.get("/").answer(404)
    lines = words(traffic)
    assert lines[lines.index("Host: 127.0.0.1:7777") + 1] == "forwarded as Host: 127.0.0.1:3001"


def test_added_and_dropped_header_lines_are_marked() -> None:
    traffic = Traffic()
    traffic.get("/", Upgrade="x").answer(404)
    opened: Any = traffic.records[1]
    opened.forwarded = opened.head.replace(b"Upgrade: x\r\n", b"").replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer y\r\n\r\n")
    lines = words(traffic)
    assert lines[lines.index("Upgrade: x") + 1] == "not forwarded"
    assert "added Authorization: Bearer y" in lines


def test_a_base64_field_is_decoded() -> None:
    traffic = Traffic()
    traffic.post(request(1), Mcp_Name="=?base64?bGFiOi8vY2Fmw6kveA==?=").answer(404)
    lines = words(traffic)
    assert lines[lines.index("Mcp-Name: =?base64?bGFiOi8vY2Fmw6kveA==?=") + 1] == "decoded lab://café/x"


def test_redacted_values_are_marked() -> None:
    traffic = Traffic()
    traffic.get("/", Authorization="Bearer redacted-00dbbd8be47d").answer(404)
    opened: Any = traffic.records[1]
    opened.redacted = ((opened.head.index(b"redacted-"), 21, "authorization"),)
    marked = [text for line in lines_of(traffic.wire) for text, style in line if style == "warn"]
    assert "redacted-00dbbd8be47d" in marked


def test_responses_by_mcpspy_are_marked() -> None:
    assert sum(line == "sent by mcpspy" for line in words(http_scene())) == 2


# --- Bodies and ends ---


def test_a_compressed_body_is_shown_decoded() -> None:
    lines = words(http_scene())
    assert '{"resource": "http://127.0.0.1:3001/mcp"}' in lines
    assert not any("\\x1f\\x8b" in line for line in lines)


def test_a_body_that_cannot_be_decompressed_is_shown_as_it_is() -> None:
    traffic = Traffic()
    traffic.get("/").answer(200, b"plain", Content_Encoding="gzip")
    assert "plain" in words(traffic)


def test_a_body_that_was_not_recorded_says_so() -> None:
    traffic = Traffic()
    call = traffic.get("/")
    call.response = traffic.open(call, "response", b"HTTP/1.1 200 OK\r\n\r\n")
    traffic.frame(call.response, b"", length=5045, sha256="ab5e")
    call.close()
    assert "5.0 kB, not recorded: sha256 ab5e" in words(traffic)


@pytest.mark.parametrize(
    ("by", "how", "phrase"),
    [
        ("server", "eof", "response closed by server"),
        ("client", "broken", "response disconnected by client"),
        ("server", "reset", "response reset by server"),
        ("mcpspy", "abort", "response aborted by mcpspy"),
    ],
)
def test_the_end_of_a_response_is_shown(by: str, how: str, phrase: str) -> None:
    assert phrase in words(answered().close(by, how).traffic)


def test_a_connection_that_ended_before_the_response_is_noted() -> None:
    traffic = Traffic()
    traffic.post(request(1)).leave()
    assert "left: client closed the connection before the response came" in words(traffic)


def test_a_transaction_names_the_rows_that_it_carried() -> None:
    traffic = Traffic()
    traffic.post([request(1), request(2)]).answer(200, [result(1), result(2)])
    assert shown(traffic)[0] == "transaction 1 · connection 1 · rows 1, 2 · client → weather"


def test_selected_rows_select_the_transactions_that_carried_them() -> None:
    transcript = http_scene().wire
    row = next(exchange for exchange in transcript.exchanges if exchange.target == "fetch")
    numbers = [transaction.number for transaction, _ in carrying_transactions(transcript, [row])]
    assert numbers == [3, 5]


# --- JSON ---


def objects(traffic: Traffic) -> list[dict[str, Any]]:
    transcript = traffic.wire
    return [json.loads(line) for line in http_lines(transcript, carrying_transactions(transcript, transcript.rows))]


def test_each_transaction_is_an_object_with_the_rows_that_it_carried() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(200, result(1))
    (made,) = objects(traffic)
    assert (made["schema"], made["rows"], made["method"], made["status"]) == (1, [1], "POST", 200)


def test_frames_of_an_object_are_the_stream() -> None:
    traffic = answered().event(notification(), id="1").raw(b": ping\n\n").event(result(1)).close().traffic
    (made,) = objects(traffic)
    frames = made["http_response"]["frames"]
    sent = b"".join(record.data for record in traffic.records if getattr(record, "stream", 0) == 1 and hasattr(record, "data"))
    assert "".join(frame["text"] for frame in frames).encode() == sent
    assert [frame["event"]["comments"] for frame in frames] == [[], ["ping"], []]
    assert frames[0]["event"]["id"] == "1"


def test_an_object_has_its_end_and_the_redelivered_events() -> None:
    made = [transaction for transaction in objects(http_scene()) if "redelivered" in transaction]
    assert len(made) == 1
    frames = made[0]["http_response"]["frames"]
    assert [frame["record"] for frame in frames if frame.get("redelivered")] == made[0]["redelivered"]
    assert made[0]["http_response"]["close"]["by"] == "server"
