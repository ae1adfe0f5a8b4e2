"""Findings about arguments that a model left as they stand in an example, `/path/to/file`, and with which the call failed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT
from ....wire.json_spans import UNREADABLE
from ...message import ERROR
from ...model import Exchange
from ..protocol.repeats import arguments
from ..rule import AGENT, Hit, behaviour_rule, hit_in
from ..words import call_name, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..facts import CaptureFacts

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"read","arguments":{"path":"%s"}}\n'

PLACEHOLDER_ARGUMENT: Final = behaviour_rule(
    name="placeholder-argument",
    title="Placeholder as an argument",
    what="A call failed that had a placeholder for an argument, as /path/to/file, <user_id> or YOUR_PROJECT.",
    why="The model did not know the value and took that of an example; the call cannot succeed.",
    blame="The agent: the model behind the client chose the argument.",
    example=_CALL % "/path/to/file.txt" + '← result 1 {"content":[{"type":"text","text":"No such file"}],"isError":true}',
    clean=_CALL % "/home/ada/path/file.txt" + '← result 1 {"content":[{"type":"text","text":"No such file"}],"isError":true}',
    advice="Say in the tool's description where the value comes from, and in the error which values there are.",
)

RULES: Final = (PLACEHOLDER_ARGUMENT,)

MAX_BYTES: Final = 64 << 10
"""Arguments of larger requests are not looked at."""

_placeholder = lazy_pattern(
    r"<(?:[a-z0-9]+[ _-])*(?:id|name|path|file|url|key|token|value|here|project|user|repo)>"
    r"|\{\{ ?[a-z][\w.-]* ?\}\}|\$\{[a-z_]\w*\}"
    r"|(?:your|insert|replace)[_-][a-z0-9]+(?:[_-][a-z0-9]+)*"
    r"|(?:[a-z]:)?[/\\]path[/\\]to[/\\].*",
    re.IGNORECASE,
)


_may_be_placeholder = lazy_pattern(
    rb"<[a-z0-9 _-]+>|\{\{|\$\{|[\"'\\/](?:your|insert|replace)[_-]|[/\\]path[/\\]|\\u", re.IGNORECASE
)
"""A sign of any of these, anywhere in a message: most are not parsed."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find placeholders among the arguments of failed calls."""
    for call in facts.calls:
        request, response = call.request, call.response
        if response is None or not (response.is_error or response.kind is ERROR) or request.sender != CLIENT:
            continue
        if len(request.raw) <= MAX_BYTES and _may_be_placeholder.search(request.raw):
            yield from _in_call(call)


def _in_call(call: Exchange) -> Iterator[Hit]:
    from ...definitions import strings  # with baselines, which few captures need

    for path, text in strings(_read(arguments(call.request.raw))):
        if len(text) <= _MAX_LETTERS and _placeholder.fullmatch(text):
            shown = quoted(text)
            what = (
                f"{call_name(call)} failed, and its argument {path[1:].lstrip('.')[:_MAX_LETTERS]} is a placeholder: {shown}."
            )
            yield hit_in(PLACEHOLDER_ARGUMENT, call.request, call.row, what, culprit=AGENT, group=call.target or "")
            return


_MAX_LETTERS: Final = 80


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw or b"{}")
    except UNREADABLE:
        return {}
