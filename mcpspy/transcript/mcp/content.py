"""Messages to facts about their content: the tools of a list, the arguments of a prompt, the type and size of a resource.

One reader for each method and direction. A member of another shape than the schema wants is left out, nothing raises, and nothing
larger than a preview is kept. Source: MCP specification, schema of every revision.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..message import Kind, Message
from .blocks import MAX_DEPTH, PREVIEW_LETTERS, Facts, blocks, capabilities, contents, implementation, listed, member, texts
from .codes import CLIENT_CAPABILITIES, CLIENT_INFO, ERROR_CODES, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO

Reader: TypeAlias = Callable[[Any], Facts]

_HINTS: Final = {
    "readOnlyHint": ("read-only", "writes"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("idempotent", "not idempotent"),
    "openWorldHint": ("open world", "closed world"),
}


def content_facts(message: Message, method: str) -> Facts:
    """Return the facts of a message, which may answer a request of `method`; empty if the payload itself says it all."""
    body = message.body
    match message.kind:
        case Kind.REQUEST | Kind.NOTIFICATION:
            params = member(body, "params")
            read = _OF_PARAMS.get(message.method or "")
            return (read(params) if read else {}) | _envelope(params)
        case Kind.RESULT:
            return result_facts(method, member(body, "result"))
        case Kind.ERROR:
            return _error(member(body, "error"))
        case _:
            return {}


def result_facts(method: str, result: Any) -> Facts:
    """Return the facts of a result, which answers a request of `method`."""
    if not isinstance(result, dict):
        return {}
    facts = _interim(result)
    if "wants" not in facts and "task" not in facts and method in _OF_RESULT:
        facts |= _OF_RESULT[method](result)
    if isinstance(result.get("nextCursor"), str):
        facts["has_more"] = True
    facts |= texts(result, keep_ms="ttlMs", keep_scope="cacheScope")
    server = implementation(member(result, "_meta", SERVER_INFO))
    return facts | ({"server": server} if server and "server" not in facts else {})


def _envelope(params: Any) -> Facts:
    """Return the facts that a modern request has about its sender, a retry about its answers, and a request about its task."""
    facts: Facts = {}
    meta = member(params, "_meta")
    if isinstance(member(meta, PROTOCOL_VERSION), str):
        facts["revision"] = meta[PROTOCOL_VERSION]
        facts["capabilities"] = capabilities(meta.get(CLIENT_CAPABILITIES))
        if client := implementation(meta.get(CLIENT_INFO)):
            facts["client"] = client
        facts |= texts(meta, log_level=LOG_LEVEL)
    answers = member(params, "inputResponses")
    if isinstance(answers, dict):
        facts["answers"] = [{"key": key, **_answer(answers[key])} for key in answers]
    if isinstance(member(params, "task"), dict):
        facts["as_task"] = texts(params["task"], ttl_ms="ttl")
    return facts


def _answer(result: Any) -> Facts:
    """Return the facts of an answer to one request for input, whose shape shows the method it answers."""
    for name, method in (("action", "elicitation/create"), ("roots", "roots/list"), ("role", "sampling/createMessage")):
        if isinstance(result, dict) and name in result:
            return _OF_RESULT[method](result)
    return {}


def _interim(result: dict[str, Any]) -> Facts:
    """Return the facts of a result that any method may have before its own: requests for input, or a task."""
    requests = result.get("inputRequests")
    if result.get("resultType") == "input_required" or isinstance(requests, dict):
        by_key = requests if isinstance(requests, dict) else {}
        facts: Facts = {"wants": [_input_request(key, by_key[key]) for key in by_key]}
        return facts | ({"task": _task(result)} if "taskId" in result else {})
    task = result.get("task") if isinstance(result.get("task"), dict) else result
    is_task = isinstance(member(task, "taskId"), str) and member(task, "status") is not None
    return {"task": _task(task)} if is_task else {}


def _input_request(key: str, request: Any) -> Facts:
    method = member(request, "method")
    read = _OF_PARAMS.get(method) if isinstance(method, str) else None
    return {"key": key, "method": method, **(read(member(request, "params")) if read else {})}


def _task(value: Any) -> Facts:
    """Return the facts of a task of 2025-11-25 or of the extension, under the same names."""
    facts = texts(value, id="taskId", status="status", message="statusMessage")
    facts |= texts(value, poll_ms="pollInterval", ttl_ms="ttl")
    return facts | texts(value, poll_ms="pollIntervalMs", ttl_ms="ttlMs")


def _error(error: Any) -> Facts:
    code = member(error, "code")
    facts: Facts = {}
    known = ERROR_CODES.get(code) if isinstance(code, int) else None
    if known is not None:
        facts |= {"error_name": known.name, "error_meaning": known.meaning}
    data = member(error, "data")
    supported = member(data, "supported")
    if isinstance(supported, list):
        facts["revisions"] = _strings(supported)
    if isinstance(member(data, "requiredCapabilities"), dict):
        facts["capabilities"] = capabilities(data["requiredCapabilities"])
    if visits := [_elicitation(item) for item in listed(data, "elicitations")]:
        facts["visits"] = visits
    return facts


# --- Params of requests and notifications ---


def _initialize(params: Any) -> Facts:
    client = implementation(member(params, "clientInfo"))
    facts = texts(params, revision="protocolVersion") | {"capabilities": capabilities(member(params, "capabilities"))}
    return facts | ({"client": client} if client else {})


def _call(params: Any) -> Facts:
    arguments = member(params, "arguments")
    return texts(params, name="name") | ({"arguments": _values(arguments)} if isinstance(arguments, dict) else {})


def _sampling(params: Any) -> Facts:
    facts = _each("messages", _message)(params)
    preferences = member(params, "modelPreferences")
    hints = [hint["name"] for hint in listed(preferences, "hints") if isinstance(hint.get("name"), str)]
    priorities = {"cost": "costPriority", "speed": "speedPriority", "intelligence": "intelligencePriority"}
    if preferred := texts(preferences, **priorities) | ({"hints": hints} if hints else {}):
        facts["model_preferences"] = preferred
    if tools := [_tool(tool) for tool in listed(params, "tools")]:
        facts["tools"] = tools
    system = member(params, "systemPrompt")
    facts |= {"system_prompt_letters": len(system)} if isinstance(system, str) else {}
    facts |= texts(member(params, "toolChoice"), tool_choice="mode")
    return facts | texts(params, max_tokens="maxTokens", temperature="temperature", include_context="includeContext")


def _elicitation(params: Any) -> Facts:
    facts = texts(params, mode="mode", message="message", url="url", elicitation_id="elicitationId")
    facts.setdefault("mode", "url" if "url" in facts else "form")
    schema = member(params, "requestedSchema")
    return facts | ({"fields": _properties(schema)} if isinstance(schema, dict) else {})


def _completion(params: Any) -> Facts:
    of = texts(member(params, "ref"), type="type", name="name", uri="uri")
    return {"of": of, **texts(member(params, "argument"), argument="name", value="value")}


def _log(params: Any) -> Facts:
    data = member(params, "data")
    return texts(params, level="level", logger="logger") | ({"text": data[:PREVIEW_LETTERS]} if isinstance(data, str) else {})


def _progress(params: Any) -> Facts:
    return texts(params, progress="progress", total="total", message="message")


def _listen(params: Any) -> Facts:
    """Return the kinds of notifications, the resources and the tasks that a subscription is for."""
    filters = member(params, "notifications")
    if not isinstance(filters, dict):
        return {"listens_to": []}
    facts: Facts = {"listens_to": [name for name, value in filters.items() if value is True]}
    for ours, theirs in (("resources", "resourceSubscriptions"), ("tasks", "taskIds")):
        if isinstance(filters.get(theirs), list):
            facts[ours] = _strings(filters[theirs])
    return facts


_OF_PARAMS: Final[dict[str, Reader]] = {
    "initialize": _initialize,
    "tools/call": _call,
    "prompts/get": _call,
    "sampling/createMessage": _sampling,
    "elicitation/create": _elicitation,
    "completion/complete": _completion,
    "subscriptions/listen": _listen,
    "resources/read": lambda params: texts(params, uri="uri"),
    "notifications/message": _log,
    "notifications/progress": _progress,
    "notifications/subscriptions/acknowledged": _listen,
    "notifications/tasks": lambda params: {"task": _task(params)},
    "notifications/tasks/status": lambda params: {"task": _task(params)},
    "notifications/cancelled": lambda params: texts(params, reason="reason"),
}

# --- Results ---


def _greeting(result: Any) -> Facts:
    facts = texts(result, revision="protocolVersion")
    facts |= {"capabilities": capabilities(result["capabilities"])} if "capabilities" in result else {}
    server = implementation(member(result, "serverInfo"))
    supported = member(result, "supportedVersions")
    if isinstance(supported, list):
        facts["revisions"] = _strings(supported)
    instructions = member(result, "instructions")
    facts |= {"instructions_letters": len(instructions)} if isinstance(instructions, str) else {}
    return facts | ({"server": server} if server else {})


def _each(name: str, read: Reader, theirs: str = "") -> Reader:
    """Return a reader of an array of objects, under our name for it; it returns no facts if there is no array."""
    theirs = theirs or name

    def read_each(value: Any) -> Facts:
        return {name: [read(item) for item in listed(value, theirs)]} if isinstance(member(value, theirs), list) else {}

    return read_each


def _tool(value: Any) -> Facts:
    annotations = member(value, "annotations")
    hints = [_HINTS[name][0 if annotations[name] else 1] for name in _HINTS if isinstance(member(annotations, name), bool)]
    facts = texts(value, name="name", title="title") | {"hints": hints, "arguments": _properties(member(value, "inputSchema"))}
    if isinstance(member(value, "outputSchema"), dict):
        facts["results"] = _properties(value["outputSchema"])
    return facts | texts(member(value, "execution"), task_support="taskSupport")


def _prompt(value: Any) -> Facts:
    arguments = [
        texts(argument, name="name") | {"required": argument.get("required") is True} for argument in listed(value, "arguments")
    ]
    return texts(value, name="name", title="title") | {"arguments": arguments}


def _resource(value: Any) -> Facts:
    return texts(value, uri="uri", uri_template="uriTemplate", name="name", title="title", mime_type="mimeType", bytes="size")


def _message(value: Any) -> Facts:
    return texts(value, role="role") | ({"content": blocks(value["content"])} if "content" in value else {})


def _tool_result(result: Any) -> Facts:
    facts: Facts = {"content": blocks(result["content"])} if "content" in result else {}
    structured = member(result, "structuredContent")
    if structured is not None:
        facts["structured"] = sorted(structured) if isinstance(structured, dict) else []
    return facts | ({"is_error": True} if member(result, "isError") is True else {})


def _sampling_result(result: Any) -> Facts:
    return _message(result) | texts(result, model="model", stop_reason="stopReason")


def _elicitation_result(result: Any) -> Facts:
    fields = member(result, "content")
    return texts(result, action="action") | ({"fields": sorted(fields)} if isinstance(fields, dict) else {})


def _completion_result(result: Any) -> Facts:
    completion = member(result, "completion")
    values = member(completion, "values")
    facts: Facts = {"values": len(values)} if isinstance(values, list) else {}
    return facts | texts(completion, total="total") | ({"has_more": True} if member(completion, "hasMore") is True else {})


def _name_and_uri(value: Any) -> Facts:
    return texts(value, uri="uri", name="name")


_OF_RESULT: Final[dict[str, Reader]] = {
    "initialize": _greeting,
    "server/discover": _greeting,
    "tools/list": _each("tools", _tool),
    "tools/call": _tool_result,
    "prompts/list": _each("prompts", _prompt),
    "prompts/get": _each("messages", _message),
    "resources/list": _each("resources", _resource),
    "resources/templates/list": _each("templates", _resource, "resourceTemplates"),
    "resources/directory/read": _each("resources", _resource),
    "resources/read": _each("contents", contents),
    "sampling/createMessage": _sampling_result,
    "elicitation/create": _elicitation_result,
    "roots/list": _each("roots", _name_and_uri),
    "completion/complete": _completion_result,
    "tasks/list": _each("tasks", _task),
    "tasks/result": _tool_result,
    "skills/list": _each("skills", _name_and_uri),
}


def _properties(schema: Any) -> list[Facts]:
    """Return name and type of the properties of a JSON Schema, and whether they are required."""
    properties, required = member(schema, "properties"), member(schema, "required")
    if not isinstance(properties, dict):
        return []
    names = set(_strings(required)) if isinstance(required, list) else set()
    return [{"name": name, "type": _type(value), "required": name in names} for name, value in properties.items()]


def _type(schema: Any, depth: int = 0) -> str | None:
    """Return the type of a property in a word: that of its values for an enumeration, `|` between alternatives."""
    named = member(schema, "type")
    if depth > MAX_DEPTH:
        return None
    if isinstance(named, str):
        inner = _type(member(schema, "items"), depth + 1) if named == "array" else None
        return f"{inner}[]" if inner else named
    if isinstance(named, list):
        return "|".join(_strings(named)) or None
    alternatives = [_type(option, depth + 1) for option in listed(schema, "anyOf") or listed(schema, "oneOf")]
    return "|".join(_strings(alternatives)) or None


def _strings(items: list[Any]) -> list[str]:
    return [item for item in items if isinstance(item, str)]


def _values(arguments: dict[str, Any]) -> Facts:
    """Return arguments by name: short values as they are, the size of arrays and objects as an object."""
    return {name: _value(value) for name, value in arguments.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str) and len(value) > PREVIEW_LETTERS:
        return value[:PREVIEW_LETTERS] + "…"
    if isinstance(value, list | dict):
        return {"items" if isinstance(value, list) else "members": len(value)}
    return value
