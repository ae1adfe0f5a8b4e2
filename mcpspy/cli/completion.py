"""`mcpspy completion` prints a shell's completion script; the rest is what a shell then offers while a command line is typed.

It offers labels and recordings of the store, rules, keys of filters, topics. Modules are imported when a shell asks for their words.
Captures are not read.
"""

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from .verbs import COMPLETES, TOPICS, VERBS

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that makes your shell complete verbs, options, captures, labels, rules and filters.

    \b
    To install it:
      mcpspy completion bash >> ~/.bashrc
      mcpspy completion zsh >> ~/.zshrc
      mcpspy completion fish > ~/.config/fish/completions/mcpspy.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "mcpspy", COMPLETES).source())


MAX_RECORDINGS = 5

_SHELL_SYNTAX = frozenset("\"'`$\\;&|<>()*?!{}")
"""Characters with a meaning to a shell. Labels come from captures, so they may hold any."""


def whats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the newest recordings, labels, and files.

    Files come first: click's script for bash drops whatever it was offered before them, and uses files where nothing else fits.
    """
    return [CompletionItem(incomplete, type="file"), *_offers(incomplete, _stored())]


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the rules that complete the last word; words are separated by commas."""
    from ..transcript.findings.registry import RULES

    before, comma, last = incomplete.rpartition(",")
    return _offers(incomplete, ((before + comma + name, rule.what) for name, rule in RULES.items() if name.startswith(last)))


def filters(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the keys that complete the last word of a filter."""
    from ..transcript.filter.keys import KEYS

    before, blank, last = incomplete.rpartition(" ")
    words = ((f"{before}{blank}{name}:", key.meaning) for name, key in KEYS.items() if name.startswith(last))
    return [CompletionItem(word, help=help[:80]) for word, help in words]


def topics(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the topics, verbs and rules that `mcpspy help` explains."""
    from ..transcript.findings.registry import RULES

    helps = TOPICS | {name: verb.help for name, verb in VERBS.items()} | {name: rule.what for name, rule in RULES.items()}
    return _offers(incomplete, helps.items())


def paths(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell offer files and folders."""
    return [CompletionItem(incomplete, type="file")]


OFFERS: dict[str, Any] = {
    "what": whats, "whats": whats, "capture": whats,
    "--filter": filters, "--only": filters,
    "--select": rules, "--explain": rules,
    "--capture": paths, "--output": paths, "--repair": paths, "--baseline": paths,
    "topic": topics,
}  # fmt: skip
"""The words that a shell offers, by the names of arguments and options."""

OFFERS_OF_CHECK: dict[str, Any] = {"--ignore": rules}
"""The same for `check`; elsewhere `--ignore` takes JSON paths."""


def offer(command: click.Command) -> None:
    """Have a shell offer values for the parameters of `command`."""
    offers = OFFERS | (OFFERS_OF_CHECK if command.name == "check" else {})
    for parameter in command.params:
        complete = next((offers[name] for name in reversed(parameter.opts) if name in offers), None)
        if complete is not None and isinstance(parameter.type, type(click.STRING)):
            parameter._custom_shell_complete = complete  # what click's `shell_complete=` sets  # noqa: SLF001


def _stored() -> Iterable[tuple[str, str]]:
    from ..capture.store.address import addresses
    from ..capture.store.catalog import entries, recordings

    try:
        captures = entries()
    except OSError:
        return
    newest = recordings(captures)[:MAX_RECORDINGS]
    for address, recording in zip(addresses(newest), newest, strict=True):
        if address:
            yield address, ", ".join(capture.label for capture in recording.entries)
    labels = dict.fromkeys(capture.label for capture in captures if capture.header)
    yield from ((label, "the newest capture with this label") for label in labels)


def _offers(incomplete: str, words: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """Select the words that begin with what was typed, and that a shell takes as they are."""
    from ..views.text.escape import safe_text

    return [
        CompletionItem(word, help=safe_text(help)[:80])
        for word, help in words
        if word.startswith(incomplete) and word.isprintable() and not _SHELL_SYNTAX & set(word)
    ]
