"""The command line as click reads it: all verbs, their helps, completions, and what is wrong with a command line."""

from __future__ import annotations

import gc
import os

import click

from .. import __version__
from ..compiled import VERSION_SUFFIX
from ..errors import sentence
from .verbs import COMPLETES, VERBS, verb_command


class _Verbs(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = verb_command(cmd_name)
        gc.freeze()
        gc.enable()  # `__main__` turned it off
        if COMPLETES in os.environ:
            from .completion import offer

            offer(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or suggest one with a similar name."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            from ..views.text.escape import safe_text

            similar = get_close_matches(args[0], VERBS, 1)
            advice = (
                f"Did you mean {similar[0]}?"
                if similar
                else "To record a server: mcpspy run -- COMMAND. To read a capture: mcpspy show FILE."
            )
            raise click.UsageError(f"there is no verb {safe_text(args[0])}. {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


@click.command(cls=_Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__ + VERSION_SUFFIX, prog_name="mcpspy")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A debugging proxy for MCP: it records everything between a client and a server.

    Insert it between your clients and their servers with `mcpspy wrap`, restart the clients, then:

    \b
      mcpspy show        show the calls and their answers
      mcpspy show -f     the same, live
      mcpspy check       find what went wrong, and whose fault it is
      mcpspy help        list the topics: filter, captures, replay, privacy
    """
    if ctx.invoked_subcommand is None:
        from .list import overview

        overview()


def run(arguments: list[str]) -> int:
    """Run the verb that `arguments` name. Return the exit status."""
    try:
        with cli.make_context("mcpspy", arguments) as context:  # `cli.main` would exit with 1 for a closed pipe
            status = cli.invoke(context)
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as error:
        _explain(error)
        return error.exit_code
    except click.Abort:
        return 130
    return status if isinstance(status, int) else 0


def _explain(error: click.ClickException) -> None:
    """Say what is wrong with a command line as all other errors are said, and where its options are explained."""
    from ..views.text.escape import without_logins

    text = without_logins(error.format_message())
    context = error.ctx if isinstance(error, click.UsageError) else None
    verb = context.command_path if context else "mcpspy"
    begin = text[:1] if text[1:2].isupper() else text[:1].lower()
    click.echo(f"{verb}: {sentence(begin + text[1:])}", err=True)
    if context:
        click.echo(f"{verb} --help {'explains the options' if context.parent else 'lists all commands'}.", err=True)


def complete(instruction: str) -> int:
    """Answer a shell that asks for completions. Return the exit status."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "mcpspy", COMPLETES, instruction)
