"""Equal findings are one, and rules that did not look at everything are reported."""

import sys

import pytest

from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.transcript.findings.protocol.types import MAX_EACH, NOT_AS_SPECIFIED
from mcpspy.transcript.findings.rule import Unchecked
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.check.text import check_lines
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.summary import summary
from tests.transcript.dialogue import Dialogue, error, make_header, notification, request, result
from tests.views.check.checking import checked

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}


def opened() -> Dialogue:
    return Dialogue().client(request(0, "initialize", INITIALIZE)).server(result(0, INITIALIZED)).client(notification())


def call(id: int, answer: dict[str, object], tool: str = "clock") -> tuple[dict[str, object], dict[str, object]]:
    return request(id, "tools/call", {"name": tool, "arguments": {}}), result(id, answer)


def rules_of(dialogue: Dialogue) -> list[str]:
    return [finding.rule for finding in dialogue.transcript.findings]


def test_equal_findings_are_one_with_all_their_rows() -> None:
    dialogue = opened()
    for id in (1, 2, 3):
        dialogue.client(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\r\n' % id).server(result(id))
    (finding,) = [finding for finding in dialogue.ends().transcript.findings if finding.rule == "crlf"]
    assert (finding.count, finding.row, finding.rows) == (3, 3, (3, 4, 5))


def test_equal_calls_with_equal_answers_are_repeated() -> None:
    dialogue = opened()
    for id in (1, 2, 3):
        asked, answered = call(id, {"content": [{"type": "text", "text": "noon"}]})
        dialogue.client(asked).server(answered)
    assert rules_of(dialogue.ends()) == ["repeated-call"]


def test_equal_calls_whose_answers_differ_are_not_repeated() -> None:
    dialogue = opened()
    for id in (1, 2, 3):
        asked, answered = call(id, {"content": [{"type": "text", "text": f"minute {id}"}]})
        dialogue.client(asked).server(answered)
    assert rules_of(dialogue.ends()) == []


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    limits: dict[Unchecked, None] = {}
    unusual = opened().client(request(1, "ping", {"_meta": {"progressToken": 1.5}})).server(result(1))
    all_findings(unusual.ends().transcript, limits=limits)
    (unchecked,) = limits
    assert (unchecked.rules, unchecked.did_run) == ((NOT_AS_SPECIFIED.name,), True)
    assert "pip install mcp-types" in unchecked.reason


def test_a_limit_that_was_reached_is_reported() -> None:
    dialogue = opened()
    for id in range(1, MAX_EACH + 2):
        dialogue.client(request(id, "ping")).server(result(id))
    limits: dict[Unchecked, None] = {}
    all_findings(dialogue.ends().transcript, limits=limits)
    assert [(unchecked.rules, unchecked.did_run) for unchecked in limits] == [((NOT_AS_SPECIFIED.name,), True)]


def test_a_session_within_all_limits_has_none() -> None:
    limits: dict[Unchecked, None] = {}
    all_findings(opened().ends().transcript, limits=limits)
    assert limits == {}


def with_tool(label: str, argv: str, began_ns: int = 0) -> Dialogue:
    header = make_header(label=label, wall_ns=10**18 + began_ns, monotonic_ns=began_ns)
    header.tapped["argv"] = [argv]
    dialogue = Dialogue(header=header).client(request(1, "tools/list"))
    return dialogue.server(result(1, {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]})).ends()


@pytest.mark.parametrize(
    ("label", "argv", "began_ns", "times"),
    [("b", "b", 0, 1), ("b", "a", 0, 0), ("a", "b", 0, 0), ("b", "b", 3_600_000_000_000, 0)],
    ids=["two-servers", "one-command", "one-label", "another-hour"],
)
def test_a_tool_name_is_shared_by_two_servers_at_one_time(label: str, argv: str, began_ns: int, times: int) -> None:
    transcript = transcribe(with_tool("a", "a").records, with_tool(label, argv, began_ns).records)
    assert [finding.rule for finding in all_findings(transcript, rules=["shared-tool-name"])] == ["shared-tool-name"] * times


def test_show_and_check_begin_with_the_same_sign() -> None:
    for dialogue, sign in (
        (opened(), "✓"),
        (opened().client(request(1, "vendor/unknown")).server(error(1)), "⚑"),
        (opened().server(b"noise\n"), "✗"),
    ):
        check = checked(dialogue.ends())
        check.transcript.credentials = CredentialSearch()  # as the command line does
        assert (plain(summary(check.transcript)[0])[0], plain(list(check_lines(check))[-1])[0]) == (sign, sign)
