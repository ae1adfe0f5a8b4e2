"""Reasons outside of a server's code for which it ended before it answered anything: by its command line and its last lines.

Such a server was started in the wrong way or in the wrong place: its culprit is the client's entry for it, and not its author.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import SERVER
from ...log_lines import error_line
from ..rule import CONFIGURATION
from ..words import quoted

if TYPE_CHECKING:
    from ..facts import CaptureFacts

UNCLEAR: Final = "unclear"

_TAIL: Final = 3
"""So many of the last lines on stderr are looked at, with the last that looks like an error."""
_TRIED: Final = 100
"""So many lines on stdout, and so many calls, tell whether a server speaks MCP there."""
_HEAD: Final = 12
"""A launcher complains about its version in its first lines."""


class ExitCause(NamedTuple):
    """The culprit of an exit, the sentence that says why, and what to do; an empty advice is the rule's."""

    culprit: str
    blame: str
    advice: str = ""


_names_setting = lazy_pattern(
    rb"(?i:environment variable|env var|api[ _-]?key|access[ _-]?token|credentials?|(?-i:\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b))"
    rb".{0,80}(?i:\bnot set\b|missing|required|must be set|not provided|undefined|not found|is empty)"
    rb"|(?i:missing|requires?|must set|please (?:set|provide)|no)\b.{0,60}"
    rb"(?i:environment variable|env var|api[ _-]?key|(?-i:\b[A-Z][A-Z0-9]*_(?:KEY|TOKEN|SECRET|URL|ID)\b))"
    rb"|KeyError: '[A-Z][A-Z0-9_]{2,}'"
)
"""The words in which programs say that a variable or a key is missing."""

_MODULE: Final = ExitCause(
    CONFIGURATION,
    "The configuration of the server: a module that it imports is not installed for the interpreter that the entry names.",
    "Install the server's dependencies (and build it), and name its own interpreter, such as .venv/bin/python or uv run.",
)
_is_installed = lazy_pattern(rb"[\\/](?:site-packages|node_modules)[\\/]")

_SETTING: Final = ExitCause(
    CONFIGURATION,
    "The configuration of the server: its environment or arguments lack a setting that the server asks for.",
    "Set what the server asks for in its entry (env, or args): a client does not read the profile of a shell.",
)
_FILE: Final = ExitCause(
    CONFIGURATION,
    "The configuration of the server: a file or a program that it needs is not there, as its entry starts it.",
    "Compare the path with the entry's arguments and environment; a relative path begins in the folder where the client starts it.",
)

_VALUE: Final = ExitCause(
    CONFIGURATION,
    "The configuration of the server: it refuses a value of its environment or arguments, which it names.",
    "Correct this value in the entry (env, or args), or leave it out.",
)

_BY_WORDS: Final = (
    (_names_setting, _SETTING),
    (
        lazy_pattern(
            rb"(?:unsupported|invalid|unknown|unrecognized|illegal|not a valid) "
            rb"(?:value|model|provider|backend|transport|(?:log )?level|mode|region|environment|url|uri|api key|port)\b",
            re.IGNORECASE,
        ),
        _VALUE,
    ),
    (
        lazy_pattern(rb"cannot connect to the docker daemon|docker daemon is not running|docker desktop is not", re.IGNORECASE),
        ExitCause(
            CONFIGURATION,
            "The configuration of the server: its command needs Docker, which does not run, or which this user may not use.",
            "Start Docker, and try docker ps as the user who runs the client.",
        ),
    ),
    (
        lazy_pattern(
            rb"pull access denied|manifest (?:for \S+ )?(?:unknown|not found)|no such image|invalid reference format",
            re.IGNORECASE,
        ),
        ExitCause(
            CONFIGURATION,
            "The configuration of the server: there is no container image of this name, or it may not be pulled.",
        ),
    ),
    (
        lazy_pattern(
            rb"unrecognized arguments?|unknown (?:option|argument|command)|unexpected argument|no such option|"
            rb"arguments? (?:is|are) required|missing (?:required )?(?:argument|option|parameter)|required option|invalid option|"
            rb"^usage:|bad option:",
            re.IGNORECASE,
        ),
        ExitCause(
            CONFIGURATION,
            "The configuration of the server: its arguments are not those that the program takes.",
            "Run the command in a terminal with --help, and compare its arguments with the entry's.",
        ),
    ),
    (
        lazy_pattern(
            rb"EBADENGINE|unsupported engine|requires? (?:at least )?node(?:\.?js)?\b"
            rb"|node(?:\.?js)? (?:version )?(?:>=|v?\d+).{0,20}required"
            rb"|no such built-in module: node:|\b(?:fetch|File|ReadableStream|crypto|structuredClone) is not defined"
            rb"|requires a different python|requires-python|python (?:>=|3\.\d+).{0,20}(?:required|or (?:later|newer|higher))",
            re.IGNORECASE,
        ),
        ExitCause(
            CONFIGURATION,
            "The configuration of the server: the client starts it with a version of Node.js or Python that it does not run on.",
            "Put the full path of the right node, npx or python into the entry: a client that is no terminal has another PATH.",
        ),
    ),
    (
        lazy_pattern(rb"ModuleNotFoundError|no module named|ERR_MODULE_NOT_FOUND|cannot find (?:module|package)", re.IGNORECASE),
        _MODULE,
    ),
    (lazy_pattern(rb"FileNotFoundError|\bENOENT\b|no such file or directory", re.IGNORECASE), _FILE),
    (
        lazy_pattern(
            rb"\bE404\b|404 not found|no matching distribution|no solution found when resolving|was not found in the package",
            re.IGNORECASE,
        ),
        ExitCause(CONFIGURATION, "The configuration of the server: the registry has no package of this name or version."),
    ),
    (
        lazy_pattern(
            rb"\b(?:ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET)\b.{0,80}|failed to (?:fetch|lookup|download)|are you offline|"
            rb"temporary failure in name resolution|could not resolve host|network is unreachable",
            re.IGNORECASE,
        ),
        ExitCause(
            UNCLEAR,
            "Unclear: the program could not reach another host: the network, a proxy or that host may be to blame.",
            "Run the command in a terminal; set HTTPS_PROXY in the entry if the network needs it.",
        ),
    ),
    (
        lazy_pattern(rb"EADDRINUSE|address already in use", re.IGNORECASE),
        ExitCause(
            UNCLEAR,
            "Unclear: another process has the port that the server wants, perhaps an earlier start of the same server.",
            "End the other process, or give the server another port; look for the server in two of the client's configuration files.",
        ),
    ),
    (
        lazy_pattern(rb"GLIBC_[\d.]+['\W]* not found|cannot execute binary file|exec format error|wrong architecture", re.IGNORECASE),
        ExitCause(CONFIGURATION, "The configuration of the server: the program was built for another system than this one."),
    ),
)  # fmt: skip
"""Patterns of the last lines with what they mean, the most telling first."""

_NOT_INTERACTIVE: Final = ExitCause(
    CONFIGURATION,
    "The configuration of the server: docker run without -i gives the container no stdin, so that no message reaches it.",
    "Add -i to the arguments of docker run.",
)
_CONTAINERS: Final = ("docker", "podman", "nerdctl")


def exit_cause(facts: CaptureFacts) -> ExitCause | None:
    """Return why a server ended that never answered; None if nothing shows that its surroundings are to blame."""
    argv = facts.argv
    if any(exchange.response is not None for exchange in facts.exchanges):
        return None
    if lacks_stdin(argv):
        return _NOT_INTERACTIVE
    lines = list(facts.last_lines) or noise(facts)
    if (cause := _other_version(lines, argv)) is not None:
        return cause
    for some in ([error_line(lines), *lines[-_TAIL:]], lines[:_HEAD]):
        for says, cause in _BY_WORDS:
            if any(says.search(line) for line in some):
                lacks_own = cause is _MODULE and any(
                    map(_is_installed.search, lines)
                )  # a package that does not name what it needs
                return None if lacks_own else _named(cause, b"\n".join(some), argv)
    return _missing_program(lines)


_lacks_program = lazy_pattern(
    rb"(?:^|[:\]-] )([A-Za-z][\w.+-]{1,40}) (?:was |is |could |executable |binary )?not (?:be )?"
    rb"(?:found|installed) (?:on (?:the|this|your) (?:system|computer|machine)|(?:on|in) (?:the |your |\$)?PATH\b)"
)
"""The words in which a program says beforehand that another one is missing; the error that follows from that names it no more."""


def _missing_program(lines: list[bytes]) -> ExitCause | None:
    """Say that a program is missing if the server itself said so before its error."""
    match = next((match for line in lines if (match := _lacks_program.search(line))), None)
    if match is None:
        return None
    program = quoted(match[1])
    return ExitCause(
        CONFIGURATION,
        f"The configuration of the server: it said before that it does not find {program}, a program that it needs.",
        f"Install {program}, or add its folder to PATH in the entry (env): clients start servers with another PATH.",
    )


def is_usage(facts: CaptureFacts) -> bool:
    """Return whether what the server wrote to stdout says why it ended: it was not started as a server of MCP."""
    if facts.exit is None or not facts.exit[1].code or facts.last_lines:
        return False
    cause = exit_cause(facts)
    return cause is not None and cause.culprit == CONFIGURATION


def noise(facts: CaptureFacts) -> list[bytes]:
    """Return what the server wrote to stdout in the place of messages, such as its usage."""
    return [
        unpaired.message.raw
        for unpaired in facts.malformed
        if unpaired.message.sender == SERVER and unpaired.message.raw.strip()
    ]


_lacks_name = lazy_pattern(
    rb"ImportError: cannot import name '\w+' from '(\w+)[\w.]*' \(.*site-packages|ModuleNotFoundError: No module named '(\w+)\.\w"
    rb"|SyntaxError: The requested module '((?:@[\w.-]+/)?[\w-][\w.-]*)[^']*' does not provide an export named"
    rb"|AttributeError: (?:module '(\w+)|'(?!NoneType|dict|list|str|int|tuple)\w+' object has no attribute)"
    rb"|TypeError: .*\bunexpected keyword argument"
)
"""Python names the parent module only if it is there: `mcp.server.fastmcp` is missing in a package `mcp` of another version."""
_at_import = lazy_pattern(rb'\s*File ".*[\\/]site-packages[\\/].*", line \d+, in (?:<module>|[A-Z]\w*)\s*$')


def _other_version(lines: list[bytes], argv: list[str]) -> ExitCause | None:
    """Say that a library is there in another version than its user was written for; None if the error shows nothing like it."""
    error = error_line(lines)
    match = _lacks_name.match(error)
    if match is None:
        return None
    if error.startswith((b"AttributeError", b"TypeError")):
        frame = next((line for line in reversed(lines) if line.lstrip().startswith(b'File "')), b"")
        if not _at_import.match(frame):
            return None  # its own code, while it runs
    library = (match[1] or match[2] or match[3] or match[4] or b"").decode("utf-8", "replace")
    program = argv[0].rpartition("/")[2].replace("-", "_") if argv else ""
    if library and library == program:
        return None  # a part of the server itself
    named = library if library not in ("", "lib") else ""
    name = f"of {named or 'a library'} "
    advice = (
        f"Install the version of {named or 'this library'} that it was written for, perhaps an older one, "
        "or another release of the server."
    )
    if any(map(_is_installed.search, lines)) and not (match[1] and not any(map(_is_installed.search, lines[:-1]))):
        blame = f"The server's package: it runs with another version {name}than it, or one of its libraries, was written for."
        return ExitCause(SERVER, blame, advice)
    blame = f"The configuration of the server: the interpreter that the entry names has another version {name}than it needs."
    return ExitCause(CONFIGURATION, blame, advice)


_variable_in = lazy_pattern(rb"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|KeyError: '([A-Z][A-Z0-9_]+)'")
_program_in = lazy_pattern(
    rb"spawn ([\w.+-]{1,80}) ENOENT|(?:_execute_child|child_exception_type)(?s:.*)No such file or directory: '([\w.+-]{1,80})'"
)
_module_in = lazy_pattern(rb"(?:no module named|cannot find (?:module|package)) ['\"]?([\w@./-]{1,80})", re.IGNORECASE)


def _named(cause: ExitCause, text: bytes, argv: list[str]) -> ExitCause:
    """Name in the advice the variable or the module that is missing, if the last lines do."""
    if cause is _SETTING and (match := _variable_in.search(text)):
        variable = (match[1] or match[2]).decode()
        return cause._replace(
            advice=f"Set {variable} in the environment of the server's entry (env): a client does not read the profile of a shell."
        )
    if cause is _FILE and (match := _program_in.search(text)):
        program = quoted(match[1] or match[2])
        return cause._replace(
            blame=f"The configuration of the server: the server starts {program}, and there is no such program where it looks.",
            advice=f"Install {program}, or add its folder to PATH in the entry (env): clients start servers with another PATH.",
        )
    if cause is _MODULE and argv and (match := _module_in.search(text)):
        module, interpreter = match[1].decode("utf-8", "replace"), quoted(argv[0])
        return cause._replace(
            advice=f"Install the package of {module} where {interpreter} finds it, or name an interpreter in the entry that has it, "
            "such as .venv/bin/python or uv run."
        )
    return cause


_serves_http = lazy_pattern(
    rb"(?i)\b(?:running|listening|serving|started|available|ready|bound)\b.{0,60}"
    rb"(?:\bhttps?://[^/\s\"']+:\d+|\b(?:0\.0\.0\.0|127\.0\.0\.1|localhost):\d+|\bport:? \d{2,5}\b)"
)


def without_stdin(facts: CaptureFacts) -> ExitCause | None:
    """Return why a server reads nothing of what its client sends; None if neither its command nor its lines show a reason."""
    if lacks_stdin(facts.argv):
        return _NOT_INTERACTIVE
    written = (unpaired.message.raw for unpaired in islice(facts.malformed, _TRIED) if unpaired.message.sender == SERVER)
    line = next((line for line in (*facts.last_lines, *written) if _serves_http.search(line)), b"")
    if not line or any(exchange.response is not None for exchange in islice(facts.exchanges, _TRIED)):
        return None
    return ExitCause(
        CONFIGURATION,
        f"The configuration of the server: it was started for HTTP, as its line {quoted(line)} says, and reads nothing from stdin.",
        "Start it for stdio (often --transport stdio, or without a port), or give the client its URL in the place of the command.",
    )


def lacks_stdin(argv: list[str]) -> bool:
    """Return whether a command is `docker run` without `-i`."""
    if argv[1:2] != ["run"] or argv[0].rpartition("/")[2] not in _CONTAINERS:
        return False
    return not any(
        word == "--interactive" or word.startswith("--interactive=true") or re.fullmatch(r"-[a-z]*i[a-z]*", word)
        for word in argv
    )
