"""`mcpspy run`: starts a server, opens a capture, and puts the tap between the server and the client that started us.

A client waits for this. So the server is spawned first, and everything else is imported while it starts up. A test counts what is
imported before that (tests/test_startup.py).
"""

from __future__ import annotations

import gc
import os
from time import monotonic_ns, time_ns

from ..platform.descriptors import ensure_standard_streams
from ..platform.native import keep_freed_memory
from ..platform.processes import exit_status, restore_locale, spawn
from ..platform.signals import listen
from .capture_options import (
    NO_FILE,
    RUN,
    HelpWanted,
    UsageError,
    add_click_options,
    arguments_of,
    last,
    parse,
    size_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import click

    from ..capture.file.writer import Writer
    from ..live.stdio.tap import StdioTap
    from ..platform.processes import ServerProcess
    from ..records import Sink
    from .capture_options import Values
    from .controlling import ControlHands, ControlPoint
    from .new_capture import CaptureStart

NOT_STARTED = 127

USAGE = (
    "usage: mcpspy run [--label NAME] [--capture FILE] [--redact credentials|none] [--max-size SIZE] [--quiet]\n"
    "                  [--intercept TEXT] [--intercepts FILE] [--seed NUMBER] [--reload] [--watch PATH] [--stop-first]\n"
    "                  [--grace TIME] [--no-control] -- COMMAND…"
)


def main(arguments: list[str]) -> int:
    """Run the server named in `arguments` under a tap. Returns its exit status; 127 if it could not be started, 2 for bad usage."""
    gc.disable()  # a start-up makes no garbage: a fortieth of its processor time
    ensure_standard_streams()
    try:
        values, argv = parse(arguments, RUN)
        max_bytes = _max_bytes(values, argv)
        make_tap = _tap_maker(values)
        begin_reloading = _reloader(values, argv)
    except HelpWanted:
        from .main import main as click_main

        return click_main()
    except UsageError as error:
        _report(f"mcpspy run: {_without_logins(str(error))}.\n{USAGE}")
        return 2
    try:
        signals_fd = listen()
        restore_locale()
        child = spawn(argv)
    except OSError as error:
        _report(f"mcpspy: {_without_logins(argv[0])} could not be started: {error.strerror}")
        return NOT_STARTED
    from .new_capture import nowhere, with_quota_guard

    wall_ns, begin_ns = time_ns(), monotonic_ns()
    writer, path, start = _writer(values, argv, max_bytes, wall_ns, begin_ns)
    failure = child.failure()
    if failure is not None:
        return _not_started(argv[0], failure, child, writer, begin_ns)
    keep_freed_memory()
    tap = make_tap(child, writer or nowhere, begin_ns, signals_fd)
    if writer is not None:
        writer.later = with_quota_guard(tap.call_later, writer, path)
        writer(())  # the header at once, so that `list` and `show -f` see the tap
    if begin_reloading is not None:
        begin_reloading(tap, writer or nowhere)
    close_control = None
    if writer is not None and "no-control" not in values:
        close_control = _open_control(tap, writer, start, path, argv)
    gc.freeze()
    gc.enable()
    status = tap.run()
    if close_control is not None:
        close_control()
    if writer is not None:
        writer.close(tap.now_ns(), tap.why)
    return exit_status(status)


def _max_bytes(values: Values, argv: list[str]) -> int:
    """Return the size in bytes above which no payloads are kept; 0 means no limit. Raises: UsageError: also without a command."""
    max_bytes = size_bytes(last(values, "max-size")) if "max-size" in values else 0
    if not argv or not argv[0]:
        raise UsageError("the server's command is missing")
    if "capture" in values and not last(values, "capture"):
        raise UsageError(NO_FILE)
    return max_bytes


def _tap_maker(values: Values) -> Callable[..., StdioTap]:
    """Return what makes the tap. What intercepts need is only imported if there are some. Raises: UsageError: for a wrong one."""
    if "intercept" in values or "intercepts" in values:
        from .intercepting import tap_maker

        return tap_maker(values)
    if "seed" in values:
        raise UsageError("--seed needs --intercept or --intercepts; leave it out")
    return _plain_tap


def _reloader(values: Values, argv: list[str]) -> Callable[[StdioTap, Sink], None] | None:
    """Return what makes a tap reload, if that is wanted. Raises: UsageError: if it cannot be."""
    if "reload" in values or "watch" in values:
        return _watcher(values, argv)
    for name in ("stop-first", "grace"):
        if name in values:
            raise UsageError(f"--{name} needs --reload; leave it out")
    return None


def _watcher(values: Values, argv: list[str]) -> Callable[[StdioTap, Sink], None]:
    """Return what makes a tap restart its server when files change. Raises: UsageError: if that cannot be."""
    from ..live.stdio.restarts import GRACE_NS, Restarts
    from ..live.stdio.source_watch import default_path, watch_in_a_thread
    from ..platform.descriptors import POLLIN
    from ..transcript.filter.values import DURATIONS_NS, BadValue, amount

    paths = values.get("watch") or [default_path(argv)]
    for path in paths:
        if not path:
            raise UsageError(f"--reload does not know which files are the server's, and {os.getcwd()} is too much; use --watch")
        if not os.path.exists(path):
            raise UsageError(f"--watch {path}: there is no such file; name a file or a folder")
    try:
        grace_ns = amount(last(values, "grace"), DURATIONS_NS) if "grace" in values else GRACE_NS
    except BadValue:
        raise UsageError(f"--grace is a time like 5s, not {last(values, 'grace')}") from None

    def begin(tap: StdioTap, sink: Sink) -> None:
        say = str if "quiet" in values else _report
        restarts = Restarts(tap, sink, argv, grace_ns=grace_ns, stays=True, say=say)
        changes = watch_in_a_thread(paths)

        def changed(_: int) -> None:
            name = os.read(changes, 1 << 16).decode("utf-8", "replace").split("\n")[0]
            restarts.restart(f"a change of {name}", stops_first="stop-first" in values)

        tap.watch(changes, POLLIN, changed)

    return begin


def _plain_tap(child: ServerProcess, sink: Sink, begin_ns: int, signals_fd: int) -> StdioTap:
    from ..live.stdio.tap import StdioTap

    return StdioTap(child, sink, begin_ns, signals_fd)


def _writer(
    values: Values, argv: list[str], max_bytes: int, wall_ns: int, begin_ns: int
) -> tuple[Writer | None, str, CaptureStart]:
    from ..capture.redaction.redactor import NoRedaction, Redactor
    from ..capture.store.folder import default_label, key
    from .new_capture import CaptureStart, open_writer

    redact = last(values, "redact", "credentials")
    redactor = NoRedaction() if redact == "none" else Redactor(key())
    redacted = redactor.argv(argv)
    start = CaptureStart(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=last(values, "label") or default_label(redacted),
        file=last(values, "capture") or None,
        redact=redact,
        max_bytes=max_bytes,
        quiet="quiet" in values,
    )
    return *open_writer(start, {"transport": "stdio", "argv": redacted, "env": sorted(os.environ)}), start


def _open_control(
    tap: StdioTap,
    writer: Writer,
    start: CaptureStart,
    path: str,
    argv: list[str],
) -> Callable[[], None] | None:
    """Open the tap's control socket, and return what closes it."""

    def hands() -> ControlHands:
        from .controlling import StdioHands

        return StdioHands(tap, writer, argv)

    return open_control_socket(tap.watch, hands, writer, start, path)


def open_control_socket(
    watch: Callable[[int, int, Callable[[int], None]], None],
    hands: Callable[[], ControlHands],
    sink: Sink,
    start: CaptureStart,
    path: str,
) -> Callable[[], None] | None:
    """Open a control socket, and return what closes it. What controllers need is imported when the first one connects."""
    from ..capture.store.folder import live_folder
    from ..platform import control_sockets
    from ..platform.descriptors import POLLIN

    folder, name = live_folder(), f"{start.capture_id}.sock"
    try:
        listener = control_sockets.listen(folder, name)
    except (OSError, AttributeError):
        return None  # without one, the tap does all else
    points: list[ControlPoint] = []

    def connected(_: int) -> None:
        if not points:
            from .controlling import ControlPoint

            facts = {
                "id": start.capture_id,
                "label": start.label,
                "pid": os.getpid(),
                "capture": path,
                "begin_ns": start.wall_ns,
            }
            points.append(ControlPoint(hands(), sink, facts))
        points[0].connected(listener)

    def close() -> None:
        listener.close()
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass  # somebody cleaned up

    watch(listener.fileno(), POLLIN, connected)
    return close


def _not_started(command: str, failure: OSError, child: ServerProcess, writer: Writer | None, begin_ns: int) -> int:
    """Report on stderr and in the capture that the command could not be run."""
    from ..records import Exit

    child.on_exit()
    reason = "command not found" if isinstance(failure, FileNotFoundError) else failure.strerror or str(failure)
    _report(f"mcpspy: {_without_logins(command)}: {reason}; {_advice(command, failure)}.")
    if writer is not None:
        now_ns = monotonic_ns() - begin_ns
        writer((Exit(at_ns=now_ns, pid=child.pid, error=reason),))
        writer.close(now_ns, "not started")
    return NOT_STARTED


def _advice(command: str, failure: OSError) -> str:
    """Say what to do about it."""
    if not isinstance(failure, FileNotFoundError):
        return "the server's command must be an executable program for this machine"
    if "/" in command:
        return "check that the file exists, and the interpreter that its first line names"
    return "use its absolute path: the PATH of a client is often shorter than your shell's"


def _without_logins(text: str) -> str:
    from ..views.text.escape import without_logins

    return without_logins(text)


def _report(line: str) -> None:
    from .new_capture import report

    report(line)


def __getattr__(name: str) -> click.Command:
    """Make `command` when click asks for it: for `--help`, and for calls from Python."""
    if name != "command":
        raise AttributeError(name)
    import click

    @click.command("run", context_settings={"allow_interspersed_args": False})
    @click.argument("command", nargs=-1, type=click.UNPROCESSED)
    def command(command: tuple[str, ...], **values: str | bool | None) -> int:
        """Run a stdio server through mcpspy: forward every byte, record it, and exit with the server's status.

        \b
        Example, in a client's configuration instead of `uvx mcp-server-time`:
          mcpspy run --label time -- uvx mcp-server-time
        """
        return main([*arguments_of(values), "--", *command])

    add_click_options(command, RUN)
    return command
