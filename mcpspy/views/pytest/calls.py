"""The calls of a capture as statements of Python: requests through the official SDK, and assertions about the answers.

A call that was not answered, or for which the SDK has no method, becomes a comment.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from ...transcript.model import Exchange, Outcome, Transcript
from ..text.escape import safe_text
from ..text.python_literal import has_literal, literal
from ..text.units import wall_time
from .answers import AnswerAssertions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .made_up import MadeUpValues
    from .sdk import Dialect

MAX_COMMENT_LETTERS: Final = 100

_LISTS: Final = {
    "tools/list": "list_tools",
    "prompts/list": "list_prompts",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
}

BY_THEMSELVES: Final = frozenset({"initialize", "server/discover", "ping"})
"""Requests that the SDK's client sends by itself."""

REFERENCES: Final = {"ref/prompt": "PromptReference", "ref/resource": "ResourceTemplateReference"}


def call_lines(
    transcript: Transcript, exchange: Exchange, indent: str, dialect: Dialect, made_up: MadeUpValues, *, lists_tools: bool
) -> Iterator[str]:
    """Yield the statements for one recorded call, after a comment with its row. Yields nothing for later rounds of a call.

    `lists_tools` says that the list of tools was recorded, which the SDK fetches to check results.
    """
    header = transcript.captures[exchange.capture].header
    recorded = wall_time(header.wall_ns if header else 0, UTC)
    call = transcript.call_of(exchange)
    if exchange.method in BY_THEMSELVES or (call is not None and call.row != exchange.row):
        return
    last = exchange if call is None else call.last_round
    expression = _expression(exchange.method, made_up.params(exchange), indent, dialect, lists_tools=lists_tools)
    why = "the SDK has no method for this" if expression is None else _why_not(last)
    yield ""
    yield f"{indent}# row {exchange.row}: {_comment(exchange)}{f': not called here, {why}' if why else ''}"
    if expression is None or why:
        return
    if last.outcome is Outcome.ERROR:
        yield from _error_lines(last, expression, indent, dialect)
        return
    yield f"{indent}result = await {expression}"
    assignments = list(made_up.assignments(last, indent))
    result = last.response.result if last.response is not None else None
    if isinstance(result, dict):
        assertions = list(AnswerAssertions(recorded, indent, dialect).lines(exchange.method, made_up.answer(result)))
        first = 1 if exchange.method == "tools/call" else 0  # whether it failed, before anything is taken from it
        yield from (*assertions[:first], *assignments, *assertions[first:])


def _why_not(last: Exchange) -> str:
    """Return why a call is not sent again; empty if it is."""
    response = last.response
    if response is None or last.outcome not in (Outcome.OK, Outcome.TOOL_ERROR, Outcome.ERROR):
        return f"it was {'not answered' if last.outcome is Outcome.UNANSWERED else last.outcome}"
    if response.result_type not in (None, "complete"):
        return f"its result is {safe_text(response.result_type)}"
    return ""


def _error_lines(exchange: Exchange, expression: str, indent: str, dialect: Dialect) -> Iterator[str]:
    error = exchange.response.error if exchange.response is not None else None
    yield f"{indent}with pytest.raises({dialect.error}) as caught:"
    yield f"{indent}    await {expression.replace(chr(10), chr(10) + '    ')}"
    if isinstance(error, dict):
        for member in ("code", "message"):
            if isinstance(error.get(member), int | str):
                yield f"{indent}assert caught.value.{dialect.error_at}{member} == {literal(error[member])}"


def _expression(method: str, params: Any, indent: str, dialect: Dialect, *, lists_tools: bool) -> str | None:
    """Return the call of the SDK that sends a request; None where there is none. All lines but the first begin with `indent`."""
    if not isinstance(params, dict) or "task" in params or not has_literal(params):
        return None
    target = params.get("name", params.get("uri"))
    if method in _LISTS:
        cursor = params.get("cursor")
        return f"client.{_LISTS[method]}({'' if cursor is None else f'cursor={literal(cursor)}'})"
    if method == "completion/complete":
        return _completion(params, indent)
    if not isinstance(target, str):
        return None
    if method == "resources/read":
        return f"client.read_resource({dialect.resource.format(literal(target))})"
    if method in ("tools/call", "prompts/get"):
        arguments = params.get("arguments")
        call = "client.get_prompt(" if method == "prompts/get" else "client.call_tool(" if lists_tools else "call(client, "
        call += literal(target)
        before = len("result = await , )") + len(call)
        return f"{call}, {literal(arguments, indent=indent, before=before)})" if isinstance(arguments, dict) else f"{call})"
    return None


def _completion(params: dict[str, Any], indent: str) -> str | None:
    reference, argument = params.get("ref"), params.get("argument")
    name = REFERENCES.get(str(reference.get("type"))) if isinstance(reference, dict) else None
    if name is None or not isinstance(argument, dict):
        return None
    return f"client.complete(types.{name}.model_validate({literal(reference)}), {literal(argument, indent=indent)})"


def _comment(exchange: Exchange) -> str:
    text = safe_text(f"{exchange.method} {exchange.target}" if exchange.target else exchange.method)
    return text if len(text) <= MAX_COMMENT_LETTERS else text[:MAX_COMMENT_LETTERS] + "…"
