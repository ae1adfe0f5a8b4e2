"""HTTP transactions in the timeline, in one row in full, in diagrams and in JSON."""

import json
from datetime import UTC
from typing import Any

import pytest

from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import message_lines, state_line, transcript_json
from mcpspy.views.sequence.ladder import ladder
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.exchange import row_lines
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import error, notification, request, result
from tests.transcript.traffic import Traffic, initialize, modern, opened_session
from tests.views.golden import same_as_golden
from tests.views.http_scenes import SESSION, http_scene
from tests.views.scenes import opened

WIDTHS = (80, 200, None)


def shown(traffic: Traffic, **options: Any) -> list[str]:
    return [plain(line) for line in timeline(traffic.transcript, zone=UTC, **options)]


def line_with(text: str, traffic: Traffic, **options: Any) -> str:
    (line,) = [line for line in shown(traffic, **options) if text in line]
    return line


def whole_row(traffic: Traffic, number: int, **options: Any) -> list[str]:
    transcript = traffic.wire
    row = transcript.row(number)
    assert row is not None
    return [plain(line) for line in row_lines(transcript, row, **options)]


# --- The timeline ---


@pytest.mark.parametrize("width", WIDTHS)
def test_a_scene_with_everything_looks_as_it_did(width: int | None) -> None:
    assert same_as_golden(f"http-{width or 'pipe'}", timeline(http_scene().transcript, width=width, zone=UTC))


@pytest.mark.parametrize("width", [1, 10, 20, 33, 40, 52, 60, 72, 80, 100, 110, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    transcript = http_scene().transcript
    assert all(line_cells(line) <= width for line in timeline(transcript, width=width, zone=UTC))


@pytest.mark.parametrize("width", [72, 80, 110, 200])
def test_no_line_of_a_row_shown_in_full_is_wider_than_the_screen(width: int) -> None:
    assert all(line_cells(line) <= width for row in range(1, 20) for line in _whole_lines(row, width))


def _whole_lines(number: int, width: int) -> list[Any]:
    transcript = http_scene().wire
    row = transcript.row(number)
    assert row is not None
    return list(row_lines(transcript, row, width=width))


@pytest.mark.parametrize("status", [200, 202])
def test_a_usual_status_is_not_shown(status: int) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(status, result(1))
    assert line_with("tools/list", traffic).endswith("ok")


def test_an_unusual_status_follows_the_outcome() -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(404, error(1))
    assert line_with("tools/list", traffic).endswith("error: -32601 no (HTTP 404)")


def test_an_unusual_status_follows_a_notification() -> None:
    traffic = Traffic()
    traffic.post(notification()).answer(400)
    assert line_with("initialized", traffic).endswith("notifications/initialized: HTTP 400")


def test_the_status_of_a_rejected_answer_follows_the_servers_request() -> None:
    traffic = Traffic()
    opened_session(traffic, "s", "claude-code", "roots")
    traffic.get(session="s").stream().event(request("q", "roots/list"))
    traffic.post(result("q"), session="s").answer(400)
    assert line_with("roots/list", traffic).endswith("ok: HTTP 400")


@pytest.mark.parametrize(
    ("status", "phrase"), [(401, "http error ⚑: 401 Unauthorized"), (307, "redirected: 307 Temporary Redirect to /mcp/")]
)
def test_an_http_status_without_a_message_is_the_outcome(status: int, phrase: str) -> None:
    traffic = Traffic()
    traffic.post(request(1)).answer(status, Location="/mcp/")
    assert line_with("→ tools/list", traffic).endswith(phrase)


def test_a_request_cancelled_by_disconnecting_says_so() -> None:
    traffic = Traffic()
    traffic.post(modern(1)).stream().close("client", "broken")
    assert line_with("→ tools/list", traffic).endswith("cancelled after 3.00 ms ⚑: the client closed the stream")


@pytest.mark.parametrize(
    ("make_stream", "phrase"),
    [
        (lambda: Traffic().get("/x").answer(404), "404 ⚑: Not Found"),
        (lambda: Traffic().get("/x").answer(200, {"a": 1}), "200: application/json"),
        (lambda: Traffic().get("/x").answer(204), "204"),
        (lambda: Traffic().get("/x").answer(307, Location="/y"), "307: Temporary Redirect to /y"),
        (lambda: Traffic().get("/x").stream(), "200: 0 events, open"),
        (lambda: Traffic().get("/x").stream().event("a").close("client", "broken"), "200: 1 event, disconnected by client"),
        (lambda: Traffic().get("/x").leave(), "no response: client closed the connection"),
        (lambda: Traffic().get("/x"), "no response: before the capture ended"),
        (lambda: Traffic().get("/x").answer(200, b"abc", how="reset"), "200: reset by server"),
        (
            lambda: Traffic().get("/x").answer(502, b"mcpspy: refused\n", injected=True, by="mcpspy"),
            "502 ⚑: Bad Gateway, mcpspy: refused",
        ),
    ],
)
def test_a_request_without_a_message_shows_its_result(make_stream: Any, phrase: str) -> None:
    (line,) = [line for line in shown(make_stream().traffic) if "GET /x" in line and "→ GET" in line]
    assert line.endswith(phrase)


def test_several_clients_have_a_column() -> None:
    traffic = Traffic()
    for name in ("claude-code", "inspector"):
        traffic.post(initialize(1, name)).answer(200, result(1))
    lines = shown(traffic, width=200)
    assert any(line.startswith("row") and " client " in line for line in lines)
    assert ["claude-code" in line for line in lines if "initialize" in line] == [True, False]
    assert ["inspector" in line for line in lines if "initialize" in line] == [False, True]


def test_one_client_has_no_column() -> None:
    traffic = Traffic()
    traffic.post(initialize(1)).answer(200, result(1))
    assert not any(line.startswith("row") and "client" in line for line in shown(traffic))


def test_all_clients_are_named_above_the_rows() -> None:
    traffic = Traffic()
    for number in range(6):
        traffic.post(initialize(1, f"client-{number}")).answer(200, result(1))
    assert "client-0, client-1, client-2, client-3, 2 more clients → weather" in shown(traffic)[1]


# --- One row ---


def test_an_exchange_shown_in_full_has_its_transactions() -> None:
    traffic = Traffic()
    traffic.post(request(1)).stream().event(result(1), chunks=(64, 46)).close("server")
    lines = whole_row(traffic, 1)
    at = lines.index("transaction 1 · connection 1")
    assert lines[at + 1].startswith("→ POST /mcp  application/json · 51 B")
    assert lines[at + 2].startswith("← 200 OK  head after 3.00 ms · text/event-stream · 1 event")
    assert "in 2 chunks" in lines[at + 2]
    assert "closed by server" in lines[at + 2]
    assert any(line.startswith("← result") and line.endswith("transaction 1 · in 0x40 64, 0x2e 46") for line in lines)


def test_an_exchange_of_http_sse_has_both_its_transactions() -> None:
    traffic = Traffic()
    stream = traffic.get("/sse").stream().event("/m?s=1", kind="endpoint")
    traffic.post(request(1), "/m?s=1").answer(202)
    stream.event(result(1))
    lines = whole_row(traffic, 2)
    assert [line for line in lines if line.startswith("transaction")] == [
        "transaction 1 · connection 1",
        "transaction 2 · connection 2 · answered on transaction 1",
    ]


def test_a_session_is_named() -> None:
    traffic = Traffic()
    opened_session(traffic, SESSION)
    assert f"transaction 1 · connection 1 · session {SESSION}" in whole_row(traffic, 1)


def test_a_transaction_shown_in_full_has_its_times() -> None:
    traffic = Traffic()
    traffic.get("/x").note("tls", "TLSv1.3").answer(404, b"no such page", Content_Type="text/plain")
    lines = whole_row(traffic, 1)
    assert lines[0].startswith("row 1 · GET /x · 404")
    assert "· tls: TLSv1.3" in lines
    assert any(line.startswith("← 404 Not Found  head after 3.00 ms · text/plain · 12 B") for line in lines)


def test_a_stdio_exchange_has_no_transaction() -> None:
    transcript = opened("weather").client(request(1)).server(result(1)).transcript
    assert not any("transaction" in plain(line) for line in row_lines(transcript, transcript.exchanges[0]))


# --- Diagrams ---


def test_requests_without_a_message_are_arrows_with_their_status() -> None:
    traffic = Traffic()
    traffic.get("/x").answer(404)
    texts = [plain(line) for line in ladder(diagram(traffic.transcript, traffic.transcript.rows), width=80)]
    assert "1 GET /x" in texts[1]
    assert "1 404: Not Found" in texts[2]


def test_each_client_has_its_lifeline() -> None:
    layout = diagram(transcript := http_scene().transcript, transcript.rows)
    names = [participant.name for participant in layout.participants]
    assert names == ["claude-code", "client", "qwen-agent", "inspector", "everything"]


def test_the_ladder_of_a_scene_looks_as_it_did() -> None:
    transcript = http_scene().transcript
    assert same_as_golden("http-ladder-100", ladder(diagram(transcript, transcript.rows), width=100))


# --- JSON ---


def documented(traffic: Traffic) -> Any:
    transcript = traffic.transcript
    return json.loads("".join(transcript_json(transcript, transcript.rows, live=False)))


def test_a_transaction_is_a_row_with_its_facts() -> None:
    traffic = Traffic()
    traffic.get("/x").answer(404, b"no")
    (row,) = documented(traffic)["rows"]
    assert (row["kind"], row["row"], row["method"], row["target"], row["status"]) == ("transaction", 1, "GET", "/x", 404)
    assert row["http_response"]["bytes"] == 2
    assert row["http_response"]["close"] == {"at_ns": 5_000_000, "by": "server", "how": "eof"}


def test_an_exchange_names_its_client_and_its_transactions() -> None:
    made = documented(http_scene())
    fetch = next(row for row in made["rows"] if row.get("target") == "fetch")
    assert fetch["client"] == "qwen-agent"
    assert [transaction["transaction"] for transaction in fetch["transactions"]] == [3, 5]
    assert [transaction["scope"] for transaction in fetch["transactions"]] == ["stream", "stream"]


def test_the_summary_counts_http_errors_and_redirects() -> None:
    summary = documented(http_scene())["summary"]
    assert (summary["http_error"], summary["redirected"]) == (2, 1)


def test_a_state_line_names_the_client_of_its_row() -> None:
    transcript = http_scene().transcript
    names = {json.loads(state_line(row, transcript.captures))["client"] for row in transcript.exchanges}
    assert names == {"claude-code", "qwen-agent", "inspector", "client"}


def test_a_message_names_its_transaction() -> None:
    transcript = http_scene().transcript
    made = [json.loads(line) for line in message_lines(transcript, transcript.rows)]
    assert all(message["transaction"] for message in made)


def test_stdio_has_no_transactions_in_json() -> None:
    transcript = transcribe(opened("weather").client(request(1)).server(result(1)).records)
    made = json.loads("".join(transcript_json(transcript, transcript.rows, live=False)))
    assert not any("transactions" in row for row in made["rows"])
