"""`mcpspy completion`: what a shell has to read so that it completes mcpspy's command lines."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .main import COMPLETES, cli

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what makes your shell complete verbs, options, captures, labels, rules and filters.

    \b
    For good:
      mcpspy completion bash >> ~/.bashrc
      mcpspy completion zsh >> ~/.zshrc
      mcpspy completion fish > ~/.config/fish/completions/mcpspy.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(cli, {}, "mcpspy", COMPLETES).source())
