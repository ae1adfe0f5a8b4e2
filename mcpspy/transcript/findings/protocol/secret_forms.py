"""Findings about forms in which a server asks for a secret.

Source: MCP specification, client/elicitation: a server must not ask for passwords, keys, tokens or payment data in a form. From
2025-11-25 on it sends the user to a URL for that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ....lazy_pattern import lazy_pattern
from ....records import SERVER
from ...mcp.blocks import member
from ...mcp.codes import INPUT_REQUIRED
from ..rule import Hit, hit_in, trust_rule
from ..words import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model import Message
    from ..facts import CaptureFacts

_ASKS: Final = (
    '· handshake 2025-11-25, client: elicitation\n← elicitation/create 1 {"message":"Log in.","requestedSchema":'
    '{"type":"object","properties":{"%s":{"type":"string"}}}}\n→ result 1 {"action":"decline"}'
)

SECRET_ASKED: Final = trust_rule(
    name="secret-asked",
    title="Secret asked for in a form",
    what="A server asks its user in a form for a password, a key, a token or payment data.",
    why="The client, its logs and perhaps the model get the secret, and a hostile server can ask for any.",
    blame="The server: it must not ask for secrets in a form (client/elicitation).",
    example=_ASKS % "password",
    clean=_ASKS % "user_name",
    advice="Ask with mode: url, which opens a page of the server's own, or let the user set the secret up before the server starts.",
)

RULES: Final = (SECRET_ASKED,)

_METHOD: Final = "elicitation/create"
_is_secret = lazy_pattern(
    r"(?:.*[^a-z])?(?:passwords?|passwd|passphrase|secret|(?:api|access|private|secret)[ _-]?key"
    r"|(?:access|auth|bearer|api)[ _-]?token"
    r"|credit[ _-]?card(?:[ _-]?number)?|card[ _-]?number|cvv|cvc|one[ _-]?time[ _-]?code|otp)",
    re.IGNORECASE,
)
_humps = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
_MAX_LETTERS: Final = 100


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find forms that ask for secrets: in requests of servers, and in the results of the modern era."""
    if any(key[0] == _METHOD for key in facts.requests):
        for exchange in facts.exchanges:
            if exchange.method == _METHOD and exchange.sender == SERVER:
                yield from _asked(exchange.row, exchange.request, exchange.request.params)
    for exchange in facts.unfinished:
        response = exchange.response
        if response is not None and response.result_type == INPUT_REQUIRED:
            questions = member(response.result, "inputRequests")
            for question in questions.values() if isinstance(questions, dict) else ():
                if member(question, "method") == _METHOD:
                    yield from _asked(exchange.row, response, member(question, "params"))


def _asked(row: int, message: Message, form: Any) -> Iterator[Hit]:
    fields = member(form, "requestedSchema", "properties")
    if member(form, "mode") == "url" or not isinstance(fields, dict):
        return
    for name, field in fields.items():
        words = [name, member(field, "title")]
        if member(field, "type") == "string" and any(isinstance(word, str) and _names_secret(word) for word in words):
            what = f"The server asks in a form for {quoted(name)}."
            yield hit_in(SECRET_ASKED, message, row, what, group=name)


def _names_secret(word: str) -> bool:
    return _is_secret.fullmatch(_humps.sub(" ", word[:_MAX_LETTERS])) is not None
