"""What a message is about, as facts: the tools of a list, the arguments of a prompt, the type and size of a resource, who asks.

One reader per method, told apart by what is said and in which direction. Source: MCP specification, schema of every revision.
Refuses to raise and to keep payloads: what is not as the schema wants it is left out, and nothing larger than a preview is kept.
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
    """What `message` is about, or what it answers to a request of `method`; empty where there is nothing to say but the payload."""
    body = message.body
    match message.kind:
        case Kind.REQUEST | Kind.NOTIFICATION:
            params = member(body, "params")
            read = _ASKED.get(message.method or "")
            return (read(params) if read else {}) | _envelope(params)
        case Kind.RESULT:
            return result_facts(method, member(body, "result"))
        case Kind.ERROR:
            return _error(member(body, "error"))
        case _:
            return {}


def result_facts(method: str, result: Any) -> Facts:
    """What a result says, which a request of `method` brought."""
    if not isinstance(result, dict):
        return {}
    made = _interim(result)
    if "wants" not in made and "task" not in made and method in _ANSWERED:
        made |= _ANSWERED[method](result)
    if isinstance(result.get("nextCursor"), str):
        made["has_more"] = True
    made |= texts(result, keep_ms="ttlMs", keep_scope="cacheScope")
    server = implementation(member(result, "_meta", SERVER_INFO))
    return made | ({"server": server} if server and "server" not in made else {})


def _envelope(params: Any) -> Facts:
    """What a request of the modern era says of its sender, and a retried one of its answers."""
    made: Facts = {}
    meta = member(params, "_meta")
    if isinstance(member(meta, PROTOCOL_VERSION), str):
        made["revision"] = meta[PROTOCOL_VERSION]
        made["capabilities"] = capabilities(meta.get(CLIENT_CAPABILITIES))
        if client := implementation(meta.get(CLIENT_INFO)):
            made["client"] = client
        made |= texts(meta, log_level=LOG_LEVEL)
    answers = member(params, "inputResponses")
    if isinstance(answers, dict):
        made["answers"] = [{"key": key, **_answer(answers[key])} for key in answers]
    if isinstance(member(params, "task"), dict):
        made["as_task"] = texts(params["task"], ttl_ms="ttl")
    return made


def _answer(result: Any) -> Facts:
    """The answer to one request for input; its shape tells what it answers."""
    for name, method in (("action", "elicitation/create"), ("roots", "roots/list"), ("role", "sampling/createMessage")):
        if isinstance(result, dict) and name in result:
            return _ANSWERED[method](result)
    return {}


def _interim(result: dict[str, Any]) -> Facts:
    """Results of any method that are not its own yet: requests for input, and tasks."""
    wanted = result.get("inputRequests")
    if result.get("resultType") == "input_required" or isinstance(wanted, dict):
        asked = wanted if isinstance(wanted, dict) else {}
        made: Facts = {"wants": [_wanted(key, asked[key]) for key in asked]}
        return made | ({"task": _task(result)} if "taskId" in result else {})
    task = result.get("task") if isinstance(result.get("task"), dict) else result
    is_task = isinstance(member(task, "taskId"), str) and member(task, "status") is not None
    return {"task": _task(task)} if is_task else {}


def _wanted(key: str, request: Any) -> Facts:
    method = member(request, "method")
    read = _ASKED.get(method) if isinstance(method, str) else None
    return {"key": key, "method": method, **(read(member(request, "params")) if read else {})}


def _task(value: Any) -> Facts:
    """Tasks of 2025-11-25 and of the extension, under the same names."""
    made = texts(value, id="taskId", status="status", message="statusMessage")
    made |= texts(value, poll_ms="pollInterval", ttl_ms="ttl")
    return made | texts(value, poll_ms="pollIntervalMs", ttl_ms="ttlMs")


def _error(error: Any) -> Facts:
    code = member(error, "code")
    made: Facts = {}
    known = ERROR_CODES.get(code) if isinstance(code, int) else None
    if known is not None:
        made |= {"error_name": known.name, "error_meaning": known.meaning}
    data = member(error, "data")
    supported = member(data, "supported")
    if isinstance(supported, list):
        made["revisions"] = [one for one in supported if isinstance(one, str)]
    if isinstance(member(data, "requiredCapabilities"), dict):
        made["capabilities"] = capabilities(data["requiredCapabilities"])
    if visits := [_elicitation(one) for one in listed(data, "elicitations")]:
        made["visits"] = visits
    return made


# --- What is asked and told ---


def _initialize(params: Any) -> Facts:
    asked = {"revision": "protocolVersion"}
    client = implementation(member(params, "clientInfo"))
    made = texts(params, **asked) | {"capabilities": capabilities(member(params, "capabilities"))}
    return made | ({"client": client} if client else {})


def _call(params: Any) -> Facts:
    given = member(params, "arguments")
    return texts(params, name="name") | ({"arguments": _values(given)} if isinstance(given, dict) else {})


def _sampling(params: Any) -> Facts:
    made = _each("messages", _message)(params)
    hints = [one["name"] for one in listed(member(params, "modelPreferences"), "hints") if isinstance(one.get("name"), str)]
    named = {"cost": "costPriority", "speed": "speedPriority", "intelligence": "intelligencePriority"}
    if preferred := texts(member(params, "modelPreferences"), **named) | ({"hints": hints} if hints else {}):
        made["model_preferences"] = preferred
    if offered := [_tool(one) for one in listed(params, "tools")]:
        made["tools"] = offered
    system = member(params, "systemPrompt")
    made |= {"system_prompt_letters": len(system)} if isinstance(system, str) else {}
    made |= texts(member(params, "toolChoice"), tool_choice="mode")
    return made | texts(params, max_tokens="maxTokens", temperature="temperature", include_context="includeContext")


def _elicitation(params: Any) -> Facts:
    made = texts(params, mode="mode", message="message", url="url", elicitation_id="elicitationId")
    made.setdefault("mode", "url" if "url" in made else "form")
    schema = member(params, "requestedSchema")
    return made | ({"fields": _properties(schema)} if isinstance(schema, dict) else {})


def _completion(params: Any) -> Facts:
    of = texts(member(params, "ref"), type="type", name="name", uri="uri")
    return {"of": of, **texts(member(params, "argument"), argument="name", value="value")}


def _log(params: Any) -> Facts:
    data = member(params, "data")
    return texts(params, level="level", logger="logger") | ({"text": data[:PREVIEW_LETTERS]} if isinstance(data, str) else {})


def _progress(params: Any) -> Facts:
    return texts(params, progress="progress", total="total", message="message")


def _listen(params: Any) -> Facts:
    """What a subscription is to tell: the kinds that are wanted, the resources and the tasks."""
    wanted = member(params, "notifications")
    if not isinstance(wanted, dict):
        return {"listens_to": []}
    made: Facts = {"listens_to": [name for name, one in wanted.items() if one is True]}
    for ours, theirs in (("resources", "resourceSubscriptions"), ("tasks", "taskIds")):
        if isinstance(wanted.get(theirs), list):
            made[ours] = [one for one in wanted[theirs] if isinstance(one, str)]
    return made


_ASKED: Final[dict[str, Reader]] = {
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

# --- What is answered ---


def _opened(result: Any) -> Facts:
    made = texts(result, revision="protocolVersion")
    made |= {"capabilities": capabilities(result["capabilities"])} if "capabilities" in result else {}
    server = implementation(member(result, "serverInfo"))
    supported = member(result, "supportedVersions")
    if isinstance(supported, list):
        made["revisions"] = [one for one in supported if isinstance(one, str)]
    words = member(result, "instructions")
    made |= {"instructions_letters": len(words)} if isinstance(words, str) else {}
    return made | ({"server": server} if server else {})


def _each(name: str, read: Reader, theirs: str = "") -> Reader:
    """A reader of an array of objects, under our name for it; nothing where there is no array."""
    theirs = theirs or name
    return lambda value: {name: [read(one) for one in listed(value, theirs)]} if isinstance(member(value, theirs), list) else {}


def _tool(value: Any) -> Facts:
    hints = member(value, "annotations")
    said = [_HINTS[name][0 if hints[name] else 1] for name in _HINTS if isinstance(member(hints, name), bool)]
    made = texts(value, name="name", title="title") | {"hints": said, "arguments": _properties(member(value, "inputSchema"))}
    if isinstance(member(value, "outputSchema"), dict):
        made["results"] = _properties(value["outputSchema"])
    return made | texts(member(value, "execution"), task_support="taskSupport")


def _prompt(value: Any) -> Facts:
    given = [texts(one, name="name") | {"required": one.get("required") is True} for one in listed(value, "arguments")]
    return texts(value, name="name", title="title") | {"arguments": given}


def _resource(value: Any) -> Facts:
    return texts(value, uri="uri", uri_template="uriTemplate", name="name", title="title", mime_type="mimeType", bytes="size")


def _message(value: Any) -> Facts:
    return texts(value, role="role") | ({"content": blocks(value["content"])} if "content" in value else {})


def _called(result: Any) -> Facts:
    made: Facts = {"content": blocks(result["content"])} if "content" in result else {}
    structured = member(result, "structuredContent")
    if structured is not None:
        made["structured"] = sorted(structured) if isinstance(structured, dict) else []
    return made | ({"is_error": True} if member(result, "isError") is True else {})


def _sampled(result: Any) -> Facts:
    return _message(result) | texts(result, model="model", stop_reason="stopReason")


def _elicited(result: Any) -> Facts:
    given = member(result, "content")
    return texts(result, action="action") | ({"fields": sorted(given)} if isinstance(given, dict) else {})


def _completed(result: Any) -> Facts:
    found = member(result, "completion")
    values = member(found, "values")
    made: Facts = {"values": len(values)} if isinstance(values, list) else {}
    return made | texts(found, total="total") | ({"has_more": True} if member(found, "hasMore") is True else {})


def _named(value: Any) -> Facts:
    return texts(value, uri="uri", name="name")


_ANSWERED: Final[dict[str, Reader]] = {
    "initialize": _opened,
    "server/discover": _opened,
    "tools/list": _each("tools", _tool),
    "tools/call": _called,
    "prompts/list": _each("prompts", _prompt),
    "prompts/get": _each("messages", _message),
    "resources/list": _each("resources", _resource),
    "resources/templates/list": _each("templates", _resource, "resourceTemplates"),
    "resources/directory/read": _each("resources", _resource),
    "resources/read": _each("contents", contents),
    "sampling/createMessage": _sampled,
    "elicitation/create": _elicited,
    "roots/list": _each("roots", _named),
    "completion/complete": _completed,
    "tasks/list": _each("tasks", _task),
    "tasks/result": _called,
    "skills/list": _each("skills", _named),
}


def _properties(schema: Any) -> list[Facts]:
    """The properties of a JSON Schema: name, type, whether it is required."""
    properties, required = member(schema, "properties"), member(schema, "required")
    if not isinstance(properties, dict):
        return []
    needed = {one for one in required if isinstance(one, str)} if isinstance(required, list) else set()
    return [{"name": name, "type": _type(one), "required": name in needed} for name, one in properties.items()]


def _type(schema: Any, depth: int = 0) -> str | None:
    """The type of a property in a word: that of its values for an enumeration, `|` between alternatives."""
    said = member(schema, "type")
    if depth > MAX_DEPTH:
        return None
    if isinstance(said, str):
        inner = _type(member(schema, "items"), depth + 1) if said == "array" else None
        return f"{inner}[]" if inner else said
    either = (
        said
        if isinstance(said, list)
        else [_type(one, depth + 1) for one in listed(schema, "anyOf") or listed(schema, "oneOf")]
    )
    return "|".join(one for one in either if isinstance(one, str)) or None


def _values(given: dict[str, Any]) -> Facts:
    """Arguments by name: short values as they are, of others the type."""
    return {name: _value(one) for name, one in given.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str) and len(value) > PREVIEW_LETTERS:
        return value[:PREVIEW_LETTERS] + "…"
    if isinstance(value, list | dict):
        return f"{len(value)} {'items' if isinstance(value, list) else 'members'}"
    return value
