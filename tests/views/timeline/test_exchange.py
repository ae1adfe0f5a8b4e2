"""One row in full: each of its messages, with times, ids, records, and payloads as they were spelled."""

from typing import Any

import pytest

from mcpspy.transcript.model import Transcript
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.exchange import messages_of, raw_lines, row_lines
from tests.transcript.dialogue import Dialogue, request, result
from tests.transcript.traffic import Traffic
from tests.views.golden import same_as_golden
from tests.views.scenes import busy_scene, call, opened, progress


def shown(scene: Dialogue, number: int, **options: Any) -> list[str]:
    transcript = scene.transcript
    return [plain(line) for line in row_lines(transcript, row(transcript, number), **options)]


def row(transcript: Transcript, number: int) -> Any:
    row = transcript.row(number)
    assert row is not None
    return row


@pytest.mark.parametrize("width", [80, None])
def test_a_failed_call_looks_as_it_did(width: int | None) -> None:
    transcript = busy_scene().transcript
    assert same_as_golden(f"exchange-{width or 'pipe'}", row_lines(transcript, row(transcript, 7), width=width))


@pytest.mark.parametrize("number", range(1, 12))
@pytest.mark.parametrize("width", [24, 40, 80])
def test_no_line_is_wider_than_the_screen(number: int, width: int) -> None:
    transcript = busy_scene().transcript
    assert all(line_cells(line) <= width for line in row_lines(transcript, row(transcript, number), width=width))


def test_the_heading_names_the_row_the_call_its_outcome_and_its_duration() -> None:
    assert shown(busy_scene(), 7)[0] == "row 7 · tools/call get_weather · tool error: city not found: Atlantis · 7.00 ms"


def test_the_second_line_names_sender_receiver_and_id() -> None:
    assert shown(busy_scene(), 7)[1] == "claude-code → weather · id 3"


def test_a_request_of_the_server_goes_from_it_to_the_client() -> None:
    assert shown(busy_scene(), 10)[1] == "weather → claude-code · id 1"


def test_every_message_has_its_time_its_record_and_its_size() -> None:
    headings = [line for line in shown(busy_scene(), 8) if line.startswith(("→", "←"))]
    assert headings == [
        "→ request   at 1.263000 s · record 34 · 100 B",
        "← error   at 1.264000 s (+1.00 ms) · record 35 · 86 B",
    ]


def test_a_message_that_came_in_parts_shows_when_it_began() -> None:
    scene = opened("weather").parts(0, b'{"jsonrpc":"2.0","id":1,', b'"method":"ping"}\n').server(result(1))
    assert "at 0.002000 s, first byte 1.00 ms earlier" in "\n".join(shown(scene, 1))


def test_every_notification_of_a_call_is_shown() -> None:
    assert len([line for line in shown(busy_scene(), 5) if line.startswith("← notifications/progress")]) == 17


def test_numbers_and_duplicate_keys_are_as_they_were_spelled() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":123456789012345678901234567890,"n":1e400}}\n'
    lines = shown(opened("weather").client(raw).server(result(1)), 1)
    assert '    "n": 123456789012345678901234567890,' in lines
    assert '    "n": 1e400' in lines


def test_flaws_of_a_message_are_named() -> None:
    lines = shown(opened("weather").client(b'{"jsonrpc":"2.0","id":1,"method":"m"}\r\n').server(result(1)), 1)
    assert any(line.startswith("→ request") and line.endswith(" · crlf") for line in lines)


def test_a_payload_that_is_not_a_message_is_shown_with_the_reason() -> None:
    assert shown(opened("weather").server(b"caf\xe9 \x1b[31m\n"), 1)[-2:] == ["not JSON", r"caf\xe9 \x1b[31m"]


def test_stderr_during_a_call_is_shown() -> None:
    scene = opened("weather").client(call(1, "slow")).stderr(b"working\n").server(result(1)).stderr(b"idle\n")
    assert shown(scene, 1)[-2:] == ["meanwhile", "0.002000 stderr working"]
    assert "meanwhile" not in shown(scene, 1, stderr=False)


def test_channel_events_during_a_call_are_shown() -> None:
    assert shown(opened("weather").client(request(1)).exits(1), 1)[-1] == "0.002000 · server exited 1"


def test_the_messages_of_a_row_are_in_the_order_of_time() -> None:
    scene = opened("weather").client(call(1, "slow", token=1)).server(progress(1, 1, "")).server(result(1)).server(result(1))
    numbers = [message.number for message in messages_of(scene.exchange)]
    assert numbers == sorted(numbers)
    assert len(numbers) == 4


def test_raw_bytes_on_a_screen_are_harmless_and_fit() -> None:
    lines = [plain(line) for line in raw_lines(b'{"a":"\x1b]0;x\x07\xff"}\n', 10)]
    assert "".join(lines) == r'{"a":"\x1b]0;x\x07\xff"}'
    assert max(map(len, lines)) <= 10


@pytest.mark.parametrize("width", [30, 60, 80])
def test_facts_that_do_not_fit_beside_a_message_are_below_it(width: int) -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(result(1), chunks=(40, 30)).close()
    transcript = traffic.wire
    lines = [plain(line) for line in row_lines(transcript, row(transcript, 1), width=width)]
    words = " ".join(line.strip() for line in lines)
    assert "transaction 1" in words
    assert "in 0x28 40, 0x1e 30" in words
    assert max(map(len, lines)) <= width
