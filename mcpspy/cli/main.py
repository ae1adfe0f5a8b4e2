"""The command line but `run`: finds the verb's module, and turns what goes wrong into one sentence and an exit status.

A verb is a module of this room whose `command` is a click command; it is imported when it is called. Exit statuses are those of
docs/start.md; tracebacks only with `--debug`.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import click

from .. import __version__
from ..errors import FilterError, McpspyError
from ..live.stdio.descriptors import ensure_standard_streams
from .verbs import VERBS, verb_command

COMPLETES = "_MCPSPY_COMPLETE"
"""The variable by which a shell asks what may come next; click's name for it."""


class _Verbs(click.Group):
    """A group whose commands are imported when they are wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = verb_command(cmd_name)
        if COMPLETES in os.environ:
            from .complete import offer

            offer(command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or name the one that may have been meant."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            from ..views.text.escape import safe_text

            near = get_close_matches(args[0], VERBS, 1)
            meant = (
                f"Did you mean {near[0]}?" if near else "For a server: mcpspy run -- COMMAND. For a capture: mcpspy show FILE."
            )
            raise click.UsageError(f"there is no verb {safe_text(args[0])}. {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])


@click.command(cls=_Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mcpspy")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A debugging proxy between an MCP client and an MCP server.

    Put it before the servers of your MCP clients with `mcpspy wrap`, restart the client, then:

    \b
      mcpspy show        what the two said
      mcpspy show -f     the same, live
      mcpspy check       what went wrong, and whose fault it is
      mcpspy help        topics: filter, captures, replay, privacy
    """
    if ctx.invoked_subcommand is None:
        from .list import overview

        overview()


def main() -> int:
    """Run the verb named on the command line. Returns the exit status."""
    if asked := os.environ.get(COMPLETES):
        return _complete(asked)
    debug = "--debug" in sys.argv[1:2]
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without our signs is no reason to fail
    try:
        with cli.make_context("mcpspy", sys.argv[1:]) as context:  # `cli.main` would make a closed pipe an exit status of 1
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # `| head` is done reading: nothing is wrong, and nothing more is said
        return 0
    except FilterError as error:
        if debug:
            raise
        from .filter_option import explain

        explain(error)
        return error.exit_status
    except McpspyError as error:
        if debug:
            raise
        from ..views.text.escape import safe_text  # labels in it come from captures

        click.echo(f"mcpspy: {safe_text(str(error))}", err=True)
        return error.exit_status
    except OSError as error:
        if debug:
            raise
        name = f"{error.filename}: " if error.filename else ""
        click.echo(f"mcpspy: {name}{error.strerror or error}", err=True)
        _flush_or_drop()
        return 2
    return status if isinstance(status, int) else 0


def _complete(asked: str) -> int:
    """Tell a shell what may come next. Returns the exit status."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "mcpspy", COMPLETES, asked)


def _open_closed_streams() -> None:
    """Where a standard stream was closed, have the null device there: no file of ours takes its number, and Python has all three."""
    ensure_standard_streams()
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115 - for as long as we run


def _flush_or_drop() -> None:
    """Let go of what was printed and cannot be written, as on a full disk: Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
