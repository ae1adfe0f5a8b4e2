"""The command line of `mcpspy mock`: its table of options, and what was typed as a `MockOptions`.

No dataclass: importing them takes 1.2 ms, making one 0.5 to 0.9 ms (CPython 3.11), and a client waits for a mock on stdio.
"""

import sys
from typing import NamedTuple

from ..capture_options import NO_FILE, Option, UsageError, Values, last, parse

USAGE = """\
usage: mcpspy mock WHAT… [--stdio | --listen HOST:PORT [--transport streamable|sse] [--events]]
         [--match strict|default|loose] [--ignore PATH]… [--reuse last|error]
         [--on-miss error|nearest|pass-through] [--speed 0|1|X]
         [--label NAME] [--capture FILE] [--quiet]
         with --on-miss pass-through: [--catch-up] (--url URL [--header 'NAME: VALUE']… | -- COMMAND…)
mcpspy mock --help explains the options"""

MOCK = (
    Option("stdio", "", "Serve on standard input and output. This is the default."),
    Option("match", "", "When a request matches a recorded one: `strict`, if they are equal; `default`, if they are equal except for"
           " values that name the client or are a user's answer; `loose`, if nothing matches by default, by method and target"
           " alone.", ("strict", "default", "loose")),
    Option("ignore", "PATH", "Ignore these JSON paths in params: $.arguments.path, $..timestamp, … Repeatable.", repeats=True),
    Option("reuse", "", "When equal requests outnumber their recorded answers: give the `last` answer again (the default), or an"
           " `error`.", ("last", "error")),
    Option("speed", "X", "How fast to answer: 0 at once (the default), 1 as recorded, 2 twice as fast."),
    Option("on-miss", "", "How to answer a request that was never recorded: with an `error` (the default); with the answer to the"
           " `nearest` recorded request, reported on stderr; or `pass-through`, which sends it to a live server and lets that"
           " continue the session: the server of --url, or the command after --.", ("error", "nearest", "pass-through")),
    Option("url", "URL", "With --on-miss pass-through: continue with the HTTP server, or the model API, at this URL. With several"
           " servers, LABEL=URL says which. Repeatable.", repeats=True),
    Option("header", "'NAME: VALUE'", "Send this header field with every request to --url. Repeatable.", repeats=True),
    Option("catch-up", "", "With --on-miss pass-through: first repeat to the live server every request that was answered from the"
           " capture, for a server that keeps state."),
    Option("listen", "HOST:PORT", "Serve over HTTP at this address; port 0 picks a free one. The URL is printed on stderr."),
    Option("transport", "", "With --listen: Streamable HTTP at /mcp (`streamable`, the default), or HTTP+SSE at /sse (`sse`).",
           ("streamable", "sse")),
    Option("events", "", "With --listen: answer every request with a stream of events, also where a JSON body was recorded."),
    Option("allow-remote", "", "Allow --listen with an address that other machines can reach."),
    Option("allowed-host", "NAME", "Another host name that clients may use, besides the loopback ones. Repeatable.", repeats=True),
    Option("label", "NAME", "A name for the mock's own capture. The default is the server's label and `-mock`."),
    Option("capture", "FILE", "Where to record. The default is a new file in the store. If FILE exists, FILE-2 is used."),
    Option("quiet", "", "Print nothing to stderr, except requests that were never recorded."),
)  # fmt: skip


class MockOptions(NamedTuple):
    """A command line of `mcpspy mock`; `command` is that of the live server, after `--`."""

    whats: tuple[str, ...]
    command: tuple[str, ...] = ()
    match: str = "default"
    ignore: tuple[str, ...] = ()
    reuse: str = "last"
    on_miss: str = "error"
    urls: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    catches_up: bool = False
    speed: float = 0.0
    listen: str | None = None
    """None: on stdio."""
    transport: str | None = None
    answers_with_events: bool = False
    allows_remote: bool = False
    allowed_hosts: tuple[str, ...] = ()
    label: str = ""
    capture: str | None = None
    quiet: bool = False


def read_options(arguments: list[str]) -> MockOptions:
    """Read WHATs and options, in any order, and the command after `--`.

    Raises:
        UsageError: for a command line that cannot be used.
        HelpWanted: for `--help`.
    """
    values: Values = {}
    whats: list[str] = []
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest, command = arguments[:end], tuple(arguments[end + 1 :])
    while rest:
        if rest[0].startswith("-") and rest[0].partition(":")[0] != "-":
            more, rest = parse(rest, MOCK, "mcpspy mock --help lists them")
            for name, texts in more.items():
                values.setdefault(name, []).extend(texts)
        whats += rest[:1]
        rest = rest[1:]
    if not whats:
        raise UsageError("which capture? Name a file, a label or @; mcpspy list shows the captures")
    _check(values, command, has_command=end < len(arguments))
    return MockOptions(
        whats=tuple(whats),
        command=command,
        match=last(values, "match", "default"),
        ignore=tuple(values.get("ignore", ())),
        reuse=last(values, "reuse", "last"),
        on_miss=last(values, "on-miss", "error"),
        urls=tuple(values.get("url", ())),
        headers=tuple(values.get("header", ())),
        catches_up="catch-up" in values,
        speed=_speed(last(values, "speed", "0")),
        listen=last(values, "listen") if "listen" in values else None,
        transport=last(values, "transport") or None,
        answers_with_events="events" in values,
        allows_remote="allow-remote" in values,
        allowed_hosts=tuple(values.get("allowed-host", ())),
        label=last(values, "label"),
        capture=last(values, "capture") or None,
        quiet="quiet" in values,
    )


def _check(values: Values, command: tuple[str, ...], *, has_command: bool) -> None:
    """Reject options that cannot be combined. Raises: UsageError."""
    if "capture" in values and not last(values, "capture"):
        raise UsageError(NO_FILE)
    if "listen" in values and "stdio" in values:
        raise UsageError("--stdio cannot be combined with --listen; leave one out")
    for name in () if "listen" in values else ("transport", "events", "allow-remote", "allowed-host"):
        if name in values:
            raise UsageError(f"--{name} needs --listen")
    if last(values, "on-miss") != "pass-through":
        unused = [f"--{name}" for name in ("url", "header", "catch-up") if name in values]
        unused += ["a command after --"] if command else []
        if unused:
            raise UsageError(f"{unused[0]} needs --on-miss pass-through")
    elif has_command and not command:
        raise UsageError("the server's command after -- is missing")
    elif command and ("url" in values or "header" in values):
        raise UsageError("name the live server by its command after --, or by --url and --header, not by both")
    elif not command and "url" not in values:
        raise UsageError("--on-miss pass-through needs a live server: its command after --, or --url URL")


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = -1
    if not 0 <= speed <= sys.maxsize:
        raise UsageError(f"--speed is 0, 1 or another number above 0; not {text}")
    return speed
