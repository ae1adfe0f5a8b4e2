"""Findings on stdio: what they are, whom they blame, and near misses."""

import pytest

from mcpspy.records import Close, Frame, Gap
from mcpspy.transcript.findings.protocol.encoding import FLAWS
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Finding, Severity
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.findings.transport.lines import noise_source
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, progress, request, result, tool_call


def only(dialogue: Dialogue) -> Finding:
    (finding,) = dialogue.findings
    return finding


def test_an_ordinary_dialogue_has_no_findings() -> None:
    dialogue = Dialogue().client(request(0, "initialize")).server(result(0)).client(notification())
    dialogue.stderr(b"ready\n").client(tool_call(1, token=1)).server(progress(1)).server(result(1, {"isError": True}))
    dialogue.server(request(0, "roots/list")).client(result(0)).client(tool_call(2)).server(result(2))
    dialogue.client(cancelled(2))
    assert dialogue.closes().findings == []


# --- Lines that are not messages ---


def test_a_banner_on_stdout_is_noise() -> None:
    finding = only(Dialogue().server(b"Server running on stdio\n").closes())
    assert (finding.rule, finding.severity, finding.culprit, finding.row) == ("stdout-noise", Severity.WARNING, "server", 1)


def test_the_finding_quotes_the_noise_and_points_at_its_record() -> None:
    finding = only(Dialogue().server(b"Server running on stdio\n").closes())
    assert (finding.number, "“Server running on stdio”" in finding.what) == (5, True)


def test_noise_of_one_kind_is_counted() -> None:
    finding = only(Dialogue().server(b"INFO one\n").server(b"INFO two\n").closes())
    assert (finding.count, "“INFO one”" in finding.what) == (2, True)


def test_noise_of_two_kinds_is_two_findings() -> None:
    assert len(Dialogue().server(b"INFO one\n").server(b"npm warn x\n").closes().findings) == 2


def test_a_log_line_on_stderr_is_no_noise() -> None:
    assert Dialogue().stderr(b"Server running\n").closes().findings == []


@pytest.mark.parametrize(
    ("line", "source"),
    [
        (b"INFO:root:hello", "a logger"),
        (b"[INFO] hello", "a logger"),
        (b"2026-11-18 10:00:00,123 hello", "a logger"),
        (b"npm warn exec", "npm"),
        (b"> server@1.0.0 start", "npm"),
        (b"Installed 30 packages in 5ms", "a package installer"),
        (b"[dotenv@17.2.1] injecting env (0) from .env", "the banner of dotenv"),
        (b"Debugger listening on ws://127.0.0.1:9229/x", "the debugger of Node.js"),
        (b"Traceback (most recent call last):", "a stack trace"),
        (b"    at main (/srv/index.js:3:1)", "a stack trace"),
        (b"MCP server running on stdio", "a start-up message"),
        (b"42", "a print to stdout"),
        (b"\xff\xfe", "a print to stdout"),
    ],
)
def test_the_source_of_noise_is_guessed_from_its_beginning(line: bytes, source: str) -> None:
    assert noise_source(line) == source


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":1,\n', b"{}\n", b"[]\n", b'{"id":1} {"id":2}\n'])
def test_broken_json_is_malformed_and_no_noise(line: bytes) -> None:
    finding = only(Dialogue().server(line).closes())
    assert (finding.rule, finding.severity, finding.culprit) == ("malformed-message", Severity.ERROR, "server")


def test_everything_else_that_the_client_writes_is_malformed() -> None:
    finding = only(Dialogue().client(b"hello\n").closes())
    assert (finding.rule, finding.culprit) == ("malformed-message", "client")


def test_pretty_printed_json_is_recognised() -> None:
    dialogue = Dialogue().server(b"{\n").server(b'  "id": 1\n').server(b"}\n").closes()
    assert "pretty-printed" in dialogue.findings[0].advice


def test_a_finding_says_that_the_stream_ended_within_a_line() -> None:
    assert "the stream ended within it" in only(Dialogue().server(b'{"jsonrpc":').closes()).what


def test_a_blank_line_is_a_note() -> None:
    finding = only(Dialogue().server(b"\n").server(b" \r\n").closes())
    assert (finding.rule, finding.severity, finding.count) == ("blank-line", Severity.NOTE, 2)


def test_a_line_that_the_capture_damaged_is_nobodys_fault() -> None:
    assert Dialogue().damage().server(b'0,"result":{}}\n').closes().rules == ["capture-damaged"]


def test_a_frame_that_was_not_recorded_is_nobodys_fault() -> None:
    assert Dialogue().add(Frame(1, 5, 5, b"", length=300, sha256="00")).closes().findings == []


# --- Flawed messages ---


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        (b'{"id":1,"method":"x"}\n', "no-jsonrpc"),
        (b'{"jsonrpc":"1.0","method":"x"}\n', "jsonrpc-version"),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}\n', "bom"),
        (b'{"jsonrpc":"2.0","method":"x","params":"\xff"}\n', "invalid-utf-8"),
        (b'{"jsonrpc":"2.0","method":"x","params":[NaN]}\n', "nan"),
        (b'{"jsonrpc":"2.0","method":"x","params":"\\ud800"}\n', "lone-surrogate"),
        (b'{"jsonrpc":"2.0","method":"x"}\r\n', "crlf"),
        (b'{"jsonrpc":"2.0","method":"x"}', "no-final-newline"),
        (b'{"jsonrpc":"2.0","method":"x","result":1}\n', "ambiguous"),
    ],
)
def test_a_flaw_is_a_finding_with_its_own_advice(line: bytes, flaw: str) -> None:
    rule = FLAWS[flaw]
    flaws = [finding for finding in Dialogue().server(line).closes().findings if finding.rule == rule.name]
    assert [(finding.severity, finding.advice, finding.culprit) for finding in flaws] == [
        (rule.severity, rule.advice, "server")
    ]


def test_a_flaw_that_repeats_is_counted() -> None:
    line = b'{"jsonrpc":"2.0","method":"x"}\r\n'
    assert only(Dialogue().server(line).server(line).server(line).closes()).count == 3


def test_the_same_flaw_on_both_sides_is_two_findings() -> None:
    line = b'{"jsonrpc":"2.0","method":"x"}\r\n'
    assert [finding.culprit for finding in Dialogue().server(line).client(line).closes().findings] == ["server", "client"]


def test_an_id_in_use_is_the_fault_of_its_sender() -> None:
    dialogue = Dialogue(begins=False).client(request(1)).client(request(1)).server(result(1)).server(result(1)).closes()
    finding = only(dialogue)
    assert (finding.severity, finding.culprit, finding.row) == (Severity.ERROR, "client", 2)


def test_an_id_used_again_after_its_answer_is_found() -> None:
    finding = only(Dialogue(begins=False).client(request(1)).server(result(1)).client(request(1)).server(result(1)).closes())
    assert (finding.rule, finding.culprit, finding.row) == ("id-reused", "client", 2)


# --- Answers ---


def test_another_spelling_of_the_id_is_found() -> None:
    finding = only(Dialogue().client(request(7)).server(result("7")).closes())
    assert (finding.rule, finding.culprit, finding.row) == ("id-type-mismatch", "server", 1)


def test_two_answers_are_found() -> None:
    finding = only(Dialogue().client(tool_call(1)).server(result(1)).server(result(1)).closes())
    assert (finding.rule, finding.culprit, finding.what) == (
        "duplicate-response",
        "server",
        "tools/call forecast was answered 2 times.",
    )


def test_a_response_nobody_asked_for_is_found() -> None:
    finding = only(Dialogue().server(result(1)).closes())
    assert (finding.rule, finding.culprit) == ("unpaired-response", "server")


def test_after_a_gap_a_response_may_have_been_asked_for() -> None:
    assert Dialogue().gap().server(result(1)).closes().rules == ["recording-gap"]


def test_an_error_that_cannot_name_its_request_is_no_finding() -> None:
    assert Dialogue().server(error(None, -32700)).closes().findings == []


# --- Requests without an answer ---


def test_a_request_that_a_patient_client_waited_for_is_the_servers_fault() -> None:
    finding = only(Dialogue().client(tool_call(1)).wait(9_000).closes())
    assert (finding.rule, finding.severity, finding.culprit) == ("unanswered-request", Severity.ERROR, "server")


def test_a_client_that_leaves_at_once_did_not_wait() -> None:
    finding = only(Dialogue().client(tool_call(1)).closes())
    assert (finding.rule, finding.severity, finding.culprit) == ("unanswered-request", Severity.NOTE, "client")


def test_a_request_of_the_server_to_a_client_that_is_gone_is_the_servers_fault() -> None:
    dialogue = Dialogue().client_leaves().server(request(1, "roots/list")).server_closes_stdout().exits().ends()
    assert [(finding.rule, finding.severity, finding.culprit) for finding in dialogue.findings] == [
        ("unanswered-request", Severity.NOTE, "server")
    ]


def test_a_client_that_never_answers_is_to_blame() -> None:
    dialogue = Dialogue().server(request(1, "roots/list")).wait(9_000).exits().ends()
    assert [(finding.rule, finding.culprit) for finding in dialogue.findings] == [("unanswered-request", "client")]


def test_a_server_that_closes_stdout_and_lives_on_leaves_requests_unanswered() -> None:
    dialogue = Dialogue().client(tool_call(1)).server_closes_stdout().wait(3_000).client_leaves().exits().ends()
    finding = only(dialogue)
    assert (finding.rule, finding.culprit, "closed its stdout" in finding.what) == ("unanswered-request", "server", True)


def test_a_cancelled_request_needs_no_answer() -> None:
    finding = only(Dialogue().client(tool_call(1)).client(cancelled(1)).wait(9_000).closes())
    assert (finding.rule, finding.severity, finding.culprit) == ("given-up", Severity.NOTE, "unclear")


def test_a_subscription_needs_no_answer() -> None:
    assert Dialogue().client(request(1, "subscriptions/listen")).wait(9_000).closes().findings == []


def test_the_answer_may_be_in_the_gap() -> None:
    assert Dialogue().client(tool_call(1)).gap().wait(9_000).closes().rules == ["recording-gap"]


def test_a_gap_before_the_request_hides_no_answer() -> None:
    assert Dialogue().gap().client(tool_call(1)).wait(9_000).closes().rules == ["recording-gap", "unanswered-request"]


def test_a_request_recorded_right_after_a_gap_is_not_in_it() -> None:
    dialogue = Dialogue().gap()
    dialogue.at_ns -= 1_000_000  # a gap has the time of the record that follows it
    assert "unanswered-request" in dialogue.client(tool_call(1)).wait(9_000).closes().rules


def test_the_answer_may_have_come_after_the_capture_broke_off() -> None:
    assert Dialogue().client(tool_call(1)).rules == ["capture-incomplete"]


def test_a_pending_request_is_not_yet_unanswered() -> None:
    transcriber = Transcriber()
    for record in Dialogue().client(tool_call(1)).records:
        transcriber.feed(record)
    assert findings(transcriber.transcript) == []


# --- Servers that die ---


def test_a_server_that_dies_with_calls_pending_is_found() -> None:
    dialogue = Dialogue().client(tool_call(1)).stderr(b"Segmentation fault\n").server_closes_stdout().exits(None, "SIGSEGV")
    finding = only(dialogue.ends())
    assert (finding.rule, finding.severity, finding.culprit) == ("server-died", Severity.ERROR, "server")


def test_the_finding_names_the_pending_calls_and_quotes_the_last_lines() -> None:
    dialogue = Dialogue().client(tool_call(1)).stderr(b"Segmentation fault\n").server_closes_stdout().exits(None, "SIGSEGV")
    what = only(dialogue.ends()).what
    assert all(words in what for words in ("killed by SIGSEGV", "tools/call forecast", "“Segmentation fault”"))


def test_only_the_last_lines_are_quoted() -> None:
    dialogue = Dialogue().client(tool_call(1))
    for count in range(9):
        dialogue.stderr(b"line %d\n" % count)
    what = only(dialogue.exits(1).ends()).what
    assert [f"line {count}" in what for count in (0, 5, 6, 8)] == [False, False, True, True]


def test_a_server_that_ends_well_with_calls_pending_died_too() -> None:
    assert Dialogue().client(tool_call(1)).exits(0).ends().rules == ["server-died"]


def test_a_server_that_fails_while_nothing_is_pending_died() -> None:
    assert Dialogue().exits(1).ends().rules == ["server-died"]


def test_a_server_that_ends_well_while_nothing_is_pending_is_allowed_to() -> None:
    assert Dialogue().exits(0).ends().findings == []


def test_a_server_that_the_client_ended_did_not_die() -> None:
    assert Dialogue().client_leaves().exits(1).ends().findings == []


@pytest.mark.parametrize("topic", ["signal", "escalation"], ids=["the client's", "ours, once the client was gone"])
def test_a_server_that_a_signal_ended_did_not_die(topic: str) -> None:
    assert Dialogue().note(topic).exits(None, "SIGTERM").ends().findings == []


def test_a_signal_that_ends_nothing_is_no_leaving() -> None:
    dialogue = Dialogue().client(tool_call(1)).note("signal", "SIGUSR1").server_closes_stdout().exits(3).ends()
    assert dialogue.rules == ["server-died"]


def test_a_client_that_leaves_because_the_server_is_dying_did_not_leave_first() -> None:
    dialogue = Dialogue().client(tool_call(1)).server_closes_stdout().client_leaves().exits(None, "SIGKILL").ends()
    assert dialogue.rules == ["server-died"]


def test_a_server_that_could_not_be_started_is_found() -> None:
    finding = only(Dialogue().exits(None, error="No such file or directory: weather").ends())
    assert (finding.rule, "No such file" in finding.what) == ("server-not-started", True)


# --- The channel ---


@pytest.mark.parametrize(("stream", "reader"), [(0, "server"), (1, "client"), (2, "client")])
def test_the_side_that_stops_reading_is_to_blame(stream: int, reader: str) -> None:
    finding = only(Dialogue().stall(stream).wait(2_000).stall(stream, 2_500_000_000).closes())
    assert (finding.rule, finding.culprit, "for 2.5 s" in finding.what) == ("reader-stalled", reader, True)


def test_a_reader_that_never_read_on_is_found_too() -> None:
    assert "until the end" in only(Dialogue().stall(1).closes()).what


def test_half_a_line_is_its_writers_fault() -> None:
    finding = only(Dialogue().partial(1, b'{"jsonrpc":').closes())
    assert (finding.rule, finding.culprit) == ("half-line", "server")


def test_half_a_line_on_stderr_is_nobodys_business() -> None:
    assert Dialogue().partial(2, b"Password: ").closes().findings == []


# --- The capture ---


def test_a_gap_is_the_disks_fault() -> None:
    finding = only(Dialogue().gap().closes())
    assert (finding.rule, finding.culprit, "No space left on device" in finding.what) == ("recording-gap", "disk", True)


def test_records_that_a_repair_left_out_are_not_charged_to_the_disk() -> None:
    repaired = Gap(at_ns=1, since_ns=0, frames=2, bytes=50, why="repaired: unusable lines were left out")
    (finding,) = Dialogue().add(repaired).closes().findings
    assert (finding.rule, finding.culprit, "2 records were lost" in finding.what) == ("recording-gap", "file", True)


def test_damage_of_one_kind_is_counted() -> None:
    finding = only(Dialogue().damage().damage().closes())
    assert (finding.rule, finding.count) == ("capture-damaged", 2)


def test_a_capture_edited_by_hand_is_a_note() -> None:
    finding = only(Dialogue().damage("edited").closes())
    assert (finding.rule, finding.severity) == ("capture-edited", Severity.NOTE)


def test_an_edited_capture_is_believed() -> None:
    assert Dialogue().damage("edited").server(result(1)).closes().rules == ["capture-edited", "unpaired-response"]


def test_a_capture_that_breaks_off_is_incomplete() -> None:
    assert only(Dialogue()).rule == "capture-incomplete"


# --- As a whole ---


def test_findings_are_in_the_order_of_time() -> None:
    dialogue = (
        Dialogue()
        .client(tool_call(1))
        .server(b"noise\n")
        .server(result(9))
        .add(Close(at_ns=9**9, stream=1, by="client", how="broken"))
    )
    assert dialogue.wait(9_000).closes().rules == ["unanswered-request", "stdout-noise", "unpaired-response"]


def test_findings_of_two_captures_are_not_counted_together() -> None:
    dialogues = [Dialogue(label).server(b"noise\n").closes() for label in ("one", "other")]
    findings = transcribe(*(dialogue.records for dialogue in dialogues)).findings
    assert [(finding.capture, finding.count) for finding in findings] == [(0, 1), (1, 1)]


def test_every_rule_says_why_it_matters_and_what_to_do() -> None:
    texts = [(rule.title, rule.what, rule.why, rule.blame, rule.advice, rule.example) for rule in RULES.values()]
    assert all(all(rule_texts) for rule_texts in texts)


def test_every_rule_has_a_kebab_case_name() -> None:
    assert all(name == rule.name and name.replace("-", "").isalnum() and name.islower() for name, rule in RULES.items())
