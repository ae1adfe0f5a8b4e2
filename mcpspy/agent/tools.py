"""The tools of `mcpspy mcp`: their definitions, and what each returns for its arguments.

All that blocks is in the source; `wait_for` and those that send wait, and are in `server`. What reads captures is imported by the
first call: a client starts this server for each session, and many call nothing.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ..errors import AgentToolError
from .answers import DEFAULT_TOKENS, LEAST_TOKENS, MAX_QUOTED, MOST_TOKENS, Fence, ToolAnswer, cursor_number
from .source import CaptureSource

WHAT: Final = {"type": "string", "default": "@", "description": "@ newest recording, @1 the one before, a label, or an id"}
ROW: Final = {"type": "string", "description": "a row, as @:7 or weather:7"}
FILTER: Final = {
    "type": "string",
    "description": 'as in: tool:search* status:error dur>2s not kind:progress "text in a message"',
}
PAGES: Final = {  # an answer that goes on says how to pass them
    "cursor": {"type": "string"},
    "max_tokens": {"type": "integer", "default": DEFAULT_TOKENS, "minimum": LEAST_TOKENS},
}
MAX_WAIT_S: Final = 300


class CallEvent(StrEnum):
    """Something that a call does."""

    COMES = "comes"
    ENDS = "ends"
    FAILS = "fails"
    HANGS = "hangs"


class ToolDefinition(NamedTuple):
    """The description of a tool, and the schema of its arguments."""

    text: str
    schema: dict[str, Any]


def _schema(*required: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


DEFINITIONS: Final[dict[str, ToolDefinition]] = {
    "recordings": ToolDefinition(
        "List the 100 newest recordings, those that still run too: the name to pass as what, client, servers, number of messages.",
        _schema(**PAGES),
    ),
    "timeline": ToolDefinition(
        "List calls in order, a line each: row number, seconds since the beginning, method, arguments, outcome, milliseconds; and "
        "the server's stderr. filter searches; row shows one in full.",
        _schema(what=WHAT, filter=FILTER, **PAGES),
    ),
    "row": ToolDefinition(
        "Show one call in full: request, answer, HTTP, the server's stderr meanwhile, findings; with path, only that value.",
        _schema(
            "what", what=ROW, path={"type": "string", "description": "as result.content[0].text or params.arguments"}, **PAGES
        ),
    ),
    "findings": ToolDefinition(
        "Report what went wrong, the worst first: rule, culprit, rows that show it, what to do; also why a tool was not called. "
        "Start here. It finds faults of the protocol, not wrong results: for those, see timeline.",
        _schema(what=WHAT, rule={"type": "string", "description": "only findings of this rule"}, **PAGES),
    ),
    "compare": ToolDefinition(
        "Report what changed from one recording or row to another: tools offered, requests, answers, times that doubled or "
        "halved. Use it after a change of the server, with before @1 and after @.",
        _schema("before", "after", before=WHAT, after=WHAT, **PAGES),
    ),
    "wait_for": ToolDefinition(
        "Wait until a call that matches comes, ends, fails, or hangs (no answer for hang_s), and show it in full; after timeout_s, "
        "report which calls still wait. Calls that were over before do not count.",
        _schema(
            what=WHAT,
            filter=FILTER,
            event={"enum": [event.value for event in CallEvent], "default": "ends"},
            timeout_s={"type": "number", "default": 30, "minimum": 0, "maximum": MAX_WAIT_S},
            hang_s={"type": "number", "default": 5, "minimum": 0.1},
            max_tokens=PAGES["max_tokens"],
        ),
    ),
}
"""The description and the input schema of each tool that only looks, by its name."""

CALL_AGAIN: Final = "call_again"
REPLAY: Final = "replay"
TIMEOUT: Final = {"type": "number", "default": 60, "exclusiveMinimum": 0, "maximum": MAX_WAIT_S}

SENDING: Final[dict[str, ToolDefinition]] = {
    CALL_AGAIN: ToolDefinition(
        "Send one request, once, into the running session: a recorded row again, or a call of a tool. Returns the answer, its "
        "time, and how it differs from the recorded one. No redacted value is sent.",
        _schema(
            "what",
            what={"type": "string", "description": "a row, as @:7; with tool, a label"},
            set={"type": "object", "description": 'new values of params by JSON path: {"$.arguments.city": "Rome"}'},
            tool={"type": "string"},
            arguments={"type": "object", "description": "those of tool"},
            timeout_s=TIMEOUT,
            max_tokens=PAGES["max_tokens"],
        ),
    ),
    REPLAY: ToolDefinition(
        "Start a recorded server again, or reach its URL, send it all requests of the recording, and report how the answers "
        "differ. The user is asked first. Each request waits at most timeout_s.",
        _schema(
            "what",
            what={"type": "string", "description": "a label, or some rows, as weather:3..7"},
            timeout_s=TIMEOUT,
            max_tokens=PAGES["max_tokens"],
        ),
    ),
}
"""The same for the tools that send something, which only a user's `--allow-call` offers."""


def definitions(*, calls: bool) -> dict[str, ToolDefinition]:
    """Return the tools that a server has; `calls` includes those that send."""
    return {**DEFINITIONS, **SENDING} if calls else DEFINITIONS


def report(source: CaptureSource, fence: Fence, name: str, arguments: dict[str, Any]) -> ToolAnswer:
    """Answer a call of a tool that only looks. Blocks. Raises: McpspyError; OSError; KeyError: for another tool."""
    first = cursor_number(arguments.get("cursor", ""))
    return _REPORTS[name](source, fence, arguments, first, max_tokens_of(arguments))


def max_tokens_of(arguments: dict[str, Any]) -> int:
    """Read the budget, of which there is a most."""
    return min(int(arguments.get("max_tokens", DEFAULT_TOKENS)), MOST_TOKENS)


def _recordings(source: CaptureSource, fence: Fence, _: dict[str, Any], first: int, max_tokens: int) -> ToolAnswer:
    from .reports import recordings_answer

    return recordings_answer(source.recordings(), source.mask, first, max_tokens, fence)


def _timeline(source: CaptureSource, fence: Fence, arguments: dict[str, Any], first: int, max_tokens: int) -> ToolAnswer:
    from .reports import timeline_answer

    selected = source.select(arguments.get("what", "@"))
    return timeline_answer(selected, arguments.get("filter", ""), first, max_tokens, fence)


def _row(source: CaptureSource, fence: Fence, arguments: dict[str, Any], first: int, max_tokens: int) -> ToolAnswer:
    from .reports import row_answer

    return row_answer(source.select(arguments["what"]), arguments.get("path", ""), first, max_tokens, fence)


def _findings(source: CaptureSource, fence: Fence, arguments: dict[str, Any], first: int, max_tokens: int) -> ToolAnswer:
    from .reports import findings_answer

    selected = source.select(arguments.get("what", "@"), all_rules=True)
    return findings_answer(selected, arguments.get("rule", ""), first, max_tokens, fence)


def _compare(source: CaptureSource, fence: Fence, arguments: dict[str, Any], first: int, max_tokens: int) -> ToolAnswer:
    from .reports import comparison_answer

    before, after = arguments["before"], arguments["after"]
    comparison, mask = source.compare(before, after)
    return comparison_answer(comparison, mask, before, after, first, max_tokens, fence)


_REPORTS: Final[dict[str, Callable[[CaptureSource, Fence, dict[str, Any], int, int], ToolAnswer]]] = {
    "recordings": _recordings,
    "timeline": _timeline,
    "row": _row,
    "findings": _findings,
    "compare": _compare,
}


def checked_arguments(name: str, arguments: dict[str, Any], *, calls: bool) -> dict[str, Any]:
    """Check arguments against the schema of a tool. Raises: AgentToolError."""
    from jsonschema import Draft202012Validator

    tools = definitions(calls=calls)
    if name not in tools:
        raise AgentToolError("There is no such tool", f"The tools are {', '.join(tools)}.", name[:MAX_QUOTED])
    errors = Draft202012Validator(tools[name].schema).iter_errors(arguments)
    error = next(iter(errors), None)
    if error is not None:
        where = "".join(f"{step}: " for step in error.absolute_path)
        raise AgentToolError("The arguments do not fit", "See the tool's input schema.", f"{where}{error.message}"[:MAX_QUOTED])
    return arguments
