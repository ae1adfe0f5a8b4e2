"""`mcpspy mock`: plays the server of captures to a live client, and records what the two say.

A client waits for the first answer as it would for the server's, so this goes the short way of `run`, past click.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from ...live.stdio.descriptors import ensure_standard_streams
from ...live.stdio.signals import listen
from ..run.options import NO_FILE, SEVERAL, HelpWanted, Option, UsageError, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

    from ...capture.file.writer import Writer
    from ...errors import McpspyError
    from ...live.mock.handover import Handover
    from ...replay.mock.matching import Matcher
    from ...replay.mock.miss import Miss
    from ...replay.mock.on_miss import OnMiss
    from ...replay.mock.pass_through import Forwarding
    from ...replay.mock.replies import Scenes
    from ...replay.mock.script import Script
    from ...transcript.model import Transcript
    from ..run.capture import Beginning
    from .pass_through import LiveServer

USAGE = """\
usage: mcpspy mock WHAT… [--stdio | --listen HOST:PORT [--transport streamable|sse]]
         [--match strict|default|loose] [--ignore PATH]… [--reuse last|error]
         [--on-miss error|nearest|forward] [--speed 0|1|X]
         [--label NAME] [--capture FILE] [--quiet]
         with --on-miss forward: [--catch-up] (--url URL [--header 'NAME: VALUE']… | -- COMMAND…)
mcpspy mock --help says what they do"""

MOCK = (
    Option("stdio", "", "Serve on standard input and output, which is the default."),
    Option("match", "", "What makes a request the same as a recorded one: everything (`strict`); all but who asks and what a user"
           " answered (`default`); if nothing matches so, its method and target (`loose`).", ("strict", "default", "loose")),
    Option("ignore", "PATH", "Leave out these places of params: $.arguments.path, $..timestamp, … Repeatable.", repeats=True),
    Option("reuse", "", "After the last answer to equal requests: the `last` again (the default), or an `error`.", ("last", "error")),
    Option("speed", "X", "How fast to answer: 0 at once (the default), 1 as recorded, 2 twice as fast."),
    Option("on-miss", "", "What was never recorded is answered with an `error` (the default), or with what was recorded of the"
           " `nearest` request, which is told; or the session goes on with a live server (`forward`): that of --url, or the one whose"
           " command stands behind --.", ("error", "nearest", "forward")),
    Option("url", "URL", "With --on-miss forward: go on with the HTTP server, or the model's API, at this URL; where several are"
           " served, LABEL=URL says which. Repeatable.", repeats=True),
    Option("header", "'NAME: VALUE'", "Send this field with every request to --url. Repeatable.", repeats=True),
    Option("catch-up", "", "With --on-miss forward: first tell the live server all that was played, for a server that remembers."),
    Option("listen", "HOST:PORT", "Serve over HTTP at this address; port 0 picks one. The URL is told on stderr."),
    Option("transport", "", "Over HTTP: Streamable HTTP at /mcp (`streamable`, the default), or HTTP+SSE at /sse (`sse`).",
           ("streamable", "sse")),
    Option("allow-remote", "", "Listen at an address that other machines reach."),
    Option("allowed-host", "NAME", "A name beside the loopback ones by which clients may call. Repeatable.", repeats=True),
    Option("label", "NAME", "What to call the mock's own capture; by default the recorded server's label and `-mock`."),
    Option("capture", "FILE", "Where to record; by default a new file in the store. An existing FILE is kept: FILE-2 is used."),
    Option("quiet", "", "Say nothing on stderr but what is asked and was never recorded."),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Serve the captures named in `arguments`. Returns the exit status: the recorded server's; 2 for bad usage, 3 for no capture."""
    ensure_standard_streams()
    try:
        values, whats, command = _parsed(arguments)
        speed = _speed(values.get("speed", "0"))
    except HelpWanted:
        from ..main import main as others

        return others()
    except UsageError as error:
        say(f"mcpspy mock: {error}\n{USAGE}")
        return 2
    if "listen" in values:
        from .http import serve

        return serve(values, whats, speed, command)
    from ...errors import McpspyError

    gc.disable()  # nothing that a start-up makes is garbage: 3 ms
    signals_fd = listen()
    begin_ns, wall_ns = monotonic_ns(), time_ns()
    try:
        transcript, scenes = played(paths_of(whats), " ".join(whats))
        finder = matcher(scenes, values)
        server = live_server(values, command, transcript)
    except (UsageError, McpspyError, OSError) as error:
        return refused(error)
    writer = _writer(values, whats, transcript, wall_ns, begin_ns)
    from ...replay.mock.script import Script

    script_of = partial(Script, scenes, finder.walk(), wall_ns=wall_ns)
    if server is None:
        return _serve(script_of(on_miss(scenes, values)), speed, writer, begin_ns, signals_fd)
    from .pass_through import handover_of

    handover = handover_of(server, script_of, scenes, writer, begin_ns)
    return _serve(handover.forwarding, speed, writer, begin_ns, signals_fd, handover)


def played(paths: Iterable[str], what: str, *, over_http: bool = False) -> tuple[Transcript, Scenes]:
    """What the captures of a server hold that can be served; `over_http` that is refusals too.

    Raises: AddressError, CaptureError, ReplayError; OSError.
    """
    from ...capture.file.reader import read
    from ...errors import AddressError
    from ...replay.mock.served import served
    from ...transcript.transcribe import transcribe

    transcript = transcribe(*map(read, paths), keeps_frames=over_http, finds=False)
    try:
        return transcript, served(transcript, what, over_http=over_http)
    except AddressError as error:
        raise AddressError(error.what, f"{error.reason}, or serve them all with --listen 127.0.0.1:0") from error


def paths_of(whats: Iterable[str]) -> list[str]:
    """The captures that these WHATs name, each once. Raises: AddressError; OSError."""
    return list(dict.fromkeys(path for what in whats for path in _paths(what)))


def _paths(what: str) -> tuple[str, ...]:
    """The captures that a WHAT names. Raises: AddressError; OSError."""
    if os.path.isfile(what):
        return (what,)  # without the catalog of all captures, whose import a client would wait for
    from ...capture.store.address import STDIN, resolve
    from ...errors import AddressError

    address = resolve(what, skips_replays=True, skips_mocks=True)  # else a second mock would serve what the first one said
    if STDIN in address.captures:
        raise AddressError(what, "standard input is where a mock hears its client; name a file")
    if address.rows is not None:
        raise AddressError(what, "a mock serves whole captures; leave the rows out")
    return address.captures


def _parsed(arguments: list[str]) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Options by name and WHATs, in any order, and the command behind `--`. Raises: UsageError, HelpWanted."""
    values: dict[str, str] = {}
    whats: list[str] = []
    at = arguments.index("--") if "--" in arguments else len(arguments)
    rest, command = arguments[:at], tuple(arguments[at + 1 :])
    while rest:
        if rest[0].startswith("-") and rest[0].partition(":")[0] != "-":
            found, rest = parse(rest, MOCK, "mcpspy mock --help lists them")
            for one in MOCK:
                if one.repeats and one.name in found and one.name in values:
                    found[one.name] = f"{values[one.name]}{SEVERAL}{found[one.name]}"
            values.update(found)
        whats += rest[:1]
        rest = rest[1:]
    if not whats:
        raise UsageError("which capture? Name a file, a label or @; mcpspy list shows what there is")
    _check(values, command, has_command=at < len(arguments))
    return values, tuple(whats), command


def _check(values: dict[str, str], command: tuple[str, ...], *, has_command: bool) -> None:
    """Options that do not go together. Raises: UsageError."""
    if values.get("capture") == "":
        raise UsageError(NO_FILE)
    for name in ("stdio",) if "listen" in values else ("transport", "allow-remote", "allowed-host"):
        if name in values:
            raise UsageError(
                "--stdio and --listen are two ways to serve" if name == "stdio" else f"--{name} goes with --listen"
            )
    if values.get("on-miss") != "forward":
        given = [f"--{name}" for name in ("url", "header", "catch-up") if name in values]
        given += ["a command behind --"] if command else []
        if given:
            raise UsageError(f"{given[0]} goes with --on-miss forward")
    elif has_command and not command:
        raise UsageError("behind -- the server's command is missing")
    elif command and ("url" in values or "header" in values):
        raise UsageError("a server has a command, behind --, or a URL, with --url and --header; not both")
    elif not command and "url" not in values:
        raise UsageError("--on-miss forward wants a server to go on with: its command behind --, or --url URL")


def live_server(
    values: dict[str, str], command: tuple[str, ...], transcript: Transcript, *, shows_login: bool = True
) -> LiveServer | None:
    """The server that goes on after a miss, if that is wanted. Raises: UsageError."""
    if values.get("on-miss") != "forward":
        return None
    from .pass_through import server_of

    return server_of(values, command, transcript, shows_login=shows_login)


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = -1
    if not 0 <= speed <= sys.maxsize:
        raise UsageError(f"--speed is 0, 1 or another number above 0; not {text}")
    return speed


def _writer(
    values: dict[str, str], whats: tuple[str, ...], transcript: Transcript, wall_ns: int, begin_ns: int
) -> Writer | None:
    from ..run.capture import open_writer

    tapped = {"transport": "stdio", "argv": ["mcpspy", "mock", *whats], "mock": capture_ids(transcript)}
    return open_writer(beginning(values, transcript, wall_ns, begin_ns), tapped)[0]


def beginning(values: dict[str, str], transcript: Transcript, wall_ns: int, begin_ns: int) -> Beginning:
    """What is known of the mock's own capture."""
    from ..run.capture import Beginning

    header = next((one for one in transcript.captures if not one.is_model), transcript.captures[0]).header
    return Beginning(
        wall_ns=wall_ns,
        begin_ns=begin_ns,
        label=values.get("label") or f"{(header.label if header else '') or 'server'}-mock",
        named=values.get("capture"),
        redact=header.redaction if header else "credentials",
        max_bytes=0,
        quiet="quiet" in values,
    )


def capture_ids(transcript: Transcript) -> list[str]:
    """Of which captures it is a mock."""
    return [source.header.capture_id for source in transcript.captures if source.header]


def matcher(scenes: Scenes, values: dict[str, str]) -> Matcher:
    """What finds the recorded answers, as the options say. Raises: PathError."""
    from ...replay.mock.match_key import Strictness
    from ...replay.mock.matching import Matcher, Reuse

    ignore = values["ignore"].split(SEVERAL) if "ignore" in values else ()
    strictness, reuse = Strictness(values.get("match", "default")), Reuse(values.get("reuse", "last"))
    return Matcher(scenes.exchanges, strictness=strictness, ignore=ignore, reuse=reuse)


def on_miss(scenes: Scenes, values: dict[str, str]) -> OnMiss:
    """What becomes of a miss, as the options say."""
    from ...replay.mock.on_miss import ERROR, Nearest

    return Nearest(scenes.unknown) if values.get("on-miss") == "nearest" else ERROR


def _serve(
    script: Script | Forwarding,
    speed: float,
    writer: Writer | None,
    begin_ns: int,
    signals_fd: int,
    handover: Handover | None = None,
) -> int:
    from ...live.mock.stdio import Mock
    from ..run.capture import nowhere

    mock = Mock(
        script,
        writer or nowhere,
        begin_ns=begin_ns,
        signals_fd=signals_fd,
        speed=speed,
        tell=tell,
        handover=handover,
    )
    gc.freeze()
    gc.enable()
    status = mock.run()
    if writer is not None:
        writer.close(mock.now_ns(), mock.why)
    return status


def refused(error: UsageError | McpspyError | OSError) -> int:
    """Say why nothing is served. Returns the exit status."""
    if isinstance(error, OSError):
        say(f"mcpspy: {error.filename}: {error.strerror}")
        return 2
    if isinstance(error, UsageError):
        say(f"mcpspy mock: {error}\n{USAGE}")
        return 2
    say(f"mcpspy: {error}")
    return error.exit_status


def tell(miss: Miss) -> None:
    """What was asked and never recorded, for a person."""
    from ...views.timeline.miss import miss_lines  # 2 ms, which a start-up need not wait for
    from ..run.capture import say as write

    write("\n".join(miss_lines(miss)))


def say(line: str) -> None:
    """One line for a person; what captures and clients said in it is made harmless."""
    from ...views.text.escape import safe_text
    from ..run.capture import say as write

    write("\n".join(map(safe_text, line.split("\n"))))


def __getattr__(name: str) -> click.Command:
    """`command`, made when click asks for it: for `--help`, and for calls from Python."""
    if name != "command":
        raise AttributeError(name)
    import click

    @click.command("mock")
    @click.argument("what", nargs=-1)
    def command(what: tuple[str, ...], **values: str | bool | tuple[str, ...] | None) -> int:
        """Serve a capture as a server, on stdio or over HTTP: the answers it recorded, to a client that asks for the same.

        \b
        Example, in a client's configuration instead of the server's command; or for clients that want a URL:
          mcpspy mock weather.mcpspy
          mcpspy mock weather.mcpspy --listen 127.0.0.1:8000
          mcpspy mock weather.mcpspy --ignore '$.arguments.units' --speed 1
          mcpspy mock weather.mcpspy --on-miss forward -- uvx weather-server
          mcpspy mock @ --listen 127.0.0.1:8000

        The last one serves a whole run: every server of the newest recording, and the API of the model if that was recorded too.
        What to set is told on stderr.

        Notifications, progress and what the server asked of its client come where the recording had them. Ids, progress tokens and
        the names that a server gives out, such as task ids, are live ones; every other byte is as it was recorded. What was never
        recorded is answered with an error that says what comes nearest, where it differs, and which option would accept it; stderr
        is told too. The mock records what it hears and says, as a tap does.
        """
        words: list[str] = []
        for key, value in values.items():
            option = f"--{key.replace('_', '-')}"
            if isinstance(value, bool):
                words += [option] * value
            else:
                words += [f"{option}={one}" for one in ((value,) if isinstance(value, str) else value or ())]
        return main([*what, *words])

    for option in MOCK:
        kind = click.Choice(option.choices) if option.choices else None
        is_flag = not option.metavar and not option.choices
        metavar = option.metavar or None
        click.option(
            f"--{option.name}", metavar=metavar, type=kind, is_flag=is_flag, multiple=option.repeats, help=option.help
        )(command)
    return command
