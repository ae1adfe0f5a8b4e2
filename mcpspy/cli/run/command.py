"""`mcpspy run`: starts the server, opens a capture, and puts the tap between the server and whoever started us.

Stands in the start-up path of somebody's editor: the server is spawned before anything is imported that it can do without, so that
both start up side by side, and what is imported is counted (tests/test_rooms.py).
"""

from __future__ import annotations

import os
from time import monotonic_ns, time_ns

from ...live.native import keep_freed_memory
from ...live.stdio.descriptors import ensure_standard_streams
from ...live.stdio.process import restore_locale, spawn
from ...live.stdio.signals import listen
from .options import NO_FILE, RUN, HelpWanted, UsageError, parse, size_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click

    from ...capture.file.writer import Writer
    from ...live.stdio.process import ServerProcess

NOT_STARTED = 127

USAGE = "usage: mcpspy run [--label NAME] [--capture FILE] [--redact credentials|none] [--max-size SIZE] [--quiet] -- COMMAND…"


def main(arguments: list[str]) -> int:
    """Run the server named in `arguments` under a tap. Returns its exit status; 127 if it could not be started, 2 for bad usage."""
    ensure_standard_streams()
    try:
        values, argv = parse(arguments, RUN)
        max_bytes = size_bytes(values["max-size"]) if "max-size" in values else 0
        if not argv or not argv[0]:
            raise UsageError("the server's command is missing")
        if values.get("capture") == "":
            raise UsageError(NO_FILE)
    except HelpWanted:
        from ..main import main as others

        return others()
    except UsageError as error:
        _say(f"mcpspy run: {error}\n{USAGE}")
        return 2
    try:
        signals_fd = listen()
        restore_locale()
        child = spawn(argv)
    except OSError as error:
        _say(f"mcpspy: {argv[0]} could not be started: {error.strerror}")
        return NOT_STARTED
    from ...live.stdio.tap import StdioTap

    wall_ns, begin_ns = time_ns(), monotonic_ns()
    writer, path = _writer(values, argv, max_bytes, wall_ns, begin_ns)
    failure = child.failure()
    if failure is not None:
        return _not_started(argv[0], failure, child, writer, begin_ns)
    keep_freed_memory()
    tap = StdioTap(child, writer or _nowhere, begin_ns, signals_fd)
    if writer is not None:
        from .quota import guarded

        writer.later = guarded(writer, path, tap.call_later)
        writer(())  # the header at once, so that `list` and `show -f` see the tap
    status = tap.run()
    if writer is not None:
        writer.close(tap.now_ns(), tap.why)
    return status


def _writer(values: dict[str, str], argv: list[str], max_bytes: int, wall_ns: int, begin_ns: int) -> tuple[Writer | None, str]:
    from ...capture.redaction.redactor import Redactor, Verbatim
    from ...capture.store.folder import default_label, key
    from .capture import Beginning, open_writer

    redact = values.get("redact", "credentials")
    redactor = Verbatim() if redact == "none" else Redactor(key())
    beginning = Beginning(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=values.get("label") or default_label(argv),
        named=values.get("capture"),
        redact=redact,
        max_bytes=max_bytes,
        quiet="quiet" in values,
    )
    return open_writer(beginning, {"transport": "stdio", "argv": redactor.argv(argv), "env": sorted(os.environ)})


def _not_started(command: str, failure: OSError, child: ServerProcess, writer: Writer | None, begin_ns: int) -> int:
    """The command could not be run: say so here and in the capture."""
    from ...records import Exit

    os.waitpid(child.pid, 0)
    reason = "command not found" if isinstance(failure, FileNotFoundError) else failure.strerror or str(failure)
    _say(f"mcpspy: {command}: {reason}; {_advice(command, failure)}")
    if writer is not None:
        now_ns = monotonic_ns() - begin_ns
        writer((Exit(at_ns=now_ns, pid=child.pid, error=reason),))
        writer.close(now_ns, "not started")
    return NOT_STARTED


def _advice(command: str, failure: OSError) -> str:
    """What to do about it."""
    if not isinstance(failure, FileNotFoundError):
        return "the server's command has to be a program of this machine that may be executed"
    if "/" in command:
        return "look whether it is there, and the interpreter that its first line may name"
    return "name it by its whole path: a client starts servers with a PATH that is shorter than your shell's"


def _nowhere(records: object) -> None:
    """The sink where there is no capture."""


def _say(line: str) -> None:
    from .capture import say

    say(line)


def __getattr__(name: str) -> click.Command:
    """`command`, made when click asks for it: for `--help`, and for calls from Python."""
    if name != "command":
        raise AttributeError(name)
    import click

    @click.command("run", context_settings={"allow_interspersed_args": False})
    @click.argument("command", nargs=-1, type=click.UNPROCESSED)
    def command(command: tuple[str, ...], **values: str | bool | None) -> int:
        """Wrap a stdio server: forward every byte, record it, exit as the server does.

        \b
        Example, in a client's configuration instead of `uvx mcp-server-time`:
          mcpspy run --label time -- uvx mcp-server-time
        """
        words = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in values.items() if value
        ]
        return main([*words, "--", *command])

    for option in RUN:
        kind = click.Choice(option.choices) if option.choices else None
        is_flag = not option.metavar and not option.choices
        click.option(f"--{option.name}", metavar=option.metavar or None, type=kind, is_flag=is_flag, help=option.help)(command)
    return command
