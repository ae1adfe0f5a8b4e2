"""The command line of all verbs but `run` and `mock`: imports the verb's module, and turns errors into a sentence and an exit status.

docs/start.md lists the exit statuses. Tracebacks are shown only with `--debug`.
"""

import gc
import os
import sys
from errno import EACCES, ENOENT, ENOSPC, EROFS
from io import TextIOWrapper

import click

from .. import __version__
from ..compiled import VERSION_SUFFIX
from ..errors import FilterError, McpspyError, sentence
from ..live.stdio.descriptors import ensure_standard_streams
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


def main() -> int:
    """Run the verb named on the command line. Returns the exit status."""
    if instruction := os.environ.get(COMPLETES):
        return _complete(instruction)
    debug = "--debug" in sys.argv[1:2]
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without our characters is no reason to fail
    try:
        with cli.make_context("mcpspy", sys.argv[1:]) as context:  # `cli.main` would exit with 1 for a closed pipe
            status = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as error:
        _explain(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # `| head` has read enough, which is no error
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
        from ..views.text.escape import safe_text, without_logins  # labels in it come from captures

        click.echo(f"mcpspy: {sentence(safe_text(without_logins(str(error))))}", err=True)
        return error.exit_status
    except OSError as error:
        if debug:
            raise
        from ..views.text.escape import without_logins

        name = f"{without_logins(str(error.filename))}: " if error.filename else ""
        click.echo(f"mcpspy: {name}{sentence(f'{error.strerror or error}{_remedy(error)}')}", err=True)
        _flush_or_drop()
        return 2
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


def _remedy(error: OSError) -> str:
    """Return what to do about a file that cannot be read or written; empty if nothing better than the system's words is known."""
    path = str(error.filename or "")
    folder = os.path.dirname(path)
    if error.errno == ENOENT and folder and not os.path.isdir(folder):
        from shlex import quote

        return f"; there is no folder {folder}. Make it with `mkdir -p {quote(folder)}`, or name a file elsewhere"
    if error.errno in (EACCES, EROFS) and path:
        return "; name a file that you may use, or change its permissions"
    if error.errno == ENOSPC:
        return "; make room on the disk, or name a file on another one"
    return ""


def _complete(instruction: str) -> int:
    """Answer a shell that asks for completions. Returns the exit status."""
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, "mcpspy", COMPLETES, instruction)


def _open_closed_streams() -> None:
    """Open the null device where a standard stream is closed, so that no file of ours gets its number, and Python has all three."""
    ensure_standard_streams()
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115 - for as long as we run


def _flush_or_drop() -> None:
    """Drop output that cannot be written, as on a full disk: else Python tries again when it exits, and prints an error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
