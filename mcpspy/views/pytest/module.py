"""A transcript as a module of tests: a test for each capture, which plays the capture and sends its requests again.

The test uses the fixture of our pytest plugin and the client of the official SDK. All captured text in it is a literal, or a
comment that was made harmless. The names under which the fixture finds the captures are given.
A call becomes statements: the request, and assertions about the answer. One that was not answered, or for which the SDK has no
method, becomes a comment.
"""

from __future__ import annotations

import keyword
import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT, SERVER
from ...replay.mock.matching import client_sequences
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import CaptureInfo, Exchange, Kind, Outcome, Row, Transcript
from ..text.escape import safe_text
from ..text.python_literal import has_literal, literal, quoted
from ..text.units import wall_time
from .answers import AnswerAssertions
from .made_up import MadeUpValues
from .sdk import SDK_1, SDK_2, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INDENT: Final = "    "

_CALLBACKS: Final = {
    "sampling/createMessage": ("sample", "sampling_callback", "context, params", "CreateMessageResult"),
    "elicitation/create": ("elicit", "elicitation_callback", "context, params", "ElicitResult"),
    "roots/list": ("roots", "list_roots_callback", "context", "ListRootsResult"),
}
"""Requests of a server: the name of the function that answers, the SDK's parameter for it, its parameters, its result's type."""

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


def pytest_module(
    transcript: Transcript, rows: Sequence[Row], names: Mapping[int, str], dialect: Dialect = SDK_2
) -> Iterator[str]:
    """Yield the lines of a module that tests `rows`. `names` are the fixture's names of the captures, by their indices.

    A capture without a name has no test.
    """
    tests: list[str] = []
    functions: set[str] = set()
    made_up = MadeUpValues(transcript, dialect)
    for capture in (capture for capture in transcript.captures if capture.index in names):
        function = _free(_identifier(capture.server), functions)
        functions.add(function)
        tests += _Test(transcript, capture, dialect, made_up).lines(rows, function, names[capture.index])
    text = "\n".join(tests)
    calls = "await call(" in text
    yield '"""Requests of an MCP client, sent again to a server that pytest plays from the capture.'
    yield ""
    yield "It guards the client, since the real server does not run. This guards the server:"
    yield ""
    yield from (f"    mcpspy replay captures/{_harmless(name)} -- COMMAND…" for name in dict.fromkeys(names.values()))
    yield ""
    yield "Written by `mcpspy export pytest`; edit it as you like."
    yield '"""'
    yield ""
    yield "import asyncio"
    yield from (f"import {name}" for name, sign in (("json", "json.loads("), ("re", "re.search(")) if sign in text)
    yield ""
    if "pytest.raises" in text:
        yield "import pytest"
    used = [name for name, sign in ((dialect.error, f"({dialect.error})"), ("types", "types.")) if sign in text]
    if calls and "types" not in used:
        used.append("types")
    yield f"from mcp import {', '.join([dialect.client, *used])}"
    if dialect is SDK_1:
        yield "from mcp.client.stdio import stdio_client"
    if "AnyUrl(" in text:
        yield "from pydantic import AnyUrl"
    yield from tests
    if calls:
        yield from dialect.call.split("\n")


class _Test:
    """The test of one capture."""

    __slots__ = ("_answers", "_dialect", "_lists_tools", "_made_up", "_capture", "_transcript")

    def __init__(self, transcript: Transcript, capture: CaptureInfo, dialect: Dialect, made_up: MadeUpValues) -> None:
        self._transcript = transcript
        self._made_up = made_up
        self._capture = capture
        self._dialect = dialect
        self._answers = _answers(transcript, capture)
        exchanges = [exchange for exchange in transcript.exchanges if exchange.capture == capture.index]
        self._lists_tools = any(exchange.method == "tools/list" and exchange.outcome is Outcome.OK for exchange in exchanges)

    def lines(self, rows: Sequence[Row], function: str, name: str) -> Iterator[str]:
        """Yield two functions: pytest's, and the coroutine that sends the requests."""
        yield from ("", "", f"def test_{function}(mcpspy):", f"{INDENT}asyncio.run({function}(mcpspy.serve({quoted(name)})))")
        yield from ("", "", f"async def {function}(server):")
        yield from _recorded_from(self._capture)
        callbacks = list(_callbacks(self._answers))
        if callbacks:
            yield from ("", *callbacks)
        exchanges = [row for row in rows if isinstance(row, Exchange) and row.capture == self._capture.index]
        clients = [lines for sequence in client_sequences(exchanges) if (lines := self._calls(sequence))]
        bodies = [list(self._client(lines, one_of=len(clients))) for lines in clients] or [[f"{INDENT}pass"]]
        for at, lines in enumerate(bodies):
            yield from lines if at == 0 else ("", *lines)

    def _calls(self, sequence: Sequence[Exchange]) -> list[str]:
        """Return the lines for the calls of one recorded client; none if it did no more than connect."""
        inner = INDENT + INDENT
        lines: list[str] = []
        self._made_up.forget()
        for exchange in sequence:
            lines += _call_lines(self._transcript, exchange, inner, self._dialect, self._made_up, lists_tools=self._lists_tools)
        return lines

    def _client(self, lines: Sequence[str], *, one_of: int) -> Iterator[str]:
        """Yield the lines of one client. Several clients connect to one server over HTTP, which answers each in its turn."""
        inner = INDENT + INDENT
        if self._dialect is SDK_1:
            arguments = ["*streams", *self._callback_arguments()]
            session = _call("ClientSession", arguments)
            yield f"{INDENT}async with stdio_client(server.stdio_parameters()) as streams, {session} as client:"
            yield f"{inner}await client.initialize()"
            yield from lines
            return
        arguments = ["server.url" if one_of > 1 else "server.stdio_parameters()", *self._mode(), *self._callback_arguments()]
        yield f"{INDENT}async with {_call('Client', arguments)} as client:"
        yield from lines[1:]  # without the empty line
        if all(not line or line.lstrip().startswith("#") for line in lines):
            yield f"{inner}pass"

    def _mode(self) -> list[str]:
        exchanges = [exchange for exchange in self._transcript.exchanges if exchange.capture == self._capture.index]
        first = next((exchange.method for exchange in exchanges if exchange.sender == CLIENT), None)
        return ['mode="legacy"'] if first == INITIALIZE else []

    def _callback_arguments(self) -> list[str]:
        return [f"{_CALLBACKS[method][1]}={_CALLBACKS[method][0]}" for method in self._answers]


def _call(name: str, arguments: Sequence[str]) -> str:
    """Return a call with its arguments on one line, or each on its own."""
    if len(arguments) <= 2:
        return f"{name}({', '.join(arguments)})"
    return "\n".join([f"{name}(", *(f"{INDENT}{INDENT}{argument}," for argument in arguments), f"{INDENT})"])


def _callbacks(answered: Mapping[str, list[Any]]) -> Iterator[str]:
    """Yield functions that answer the server's requests as they were answered in the capture."""
    for method, answers in answered.items():
        name, _, parameters, kind = _CALLBACKS[method]
        is_same = all(answer == answers[0] for answer in answers)
        if not is_same:
            yield f"{INDENT}{name}_answers = {literal(answers, indent=INDENT)}"
            yield ""
        yield f"{INDENT}async def {name}({parameters}):"
        value = literal(answers[0], indent=INDENT + INDENT) if is_same else f"{name}_answers.pop(0)"
        yield f"{INDENT}{INDENT}return types.{kind}.model_validate({value})"
        yield ""


def _answers(transcript: Transcript, capture: CaptureInfo) -> dict[str, list[Any]]:
    """Return the client's answers by method, in order, to requests that came as messages or within results."""
    answers: dict[str, list[Any]] = {}
    for exchange in transcript.exchanges:
        if exchange.capture != capture.index:
            continue
        if exchange.sender == SERVER and exchange.response is not None and exchange.response.kind is Kind.RESULT:
            _add(answers, exchange.method, exchange.response.result)
        elif exchange.sender == CLIENT:
            for method, answer in _answers_within(transcript, exchange):
                _add(answers, method, answer)
    return answers


def _add(answers: dict[str, list[Any]], method: str, answer: Any) -> None:
    if method in _CALLBACKS and isinstance(answer, dict) and has_literal(answer):
        answers.setdefault(method, []).append(answer)


def _answers_within(transcript: Transcript, exchange: Exchange) -> Iterator[tuple[str, Any]]:
    """Yield the answers that a round of a call brings, each with the method of its request."""
    call = transcript.call_of(exchange)
    params = exchange.request.params
    if call is None or not isinstance(params, dict) or not isinstance(params.get("inputResponses"), dict):
        return
    earlier = [other for other in call.rounds if other.row < exchange.row]
    result = earlier[-1].response.result if earlier and earlier[-1].response is not None else None
    requests = result.get("inputRequests") if isinstance(result, dict) else None
    for name, answer in params["inputResponses"].items():
        request = requests.get(name) if isinstance(requests, dict) else None
        if isinstance(request, dict) and isinstance(request.get("method"), str):
            yield request["method"], answer


def _recorded_from(capture: CaptureInfo) -> Iterator[str]:
    """Yield a comment that says how to record the capture again."""
    tapped = capture.header.tapped if capture.header else {}
    origin = tapped.get("url") or tapped.get("argv")
    if isinstance(origin, str) or (isinstance(origin, list) and all(isinstance(word, str) for word in origin)):
        yield f"{INDENT}# Recorded from {safe_text(literal(origin, cells=1 << 30))}"
        yield f"{INDENT}# With that as `record=` of serve(), `pytest --mcpspy-record=all` calls the real server, and records it."


def _harmless(name: str) -> str:
    """Return a file's name for a docstring, where nothing in it ends that."""
    return re.sub(r"[^\w.-]", "-", safe_text(name))


def _free(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _identifier(label: str) -> str:
    """Return a name for functions, in ASCII letters so that it looks the same in every editor; not a keyword, none of ours."""
    name = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_").lower() or "server"
    name = name if name[0].isalpha() else f"server_{name}"
    if keyword.iskeyword(name) or name in ("asyncio", "pytest", "types", "call"):
        name += "_server"
    return name


def _call_lines(
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
