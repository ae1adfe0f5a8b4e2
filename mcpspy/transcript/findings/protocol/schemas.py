"""Findings about schemas of tools: invalid ones, and arguments and results that do not match them. They are optional."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...mcp.blocks import member
from ...message import ERROR, RESULT
from ...model import Exchange, Message, Transcript, UnpairedMessage
from ..facts import TranscriptFacts, scope_key
from ..json_schema import MAX_STEPS, Validators, dangling_reference
from ..rule import AGENT, HANDSHAKE, Hit, HitDetails, Severity, Unchecked, hit_in, protocol_rule
from ..words import call_name, listed, seconds

_SCHEMA: Final = '{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}'
_RESULT: Final = '{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}'
_TOOL: Final = f'{{"name":"add","inputSchema":{_SCHEMA},"outputSchema":{_RESULT}}}'
_LISTED: Final = f'{HANDSHAKE}→ tools/list 1\n← result 1 {{"tools":[{_TOOL}]}}\n'
_CALL: Final = '→ tools/call 2 {"name":"add","arguments":{"a":1,"b":2}}\n'
_WELL: Final = f'{_LISTED}{_CALL}← result 2 {{"content":[{{"type":"text","text":"3"}}],"structuredContent":{{"sum":3}}}}'

ARGUMENTS_INVALID: Final = protocol_rule(
    name="arguments-invalid",
    title="Arguments do not fit the schema",
    what="A tool was called with arguments that its inputSchema does not allow (patterns and formats are not checked).",
    why="The server rejects the arguments, or does something other than intended.",
    blame="The agent: the model behind the client chose the arguments, and the schema was listed before the call.",
    example=f'{_LISTED}→ tools/call 2 {{"name":"add","arguments":{{"a":"one"}}}}\n← error 2 -32602 Invalid arguments',
    clean=_WELL,
    advice="State in the tool's description and schema what it accepts, and validate arguments in the client.",
)

STRUCTURED_CONTENT_INVALID: Final = protocol_rule(
    name="structured-content-invalid",
    title="Structured content does not fit the schema",
    severity=Severity.ERROR,
    what="The structuredContent of a result is missing or does not match the tool's outputSchema.",
    why="SDK clients validate it, and raise an error instead of returning the result.",
    blame="The server: both the schema and the result are its own.",
    example=f'{_LISTED}{_CALL}← result 2 {{"content":[{{"type":"text","text":"3"}}],"structuredContent":{{"sum":"3"}}}}',
    clean=_WELL,
    advice="Return structuredContent that matches outputSchema, or correct the schema.",
)

TOOL_SCHEMA_INVALID: Final = protocol_rule(
    name="tool-schema-invalid",
    title="Invalid schema of a tool",
    severity=Severity.ERROR,
    what='A tool has no inputSchema with "type": "object", or a $ref in its outputSchema leads nowhere.',
    why="Clients reject the tool or the whole list, and the model learns nothing about it.",
    blame="The server: it defines the tool.",
    example='→ tools/list 1\n← result 1 {"tools":[{"name":"now","inputSchema":{"type":"string"}}]}',
    clean='→ tools/list 1\n← result 1 {"tools":[{"name":"now","inputSchema":{"type":"object"}}]}',
    advice=(
        'Give each tool an inputSchema; write {"type": "object"} for a tool without arguments. '
        'A schema that holds only "$schema" was lost by a converter that does not know its library\'s version.'
    ),
)

UNKNOWN_TOOL: Final = protocol_rule(
    name="unknown-tool",
    title="Call of an unknown tool",
    what="A tool was called that is not in the server's complete list, and the call failed.",
    why="The call cannot succeed: the name is made up, outdated, or that of another server's tool.",
    blame="The agent: the list was fetched before, and the model behind the client chose a name that is not in it.",
    example=f'{_LISTED}→ tools/call 2 {{"name":"sum","arguments":{{}}}}\n← error 2 -32602 Unknown tool: sum',
    clean=_WELL,
    advice="If the client renames tools (server_tool, mcp__server__tool), check that it sends back the name that was listed.",
)

_CHANGED: Final = (
    "· handshake 2025-11-25, server: tools.listChanged\n→ tools/list 1\n"
    '← result 1 {"tools":[{"name":"add","inputSchema":{"type":"object"}}]}\n← notifications/tools/list_changed\n· 1.0 s later\n'
)

STALE_TOOL_LIST: Final = protocol_rule(
    name="stale-tool-list",
    title="Call from an outdated list of tools",
    what=(
        "A tool was called that is gone: the server had announced that its tools changed and the client had not listed them again, "
        "or it had a new list, in which the tool is missing."
    ),
    why="The call fails, and so do all others from the old list: the model works with tools that there are not.",
    blame="The client: after notifications/tools/list_changed it has to fetch the list again before it calls.",
    example=f'{_CHANGED}→ tools/call 2 {{"name":"add"}}\n← error 2 -32602 Unknown tool: add',
    clean=(
        f'{_CHANGED}→ tools/list 2\n← result 2 {{"tools":[{{"name":"sum","inputSchema":{{"type":"object"}}}}]}}\n'
        '→ tools/call 3 {"name":"sum"}\n← result 3'
    ),
    advice="Fetch the list on each list_changed, and give the model the new one.",
)

RULES: Final = (ARGUMENTS_INVALID, STRUCTURED_CONTENT_INVALID, TOOL_SCHEMA_INVALID, UNKNOWN_TOOL, STALE_TOOL_LIST)


MAX_VALUE_BYTES: Final = 256 << 10

MAX_NAMES: Final = 5

MAX_EACH: Final = 200
"""Number of calls of each tool that are checked: a client that gets arguments wrong does so from the beginning."""

_RACE_NS: Final = 50_000_000
"""A call may cross the notification."""
_says_unknown = lazy_pattern(
    rb"unknown|no such|not (?:found|exist|available|registered|enabled)|doesn.t exist|no longer|disabled|removed|-32601",
    re.IGNORECASE,
)
_refused_sign = lazy_pattern(r"[^A-Za-z0-9_]")
_SHORT: Final = 2
_MOST_COMPARED: Final = 1_000
_VALIDATING: Final = (ARGUMENTS_INVALID.name, STRUCTURED_CONTENT_INVALID.name)
_OUT_OF_STEPS: Final = Unchecked(rules=_VALIDATING, reason=f"the schemas took more than {MAX_STEPS:,} steps")
_MANY_CALLS: Final = Unchecked(rules=_VALIDATING, reason=f"only the first {MAX_EACH} calls of each tool are validated")
_LIST_CHANGED: Final = "notifications/tools/list_changed"


class _ListedTools:
    """The tools that one capture's server has listed so far, by scope."""

    def __init__(self) -> None:
        self.tools: dict[tuple[str | int, str], dict[str, Any]] = {}
        self.complete: set[str | int] = set()
        self.changed_ns: dict[str | int, int] = {}
        """By scope when the server announced a change, until the client asks for the list again."""
        self.walks: dict[str | int, tuple[set[str], str]] = {}
        """By scope the names on the pages of the list that is being fetched, and the cursor of its next page."""
        self.names: dict[str | int, set[str]] = {}
        """By scope the names of the last list that came whole."""
        self.gone: dict[tuple[str | int, str], Exchange] = {}
        """For tools that are missing in a new list that came whole: its last page."""
        self.checked: dict[tuple[str | int, str], int] = {}
        self.validators = Validators()


_ENCODED_BLAME: Final = "The agent: the model wrote the value as a text, unless the client encoded it once more than it had to."
_ENCODED_ADVICE: Final = (
    "Where the schema wants an object or an array, let the client parse such a text before it sends the call."
)

_GONE_BLAME: Final = "The client: it had the new list, and let a tool be called that only an older one has."
_GONE_ADVICE: Final = "Give the model the new list in the place of the old one, and refuse calls of tools that are not in it."

_NO_VALUE: Final = "is not one of []"
_NO_VALUE_BLAME: Final = "The server: its schema has an empty enum there, which no value fits."
_NO_VALUE_ADVICE: Final = "List the values, or leave enum out; if the values are loaded at the start, look for why none were."


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find invalid schemas, unknown tools, and arguments and results that do not match. Rows are in the order in which they began."""
    schemas = _Schemas(facts.transcript)
    yield from schemas.hits
    servers = schemas.servers
    if any(server.validators.are_exhausted for server in servers):
        facts.limits[_OUT_OF_STEPS] = None
    if any(count > MAX_EACH for server in servers for count in server.checked.values()):
        facts.limits[_MANY_CALLS] = None


class _Schemas:
    """The tools that each capture's server lists, and what is wrong with them and with their calls."""

    def __init__(self, transcript: Transcript) -> None:
        self.hits: list[Hit] = []
        self.servers = [_ListedTools() for _ in transcript.captures]
        self._captures = transcript.captures
        for row in transcript.rows:
            if isinstance(row, UnpairedMessage):
                if row.message.method == _LIST_CHANGED:
                    self.servers[row.capture].complete.clear()
                    transaction = self._captures[row.capture].transaction_of(row.message.stream)
                    self.servers[row.capture].changed_ns.setdefault(scope_key(transaction), row.at_ns)
            elif isinstance(row, Exchange) and row.request.sender == CLIENT:
                method, server = row.request.method, self.servers[row.request.capture]
                if method == "tools/call":
                    if row.response is None or row.cancelled is not None or not (server.tools or server.complete):
                        continue
                    if row.transaction is None and _count_alone(server, row.request.target, row.response):
                        continue
                    self.hits += _called(server, row, row.response)
                elif method == "tools/list":
                    server.changed_ns.pop(scope_key(row.transaction), None)
                    if row.response is not None and row.response.kind is RESULT:
                        self.hits += _listed(server, row)


def _listed(server: _ListedTools, row: Exchange) -> Iterator[Hit]:
    response = row.response
    assert response is not None
    result = response.result
    tools = member(result, "tools")
    scope = scope_key(row.transaction)
    invalid: list[str] = []
    for tool in tools if isinstance(tools, list) else []:
        if not isinstance(member(tool, "name"), str):
            continue
        server.tools[scope, tool["name"]] = tool
        server.gone.pop((scope, tool["name"]), None)
        if member(tool, "inputSchema", "type") != "object":
            invalid.append(tool["name"])
    if invalid:
        names = listed((name[:80] for name in invalid), MAX_NAMES)
        what = f"Listed without an inputSchema of the type object: {names}."
        yield hit_in(TOOL_SCHEMA_INVALID, response, row.row, what, group=names)
    yield from _dangling(row, response, tools)
    if isinstance(result, dict) and not result.get("nextCursor"):
        server.complete.add(scope)
    _compare_with_last_list(server, row, tools, member(result, "nextCursor"))


def _compare_with_last_list(server: _ListedTools, row: Exchange, tools: Any, next_cursor: Any) -> None:
    """Note which tools a new list no longer has, once its last page has come; pages that do not follow each other tell nothing."""
    scope, cursor = scope_key(row.transaction), member(row.request.params, "cursor")
    names, expected = server.walks.pop(scope, (set(), "")) if cursor else (set(), "")
    if (cursor or "") != expected or not isinstance(tools, list):
        return
    names |= {tool["name"] for tool in tools if isinstance(member(tool, "name"), str)}
    if next_cursor and isinstance(next_cursor, str):
        server.walks[scope] = names, next_cursor
    elif not next_cursor:
        server.gone.update(((scope, name), row) for name in server.names.get(scope, set()) - names)
        server.names[scope] = names


def _dangling(row: Exchange, response: Message, tools: Any) -> Iterator[Hit]:
    """Find output schemas that refer to what they do not contain; `tool_offers` looks at those of the arguments."""
    if not isinstance(tools, list) or b'"$ref"' not in response.raw:
        return
    dangling = [
        f"{tool['name'][:80]} ({reference[:80]})"
        for tool in tools[:_MOST_COMPARED]
        if isinstance(member(tool, "name"), str) and (reference := dangling_reference(tool.get("outputSchema")))
    ]
    if dangling:
        what = f"Listed with an outputSchema that refers to what it does not contain: {listed(dangling, MAX_NAMES)}."
        advice = (
            "Put the $defs that a schema refers to into the same schema: each stands alone, without the document it came from."
        )
        yield hit_in(TOOL_SCHEMA_INVALID, response, row.row, what, advice=advice, group=f"$ref {dangling[0]}")


def _count_alone(server: _ListedTools, tool: str | None, response: Message) -> bool:
    """Count a call on stdio and return True, if it did not fail and enough others were checked; else return False."""
    checked = 0 if tool is None else server.checked.get((0, tool), 0)
    if tool is None or checked < MAX_EACH or server.changed_ns or response.kind is ERROR or response.is_error:
        return False
    server.checked[0, tool] = checked + 1
    return True


def _called(server: _ListedTools, row: Exchange, response: Message) -> Iterator[Hit]:
    request = row.request
    scope, name = scope_key(row.transaction), request.target
    if name is None:
        return
    tool = server.tools.get((scope, name))
    failed = response.kind is ERROR or response.is_error
    if tool is None:
        if failed and scope in server.complete and (scope or row.transaction is None):
            yield _unknown(server, row, name)
        return
    changed_ns = server.changed_ns.get(scope)
    if failed and changed_ns is not None and (scope or row.transaction is None) and row.at_ns - changed_ns > _RACE_NS:
        if _says_unknown.search(response.raw[:MAX_VALUE_BYTES]):
            what = (
                f"The tool {name[:80]} was called {seconds(row.at_ns - changed_ns)} after the server had announced that its tools "
                "changed, without a new list, and the server does not know it any more."
            )
            yield hit_in(STALE_TOOL_LIST, request, row.row, what, group=name)
        return
    if failed and (hit := _gone(server, row, response, name)) is not None:
        yield hit
        return
    checked = server.checked[scope, name] = server.checked.get((scope, name), 0) + 1
    if checked > MAX_EACH or server.validators.are_exhausted:
        return
    yield from _asked(server, tool, row, name)
    if tool.get("outputSchema") is not None and not failed and response.result_type is None:
        yield from _answered(server, tool, row, name)


def _gone(server: _ListedTools, row: Exchange, response: Message, name: str) -> Hit | None:
    """Blame the client for the call of a tool that is missing in the new list that it had, if the server does not know it either."""
    scope = scope_key(row.transaction)
    listing = server.gone.get((scope, name))
    if listing is None or listing.response is None or (not scope and row.transaction is not None):
        return None
    since_ns = row.at_ns - listing.response.at_ns
    if since_ns <= _RACE_NS or not _says_unknown.search(response.raw[:MAX_VALUE_BYTES]):
        return None
    what = (
        f"The tool {name[:80]} was called {seconds(since_ns)} after a new list of tools (row {listing.row}) in which it is missing, "
        "and the server does not know it any more."
    )
    return hit_in(STALE_TOOL_LIST, row.request, row.row, what, blame=_GONE_BLAME, advice=_GONE_ADVICE, group=name)


def _asked(server: _ListedTools, tool: dict[str, Any], row: Exchange, name: str) -> Iterator[Hit]:
    """Find arguments that do not fit the input schema of the tool."""
    request = row.request
    params = request.params if len(request.raw) <= MAX_VALUE_BYTES else None
    if not isinstance(params, dict):
        return
    wrong = server.validators.mistake(tool.get("inputSchema"), params.get("arguments", {}))
    if not wrong:
        return
    what = f"The arguments of {call_name(row)} do not match its inputSchema: {wrong}"
    culprit, details = AGENT, HitDetails(group=name)
    if encoded := _encoded_twice(server, tool.get("inputSchema"), params.get("arguments")):
        what += f" As JSON, the text of {listed(encoded, MAX_NAMES)} holds what belongs there."
        details |= {"blame": _ENCODED_BLAME, "advice": _ENCODED_ADVICE}
    elif _NO_VALUE in wrong:
        culprit = SERVER
        details |= {"blame": _NO_VALUE_BLAME, "advice": _NO_VALUE_ADVICE}
    yield hit_in(ARGUMENTS_INVALID, request, row.row, what, culprit=culprit, **details)


def _encoded_twice(server: _ListedTools, schema: Any, arguments: Any) -> list[str]:
    """Name the arguments that are texts of JSON in place of its objects and arrays, if that is all that is wrong."""
    if not isinstance(arguments, dict):
        return []
    decoded = {name: _decoded(value) for name, value in arguments.items() if isinstance(value, str)}
    decoded = {name: value for name, value in decoded.items() if isinstance(value, dict | list)}
    is_all = bool(decoded) and not server.validators.mistake(schema, {**arguments, **decoded})
    return [
        name[:80]
        for name in decoded
        if is_all and server.validators.mistake(schema, {**arguments, **decoded, name: arguments[name]})
    ]


def _decoded(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None


def _unknown(server: _ListedTools, row: Exchange, name: str) -> Hit:
    """Blame the agent for a name that is made up, and the client for one that it made of a listed one for its model."""
    what = f"The tool {name[:80]} was called, but the server does not list it."
    scope = scope_key(row.transaction)
    listed_as = next((tool for at, tool in server.tools if at == scope and _is_renamed(name, tool)), None)
    if listed_as is None:
        nearest = _nearest(name, [tool for at, tool in server.tools if at == scope])
        what = f"{what[:-1]}; the nearest name that it lists is {nearest[:80]}." if nearest else what
        return hit_in(UNKNOWN_TOOL, row.request, row.row, what, culprit=AGENT, group=name)
    blame = f"The client: it gave its model {listed_as[:80]} under this name, and did not turn it back."
    return hit_in(UNKNOWN_TOOL, row.request, row.row, what, culprit=CLIENT, blame=blame, group=name)


def _nearest(name: str, tools: list[str]) -> str:
    """Return the listed name that is most like another one: of the same words, or with most of its letters; empty if none is."""
    from difflib import get_close_matches  # few captures have an unknown tool

    words = sorted(_refused_sign.sub("_", name).lower().split("_"))
    same = next((tool for tool in tools if sorted(_refused_sign.sub("_", tool).lower().split("_")) == words), "")
    return same or next(iter(get_close_matches(name[:80], tools[:_MOST_COMPARED], 1)), "")


def _is_renamed(name: str, tool: str) -> bool:
    """Tell whether a client made this name of a tool's: with its server's name before it, or without signs that models refuse."""
    if _refused_sign.sub("_", tool) == name != tool:
        return True
    prefix = name.removesuffix(tool)
    return prefix not in ("", name) and len(tool) > _SHORT and (prefix[-1] in "./:" or prefix.endswith("__"))


def _answered(server: _ListedTools, tool: dict[str, Any], row: Exchange, name: str) -> Iterator[Hit]:
    response = row.response
    assert response is not None
    result = response.result
    if not isinstance(result, dict) or len(response.raw) > MAX_VALUE_BYTES:
        return
    if "structuredContent" not in result:
        what = f"The result of {call_name(row)} has no structuredContent, but the tool has an outputSchema."
        yield hit_in(STRUCTURED_CONTENT_INVALID, response, row.row, what, group=name)
        return
    wrong = server.validators.mistake(tool["outputSchema"], result["structuredContent"])
    if wrong:
        what = f"The structuredContent of {call_name(row)} does not match its outputSchema: {wrong}"
        yield hit_in(STRUCTURED_CONTENT_INVALID, response, row.row, what, group=name)
