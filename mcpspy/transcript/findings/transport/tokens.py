"""The culprit of a refused token or key: the evidence of one capture in, a culprit with its reason and advice out.

    it worked before, and the client can get another        the client, which did not
    it worked before, and nothing shows a login             the configuration: it expired, or was revoked
    it never worked, and came out of a login                unclear: the client, or the server that issued it
    it never worked                                         the configuration

A client can get another if a login was seen, if it changed the token within a session, or if the server says where to log in.
"""

import re
from bisect import bisect_left
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ...http.transaction import Transaction
from ...model import HTTP_ERRORS
from ..facts import CaptureFacts
from ..rule import CONFIGURATION
from ..words import seconds
from .placeholders import AUTHORIZATION, credential

UNCLEAR: Final = "unclear"

_LOGIN_PATHS: Final = ("/token", "/register", "/authorize")
_names_credential = lazy_pattern(
    rb"\b(?:tokens?|api[ _-]?keys?|credentials?|bearer|unauthori[sz]ed|(?:not |un)authenticated|authentication|"
    rb"invalid[ _-](?:key|auth\w*)|log-?in)\b",
    re.IGNORECASE,
)
_says_nothing = lazy_pattern(
    rb"\s*(?:\{\s*\"(?:error|message|detail)\"\s*:\s*)?\"?(?:forbidden|access denied)?[.\"}\s]*", re.IGNORECASE
)


class _Evidence:
    """The tokens of a capture: when each was used first and when it was served, the first login, and whether a session has two."""

    def __init__(self, facts: CaptureFacts) -> None:
        self.first_ns: dict[str, int] = {}
        self.login_ns: int | None = None
        self.changes = False
        self._served: dict[str, list[int]] = {}
        of_session: dict[str, str] = {}
        for transaction in facts.capture.transactions.values():
            is_served = 0 < transaction.status < HTTP_ERRORS
            if is_served and self.login_ns is None and _is_of_login(transaction):
                self.login_ns = transaction.at_ns
            if not (token := credential(transaction)):
                continue
            self.first_ns.setdefault(token, transaction.at_ns)
            session = transaction.scope.session
            self.changes = self.changes or bool(session and of_session.setdefault(session, token) != token)
            if is_served and (transaction.request_messages or transaction.is_stream):
                self._served.setdefault(token, []).append(transaction.at_ns)

    def served_ns(self, token: str, until_ns: int) -> int | None:
        """Return when a message with this token was last served before; None if none was."""
        times = self._served.get(token, [])
        at = bisect_left(times, until_ns)
        return times[at - 1] if at else None


def _evidence(facts: CaptureFacts) -> _Evidence:
    """Return the evidence of a capture, which is gathered once."""
    known: _Evidence | None = facts.watchers.get(_Evidence)
    if known is None:
        known = facts.watchers[_Evidence] = _Evidence(facts)
    return known


class TokenFault(NamedTuple):
    """The culprit of a refused token, the sentence that says why, and what to do."""

    culprit: str
    blame: str
    advice: str


def token_fault(facts: CaptureFacts, refused: Transaction) -> TokenFault:
    """Say whose fault it is that a token was refused."""
    token, challenge, evidence = credential(refused), _challenge(refused), _evidence(facts)
    name = "token" if refused.request is not None and refused.request.head.get(AUTHORIZATION) else "key"
    served_ns, login_ns = evidence.served_ns(token, refused.at_ns), evidence.login_ns
    can_renew = login_ns is not None or evidence.changes or "resource_metadata" in challenge.lower()
    if served_ns is not None:
        worked = f"the {name} worked until {seconds(refused.at_ns - served_ns)} before, so that it expired or was revoked"
        if can_renew:
            advice = "Renew the token after 401: with the refresh token, or by a new login; or put a new one into the entry."
            return TokenFault(CLIENT, f"The client: {worked}, and the client came with no other.", advice)
        blame = f"The configuration of the client: {worked}, and nothing shows a login by which the client could get another."
        return TokenFault(CONFIGURATION, blame, f"Put a new {name} into the client's entry for the server.")
    if login_ns is not None and login_ns < evidence.first_ns[token]:
        blame = (
            "Unclear: the client got this token by a login, and the server does not take it. The client may have asked for another "
            "resource, or the server and the issuer of the token do not agree."
        )
        advice = "Compare the resource and the audience of the token with what the server expects, and read the server's log."
        return TokenFault(UNCLEAR, blame, advice)
    blame = f"The configuration of the client: the {name} that it was given never worked here: it is wrong, expired or foreign."
    advice = f"Put a valid {name} into the client's entry for the server"
    if "resource_metadata" in challenge.lower():
        advice += ", or take it out there, so that the client logs in"
    return TokenFault(CONFIGURATION, blame, f"{advice}.")


def scope_fault(facts: CaptureFacts, scope: str) -> TokenFault:
    """Say whose fault it is that a token lacks a scope: a client that logs in has to ask for it."""
    evidence = _evidence(facts)
    if evidence.login_ns is not None or evidence.changes:
        blame = "The client: it can log in, and after this answer it has to ask for a token with the scope."
        return TokenFault(CLIENT, blame, f"Log in again in the client and grant {scope}.")
    blame = "The configuration of the client: the token that it was given lacks the scope. A client that logs in asks for it."
    advice = f"Put a token that has {scope} into the client's entry, or log in again in the client and grant it."
    return TokenFault(CONFIGURATION, blame, advice)


def forbidden_fault(facts: CaptureFacts, refused: Transaction) -> TokenFault | None:
    """Say whose fault a 403 is that no scope explains; None if it says nothing of tokens, or if the token is known."""
    text = refused.refusal + _challenge(refused).encode("utf-8", "replace")
    names, token, evidence = bool(_names_credential.search(text)), credential(refused), _evidence(facts)
    if not token:
        if not names or evidence.first_ns:
            return None
        blame = "The configuration of the client: it has no token or key, and the server wants one."
        return TokenFault(CONFIGURATION, blame, "Put the token or key that the server wants into the client's entry.")
    if evidence.served_ns(token, refused.at_ns) is not None or not (names or _says_nothing.fullmatch(text)):
        return None
    return token_fault(facts, refused)


def _challenge(transaction: Transaction) -> str:
    return "" if transaction.response is None else transaction.response.head.get("www-authenticate")


def _is_of_login(transaction: Transaction) -> bool:
    path = transaction.target.partition("?")[0].rstrip("/")
    is_metadata = "/.well-known/oauth" in path or "/.well-known/openid" in path
    return is_metadata or (not transaction.request_messages and path.endswith(_LOGIN_PATHS))
