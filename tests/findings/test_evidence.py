"""Tests of what findings quote, which times they name, and whom they do not blame."""

import pytest

from mcpspy.transcript.findings.rule import HANDSHAKE, Finding
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.test_near_misses import CALL, SESSION, SSE

HALF = '← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}…\n· 8.0 s later\n'
FAST = "\n".join(f'→ tools/call {at} {{"name":"slow","arguments":{{"at":{at}}}}}\n← result {at}' for at in range(2, 8))


def found(account: str) -> list[Finding]:
    return findings(transcribe(records(account)))


def test_a_server_that_died_is_quoted_with_the_error_above_its_stack() -> None:
    stack = "\n".join(f"!     at f{at} (/app/index.js:{at}:1)" for at in range(30))
    (finding,) = found(f"→ tools/list 1\n! TypeError: x is undefined\n{stack}\n· the server exits 1")
    assert "its last error on stderr: “TypeError: x is undefined”, and its last lines: “at f27" in finding.what


@pytest.mark.parametrize(
    ("line", "code", "rule"),
    [
        ("sh: 1: weather-server: not found", 127, "server-not-started"),
        ("python: can't open file '/opt/server': [Errno 2] No such file or directory", 2, "server-not-started"),
        ("FileNotFoundError: No such file or directory: 'config.json'", 1, "server-died"),
    ],
)
def test_a_command_or_a_file_that_does_not_exist_is_a_fault_of_the_configuration(line: str, code: int, rule: str) -> None:
    (finding,) = found(f"→ tools/list 1\n! {line}\n· the server exits {code}")
    assert (finding.rule, finding.culprit) == (rule, "configuration")


def test_a_server_that_answered_and_then_missed_a_program_died() -> None:
    (finding,) = found("→ tools/list 1\n← result 1\n! sh: 1: server: not found\n· the server exits 127")
    assert finding.rule == "server-died"


def test_a_log_record_in_json_is_noise_of_a_logger() -> None:
    (finding,) = found('← {"level":30,"time":1,"pid":1,"hostname":"h","msg":"ready"}')
    assert (finding.rule, "a record of the logger pino" in finding.what) == ("stdout-noise", True)


@pytest.mark.parametrize(("sign", "side"), [("→", "client"), ("←", "server")])
def test_headers_before_messages_are_one_fault_of_their_sender(sign: str, side: str) -> None:
    message = '{"jsonrpc":"2.0","method":"notifications/x"}'
    written = "\n".join(f"{sign} {line}" for line in ("Content-Length: 44\\r", "\\r", f"{message}Content-Length: 44\\r", "\\r"))
    (finding,) = found(written)
    assert (finding.rule, finding.culprit, finding.count) == ("malformed-message", side, 2)
    assert "Language Server Protocol" in finding.what
    assert "one line" in finding.advice


def test_a_line_that_is_not_about_its_own_length_is_noise() -> None:
    (finding,) = found("← Content-Length is not set")
    assert finding.rule == "stdout-noise"


def test_half_a_line_says_how_long_its_end_did_not_come() -> None:
    (finding,) = found(f"{HALF}· the client closes stdin")
    assert "The line feed after a whole message on stdout did not come in the 8.0 s until the end" in finding.what


def test_an_undeclared_log_message_is_to_be_declared() -> None:
    (finding,) = found('· handshake 2025-11-25, server: tools\n← notifications/message {"level":"info","data":"x"}')
    assert finding.advice == "Declare logging ({}) in the server's capabilities, or do not send notifications/message."


def test_a_cut_stream_is_to_be_looked_for_in_logs_and_time_limits() -> None:
    stream = "→ POST /mcp\n  tools/list 1\n← 200 OK\n  : ping\n· 60.0 s later\n· the server breaks off the stream, broken"
    (finding,) = [each for each in found(stream) if each.rule == "unanswered-request"]
    assert "it broke off its response 60.0 s after the request" in finding.what
    assert "time limit" in finding.advice


def test_a_call_that_waited_for_its_own_reader_is_no_slow_call() -> None:
    account = f'{HANDSHAKE}{FAST}\n→ tools/call 1 {{"name":"slow"}}\n· stdout stalls: 9 bytes waiting\n· 4.0 s later\n'
    account += "· stdout flows again after 3.9 s\n← result 1"
    assert [finding.rule for finding in found(account)] == ["reader-stalled"]


@pytest.mark.parametrize(("later", "rules"), [(9, ["reader-stalled"]), (40_000, ["reader-stalled", "slow-call"])])
def test_a_call_that_its_server_read_late_is_no_slow_call(later: int, rules: list[str]) -> None:
    account = f'{HANDSHAKE}{FAST}\n→ tools/call 1 {{"name":"slow"}}\n→ ping 8 {{"_meta":{{"x":"{"x" * later}"}}}}\n'
    account += "· stdin stalls: 9 bytes waiting\n· 4.0 s later\n· stdin flows again after 3.9 s\n← result 1\n← result 8"
    assert sorted(finding.rule for finding in found(account)) == rules


@pytest.mark.parametrize(("later", "words"), [(9, "it stopped reading stdin before"), (40_000, "it received the request")])
def test_a_call_that_its_server_never_read_was_not_received(later: int, words: str) -> None:
    account = f'{CALL}→ ping 8 {{"_meta":{{"x":"{"x" * later}"}}}}\n· stdin stalls: 9 bytes waiting\n· 9.0 s later\n'
    (finding,) = [each for each in found(f"{account}· the client closes stdin") if each.row == 3]
    assert words in finding.blame
    assert finding.culprit == "server"


def test_a_client_that_gives_up_while_it_does_not_read_is_to_blame_itself() -> None:
    account = f'{CALL}· stdout stalls: 9 bytes waiting\n· 60.0 s later\n→ notifications/cancelled {{"requestId":1}}'
    assert {(finding.rule, finding.culprit) for finding in found(account)} == {
        ("reader-stalled", "client"),
        ("timed-out", "client"),
    }


@pytest.mark.parametrize(
    ("reason", "rule"),
    [
        ("User pressed stop", "given-up"),
        ("The user aborted a request.", "given-up"),
        ("stopped by user", "given-up"),
        ("UserCancelled", "given-up"),
        ("Keyboard interrupt", "given-up"),
        ("Operator clicked Stop", "given-up"),
        ("Cancelled", "timed-out"),
        ("AbortError", "timed-out"),
        ("personal quota", "timed-out"),
        ("the request of the user timed out", "timed-out"),
    ],
)
@pytest.mark.parametrize("waited_s", ["10.0", "30.0", "60.0"])
def test_what_a_person_cancelled_did_not_time_out(waited_s: str, reason: str, rule: str) -> None:
    account = f'{CALL}· {waited_s} s later\n→ notifications/cancelled {{"requestId":1,"reason":"{reason}"}}'
    assert [finding.rule for finding in found(account)] == [rule]


ASKS = f'{CALL}← elicitation/create 5 {{"message":"Sure?","requestedSchema":{{"type":"object","properties":{{}}}}}}\n· 9.0 s later\n'
CLOSED = "→ error 5 -32000 Connection closed\n"


@pytest.mark.parametrize(
    ("end", "culprit", "words"),
    [
        (f"{CLOSED}· the client closes stdin", "client", "answered that with an error after 9.0 s"),
        ('→ result 5 {"action":"accept"}\n· the client closes stdin', "client", "answered that with a result after 9.0 s"),
        (f"{CLOSED}· 6.0 s later\n· the client closes stdin", "server", "the client left first, after 15.0 s"),
    ],
    ids=["an error at the end", "a result at the end", "an error long before"],
)
def test_a_client_that_answers_only_when_it_leaves_kept_its_own_call_waiting(end: str, culprit: str, words: str) -> None:
    (finding,) = [each for each in found(ASKS + end) if each.rule == "unanswered-request"]
    assert words in finding.what
    assert finding.culprit == culprit


def test_a_server_that_had_the_answer_for_an_instant_did_not_time_out() -> None:
    account = ASKS.replace("9.0", "10.0") + CLOSED + '→ notifications/cancelled {"requestId":1}'
    (finding,) = [each for each in found(account) if each.rule == "timed-out"]
    assert (finding.culprit, finding.severity) == ("client", "note")


def test_a_person_who_leaves_a_question_over_http_is_noted_as_on_stdio() -> None:
    asks = '← data: elicitation/create 5 {"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}'
    session = SESSION.replace("server:", "client: elicitation, server:")
    account = f"{session}→ POST /mcp\n  tools/call 3\n{SSE}{asks}\n· 9.0 s later\n· the client closes the stream"
    left = [each for each in found(account) if each.rule == "unanswered-request"]
    assert [(finding.culprit, finding.severity) for finding in left] == [("client", "note"), ("client", "note")]


WORKS = (
    '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"a","task":{}}\n'
    '← result 1 {"task":{"taskId":"t","status":"working","ttl":60000}}\n'
)
DONE = '→ tasks/get 2 {"taskId":"t"}\n← result 2 {"taskId":"t","status":"completed","ttl":60000}\n'


@pytest.mark.parametrize(("before", "expected"), [("", ("unclear", "note")), (DONE, ("server", "error"))])
def test_the_result_of_a_task_is_due_once_the_task_has_ended(before: str, expected: tuple[str, str]) -> None:
    account = f'{WORKS}{before}→ tasks/result 3 {{"taskId":"t"}}\n· 9.0 s later\n· the client closes stdin'
    (finding,) = [each for each in found(account) if each.rule == "unanswered-request"]
    assert (finding.culprit, finding.severity) == expected


RETRIES = "! Call failed and is tried again in 2 s\n! Connect call failed ('127.0.0.1', 7687)\n"
LEAVES = "· 9.0 s later\n· the client closes stdin\n· the server exits 0"
CANCELS = '· 60.0 s later\n→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n'


@pytest.mark.parametrize("end", [LEAVES, CANCELS])
def test_a_call_without_an_answer_quotes_what_the_server_wrote_meanwhile(end: str) -> None:
    (finding,) = found(f"{CALL}{RETRIES}{end}")
    assert "It wrote to stderr meanwhile: “Connect call failed ('127.0.0.1', 7687)”" in finding.what
    assert finding.culprit == "server"
    assert "tries to reach" in finding.advice


@pytest.mark.parametrize("end", [LEAVES, CANCELS])
def test_what_the_server_wrote_before_or_after_a_call_is_not_quoted(end: str) -> None:
    before = CALL.replace("→ tools/call 1", f"{RETRIES}· 1.0 s later\n→ tools/call 1")
    (finding,) = found(before + end.replace("· the server exits 0", f"· 0.1 s later\n{RETRIES}· the server exits 0"))
    assert "stderr" not in finding.what
    assert "tries to reach" not in finding.advice


OTHER = '→ tools/call 2 {"name":"find"}\n! Tool error: "status": "error",\n'


@pytest.mark.parametrize("answer", ["← result 2\n", "· 0.1 s later\n← result 2\n· 1.0 s later\n! done\n"])
def test_lines_about_a_later_call_are_not_quoted_for_an_earlier_one(answer: str) -> None:
    (finding,) = found(f"{CALL}! connection error; retrying in 5 s\n· 8.0 s later\n{OTHER}{answer}{LEAVES}")
    assert "It wrote to stderr meanwhile: “connection error; retrying in 5 s”" in finding.what
    assert "tries to reach" in finding.advice


def test_lines_while_a_later_call_waits_are_quoted_if_there_are_no_others() -> None:
    (finding,) = found(f"{CALL}· 8.0 s later\n{OTHER}← result 2\n{LEAVES}")
    assert "It wrote to stderr meanwhile: “Tool error" in finding.what


RICH = "! [11/23/26 14:54:32] WARNING  Retry after 2.19s. Error: Failed to    retry.py:161\n"
RICH += "! ⟪ ×29⟫connect to https://weather.example\n"


def test_a_record_that_the_logger_wraps_is_quoted_whole() -> None:
    (finding,) = found(f"{CALL}{RICH}! ⟪ ×21⟫INFO     Next attempt in 4 s\n{LEAVES}")
    assert finding.what.endswith(
        "“[11/23/26 14:54:32] WARNING  Retry after 2.19s. Error: Failed to connect to https://weather.example”"
    )
    assert "tries to reach" in finding.advice


def test_a_call_that_is_answered_while_the_server_retries_is_no_finding() -> None:
    assert not found(f"{CALL}{RETRIES}· 9.0 s later\n← result 1")


STALL = "· stdin stalls: 65536 bytes waiting\n· 8.0 s later\n"
FLOWS = "· stdin flows again after 8.0 s\n"


def test_nobody_is_blamed_for_half_a_line_while_its_reader_does_not_read() -> None:
    stalled = f"· stdout stalls: 65536 bytes waiting\n{HALF}· stdout flows again after 10.0 s\n"
    assert "half-line" not in [finding.rule for finding in found(stalled)]


def test_half_a_line_after_a_stall_is_found() -> None:
    flowing = f"· stdout stalls: 65536 bytes waiting\n· 2.0 s later\n· stdout flows again after 2.0 s\n· 1.0 s later\n{HALF}"
    assert ("half-line", "server") in [(finding.rule, finding.culprit) for finding in found(flowing)]


def test_stalls_of_one_reader_are_one_finding() -> None:
    stalls = [
        finding.count
        for finding in found(f"{CALL}{STALL}{FLOWS}· 1.0 s later\n{STALL}{FLOWS}")
        if finding.rule == "reader-stalled"
    ]
    assert stalls == [2]


AGAIN = '→ tools/call 2 {"name":"slow"}\n← result 1\n← result 2'


def test_calls_that_the_server_read_late_were_perhaps_sent_together() -> None:
    assert [finding.rule for finding in found(f"{CALL}{STALL}{AGAIN}\n{FLOWS}")] == ["reader-stalled"]


def test_a_call_is_sent_again_if_the_server_reads() -> None:
    assert "resent-call" in [finding.rule for finding in found(f"{CALL}· 8.0 s later\n{AGAIN}")]


def test_a_later_request_that_came_in_the_same_read_is_called_later() -> None:
    (finding,) = found(f'{CALL}→ tools/call 2 {{"name":"fast"}}\n← result 2\n{LEAVES}')
    assert "Meanwhile the server answered the later tools/call fast (row 4)." in finding.what
