"""Names of tools: which tools of the servers a name can mean that a model was offered, since clients rename tools.

Clients prefix or append a server's name, replace characters that APIs do not accept, and cut names at 64 characters, with a
digest at the end or without. Where several tools fit, the calls decide (`tool_trips`), not this module.

    name in a prompt                    tool of the server "weather"   likeness
    forecast                            forecast                       SAME
    Get-Forecast                        get_forecast                   SPELLED
    mcp__weather__forecast              forecast                       OF_SERVER
    acme_forecast_v2                    forecast                       WITHIN
    mcp_weather_server_get_forec_3f9a   get_forecast_for_city          CUT

A prompt names deferred tools and does not offer them, until the model has searched for them:

    tools of the prompt      ToolSearch, Bash
    text of the prompt       … deferred tools: mcp__weather__forecast, mcp__weather__alerts
    the model                uses ToolSearch {"query": "select:mcp__weather__forecast"}
    tools of the next one    ToolSearch, Bash, mcp__weather__forecast

Agents do this to save tokens: Claude Code names each tool, Codex the servers (`mcp__weather`).
"""

from bisect import bisect_left
from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from ...lazy_pattern import lazy_pattern
from ..definitions import DefinitionKind, offers
from ..model import Exchange, Transcript
from .prompt import Prompt
from .tags import users_words

CUT_LETTERS: Final = 32
"""The least length of a name that was cut: APIs allow 64 characters, and some clients use fewer."""

MIN_LETTERS: Final = 3
"""The least length of the part that a name shares with a tool's name."""

MAX_PARTS: Final = 24
"""Number of words of a name that are considered: a tool's name may begin and end at any pair of them."""

MAX_CANDIDATES: Final = 16
"""Number of tools that are considered for each kind of likeness."""

_no_word = lazy_pattern(r"[\W_]+")
_digest = lazy_pattern(r"_[0-9a-z]{4,10}$")

PREFIX: Final = "mcp__"
"""Beginning of the names that agents give to tools of MCP servers."""

_SEARCHES: Final = ("toolsearch", "searchtool", "searchmcptool", "findtool", "discovertool", "loadtool")
_SAID: Final = "deferred tool"
_MARKS: Final = " \t`'\"*-,.:;()[]<>"


class Likeness(IntEnum):
    """Kinds of likeness between a name and a tool's name, the surest first."""

    SAME = 0
    SPELLED = 1
    """The same except for case and punctuation."""
    OF_SERVER = 2
    """The tool's name with its server's name before or after it."""
    WITHIN = 3
    """The tool's name with other words before or after it."""
    CUT = 4
    """A name that ends with a beginning of the tool's name."""


SURE: Final = (Likeness.SAME, Likeness.SPELLED, Likeness.OF_SERVER)
"""Kinds of likeness for which the name alone is enough."""


class Tool(NamedTuple):
    """A tool, by its name and the capture of its server."""

    capture: int
    name: str


class ToolNames:
    """The tools of all servers of a transcript, listed or called. `listed` are those that a server listed."""

    __slots__ = ("_by_name", "_by_bare_name", "_known", "_servers", "_bare_names", "listed")

    def __init__(self, tools: Iterable[Tool], servers: dict[int, set[str]], listed: frozenset[Tool] = frozenset()) -> None:
        self.listed = listed
        self._servers = {capture: {bare_name(name) for name in names} - {""} for capture, names in servers.items()}
        self._by_name: dict[str, list[Tool]] = {}
        self._by_bare_name: dict[str, list[Tool]] = {}
        for tool in dict.fromkeys(tools):
            self._by_name.setdefault(tool.name, []).append(tool)
            self._by_bare_name.setdefault(bare_name(tool.name), []).append(tool)
        self._by_bare_name.pop("", None)
        self._bare_names = sorted(self._by_bare_name)
        self._known: dict[str, dict[Likeness, list[Tool]]] = {}

    def candidates(self, name: str) -> dict[Likeness, list[Tool]]:
        """Return the tools that `name` can mean by their likeness, the surest first; each tool once."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._candidates(name)
        return known

    def servers(self, capture: int | None = None) -> set[str]:
        """Return the names of the server of a capture, or of all servers, as lower-case words."""
        return {name for index, names in self._servers.items() if capture in (None, index) for name in names}

    def likeliest(self, name: str) -> list[Tool]:
        """Return the tools of the surest likeness; empty if no server has a tool of a similar name."""
        return next(iter(self.candidates(name).values()), [])

    def _candidates(self, name: str) -> dict[Likeness, list[Tool]]:
        bare = bare_name(name)
        likenesses: dict[Tool, Likeness] = dict.fromkeys(self._by_name.get(name, ()), Likeness.SAME)
        for tool in self._by_bare_name.get(bare, ()):
            likenesses.setdefault(tool, Likeness.SPELLED)
        parts = bare.split("_")
        within = self._parts(parts)
        for tool, rest in within:
            is_of_server = any(server in rest or rest in server for server in self._servers.get(tool.capture, ()))
            likenesses.setdefault(tool, Likeness.OF_SERVER if is_of_server else Likeness.WITHIN)
        if len(name) >= CUT_LETTERS:
            for tool in self._cut(parts):
                likenesses.setdefault(tool, Likeness.CUT)
        tools: dict[Likeness, list[Tool]] = {}
        for tool, likeness in likenesses.items():
            tools.setdefault(likeness, []).append(tool)
        return {likeness: tools[likeness][:MAX_CANDIDATES] for likeness in sorted(tools)}

    def _parts(self, parts: list[str]) -> list[tuple[Tool, str]]:
        """Find the tools whose names are a part of a name, the longest first, each with the rest of the name."""
        tools: list[tuple[Tool, str]] = []
        count = min(len(parts), MAX_PARTS)
        for size in range(count - 1, 0, -1):
            for begin in range(count - size, -1, -1):  # most often the tool's name is at the end
                name = "_".join(parts[begin : begin + size])
                if len(name) >= MIN_LETTERS and name in self._by_bare_name:
                    rest = "_".join(parts[:begin] + parts[begin + size :])
                    tools += [(tool, rest) for tool in self._by_bare_name[name][:MAX_CANDIDATES]]
        return tools

    def _cut(self, parts: list[str]) -> list[Tool]:
        """Find the tools whose names begin with an end of a name: those that share most of it."""
        text = "_".join(parts)
        for end in dict.fromkeys((text, _digest.sub("", text))):
            for at in range(min(len(parts), MAX_PARTS)):
                start = end.split("_", at)[-1] if at else end
                if len(start) < MIN_LETTERS:
                    break
                first = bisect_left(self._bare_names, start)
                names = [name for name in self._bare_names[first : first + MAX_CANDIDATES] if name.startswith(start)]
                if names:
                    return [tool for name in names for tool in self._by_bare_name[name]]
        return []


def tool_names(transcript: Transcript, calls: Iterable[Exchange]) -> ToolNames:
    """Collect the tools that the servers of a transcript list, and those that `calls` call."""
    servers: dict[int, set[str]] = {}
    tools: list[Tool] = []
    for offer in offers(transcript):
        capture = offer.capture_info
        servers[capture.index] = {capture.server, capture.header.label if capture.header else ""}
        tools += [Tool(capture.index, tool.name) for tool in offer.definitions(DefinitionKind.TOOL) if tool.name]
    listed = frozenset(tools)
    tools += [Tool(call.capture, call.target) for call in calls if call.target]
    return ToolNames(tools, servers, listed)


def bare_name(name: str) -> str:
    """Reduce a name to lower-case words: `mcp__Server__read.file` is `mcp_server_read_file`."""
    return _no_word.sub("_", name.lower()).strip("_")


def search_tool(prompt: Prompt) -> str:
    """Return the name of the tool with which the model searches for others; empty if the prompt offers none."""
    names = (offer.name for offer in prompt.offers)
    return next((name for name in names if any(word in _letters(name) for word in _SEARCHES)), "")


def named_words(prompts: Iterable[Prompt]) -> set[str]:
    """Collect the words by which agents name tools or servers in prompts: qualified ones, and those alone on a line.

    Empty if no prompt defers tools: none offers a search, or says so.
    """
    words: set[str] = set()
    for text in _texts(prompts):
        words |= {word for part in text.split() if "__" in (word := part.strip(_MARKS))}
        words |= {word for line in text.splitlines() if (word := line.strip(_MARKS)) and len(word.split(None, 1)) == 1}
    return words


def deferred_names(prompt: Prompt) -> list[str]:
    """Return the names of MCP tools, or of their servers, that a prompt names and does not offer."""
    offered = {offer.name.replace(".", "__") for offer in prompt.offers}
    words = (word for word in named_words([prompt]) if word.startswith(PREFIX) and not word.endswith("__"))
    names = {word for word in words if word.replace("_", "").replace("-", "").isalnum()} - offered
    return sorted(names - {name.rpartition("__")[0] for name in offered})


def _texts(prompts: Iterable[Prompt]) -> Iterable[str]:
    """Yield each text of agents once: not the model's, and not the user's words. Prompts repeat most of it."""
    seen: set[str] = set()
    for prompt in prompts:
        search = search_tool(prompt)
        texts = {turn.text: turn.role for turn in prompt.turns if turn.role != "assistant"}
        texts |= {f"{offer.name}\n{offer.description}": "" for offer in prompt.offers if search and offer.name == search}
        for text in texts.keys() - seen:
            if search or _SAID in text.lower():
                seen.add(text)
                yield text.replace(users_words(text), "") if texts[text] == "user" else text


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
