"""Pings that wait: whose fault that is, and pings about which there is nothing to say."""

import pytest

from tests.findings.test_near_misses import HANDSHAKE
from tests.findings.test_silences import findings_of

CALL = '→ tools/call 1 {"name":"report"}\n'

LEFT = {
    "a client that gives up": (
        f'{HANDSHAKE}{CALL}→ ping 2\n· 2.0 s later\n→ notifications/cancelled {{"requestId":2}}\n← result 1',
        ("server", "warning", "had not answered ping after 2.0 s, when the client gave up."),
    ),
    "a client that leaves": (
        f"{HANDSHAKE}{CALL}→ ping 2\n· 2.0 s later\n← result 1\n· the client closes stdin",
        ("server", "warning", "had not answered ping after 2.0 s, when the client left."),
    ),
    "a server that leaves": (
        f"{HANDSHAKE}← ping 2\n· 30.0 s later\n· the server exits 0",
        ("client", "warning", "had not answered ping after 30.0 s, when the server left."),
    ),
    "a server without ping": (
        f"{HANDSHAKE}→ ping 2\n← error 2 -32601 Method not found",
        ("server", "warning", "does not know ping"),
    ),
}


@pytest.mark.parametrize(("account", "expected"), LEFT.values(), ids=LEFT)
def test_the_side_that_was_pinged_is_to_blame(account: str, expected: tuple[str, str, str]) -> None:
    (finding,) = [found for found in findings_of(account) if "ping" in found.what]
    culprit, severity, words = expected
    assert (finding.rule, finding.culprit, finding.severity) == ("ping-unanswered", culprit, severity)
    assert words in finding.what


@pytest.mark.parametrize(
    "account",
    [
        f"{HANDSHAKE}→ ping 2\n← result 2",
        f"{HANDSHAKE}→ ping 2\n· 4.0 s later\n← result 2",
        f"{HANDSHAKE}→ ping 2\n· 0.5 s later\n· the client closes stdin",
    ],
)
def test_a_ping_that_was_answered_soon_or_hardly_waited_is_none(account: str) -> None:
    assert "ping-unanswered" not in {finding.rule for finding in findings_of(account)}


def test_a_server_that_died_is_not_also_slow_to_answer() -> None:
    found = {finding.rule for finding in findings_of(f"{HANDSHAKE}→ ping 2\n· 9.0 s later\n· the server exits 1")}
    assert "server-died" in found
    assert "ping-unanswered" not in found
