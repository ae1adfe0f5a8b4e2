"""Which tools of servers a name may mean that a model was offered: clients rename them on the way.

They put a server's name before it (`server-fetch`, `mcp__server__fetch`, `server.fetch`) or behind, replace what APIs do not take,
and cut at 64 characters, with a digest at the end or without. Refuses to choose where several tools fit: that the calls decide.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from ..offers.definitions import DefinitionKind, offers

if TYPE_CHECKING:
    from ..model import Exchange, Transcript

CUT_LETTERS: Final = 32
"""A name that was cut is as long as this at least: APIs take 64 characters, some clients allow themselves less."""

MIN_LETTERS: Final = 3
"""So much of a tool's name has to be there where only a part of it is."""

MAX_PARTS: Final = 24
"""So many words of a name are looked at: all pairs of them may begin and end a tool's name."""

MAX_MEANINGS: Final = 16
"""So many tools are looked at for each kind of likeness."""

_no_word = re.compile(r"[\W_]+").sub
_digest = re.compile(r"_[0-9a-z]{4,10}$").sub


class Likeness(IntEnum):
    """How a name is like that of a tool, the surest first."""

    SAME = 0
    SPELLED = 1
    """The same but for case and what stands for signs."""
    OF_SERVER = 2
    """The tool's, with its server's name before or behind."""
    WITHIN = 3
    """The tool's, with something else before or behind it."""
    CUT = 4
    """It ends within the tool's."""


class Tool(NamedTuple):
    """A tool of the server that one capture is of."""

    capture: int
    name: str


class ToolNames:
    """The tools of all servers of a transcript: those that are listed, and those that were called."""

    __slots__ = ("_by_name", "_by_spelling", "_known", "_servers", "_spellings", "listed")

    def __init__(self, tools: Iterable[Tool], servers: dict[int, set[str]], listed: frozenset[Tool] = frozenset()) -> None:
        self.listed = listed
        self._servers = {capture: {spelled(name) for name in names} - {""} for capture, names in servers.items()}
        self._by_name: dict[str, list[Tool]] = {}
        self._by_spelling: dict[str, list[Tool]] = {}
        for tool in dict.fromkeys(tools):
            self._by_name.setdefault(tool.name, []).append(tool)
            self._by_spelling.setdefault(spelled(tool.name), []).append(tool)
        self._by_spelling.pop("", None)
        self._spellings = sorted(self._by_spelling)
        self._known: dict[str, dict[Likeness, list[Tool]]] = {}

    def meant(self, name: str) -> dict[Likeness, list[Tool]]:
        """The tools that `name` may mean, by how like it is, the surest first; each once."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._meanings(name)
        return known

    def surest(self, name: str) -> list[Tool]:
        """Those that it is most like; empty where no server has one like it."""
        return next(iter(self.meant(name).values()), [])

    def _meanings(self, name: str) -> dict[Likeness, list[Tool]]:
        spelling = spelled(name)
        found: dict[Tool, Likeness] = dict.fromkeys(self._by_name.get(name, ()), Likeness.SAME)
        for tool in self._by_spelling.get(spelling, ()):
            found.setdefault(tool, Likeness.SPELLED)
        parts = spelling.split("_")
        within = self._parts(parts)
        for tool, rest in within:
            is_of_server = any(server in rest or rest in server for server in self._servers.get(tool.capture, ()))
            found.setdefault(tool, Likeness.OF_SERVER if is_of_server else Likeness.WITHIN)
        if len(name) >= CUT_LETTERS:
            for tool in self._cut(parts):
                found.setdefault(tool, Likeness.CUT)
        made: dict[Likeness, list[Tool]] = {}
        for tool, likeness in found.items():
            made.setdefault(likeness, []).append(tool)
        return {likeness: made[likeness][:MAX_MEANINGS] for likeness in sorted(made)}

    def _parts(self, parts: list[str]) -> list[tuple[Tool, str]]:
        """The tools whose names are a part of it, the longest first; with what else there is in it."""
        found: list[tuple[Tool, str]] = []
        count = min(len(parts), MAX_PARTS)
        for size in range(count - 1, 0, -1):
            for begin in range(count - size, -1, -1):  # what stands at the end is the tool's name most often
                name = "_".join(parts[begin : begin + size])
                if len(name) >= MIN_LETTERS and name in self._by_spelling:
                    rest = "_".join(parts[:begin] + parts[begin + size :])
                    found += [(tool, rest) for tool in self._by_spelling[name][:MAX_MEANINGS]]
        return found

    def _cut(self, parts: list[str]) -> list[Tool]:
        """The tools in whose names it ends: those that share most of it."""
        text = "_".join(parts)
        for end in dict.fromkeys((text, _digest("", text))):
            for at in range(min(len(parts), MAX_PARTS)):
                start = end.split("_", at)[-1] if at else end
                if len(start) < MIN_LETTERS:
                    break
                first = bisect_left(self._spellings, start)
                begun = [one for one in self._spellings[first : first + MAX_MEANINGS] if one.startswith(start)]
                if begun:
                    return [tool for one in begun for tool in self._by_spelling[one]]
        return []


def tool_names(transcript: Transcript, calls: Iterable[Exchange]) -> ToolNames:
    """The tools that the servers of a transcript list, and those that `calls` call."""
    servers: dict[int, set[str]] = {}
    tools: list[Tool] = []
    for offer in offers(transcript):
        source = offer.capture_info
        servers[source.index] = {source.server, source.header.label if source.header else ""}
        tools += [Tool(source.index, one.name) for one in offer.definitions(DefinitionKind.TOOL) if one.name]
    listed = frozenset(tools)
    tools += [Tool(one.capture, one.target) for one in calls if one.target]
    return ToolNames(tools, servers, listed)


def spelled(name: str) -> str:
    """What is left of a name where case and signs do not count: `mcp__Server__read.file` is `mcp_server_read_file`."""
    return _no_word("_", name.lower()).strip("_")
