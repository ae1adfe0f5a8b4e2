"""The revision of each message, and first tries that were probes, over every transport."""

from pathlib import Path
from typing import Any

import pytest

from mcpspy import read
from mcpspy.transcript.mcp.revisions import Era
from mcpspy.transcript.model import Kind, Message, Outcome, Transcript
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import Dialogue, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic

ROOT = Path(__file__).parents[3]
MODERN = "2026-07-28"
ENVELOPE = "io.modelcontextprotocol/protocolVersion"
SUB = "/messages?s=1"


def enveloped(id: Any, method: str = "tools/list", revision: str = MODERN, **params: Any) -> dict[str, Any]:
    """Return a request of the modern era, or one that claims to be."""
    of = "io.modelcontextprotocol/"
    meta = {ENVELOPE: revision, f"{of}clientInfo": {"name": "tester", "version": "1"}, f"{of}clientCapabilities": {}}
    return request(id, method, {**params, "_meta": meta})


def initialize(id: Any, revision: str = "2025-11-25", name: str = "tester") -> dict[str, Any]:
    return request(
        id, "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
    )


def agreed(id: Any, revision: str = "2025-11-25") -> dict[str, Any]:
    return result(id, {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "weather", "version": "1"}})


def revisions(traffic: Dialogue | Traffic) -> list[str | None]:
    """Return the revision of each message, by time."""
    return [message.revision for message in traffic.transcript.messages]


def outcomes(traffic: Dialogue | Traffic) -> list[Outcome]:
    return [exchange.outcome for exchange in traffic.exchanges]


# --- Revisions ---


def test_the_requested_revision_holds_until_the_answer_names_one() -> None:
    dialogue = Dialogue().client(initialize(1, "2025-11-25")).server(notification("notifications/message"))
    dialogue.server(agreed(1, "2025-03-26")).client(notification()).client(request(2)).server(result(2))
    assert revisions(dialogue) == ["2025-11-25", "2025-11-25", *["2025-03-26"] * 4]


def test_a_message_says_itself_what_it_is_whatever_was_agreed_on() -> None:
    dialogue = (
        Dialogue()
        .client(initialize(1))
        .server(agreed(1))
        .client(enveloped(2))
        .server(result(2))
        .client(request(3))
        .server(result(3))
    )
    assert revisions(dialogue)[2:] == [MODERN, MODERN, "2025-11-25", "2025-11-25"]


def test_what_belongs_to_a_request_is_of_its_revision() -> None:
    call = enveloped(1, "tools/call", name="slow")
    call["params"]["_meta"]["progressToken"] = 7
    dialogue = Dialogue().client(call).server(progress(7)).client(notification("notifications/cancelled", {"requestId": 1}))
    assert revisions(dialogue) == [MODERN, MODERN, MODERN]


def test_what_a_modern_server_says_unasked_is_of_the_revision_it_is_spoken_to_in() -> None:
    dialogue = Dialogue().client(enveloped(1, "subscriptions/listen")).server(notification("notifications/tools/list_changed"))
    assert revisions(dialogue) == [MODERN, MODERN]


def test_a_request_without_a_word_about_it_is_of_no_known_revision() -> None:
    dialogue = Dialogue().client(enveloped(1)).server(result(1)).client(request(2))
    assert revisions(dialogue) == [MODERN, MODERN, None]
    assert dialogue.transcript.messages[-1].era is None


def test_an_initialize_that_fails_leaves_what_was_agreed_on() -> None:
    dialogue = Dialogue().client(initialize(1, "2025-06-18")).server(agreed(1, "2025-06-18"))
    dialogue.client(initialize(2, "2031-01-01")).server(error(2)).client(request(3))
    assert revisions(dialogue)[2:] == ["2031-01-01", "2031-01-01", "2025-06-18"]


@pytest.mark.parametrize(("revision", "era"), [("2024.11.05", Era.LEGACY), ("2031-01-01", Era.MODERN)])
def test_an_unreleased_revision_keeps_its_spelling(revision: str, era: Era) -> None:
    dialogue = Dialogue().client(initialize(1, revision)).server(agreed(1, revision)).client(request(2))
    assert revisions(dialogue) == [revision] * 3
    assert dialogue.exchanges[-1].era is era


def test_all_messages_of_a_revision_share_its_name() -> None:
    messages = Dialogue().client(enveloped(1)).server(result(1)).client(enveloped(2)).server(result(2)).transcript.messages
    assert len({id(message.revision) for message in messages}) == 1


@pytest.mark.parametrize("meta", [None, 3, [], {ENVELOPE: 3}, {ENVELOPE: None}, {ENVELOPE: ""}, {ENVELOPE: {}}])
def test_an_envelope_of_another_shape_says_nothing(meta: Any) -> None:
    assert revisions(Dialogue().client(request(1, "tools/list", {"_meta": meta}))) == [None]


@pytest.mark.parametrize("answer", [None, 3, {}, "no", {"protocolVersion": 3}, {"protocolVersion": ""}])
def test_the_requested_revision_holds_if_the_result_names_none(answer: Any) -> None:
    dialogue = Dialogue().client(initialize(1, "2025-06-18")).server({"jsonrpc": "2.0", "id": 1, "result": answer})
    assert revisions(dialogue) == ["2025-06-18", "2025-06-18"]


def test_a_server_may_be_spoken_to_in_both_eras_at_once_over_http() -> None:
    traffic = Traffic()
    traffic.post(initialize(1)).answer(200, agreed(1), Mcp_Session_Id="s")
    traffic.post(enveloped(1)).answer(200, result(1))
    traffic.post(request(2), session="s", fields={"MCP_Protocol_Version": "2025-11-25"}).answer(200, result(2))
    assert revisions(traffic) == ["2025-11-25"] * 2 + [MODERN] * 2 + ["2025-11-25"] * 2


def test_where_no_handshake_was_seen_the_field_of_http_tells_the_revision() -> None:
    traffic = Traffic()
    traffic.post(tool_call(5), session="s", fields={"MCP_Protocol_Version": "2025-06-18"}).answer(200, result(5))
    traffic.post(tool_call(1), fields={"MCP_Protocol_Version": "2025-03-26"}).answer(200, result(1))
    assert revisions(traffic) == ["2025-06-18"] * 2 + ["2025-03-26"] * 2


def test_the_handshake_outweighs_the_field_of_http() -> None:
    traffic = Traffic()
    traffic.post(initialize(1)).answer(200, agreed(1, "2025-03-26"), Mcp_Session_Id="s")
    traffic.post(request(2), session="s", fields={"MCP_Protocol_Version": "2025-11-25"}).answer(200, result(2))
    assert revisions(traffic)[2:] == ["2025-03-26"] * 2


def test_the_body_outweighs_the_field_of_http() -> None:
    traffic = Traffic()
    traffic.post(enveloped(1), fields={"MCP_Protocol_Version": "2025-11-25"}).answer(200, result(1))
    assert revisions(traffic) == [MODERN] * 2


# --- Probes ---


def test_a_refused_discover_is_a_probe_and_no_finding() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).server(error(1))
    dialogue.client(initialize(2)).server(agreed(2)).client(notification()).closes()
    assert outcomes(dialogue) == [Outcome.PROBE, Outcome.OK]
    assert dialogue.rules == []


@pytest.mark.parametrize("status", [400, 404, 405, 406])
@pytest.mark.parametrize(
    "body",
    [b"", {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}, error(1)],
    ids=["empty", "null", "id"],
)
def test_over_http_a_probe_may_be_refused_by_status_and_with_or_without_its_id(status: int, body: Any) -> None:
    traffic = Traffic()
    traffic.post(enveloped(1, "server/discover")).answer(status, body)
    traffic.post(initialize(2)).answer(200, agreed(2), Mcp_Session_Id="s")
    assert outcomes(traffic) == [Outcome.PROBE, Outcome.OK]
    assert traffic.rules == []


@pytest.mark.parametrize("status", [401, 403, 500, 502])
def test_a_status_that_says_nothing_of_eras_makes_no_probe(status: int) -> None:
    traffic = Traffic()
    traffic.post(enveloped(1, "server/discover")).answer(status)
    assert outcomes(traffic) == [Outcome.HTTP_ERROR]


def test_an_unanswered_discover_is_a_probe_once_the_client_is_gone() -> None:
    dialogue = Dialogue().client(enveloped("server-discover-probe-1", "server/discover")).wait(500).note("signal")
    dialogue.client_leaves().exits(signal="SIGTERM").ends()
    assert outcomes(dialogue) == [Outcome.PROBE]
    assert dialogue.rules == []


def test_a_discover_that_is_given_up_is_a_probe() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).wait(10_000)
    dialogue.client(notification("notifications/cancelled", {"requestId": 1})).client(initialize(2)).server(agreed(2)).closes()
    assert outcomes(dialogue) == [Outcome.PROBE, Outcome.OK]
    assert dialogue.rules == []


def test_a_discover_that_waits_is_pending() -> None:
    transcriber = Transcriber()
    for record in Dialogue().client(enveloped(1, "server/discover")).records:
        transcriber.feed(record)
    assert [exchange.outcome for exchange in transcriber.transcript.exchanges] == [Outcome.PENDING]


def test_a_discover_is_over_once_the_client_goes_on_without_its_answer() -> None:
    transcriber = Transcriber()
    dialogue = Dialogue().client(enveloped(1, "server/discover")).wait(10_000).client(initialize(2))
    changed = [list(transcriber.feed(record)) for record in dialogue.records][-1]
    assert [row.outcome for row in changed if hasattr(row, "outcome")] == [Outcome.PROBE, Outcome.PENDING]


def test_a_discover_that_is_answered_too_late_is_answered() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).client(initialize(2)).server(agreed(2))
    dialogue.server(result(1, {"supportedVersions": [MODERN]}))
    assert outcomes(dialogue) == [Outcome.OK, Outcome.OK]


def test_a_discover_that_is_answered_is_no_probe() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).server(result(1, {"supportedVersions": [MODERN]}))
    assert outcomes(dialogue) == [Outcome.OK]


def test_a_discover_that_fails_after_one_that_did_not_is_an_error() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).server(result(1, {"supportedVersions": [MODERN]}))
    dialogue.client(enveloped(2, "server/discover")).server(error(2))
    assert outcomes(dialogue) == [Outcome.OK, Outcome.ERROR]


def test_a_server_that_dies_of_a_probe_is_found_dead() -> None:
    dialogue = Dialogue().client(enveloped(1, "server/discover")).server_closes_stdout().exits(1)
    assert "server-died" in dialogue.rules
    assert "unanswered-request" not in dialogue.rules


def test_an_initialize_that_fails_is_an_error() -> None:
    assert outcomes(Dialogue().client(initialize(1)).server(error(1))) == [Outcome.ERROR]


def test_an_initialize_that_fails_is_a_probe_once_another_revision_is_agreed_on() -> None:
    dialogue = Dialogue().client(initialize(1, "2025-11-25")).server(error(1, -32602)).client(initialize(2, "2024-11-05"))
    assert outcomes(dialogue) == [Outcome.ERROR, Outcome.UNANSWERED]
    dialogue.server(agreed(2, "2024-11-05"))
    assert outcomes(dialogue) == [Outcome.PROBE, Outcome.OK]


def test_the_same_initialize_again_makes_no_probe_of_the_first() -> None:
    dialogue = Dialogue().client(initialize(1)).server(error(1)).client(initialize(2)).server(agreed(2))
    assert outcomes(dialogue) == [Outcome.ERROR, Outcome.OK]


def test_a_client_that_falls_back_to_an_older_transport_probed() -> None:
    traffic = Traffic()
    traffic.post(initialize(1), "/sse").answer(405)
    stream = traffic.get("/sse").stream().event(SUB, kind="endpoint")
    traffic.post(initialize(1), SUB).answer(202)
    stream.event(agreed(1), kind="message")
    assert outcomes(traffic) == [Outcome.PROBE, Outcome.OK]


def test_another_client_s_success_makes_no_probe() -> None:
    traffic = Traffic()
    traffic.post(initialize(1, name="one"), "/sse").answer(405)
    traffic.post(initialize(1, name="two")).answer(200, agreed(1), Mcp_Session_Id="s")
    assert outcomes(traffic) == [Outcome.HTTP_ERROR, Outcome.OK]


def test_whoever_follows_is_told_that_a_failure_was_a_probe() -> None:
    dialogue = Dialogue().client(initialize(1)).server(error(1)).client(initialize(2, "2024-11-05")).server(agreed(2))
    transcriber = Transcriber()
    changed = [list(transcriber.feed(record)) for record in dialogue.records][-1]
    assert [row.outcome for row in changed if hasattr(row, "outcome")] == [Outcome.PROBE, Outcome.OK]


# --- Recordings of real programs ---


def recorded(name: str) -> Transcript:
    return transcribe(read(ROOT / name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("everything", {"2025-11-25"}),
        ("streamable", {"2025-11-25"}),
        ("git", {MODERN}),
        ("question", {MODERN}),
        ("stateless", {MODERN}),
        ("probe", {MODERN, "2025-11-25"}),
    ],
)
def test_every_message_of_a_recording_is_of_a_revision(name: str, expected: set[str]) -> None:
    assert {message.revision for message in recorded(f"captures/{name}.mcpspy").messages} == expected


def test_the_python_sdk_probes_on_the_connection_that_it_goes_on_with() -> None:
    transcript = recorded("captures/probe.mcpspy")
    assert [exchange.method for exchange in transcript.exchanges if exchange.outcome is Outcome.PROBE] == ["server/discover"]
    assert transcript.findings == []


def test_the_typescript_sdk_probes_with_a_process_to_be_thrown_away() -> None:
    transcript = recorded("tests/transcript/sibling.mcpspy")  # by @modelcontextprotocol/client 2.4.0, mode `auto`
    assert [(exchange.method, exchange.outcome) for exchange in transcript.exchanges] == [("server/discover", Outcome.PROBE)]
    assert transcript.findings == []


def test_a_message_that_cannot_be_read_is_of_the_revision_in_force() -> None:
    dialogue = Dialogue().client(initialize(1)).server(agreed(1)).server(b"junk\n")
    (junk,) = [message for message in dialogue.transcript.messages if message.kind is Kind.MALFORMED]
    assert isinstance(junk, Message)
    assert junk.revision == "2025-11-25"
