"""A cancellation after an answer: the side that answered is to blame where the answer could not be recognised."""

import pytest

from tests.findings.test_silences import findings_of

CALL = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n'
CANCEL = '· 5.0 s later\n→ notifications/cancelled {"requestId":1,"reason":"timed out"}'
POST = '· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  tools/call 1 {"name":"count"}\n'
CANCEL_POST = '· 5.0 s later\n→ POST /mcp\n  notifications/cancelled {"requestId":1}\n← 202 Accepted'

CASES = {
    "an answer that is sound": (f"{CALL}← result 1\n{CANCEL}", "client", "had the response a second before"),
    "an id of another type": (f'{CALL}← result "1"\n{CANCEL}', "server", 'its answer has the id "1" for 1'),
    "an answer that is no JSON-RPC 2.0": (
        f'{CALL}← {{"id":1,"result":{{}}}}\n{CANCEL}',
        "server",
        'its answer has no "jsonrpc": "2.0"',
    ),
    "an answer without UTF-8": (
        f'{CALL}← {{"jsonrpc":"2.0","id":1,"result":{{"a":"\\xe9"}}}}\n{CANCEL}',
        "server",
        "its answer is not valid UTF-8",
    ),
    "an answer whose line ends in CR LF, which clients accept": (
        f'{CALL}← {{"jsonrpc":"2.0","id":1,"result":{{}}}}\\r\n{CANCEL}',
        "client",
        "had the response",
    ),
    "an answer with the status of an error": (
        f"{POST}← 500 Internal Server Error\n  Content-Type: application/json\n  result 1\n{CANCEL_POST}",
        "server",
        "its answer came with the status 500",
    ),
    "an answer in an event without a name": (
        f"{POST}← 200 OK\n  Content-Type: text/event-stream\n  data: result 1\n{CANCEL_POST}",
        "client",
        "had the response",
    ),
}


@pytest.mark.parametrize(("account", "culprit", "blame"), CASES.values(), ids=list(CASES))
def test_a_late_cancellation_is_blamed_by_what_the_answer_was_like(account: str, culprit: str, blame: str) -> None:
    (finding,) = [finding for finding in findings_of(account) if finding.rule == "late-cancellation"]
    assert finding.culprit == culprit
    assert blame in finding.blame
