"""A transcript as a module of tests: a test for each capture, which plays it and asks again what was asked of it.

The test uses the fixture of our pytest plugin and the client of the official SDK. All captured text in it is a literal or stands,
made harmless, in a comment. Refuses to know where captures lie: it is given their names.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT, SERVER
from ...replay.mock.matching import client_sequences
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import CaptureInfo, Exchange, Kind, Outcome, Row, Transcript
from ..text.escape import safe_text
from ..text.python_literal import has_literal, literal, quoted
from .calls import call_lines
from .sdk import LINE_1, LINE_2, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INDENT: Final = "    "

_CALLBACKS: Final = {
    "sampling/createMessage": ("sample", "sampling_callback", "context, params", "CreateMessageResult"),
    "elicitation/create": ("elicit", "elicitation_callback", "context, params", "ElicitResult"),
    "roots/list": ("roots", "list_roots_callback", "context", "ListRootsResult"),
}
"""What a server asks: what a test calls the function that answers, the SDK's name for it, what it gets and what it returns."""


def pytest_module(
    transcript: Transcript, rows: Sequence[Row], names: Mapping[int, str], dialect: Dialect = LINE_2
) -> Iterator[str]:
    """The lines of a module that tests `rows`. `names` are what the fixture calls the captures, by their indices."""
    tests: list[str] = []
    functions: set[str] = set()
    for capture in transcript.captures:
        function = _free(_identifier(capture.server), functions)
        functions.add(function)
        tests += _Test(transcript, capture, dialect).lines(rows, function, names.get(capture.index, ""))
    text = "\n".join(tests)
    calls = "await call(" in text
    yield '"""What a client asked of an MCP server, asked again: pytest plays what the server answered then.'
    yield ""
    yield "Written by `mcpspy export pytest`, to be changed."
    yield '"""'
    yield ""
    yield "import asyncio"
    yield ""
    if "pytest.raises" in text:
        yield "import pytest"
    used = [name for name, sign in ((dialect.error, f"({dialect.error})"), ("types", "types.")) if sign in text]
    if calls and "types" not in used:
        used.append("types")
    yield f"from mcp import {', '.join([dialect.client, *used])}"
    if dialect is LINE_1:
        yield "from mcp.client.stdio import stdio_client"
    if "AnyUrl(" in text:
        yield "from pydantic import AnyUrl"
    yield from tests
    if calls:
        yield from dialect.call.split("\n")


class _Test:
    """The test of one capture."""

    __slots__ = ("_answers", "_dialect", "_lists_tools", "_capture", "_transcript")

    def __init__(self, transcript: Transcript, capture: CaptureInfo, dialect: Dialect) -> None:
        self._transcript = transcript
        self._capture = capture
        self._dialect = dialect
        self._answers = _answers(transcript, capture)
        asked = [one for one in transcript.exchanges if one.capture == capture.index]
        self._lists_tools = any(one.method == "tools/list" and one.outcome is Outcome.OK for one in asked)

    def lines(self, rows: Sequence[Row], function: str, name: str) -> Iterator[str]:
        """Two functions: pytest's, and the one that asks."""
        yield from ("", "", f"def test_{function}(mcpspy):", f"{INDENT}asyncio.run({function}(mcpspy.serve({quoted(name)})))")
        yield from ("", "", f"async def {function}(server):")
        yield from _recorded_from(self._capture)
        callbacks = list(_callbacks(self._answers))
        if callbacks:
            yield from ("", *callbacks)
        asked = [row for row in rows if isinstance(row, Exchange) and row.capture == self._capture.index]
        clients = [lines for way in client_sequences(asked) if (lines := self._asks(way))]
        told = [list(self._client(lines, one_of=len(clients))) for lines in clients] or [[f"{INDENT}pass"]]
        for at, lines in enumerate(told):
            yield from lines if at == 0 else ("", *lines)

    def _asks(self, way: Sequence[Exchange]) -> list[str]:
        """What one recorded client asked; nothing if that was no more than how it connected."""
        inner = INDENT + INDENT
        asks = [call_lines(self._transcript, one, inner, self._dialect, lists_tools=self._lists_tools) for one in way]
        return [line for one in asks for line in one]

    def _client(self, lines: Sequence[str], *, one_of: int) -> Iterator[str]:
        """A client that asks so. Of several, each connects to one server over HTTP: it gives the first what the first was given."""
        inner = INDENT + INDENT
        if self._dialect is LINE_1:
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
        exchanges = self._transcript.exchanges
        openings = [one.method for one in exchanges if one.capture == self._capture.index and one.sender == CLIENT]
        return ['mode="legacy"'] if openings and openings[0] == INITIALIZE else []

    def _callback_arguments(self) -> list[str]:
        return [f"{_CALLBACKS[method][1]}={_CALLBACKS[method][0]}" for method in self._answers]


def _call(name: str, arguments: Sequence[str]) -> str:
    """A call with its arguments on one line, or each on its own."""
    if len(arguments) <= 2:
        return f"{name}({', '.join(arguments)})"
    return "\n".join([f"{name}(", *(f"{INDENT}{INDENT}{one}," for one in arguments), f"{INDENT})"])


def _callbacks(answered: Mapping[str, list[Any]]) -> Iterator[str]:
    """Functions that answer what the server asks as it was answered."""
    for method, answers in answered.items():
        name, _, parameters, kind = _CALLBACKS[method]
        is_same = all(one == answers[0] for one in answers)
        if not is_same:
            yield f"{INDENT}{name}_answers = {literal(answers, indent=INDENT)}"
            yield ""
        yield f"{INDENT}async def {name}({parameters}):"
        told = literal(answers[0], indent=INDENT + INDENT) if is_same else f"{name}_answers.pop(0)"
        yield f"{INDENT}{INDENT}return types.{kind}.model_validate({told})"
        yield ""


def _answers(transcript: Transcript, capture: CaptureInfo) -> dict[str, list[Any]]:
    """What the client answered to the server's questions, in order, by their methods: asked as messages, or within results."""
    found: dict[str, list[Any]] = {}
    for one in transcript.exchanges:
        if one.capture != capture.index:
            continue
        if one.sender == SERVER and one.response is not None and one.response.kind is Kind.RESULT:
            _add(found, one.method, one.response.result)
        elif one.sender == CLIENT:
            for method, answer in _answers_within(transcript, one):
                _add(found, method, answer)
    return found


def _add(found: dict[str, list[Any]], method: str, answer: Any) -> None:
    if method in _CALLBACKS and isinstance(answer, dict) and has_literal(answer):
        found.setdefault(method, []).append(answer)


def _answers_within(transcript: Transcript, exchange: Exchange) -> Iterator[tuple[str, Any]]:
    """Of a round that brings what was required: the method of each question, and what was said to it."""
    call = transcript.call_of(exchange)
    params = exchange.request.params
    if call is None or not isinstance(params, dict) or not isinstance(params.get("inputResponses"), dict):
        return
    before = [one for one in call.rounds if one.row < exchange.row]
    result = before[-1].response.result if before and before[-1].response is not None else None
    questions = result.get("inputRequests") if isinstance(result, dict) else None
    for name, answer in params["inputResponses"].items():
        question = questions.get(name) if isinstance(questions, dict) else None
        if isinstance(question, dict) and isinstance(question.get("method"), str):
            yield question["method"], answer


def _recorded_from(capture: CaptureInfo) -> Iterator[str]:
    """A comment that says how to record it anew."""
    tapped = capture.header.tapped if capture.header else {}
    origin = tapped.get("url") or tapped.get("argv")
    if isinstance(origin, str) or (isinstance(origin, list) and all(isinstance(one, str) for one in origin)):
        yield f"{INDENT}# Recorded from {safe_text(literal(origin, cells=1 << 30))}"
        yield f"{INDENT}# With that as `record=` of serve(), `pytest --mcpspy-record=all` asks the real server, and records it."


def _free(name: str, taken: set[str]) -> str:
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _identifier(label: str) -> str:
    """A name for functions: of ASCII letters, so that it is the same in every editor. No keyword, and none of ours."""
    name = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_").lower() or "server"
    name = name if name[0].isalpha() else f"server_{name}"
    if keyword.iskeyword(name) or name in ("asyncio", "pytest", "types", "call"):
        name += "_server"
    return name
