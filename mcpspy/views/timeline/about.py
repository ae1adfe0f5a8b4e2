"""The content of a message in words: one line for a row, a few for `show @:7`. Takes the facts of `transcript.mcp.content`.

The lines are safe for a terminal. Binary content is shown as type, size and digest, never as Base64.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ...transcript.mcp.blocks import Facts
from ..text.escape import one_line
from ..text.units import counted, duration, size

MAX_LISTED: Final = 200
"""The most tools, resources and arguments that are listed one by one; more are counted."""

MAX_IN_ROW: Final = 4
"""The most items of a list that a row names."""

MAX_NAMES: Final = 20
"""The most items of a list of names that a row reads."""

LINE_LETTERS: Final = 2000
"""The most letters of a line; the signature of a tool may be long."""

DIGEST_LETTERS: Final = 12

Words: TypeAlias = Callable[[Any], str]

_MILLISECOND_NS: Final = 1_000_000


def about_words(facts: Facts, *, heads: bool = False) -> str:
    """Return the facts in one line; empty where there is nothing but the payload to show. `heads` adds names and first words."""
    return one_line(" · ".join(words for name in facts if (words := _in_words(name, facts, heads=heads))))


def about_lines(facts: Facts) -> list[str]:
    """Return the facts in lines: single facts first, then each list item by item."""
    single = [words for name, words_of in _SINGLE.items() if name in facts and (words := words_of(facts[name]))]
    lines = [" · ".join(single)] if single else []
    for name, (noun, _, line_of) in _LISTS.items():
        if name not in facts:
            continue
        items = facts[name]
        if noun in _PLAIN and len(items) == 1:
            lines += [] if items[0].get("type") == "text" else line_of(items[0])
            continue
        lines.append(f"{counted(len(items), noun)}{' on this page' if facts.get('has_more') else ''}")
        lines += [f"  {line}" for item in items[:MAX_LISTED] for line in line_of(item)]
        if len(items) > MAX_LISTED:
            lines.append(f"  … {len(items) - MAX_LISTED:,} more")
    return [_safe_line(line) for line in lines]


def _safe_line(line: str) -> str:
    """Make a line safe, keeping its indentation."""
    blanks = len(line) - len(line.lstrip(" "))
    return " " * blanks + one_line(line, LINE_LETTERS)


def _in_words(name: str, facts: Facts, *, heads: bool) -> str:
    if name in _ROW:
        return _ROW[name](facts[name])
    if name in _LISTS:
        noun, words_of, _ = _LISTS[name]
        items = facts[name]
        words_of = _HEADS.get(name, words_of) if heads else words_of
        if name == "messages":
            roles = dict.fromkeys(map(words_of or _message_words, items[:MAX_NAMES]))
            return counted(len(items), noun) + (f": {', '.join(roles)}" if roles else "")
        if words_of is not None and name not in _NAMED:
            distinct = dict.fromkeys(words for item in items[:MAX_IN_ROW] if (words := words_of(item)))
            return ", ".join(distinct) + (" …" if len(items) > MAX_IN_ROW else "")
        names = "" if words_of is None else ", ".join(filter(None, map(words_of, items[:MAX_NAMES])))
        return counted(len(items), noun) + (", more to come" if facts.get("has_more") else "") + (f": {names}" if names else "")
    return ""


# --- Single facts ---


def _peer(facts: Facts) -> str:
    return f"{facts.get('name', '')} {facts.get('version', '')}".strip()


def _capabilities(paths: list[str]) -> str:
    """Return `capabilities: sampling, elicitation (form, url)`."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        name, _, inner = path.partition(".")
        groups.setdefault(name, []).extend([inner] if inner else [])
    words = [f"{name} ({', '.join(inner)})" if inner else name for name, inner in groups.items()]
    return f"capabilities: {', '.join(words) or 'none'}"


def _quoted(text: Any, more: bool = False) -> str:  # noqa: FBT001, FBT002 - of one fact
    return f"“{text}{'…' if more else ''}”"


def block_words(block: Facts) -> str:
    """Return a block of content: `image/png 64×64 1.2 kB`, `“Hello”`, `resource file:///a.txt text/plain 5 B`."""
    match block.get("type"):
        case "text":
            return _quoted(block.get("text", ""), bool(block.get("more")))
        case "image" | "audio" as kind:
            return bytes_words(block, block.get("mime_type") or kind)
        case "resource":
            return f"resource {contents_words(block)}"
        case "resource_link":
            parts = [block.get("uri", ""), block.get("mime_type", ""), _size(block)]
            return "link to " + " ".join(part for part in parts if part)
        case "tool_use":
            return f"uses {block.get('name', '?')}({', '.join(block.get('arguments', ()))})"
        case "tool_result":
            inner = ", ".join(block_words(item) for item in block.get("content", ()))
            return f"{'failed result' if block.get('is_error') else 'result'} of {block.get('id', '?')}: {inner}"
        case kind:
            return f"{kind} block"


def contents_words(facts: Facts) -> str:
    """Return the contents of a resource: `file:///a.txt text/plain 5 B`."""
    return f"{facts.get('uri', '')} {bytes_words(facts, facts.get('mime_type', ''))}".strip()


def bytes_words(facts: Facts, kind: str) -> str:
    """Return type and size of bytes: `image/png 1.2 kB`."""
    return " ".join(word for word in (kind, _size(facts)) if word)


def _with_digest(words: str, facts: Facts) -> str:
    digest = facts.get("sha256")
    return f"{words}, sha256 {digest[:DIGEST_LETTERS]}…" if digest else words


def _size(facts: Facts) -> str:
    held = facts.get("bytes")
    if isinstance(held, int):
        return size(held)
    letters = facts.get("base64_letters")
    return "" if letters is None else f"{letters:,} characters that are not Base64"


def _block_lines(block: Facts) -> Iterator[str]:
    yield _with_digest(block_words(block), block)


def _message_words(message: Facts) -> str:
    return str(message.get("role") or "?")


def _message_lines(message: Facts) -> Iterator[str]:
    role = message.get("role") or "?"
    for block in message.get("content", ()):
        yield from (f"{role}: {line}" for line in _block_lines(block))
    if not message.get("content"):
        yield f"{role}:"


def _argument(argument: Facts) -> str:
    """Return `name*: string`, where the star marks a required argument."""
    kind = argument.get("type")
    return f"{argument.get('name', '?')}{'*' if argument.get('required') else ''}" + (f": {kind}" if kind else "")


def _signature(name: Any, arguments: list[Facts]) -> str:
    return f"{name}({', '.join(map(_argument, arguments[:MAX_LISTED]))})"


def _tool_lines(tool: Facts) -> Iterator[str]:
    results = tool.get("results")
    parts = [_signature(tool.get("name", "?"), tool.get("arguments", []))]
    if results is not None:
        parts[0] += " → {" + ", ".join(map(_argument, results)) + "}"
    parts += [", ".join(tool["hints"])] if tool.get("hints") else []
    parts += [f"as a task: {tool['task_support']}"] if tool.get("task_support", "forbidden") != "forbidden" else []
    yield " · ".join(parts)


def _prompt_lines(prompt: Facts) -> Iterator[str]:
    yield _signature(prompt.get("name", "?"), prompt.get("arguments", []))


def _resource_lines(resource: Facts) -> Iterator[str]:
    uri = resource.get("uri") or resource.get("uri_template") or "?"
    name = resource.get("title") or resource.get("name")
    parts = (uri, resource.get("mime_type", ""), _size(resource), f"({name})" if name else "")
    yield " ".join(part for part in parts if part)


def _contents_lines(facts: Facts) -> Iterator[str]:
    yield _with_digest(contents_words(facts), facts)


def _root_lines(root: Facts) -> Iterator[str]:
    yield f"{root.get('uri', '?')}" + (f" ({root['name']})" if root.get("name") else "")


def task_words(task: Facts) -> str:
    """Return a task: its id, its status, its message and its poll interval."""
    poll = task.get("poll_ms")
    parts = [f"task {task.get('id', '?')} {task.get('status', '')}".strip(), task.get("message", "")]
    parts += [f"poll every {_milliseconds(poll)}"] if poll else []
    return ", ".join(part for part in parts if part)


def _task_lines(task: Facts) -> Iterator[str]:
    keep = task.get("ttl_ms")
    yield task_words(task) + (f", kept for {_milliseconds(keep)}" if keep else "")


def _wanted_words(wanted: Facts) -> str:
    return str(wanted.get("method") or "?")


def _wanted_lines(wanted: Facts) -> Iterator[str]:
    yield f"{wanted.get('key', '?')}: {wanted.get('method') or '?'}"
    yield from (f"  {line}" for line in about_lines(wanted))


def _answer_lines(answer: Facts) -> Iterator[str]:
    words = about_words({name: value for name, value in answer.items() if name != "key"})
    yield f"{answer.get('key', '?')}: {words}"


def _answer_words(answer: Facts) -> str:
    return about_words({name: value for name, value in answer.items() if name != "key"})


def _visit_lines(visit: Facts) -> Iterator[str]:
    yield f"{visit.get('url', '?')} {visit.get('message', '')}".strip()


def _preferences(facts: Facts) -> str:
    weights = [f"{name} {facts[name]}" for name in ("cost", "speed", "intelligence") if name in facts]
    hints = ", ".join(map(str, facts.get("hints", ())))
    return "prefers " + "; ".join(part for part in (hints, ", ".join(weights)) if part)


def _arguments(arguments: Any) -> str:
    """Return the arguments of a call with their values."""
    if not isinstance(arguments, dict):
        return ""
    return "with " + (", ".join(f"{name} = {_value(value)}" for name, value in arguments.items()) or "no arguments")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        ((unit, count),) = value.items()
        return f"{'an array' if unit == 'items' else 'an object'} of {counted(count, unit[:-1])}"
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)


def _of(reference: Facts) -> str:
    kind = {"ref/prompt": "prompt", "ref/resource": "resource"}.get(reference.get("type", ""), reference.get("type", ""))
    return f"for {kind} {reference.get('name') or reference.get('uri') or '?'}"


def _values(count: int) -> str:
    return counted(count, "value")


def _structured(names: list[str]) -> str:
    return "structured {" + ", ".join(names) + "}"


def _fields(fields: list[Any]) -> str:
    """Return the fields of a form, which a request describes and an answer names."""
    names = [_argument(field) if isinstance(field, dict) else str(field) for field in fields]
    return f"fields {', '.join(names)}" if names else "no fields"


def _field_name(field: Any) -> str:
    return field if isinstance(field, str) else str(field.get("name", "?"))


def _characters(noun: str) -> Words:
    return lambda count: f"{noun} of {counted(count, 'character')}"


def _milliseconds(count: Any) -> str:
    return duration(int(count * _MILLISECOND_NS)) if isinstance(count, int | float) and abs(count) < 1e12 else str(count)


_SINGLE: Final[dict[str, Words]] = {
    "error_name": str,
    "error_meaning": str,
    "name": str,
    "arguments": _arguments,
    "mode": lambda mode: f"{mode} elicitation",
    "message": _quoted,
    "fields": _fields,
    "url": lambda url: f"URL to open: {url}",
    "elicitation_id": lambda id: f"elicitation {id}",
    "action": lambda action: f"the user's answer: {action}",
    "of": _of,
    "argument": lambda name: f"argument {name}",
    "value": lambda value: f"begins with {_quoted(value)}",
    "revision": lambda revision: f"revision {revision}",
    "revisions": lambda revisions: f"revisions {', '.join(revisions) or 'none'}",
    "client": lambda peer: f"client {_peer(peer)}",
    "server": lambda peer: f"server {_peer(peer)}",
    "capabilities": _capabilities,
    "instructions_letters": _characters("instructions"),
    "log_level": lambda level: f"log level {level}",
    "values": _values,
    "role": lambda role: f"role {role or '?'}",
    "model": lambda model: f"by {model}",
    "stop_reason": lambda reason: f"stopped: {reason}",
    "model_preferences": _preferences,
    "system_prompt_letters": _characters("system prompt"),
    "tool_choice": lambda choice: f"tool choice: {choice}",
    "max_tokens": lambda count: f"at most {count:,} tokens" if isinstance(count, int) else "",
    "temperature": lambda temperature: f"temperature {temperature}",
    "include_context": lambda context: f"context {context}",
    "level": str,
    "logger": lambda logger: f"logger {logger}",
    "structured": _structured,
    "task": lambda task: "; ".join(_task_lines(task)),
    "as_task": lambda task: (
        "asks to run as a task" + (f", kept for {_milliseconds(task['ttl_ms'])}" if "ttl_ms" in task else "")
    ),
    "listens_to": lambda names: f"listens to {', '.join(names) or 'nothing'}",
    "keep_ms": lambda time_ms: f"may be cached for {_milliseconds(time_ms)}" if time_ms else "not to be cached",
    "keep_scope": lambda scope: f"cache scope {scope}",
}
"""The words for facts that occur once, in the order in which they are shown."""

_NO_WORDS: Final[Words | None] = None

_LISTS: Final[dict[str, tuple[str, Words | None, Callable[[Any], Iterator[str]]]]] = {
    "tools": ("tool", _NO_WORDS, _tool_lines),
    "prompts": ("prompt", _NO_WORDS, _prompt_lines),
    "resources": ("resource", _NO_WORDS, lambda item: _resource_lines(item) if isinstance(item, dict) else iter([str(item)])),
    "templates": ("template", _NO_WORDS, _resource_lines),
    "contents": ("content", lambda item: bytes_words(item, item.get("mime_type", "")), _contents_lines),
    "messages": ("message", _NO_WORDS, _message_lines),
    "content": ("block", lambda block: "" if block.get("type") == "text" else block_words(block), _block_lines),
    "roots": ("root", _NO_WORDS, _root_lines),
    "tasks": ("task", _NO_WORDS, lambda item: _task_lines(item) if isinstance(item, dict) else iter([str(item)])),
    "skills": ("skill", _NO_WORDS, _root_lines),
    "wants": ("request", lambda wanted: f"wants {_wanted_words(wanted)}", _wanted_lines),
    "answers": ("answer", _answer_words, _answer_lines),
    "visits": ("URL", lambda visit: f"open {visit.get('url', '?')}", _visit_lines),
}
"""The words for lists: the noun, one item in a row (None: the row counts the items), and the lines of an item."""


def _name(item: Any) -> str:
    """Return the name of a tool, a prompt or a root; of a resource its URI."""
    if not isinstance(item, dict):
        return str(item)
    return str(item.get("name") or item.get("uri") or item.get("uri_template") or item.get("id") or "")


def _with_text(words: str, facts: Facts) -> str:
    return " ".join(filter(None, (words, _quoted(facts["text"], bool(facts.get("more"))) if "text" in facts else "")))


def _message_head(message: Facts) -> str:
    return f"{_message_words(message)} {', '.join(map(block_words, message.get('content', ())))}".rstrip()


_NAMED: Final = ("tools", "prompts", "resources", "templates", "roots", "tasks", "skills")
"""The lists whose items have names."""

_HEADS: Final[dict[str, Words]] = {
    **dict.fromkeys(_NAMED, _name),
    "contents": lambda item: _with_text(bytes_words(item, item.get("mime_type", "")), item),
    "messages": _message_head,
    "content": block_words,
}
"""The words for one item of a list in a row that shows the head of a result."""

_PLAIN: Final = {"block", "content"}
"""The nouns of lists whose only item is shown without a count. A single text is not shown, because the payload shows it."""

_ROW: Final[dict[str, Words]] = {
    "server": _peer,
    "revision": str,
    "revisions": ", ".join,
    "mode": lambda mode: "" if mode == "form" else str(mode),
    "message": _quoted,
    "url": str,
    "action": str,
    "fields": lambda fields: "{" + ", ".join(map(_field_name, fields)) + "}",
    "value": _quoted,
    "values": _values,
    "model": lambda model: f"by {model}",
    "task": task_words,
    "listens_to": ", ".join,
}
"""The words for single facts that a row shows."""
