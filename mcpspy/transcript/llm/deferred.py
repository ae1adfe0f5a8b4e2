"""Deferred tools: those that a prompt names and does not offer, until the model has searched for them.

    tools of the prompt      ToolSearch, Bash
    text of the prompt       … deferred tools: mcp__weather__forecast, mcp__weather__alerts
    the model                uses ToolSearch {"query": "select:mcp__weather__forecast"}
    tools of the next one    ToolSearch, Bash, mcp__weather__forecast

Agents do this to save tokens: Claude Code names each tool, Codex the servers (`mcp__weather`).
"""

from collections.abc import Iterable
from typing import Final

from .prompt import Prompt
from .tags import users_words

PREFIX: Final = "mcp__"
"""Beginning of the names that agents give to tools of MCP servers."""

_SEARCHES: Final = ("toolsearch", "searchtool", "searchmcptool", "findtool", "discovertool", "loadtool")
_SAID: Final = "deferred tool"
_MARKS: Final = " \t`'\"*-,.:;()[]<>"


def search_tool(prompt: Prompt) -> str:
    """Return the name of the tool with which the model searches for others; empty if the prompt offers none."""
    names = (offer.name for offer in prompt.offers)
    return next((name for name in names if any(word in _letters(name) for word in _SEARCHES)), "")


def defers(prompt: Prompt) -> bool:
    """Return whether a prompt may leave out tools that the model can get all the same: it can search, or is told so."""
    return bool(search_tool(prompt)) or any(_SAID in turn.text.lower() for turn in prompt.turns if turn.role != "assistant")


def named_words(prompt: Prompt) -> set[str]:
    """Collect the words by which the agent's text in a prompt may name tools or servers: qualified ones, or alone on a line."""
    words: set[str] = set()
    for text in dict.fromkeys(_texts(prompt)):
        words |= {word for part in text.split() if "__" in (word := part.strip(_MARKS))}
        words |= {word for line in text.splitlines() if (word := line.strip(_MARKS)) and len(word.split(None, 1)) == 1}
    return words


def deferred_names(prompt: Prompt) -> list[str]:
    """Return the names of MCP tools, or of their servers, that a prompt names and does not offer."""
    if not defers(prompt):
        return []
    offered = {offer.name.replace(".", "__") for offer in prompt.offers}
    words = (word for word in named_words(prompt) if word.startswith(PREFIX) and not word.endswith("__"))
    names = {word for word in words if word.replace("_", "").replace("-", "").isalnum()} - offered
    return sorted(names - {name.rpartition("__")[0] for name in offered})


def _texts(prompt: Prompt) -> Iterable[str]:
    """Yield the texts of the agent: not the model's, and not the user's words."""
    search = search_tool(prompt)
    for turn in prompt.turns:
        if turn.role == "assistant" or not (search or _SAID in turn.text.lower()):
            continue
        yield turn.text.replace(users_words(turn.text), "") if turn.role == "user" else turn.text
    yield from (offer.description for offer in prompt.offers if search and offer.name == search)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
