"""`mcpspy mock`: serve captures to a live client in place of their server, and record the session.

A client waits for its first answer, so like `run` this parses its options without click.
"""

from __future__ import annotations

import gc
from functools import partial
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from ...platform.descriptors import ensure_standard_streams
from ...platform.signals import listen
from ..capture_options import HelpWanted, UsageError, add_click_options, arguments_of
from .options import MOCK, MockOptions, read_options
from .session import capture_ids, capture_start, matcher, miss_policy, paths_of, recorded_server, refused, report_miss

if TYPE_CHECKING:
    import click

    from ...capture.file.writer import Writer
    from ...live.mock.handover import Handover
    from ...replay.mock.pass_through import PassThrough
    from ...replay.mock.script import Script
    from ...transcript.model import Transcript


def main(arguments: list[str]) -> int:
    """Serve the captures named in `arguments`. Returns the exit status: the recorded server's; 2 for bad usage, 3 for no capture."""
    ensure_standard_streams()
    try:
        options = read_options(arguments)
    except HelpWanted:
        from ..main import main as click_main

        return click_main()
    except UsageError as error:
        return refused(error)
    if options.listen is not None:
        from .http import serve

        return serve(options)
    return _serve_stdio(options)


def _serve_stdio(options: MockOptions) -> int:
    from ...errors import McpspyError

    gc.disable()  # a start-up makes no garbage: 3 ms
    begin_ns, wall_ns = monotonic_ns(), time_ns()
    try:
        paths = paths_of(options.whats)
        transcript, replies = recorded_server(paths, " ".join(options.whats))
        requests = matcher(replies.exchanges, options, paths=paths)
        server = None
        if options.on_miss == "pass-through":
            from .pass_through import live_server

            server = live_server(options, transcript)
    except (UsageError, McpspyError, OSError) as error:
        return refused(error)
    signals_fd = listen()  # not before: a signal ends a mock that waits for a FIFO's writer
    writer = _writer(options, transcript, wall_ns, begin_ns)
    from ...replay.mock.script import Script

    make_script = partial(Script, replies, requests.cursor(), wall_ns=wall_ns)
    if server is None:
        return _run(make_script(miss_policy(replies, options)), options.speed, writer, begin_ns, signals_fd)
    from .pass_through import stdio_handover

    handover = stdio_handover(server, make_script, replies, writer, begin_ns)
    return _run(handover.script, options.speed, writer, begin_ns, signals_fd, handover)


def _writer(options: MockOptions, transcript: Transcript, wall_ns: int, begin_ns: int) -> Writer | None:
    from ..new_capture import open_writer

    tapped = {"transport": "stdio", "argv": ["mcpspy", "mock", *options.whats], "mock": capture_ids(transcript)}
    return open_writer(capture_start(options, transcript, wall_ns, begin_ns), tapped)[0]


def _run(
    script: Script | PassThrough,
    speed: float,
    writer: Writer | None,
    begin_ns: int,
    signals_fd: int,
    handover: Handover | None = None,
) -> int:
    from ...live.mock.stdio import Mock
    from ..new_capture import nowhere

    mock = Mock(
        script,
        writer or nowhere,
        begin_ns=begin_ns,
        signals_fd=signals_fd,
        speed=speed,
        tell=report_miss,
        handover=handover,
    )
    gc.freeze()
    gc.enable()
    status = mock.run()
    if writer is not None:
        writer.close(mock.now_ns(), mock.why)
    return status


def __getattr__(name: str) -> click.Command:
    """Make `command` when click asks for it: for `--help`, and for calls from Python."""
    if name != "command":
        raise AttributeError(name)
    import click

    @click.command("mock")
    @click.argument("what", nargs=-1)
    def command(what: tuple[str, ...], **values: str | bool | tuple[str, ...] | None) -> int:
        """Serve a capture as a server, on stdio or over HTTP: a client that sends the recorded requests gets the recorded answers.

        \b
        Examples:
          mcpspy mock weather.mcpspy
          mcpspy mock weather.mcpspy --listen 127.0.0.1:8000
          mcpspy mock weather.mcpspy --ignore '$.arguments.units' --speed 1
          mcpspy mock weather.mcpspy --on-miss pass-through -- uvx weather-server
          mcpspy mock @ --listen 127.0.0.1:8000

        Use such a command in a client's configuration instead of the server's; with --listen, use its URL. The last example
        serves all servers of the newest recording, and the model API if that was recorded too. The URLs to use, and
        the variables to set, are printed on stderr.

        Notifications, progress and the server's own requests are sent where the capture has them. Request ids and progress tokens
        are the live client's, and ids that a server makes up, such as task ids, may be new; every other byte is as recorded.
        A request that was never recorded is answered with an error that names the nearest recorded request, the differences,
        and an option that would accept it; stderr has the same. The mock records its session, as a proxy does.
        """
        return main([*what, *arguments_of(values)])

    add_click_options(command, MOCK)
    return command
