"""What a message is about, in words: one line for a row, a few for `show @:7`. From the facts of `transcript.mcp_content`.

What comes out is safe for a terminal. Refuses to read payloads, and to show Base64: of bytes it says type, size and digest.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ...transcript.mcp.blocks import Facts
from ..text.escape import one_line
from ..text.units import counted, duration, size

MAX_LISTED: Final = 200
"""So many tools, resources, arguments are listed one by one; more are counted."""

LINE_LETTERS: Final = 2000
"""Of a line so much is shown: the signature of a tool may be long."""

DIGEST_LETTERS: Final = 12

Words: TypeAlias = Callable[[Any], str]

_MILLISECOND_NS: Final = 1_000_000


def about_words(facts: Facts) -> str:
    """The facts in one line; empty where only the payload could say more."""
    return one_line(" · ".join(words for name in facts if (words := _in_words(name, facts))))


def about_lines(facts: Facts) -> list[str]:
    """The facts in lines: what there is one of in the first ones, then each list item by item."""
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
        lines += [f"  {line}" for one in items[:MAX_LISTED] for line in line_of(one)]
        if len(items) > MAX_LISTED:
            lines.append(f"  … {len(items) - MAX_LISTED:,} more")
    return [_safe_line(line) for line in lines]


def _safe_line(line: str) -> str:
    """One safe line that keeps its indentation."""
    blanks = len(line) - len(line.lstrip(" "))
    return " " * blanks + one_line(line, LINE_LETTERS)


def _in_words(name: str, facts: Facts) -> str:
    if name in _ROW:
        return _ROW[name](facts[name])
    if name in _LISTS:
        noun, words_of, _ = _LISTS[name]
        items = facts[name]
        if name == "messages":
            roles = dict.fromkeys(map(_message_words, items))
            return counted(len(items), noun) + (f": {', '.join(roles)}" if roles else "")
        if words_of is not None:
            return ", ".join(dict.fromkeys(words for one in items[:4] if (words := words_of(one)))) + (
                " …" if len(items) > 4 else ""
            )
        return counted(len(items), noun) + (", more to come" if facts.get("has_more") else "")
    return ""


# --- Parts of what is said ---


def _peer(facts: Facts) -> str:
    return f"{facts.get('name', '')} {facts.get('version', '')}".strip()


def _capabilities(paths: list[str]) -> str:
    """`capabilities: sampling, elicitation (form, url)`."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        name, _, inner = path.partition(".")
        groups.setdefault(name, []).extend([inner] if inner else [])
    return "capabilities: " + (", ".join(name + (f" ({', '.join(of)})" if of else "") for name, of in groups.items()) or "none")


def _quoted(text: Any, more: bool = False) -> str:  # noqa: FBT001, FBT002 - of one fact
    return f"“{text}{'…' if more else ''}”"


def block_words(block: Facts) -> str:
    """A block of content: `image/png 64×64 1.2 kB`, `“Hello”`, `resource file:///a.txt text/plain 5 B`."""
    match block.get("type"):
        case "text":
            return _quoted(block.get("text", ""), bool(block.get("more")))
        case "image" | "audio" as kind:
            return bytes_words(block, block.get("mime_type") or kind)
        case "resource":
            return f"resource {contents_words(block)}"
        case "resource_link":
            parts = [block.get("uri", ""), block.get("mime_type", ""), _size(block)]
            return "link to " + " ".join(one for one in parts if one)
        case "tool_use":
            return f"uses {block.get('name', '?')}({', '.join(block.get('arguments', ()))})"
        case "tool_result":
            inner = ", ".join(block_words(one) for one in block.get("content", ()))
            return f"{'failure' if block.get('is_error') else 'result'} of {block.get('id', '?')}: {inner}"
        case kind:
            return f"{kind} block"


def contents_words(facts: Facts) -> str:
    """What a resource holds: `file:///a.txt text/plain 5 B`."""
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
    return "" if letters is None else f"{letters:,} letters that are no Base64"


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
    """`name*: string`, where the star says that it is required."""
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
    yield " ".join(one for one in (uri, resource.get("mime_type", ""), _size(resource), f"({name})" if name else "") if one)


def _contents_lines(facts: Facts) -> Iterator[str]:
    yield _with_digest(contents_words(facts), facts)


def _root_lines(root: Facts) -> Iterator[str]:
    yield f"{root.get('uri', '?')}" + (f" ({root['name']})" if root.get("name") else "")


def task_words(task: Facts) -> str:
    """A task: its state, what is said of it, how often to ask."""
    poll = task.get("poll_ms")
    parts = [f"task {task.get('id', '?')} {task.get('status', '')}".strip(), task.get("message", "")]
    parts += [f"ask again every {_milliseconds(poll)}"] if poll else []
    return ", ".join(one for one in parts if one)


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
    return "prefers " + "; ".join(one for one in (hints, ", ".join(weights)) if one)


def _given(arguments: Any) -> str:
    """Arguments with their values; of a tool or a prompt its arguments are listed otherwise."""
    if not isinstance(arguments, dict):
        return ""
    return "with " + (", ".join(f"{name} = {_value(one)}" for name, one in arguments.items()) or "no arguments")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if value is None or isinstance(value, bool)
        else str(value)
    )


def _of(reference: Facts) -> str:
    kind = {"ref/prompt": "prompt", "ref/resource": "resource"}.get(reference.get("type", ""), reference.get("type", ""))
    return f"for {kind} {reference.get('name') or reference.get('uri') or '?'}"


def _values(count: int) -> str:
    return counted(count, "value")


def _structured(names: list[str]) -> str:
    return "structured {" + ", ".join(names) + "}"


def _fields(fields: list[Any]) -> str:
    """The fields of a form, which a request describes and an answer names."""
    return (
        "fields " + ", ".join(_argument(one) if isinstance(one, dict) else str(one) for one in fields)
        if fields
        else "no fields"
    )


def _letters(of: str) -> Words:
    return lambda count: f"{of} of {counted(count, 'letter')}"


def _milliseconds(count: Any) -> str:
    return duration(int(count * _MILLISECOND_NS)) if isinstance(count, int | float) and abs(count) < 1e12 else str(count)


_SINGLE: Final[dict[str, Words]] = {
    "error_name": str,
    "error_meaning": str,
    "name": str,
    "arguments": _given,
    "mode": lambda said: f"{said} elicitation",
    "message": _quoted,
    "fields": _fields,
    "url": lambda said: f"to visit {said}",
    "elicitation_id": lambda said: f"elicitation {said}",
    "action": lambda said: f"the user's answer: {said}",
    "of": _of,
    "argument": lambda said: f"argument {said}",
    "value": lambda said: f"begins with {_quoted(said)}",
    "revision": lambda said: f"revision {said}",
    "revisions": lambda said: f"revisions {', '.join(said) or 'none'}",
    "client": lambda said: f"client {_peer(said)}",
    "server": lambda said: f"server {_peer(said)}",
    "capabilities": _capabilities,
    "instructions_letters": _letters("instructions"),
    "log_level": lambda said: f"wants logs from {said} on",
    "values": _values,
    "role": lambda said: f"as {said or '?'}",
    "model": lambda said: f"by {said}",
    "stop_reason": lambda said: f"stopped: {said}",
    "model_preferences": _preferences,
    "system_prompt_letters": _letters("system prompt"),
    "tool_choice": lambda said: f"tools: {said}",
    "max_tokens": lambda said: f"at most {said:,} tokens" if isinstance(said, int) else "",
    "temperature": lambda said: f"temperature {said}",
    "include_context": lambda said: f"context {said}",
    "level": str,
    "logger": lambda said: f"logger {said}",
    "structured": _structured,
    "task": lambda said: "; ".join(_task_lines(said)),
    "as_task": lambda said: (
        "asks to run as a task" + (f", kept for {_milliseconds(said['ttl_ms'])}" if "ttl_ms" in said else "")
    ),
    "listens_to": lambda said: f"listens to {', '.join(said) or 'nothing'}",
    "keep_ms": lambda said: f"may be kept for {_milliseconds(said)}" if said else "not to be kept",
    "keep_scope": lambda said: f"{said} to its client" if said == "private" else str(said),
}
"""What there is one of, in the order in which it is told."""

_NO_WORDS: Final[Words | None] = None

_LISTS: Final[dict[str, tuple[str, Words | None, Callable[[Any], Iterator[str]]]]] = {
    "tools": ("tool", _NO_WORDS, _tool_lines),
    "prompts": ("prompt", _NO_WORDS, _prompt_lines),
    "resources": ("resource", _NO_WORDS, lambda one: _resource_lines(one) if isinstance(one, dict) else iter([str(one)])),
    "templates": ("template", _NO_WORDS, _resource_lines),
    "contents": ("content", lambda one: bytes_words(one, one.get("mime_type", "")), _contents_lines),
    "messages": ("message", _NO_WORDS, _message_lines),
    "content": ("block", lambda one: "" if one.get("type") == "text" else block_words(one), _block_lines),
    "roots": ("root", _NO_WORDS, _root_lines),
    "tasks": ("task", _NO_WORDS, lambda one: _task_lines(one) if isinstance(one, dict) else iter([str(one)])),
    "skills": ("skill", _NO_WORDS, _root_lines),
    "wants": ("request", lambda one: f"wants {_wanted_words(one)}", _wanted_lines),
    "answers": ("answer", _answer_words, _answer_lines),
    "visits": ("URL", lambda one: f"to visit {one.get('url', '?')}", _visit_lines),
}
"""What there is several of: the noun, one item in a row (None: they are counted there), and its lines."""

_PLAIN: Final = {"block", "content"}
"""Of these a single one is not counted; a text alone is what the payload shows."""

_ROW: Final[dict[str, Words]] = {
    "server": _peer,
    "revision": str,
    "revisions": ", ".join,
    "mode": lambda said: "" if said == "form" else f"{said}",
    "message": _quoted,
    "url": str,
    "action": str,
    "fields": lambda said: "{" + ", ".join(one if isinstance(one, str) else str(one.get("name", "?")) for one in said) + "}",
    "value": _quoted,
    "values": _values,
    "model": lambda said: f"by {said}",
    "task": task_words,
    "listens_to": ", ".join,
}
"""What of it is worth a place in a row."""
