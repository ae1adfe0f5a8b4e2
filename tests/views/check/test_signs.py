"""The sign of the first line, in show and in check: ✓ only where nothing was given up, waits, was refused, ended by force or cut."""

import pytest

from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.records import Note
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import Transcriber, transcribe
from mcpspy.views.check.model import CheckResult
from mcpspy.views.check.text import check_lines
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.summary import summary
from tests.findings.account import records

CALL = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow"}\n'
SESSION = "· HTTP\n· handshake 2025-11-25, server: tools\n"
TOOLS = '→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}\n'
LOGIN = "→ POST /mcp\n  tools/list 9\n← 401 Unauthorized\n"
STREAM = "→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
LISTEN = '· revision 2026-07-28\n→ subscriptions/listen 1 {"notifications":{"toolsListChanged":true}}\n'

FLAGGED = {
    "a call that was given up": (f'{CALL}→ notifications/cancelled {{"requestId":1}}', "1 cancelled"),
    "a refused notification": (
        f"{SESSION}{TOOLS}→ POST /mcp\n  notifications/roots/list_changed\n← 400 Bad Request",
        "1 refused message",
    ),
    "a stream that broke off": (f"{SESSION}{TOOLS}{STREAM}· the server breaks off the stream, broken", "1 cut stream"),
}
WELL = {
    "a call": f"{CALL}← result 1",
    "a subscription that its client ended": f'{LISTEN}→ notifications/cancelled {{"requestId":1}}',
    "a server without a stream for GET": f"{SESSION}{TOOLS}→ GET /mcp\n← 405 Method Not Allowed",
    "a stream that its client closed": f"{SESSION}{TOOLS}{STREAM}· the client closes the stream",
}


def first_lines(transcript: Transcript) -> list[str]:
    """Return the first line of `mcpspy show`, and the totals of `mcpspy check`, both without findings."""
    transcript.findings = []
    transcript.credentials = CredentialSearch()  # as the command line does, so that all rules count as run
    check = CheckResult(transcript=transcript, findings=[], rules=RULES, fail_on=Severity.WARNING, paths={0: "a.mcpspy"})
    return [plain(summary(transcript)[0]), plain(next(check_lines(check)))]


@pytest.mark.parametrize(("account", "words"), FLAGGED.values(), ids=list(FLAGGED))
def test_what_is_not_well_has_no_check_mark_and_is_counted(account: str, words: str) -> None:
    for line in first_lines(transcribe(records(account))):
        assert line.startswith("⚑ ")
        assert words in line


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_what_is_well_has_a_check_mark(account: str) -> None:
    assert [line[0] for line in first_lines(transcribe(records(account)))] == ["✓", "✓"]


def test_a_server_that_had_to_be_ended_by_force_is_counted() -> None:
    ended = records(f"{CALL}← result 1")
    ended.insert(-1, Note(at_ns=ended[-1].at_ns, topic="escalation", text="SIGTERM to server (101): stdin is closed"))
    for line in first_lines(transcribe(ended)):
        assert line.startswith("⚑ ")
        assert "1 forced stop" in line


def test_a_call_that_waits_has_the_sign_of_waiting() -> None:
    transcriber = Transcriber()
    for record in records(f"{CALL}· the capture breaks off"):
        transcriber.feed(record)
    for line in first_lines(transcriber.transcript):
        assert line.startswith("… ")
        assert "1 pending" in line


def test_a_call_that_waited_until_the_recording_broke_off_is_not_well_in_a_check() -> None:
    line = first_lines(transcribe(records(f"{CALL}· the capture breaks off")))[1]
    assert line.startswith("⚑ nothing found in 2 calls of 1 capture · 1 unanswered")


def test_a_401_before_a_login_is_no_refusal_and_one_without_a_login_is() -> None:
    lines = [first_lines(transcribe(records(account)))[1] for account in (f"{SESSION}{LOGIN}{TOOLS}", f"{SESSION}{LOGIN}")]
    assert [line[0] for line in lines] == ["✓", "⚑"]
    assert "1 refused call" in lines[1]
