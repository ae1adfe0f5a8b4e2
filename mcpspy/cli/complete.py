"""What a shell offers while a command line is typed: labels and recordings of the store, rules, keys of filters.

Nothing that these words are about is imported before a shell asks. Refuses to read what captures hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_RECORDINGS = 5

_STEERING = frozenset("\"'`$\\;&|<>()*?!{}")
"""What a shell would read otherwise than as a letter. Labels are captured."""


def whats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest recordings, labels, and files.

    Files first: what click has bash read forgets all that it was offered before them, and then takes files where nothing else fits.
    """
    return [CompletionItem(incomplete, type="file"), *_offered(incomplete, _known())]


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The rules that the last word may become; words have commas between them."""
    from ..transcript.findings.registry import RULES

    before, comma, last = incomplete.rpartition(",")
    return _offered(incomplete, ((before + comma + name, one.what) for name, one in RULES.items() if name.startswith(last)))


def filters(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The keys that the last word of a filter may begin with."""
    from ..transcript.filter.keys import KEYS

    before, blank, last = incomplete.rpartition(" ")
    words = ((f"{before}{blank}{name}:", one.what) for name, one in KEYS.items() if name.startswith(last))
    return [CompletionItem(word, help=help[:80]) for word, help in words]


def topics(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What `mcpspy help` explains."""
    from ..transcript.findings.registry import RULES
    from .help import TOPICS
    from .verbs import VERBS

    return _offered(
        incomplete,
        (TOPICS | {name: verb.help for name, verb in VERBS.items()} | {name: one.what for name, one in RULES.items()}).items(),
    )


def paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders, which a shell knows best."""
    return [CompletionItem(incomplete, type="file")]


OFFERS: dict[str, Any] = {
    "what": whats, "before": whats, "after": whats, "capture": whats,
    "--filter": filters, "--only": filters,
    "--select": rules, "--explain": rules,
    "--capture": paths, "--output": paths, "--repair": paths, "--baseline": paths,
    "topic": topics,
}  # fmt: skip
"""By the names of arguments and options what a shell offers for them."""

OFFERS_OF_CHECK: dict[str, Any] = {"--ignore": rules}
"""Elsewhere `--ignore` takes JSON paths."""


def offer(command: click.Command) -> None:
    """Have a shell offer what the parameters of `command` may be."""
    offers = OFFERS | (OFFERS_OF_CHECK if command.name == "check" else {})
    for one in command.params:
        found = next((offers[name] for name in reversed(one.opts) if name in offers), None)
        if found is not None and isinstance(one.type, type(click.STRING)):
            one._custom_shell_complete = found  # what click's `shell_complete=` sets  # noqa: SLF001


def _known() -> Iterable[tuple[str, str]]:
    from ..capture.store.catalog import entries, recordings

    try:
        found = entries()
    except OSError:
        return
    for number, one in enumerate(recordings(found)[:MAX_RECORDINGS]):
        yield ("@" if number == 0 else f"@{number}"), ", ".join(entry.label for entry in one.entries)
    yield from (
        (label, "the newest capture of this label") for label in dict.fromkeys(one.label for one in found if one.header)
    )


def _offered(incomplete: str, words: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """Those that begin with what was typed and are words to a shell."""
    from ..views.text.escape import safe_text

    return [
        CompletionItem(word, help=safe_text(help)[:80])
        for word, help in words
        if word.startswith(incomplete) and word.isprintable() and not _STEERING & set(word)
    ]
