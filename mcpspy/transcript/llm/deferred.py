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
