"""Findings about answers to forms that do not fit the schema that asked for them. They are optional.

Source: MCP specification, client/elicitation of 2025-06-18 to 2026-07-28.
"""

from collections.abc import Iterator
from typing import Any, Final

from ....lazy_pattern import lazy_pattern
from ...calls.call import CallPart
from ...mcp.blocks import member
from ...mcp.codes import INPUT_REQUIRED
from ...model import Exchange, Kind, Message
from ..facts import CaptureFacts
from ..json_schema import Validators
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import quoted
from .contents import PSEUDONYM

_ASKED: Final = (
    '· handshake 2025-11-25, client: elicitation\n← elicitation/create 1 {"message":"How old?","requestedSchema":'
    '{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}}\n'
)

FORM_ANSWER_INVALID: Final = protocol_rule(
    name="form-answer-invalid",
    title="Answer does not fit its form",
    severity=Severity.ERROR,
    what="The content of an accepted elicitation does not match the requestedSchema of the form.",
    why="The server asked for these fields in these types: it fails, or goes on with wrong values.",
    blame="The client: it has to check what its user entered before it sends it.",
    example=f'{_ASKED}→ result 1 {{"action":"accept","content":{{"age":"forty"}}}}',
    clean=f'{_ASKED}→ result 1 {{"action":"accept","content":{{"age":40}}}}',
    advice="Validate the form against requestedSchema, convert numbers and booleans, and send all required fields.",
)

RULES: Final = (FORM_ANSWER_INVALID,)


_METHOD: Final = "elicitation/create"


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find accepted forms with content that their schema does not allow: as responses, or in retries of the modern era."""
    validators = Validators()
    if any(key[0] == _METHOD for key in facts.requests):
        for exchange in facts.exchanges:
            if exchange.method == _METHOD and exchange.response is not None and exchange.response.kind is Kind.RESULT:
                answer = exchange.response
                yield from _answer(validators, exchange, answer, exchange.request.params, answer.result)
    for call in facts.joined_calls:
        input_requests: Any = None
        for exchange in call.exchanges:
            if call.part(exchange) is not CallPart.ROUND:
                continue
            if input_requests is not None:
                yield from _inputs(validators, exchange, input_requests)
            response = exchange.response
            is_question = response is not None and response.result_type == INPUT_REQUIRED
            input_requests = member(response.result, "inputRequests") if response is not None and is_question else None


def _inputs(validators: Validators, retry: Exchange, input_requests: Any) -> Iterator[Hit]:
    answers = member(retry.request.params, "inputResponses")
    for key, request in input_requests.items() if isinstance(input_requests, dict) and isinstance(answers, dict) else ():
        if member(request, "method") == _METHOD and key in answers:
            yield from _answer(validators, retry, retry.request, member(request, "params"), answers[key])


_FORMATS: Final = {
    "email": lazy_pattern(r"[^@\s]+@[^@\s]+"),
    "uri": lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:\S*"),
    "date": lazy_pattern(r"\d{4}-\d\d-\d\d"),
    "date-time": lazy_pattern(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*"),
}
"""Formats that a form may name (2025-06-18 and later, client/elicitation), and the least that each of their values has."""


def _unformatted(schema: Any, content: Any) -> str:
    """Say which text of a form has not the format that the form names; empty if none. A field may be left blank."""
    properties = member(schema, "properties")
    for name, value in content.items() if isinstance(content, dict) and isinstance(properties, dict) else ():
        pattern = _FORMATS.get(str(member(properties.get(name), "format")))
        if pattern is not None and isinstance(value, str) and value and pattern.fullmatch(value) is None:
            kind = member(properties.get(name), "format")
            return f"{quoted(value)} is not of the format {kind} (at {name[:40]})."
    return ""


def _answer(validators: Validators, exchange: Exchange, message: Message, form: Any, answer: Any) -> Iterator[Hit]:
    if member(answer, "action") != "accept" or member(form, "mode") == "url" or validators.are_exhausted:
        return
    content = member(answer, "content")
    schema = member(form, "requestedSchema")
    wrong = validators.mistake(schema, {} if content is None else content) or _unformatted(schema, content)
    if wrong and PSEUDONYM.encode() not in message.raw:
        missing = "has no content" if content is None else "does not match the form"
        what = f"The accepted answer to {_METHOD} (row {exchange.row}) {missing}: {wrong}"
        yield hit_in(FORM_ANSWER_INVALID, message, exchange.row, what, group=_METHOD)
