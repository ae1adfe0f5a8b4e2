"""The culprit of a request that mcpspy had to answer itself: its own words and the rest of the capture in, a culprit out.

A server that answered in this capture was there, and ended or was not ready yet. Where nobody ever answered, the URL is to blame, or
that the server was not started: as on stdio, that is the configuration.
"""

import re
from bisect import bisect_left
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, MCPSPY, SERVER
from ...http.transaction import Transaction
from ..facts import CaptureFacts
from ..rule import CONFIGURATION
from ..words import seconds

UNCLEAR: Final = "unclear"

_HELLO: Final = b"begins like TLS"
"""In what mcpspy answers to a TLS handshake."""
_HTTP2: Final = b"begins HTTP/2"
"""In what mcpspy answers to the first line of HTTP/2."""
_SWITCHED: Final = b"it switched to"
_ALERT: Final = b"it is a TLS alert"
_TOO_LONG: Final = b"the head is larger"
_MISDIRECTED: Final = 421


class Fault(NamedTuple):
    """A culprit, the sentence that says why, and what to do."""

    culprit: str
    blame: str
    advice: str


_CHECK_URL: Final = (
    "Compare host and port of the URL with what the server prints when it starts, and start it if it does not run."
)

WANTS_TLS: Final = Fault(
    CONFIGURATION,
    "The configuration: the URL says http, and the port speaks TLS.",
    "Write https in the place of http in the URL of the server, here in the one that mcpspy was given.",
)

_BY_REASON: Final = (
    (
        lazy_pattern(rb"WRONG_VERSION_NUMBER|record layer failure|HTTP_REQUEST|packet length too long", re.IGNORECASE),
        Fault(
            CONFIGURATION,
            "The configuration: the URL says https, and what answers at its port speaks no TLS.",
            "Write http in the place of https in the server's URL, or name the port that speaks TLS.",
        ),
    ),
    (
        lazy_pattern(rb"certificate has expired|not yet valid", re.IGNORECASE),
        Fault(
            SERVER,
            "The server: its certificate is not valid at this time.",
            "Renew the certificate of the server, and look at the clocks.",
        ),
    ),
    (
        lazy_pattern(rb"mismatch|not valid for", re.IGNORECASE),
        Fault(
            UNCLEAR,
            "Unclear: the configuration, whose URL names the host in another way than its certificate, or the server, which has the "
            "certificate of another host.",
            "Use a name that the certificate has, or give the server a certificate for this one.",
        ),
    ),
    (
        lazy_pattern(rb"CERTIFICATE_VERIFY_FAILED|self-signed", re.IGNORECASE),
        Fault(
            UNCLEAR,
            "Unclear: the server, whose certificate nobody here has issued, or the configuration, which does not trust its issuer.",
            "Name the issuer with --ca FILE; --insecure does without the check, for a server of your own.",
        ),
    ),
    (
        lazy_pattern(
            rb"name or service not known|no address associated|nodename nor servname|idna|label (?:empty|too long)", re.IGNORECASE
        ),
        Fault(
            CONFIGURATION,
            "The configuration: the host that the URL names does not exist, as this machine resolves names.",
            "Correct the host in the server's URL; a name of a container or of a private network is known only there.",
        ),
    ),
    (
        lazy_pattern(rb"temporary failure in name resolution", re.IGNORECASE),
        Fault(
            UNCLEAR,
            "Unclear: the configuration, if the URL names a host that does not exist, or the network: no name could be looked up.",
            "Look the name up (getent hosts NAME), and correct the host in the server's URL if it is unknown.",
        ),
    ),
    (
        lazy_pattern(rb"refused", re.IGNORECASE),
        Fault(
            CONFIGURATION,
            "The configuration: nobody has ever answered at this URL. Its port is wrong, or the server was not started.",
            _CHECK_URL,
        ),
    ),
    (
        lazy_pattern(rb"closed the connection|connection reset|EOF occurred", re.IGNORECASE),
        Fault(
            UNCLEAR,
            "Unclear: the configuration, if the port belongs to another program or speaks TLS, or the server, if it failed. It "
            "closed the connection, and has never answered here.",
            "Try https in the URL, compare the port with the server's, and read the server's log.",
        ),
    ),
)  # fmt: skip
"""Words in mcpspy's own answers with what they mean where nobody ever answered, the most telling first."""

_NO_WAY: Final = Fault(
    UNCLEAR,
    "Unclear: the configuration, if the URL names a wrong host, or the network before the server. Nobody has ever answered here.",
    "Try to reach the host from this machine, and compare host and port of the URL with the server's.",
)
_is_of_tls = lazy_pattern(rb"SSL|certificate", re.IGNORECASE)


def upstream_fault(facts: CaptureFacts, transaction: Transaction, reason: bytes) -> Fault:
    """Say whose fault it is that the server could not be reached, or did not respond."""
    by_reason = next((fault for says, fault in _BY_REASON if says.search(reason)), _NO_WAY)
    if facts.capture.is_model:
        return Fault("api" if by_reason.culprit == SERVER else by_reason.culprit, by_reason.blame, by_reason.advice)
    answered = _answers(facts)
    at = bisect_left(answered, transaction.at_ns)
    before = answered[at - 1] if at else None
    if _is_of_tls.search(reason) or not answered:
        return by_reason
    if before is None:
        blame = f"The server: it was not ready yet, and first answered {seconds(answered[0] - transaction.at_ns)} later."
        return Fault(SERVER, blame, "Start the server before its clients, or let the client try again.")
    ended = "it closed the connection" if b"closed the connection" in reason else "nobody took the connection"
    blame = (
        f"The server: it had answered {seconds(transaction.at_ns - before)} before, and then {ended}. It ended, or is stuck."
    )
    return Fault(SERVER, blame, "Read the end of the server's log, and start it again.")


def _answers(facts: CaptureFacts) -> list[int]:
    """Return the times at which the server itself answered, in order; they are gathered once."""
    known: list[int] | None = facts.shared.get(_answers)
    if known is None:
        responses = (transaction.response for transaction in facts.capture.transactions.values())
        times = sorted(response.at_ns for response in responses if response is not None and not response.injected)
        known = facts.shared[_answers] = times
    return known


def unread_fault(reason: bytes) -> Fault:
    """Say whose fault it is that a response could not be read; an empty blame and advice are the rule's."""
    if _SWITCHED in reason:
        blame = "mcpspy: it reads HTTP/1.x, and passes on what follows a switch as it comes."
        return Fault(MCPSPY, blame, "Let the client make no offer to switch, or leave this server out of mcpspy.")
    if _TOO_LONG in reason:
        return Fault(MCPSPY, "mcpspy: the head is longer than it can read.", "Let the server send fewer or shorter fields.")
    return WANTS_TLS if _ALERT in reason else Fault(SERVER, "", "")


def refusal_fault(_: CaptureFacts, transaction: Transaction, reason: bytes) -> Fault:
    """Say whose fault a request is that mcpspy itself refused; an empty advice is the rule's."""
    if _HELLO in reason:
        blame = "The configuration of the client: its URL says https. mcpspy listens with HTTP, and speaks TLS to the server."
        return Fault(CONFIGURATION, blame, "Give the client the URL that mcpspy printed, which begins with http.")
    if _HTTP2 in reason:
        blame = "The configuration of the client: it starts with HTTP/2 without asking, and mcpspy speaks HTTP/1.1."
        return Fault(CONFIGURATION, blame, "Let the client speak HTTP/1.1 to mcpspy, or let it ask first (Upgrade: h2c).")
    if transaction.status == _MISDIRECTED:
        blame = (
            "The configuration of the client: its URL names a host that mcpspy does not know as its own. Or a web page sent it."
        )
        return Fault(CONFIGURATION, blame, "")
    return Fault(CLIENT, "The client: the request is not valid for an address of mcpspy.", "")
