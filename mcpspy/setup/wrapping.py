"""The changes that `mcpspy wrap` makes to a command and to a URL, and how they are recognised; and whether a URL may need a login.

    uvx mcp-server-time                   /opt/bin/mcpspy run --label time -- uvx mcp-server-time
    https://mcp.example.com/mcp?x=1       http://127.0.0.1:28700/mcp?x=1#mcpspy=https://mcp.example.com

A command is recognised by the form of its prefix, never by mcpspy's path. No client sends the fragment of a URL, so it can hold the
original origin. So `unwrap` needs nothing but the file, and also undoes what another mcpspy wrote.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv6Address, ip_address
from urllib.parse import parse_qsl, urlsplit

from ..lazy_pattern import lazy_pattern
from .spans import Member

# --- Commands ---

NAME = lazy_pattern(r"(?i)(?:.*[/\\])?mcpspy(?:\.exe|\.cmd)?")
RUN_SWITCHES = {"--no-control", "--quiet", "--reload", "--stop-first"}
"""The options of `mcpspy run` without a value; a test compares them with its table of options."""

MAX_WORDS_BEFORE = 6
"""As in `uv tool run --from mcpspy mcpspy run`. A later `mcpspy` is an argument of another program."""

OWN_NAME = "mcpspy"
OWN_VERB = "mcp"
"""The name of mcpspy's own entry, and the verb that it starts: recordings as an MCP server."""


def command_prefix(program: Sequence[str], label: str, *, new_args: bool) -> list[str]:
    """Write the words before the server's command.

    `--label=NAME`, as one word, means that the entry had no `args` at all, so that `unwrap` removes the empty list too.
    """
    label = label if label != "--" else "server"  # as a word of its own it would end the options
    option = [f"--label={label}"] if new_args else ["--label", label]
    return [*program, "run", *option, "--"]


def server_command_at(argv: Sequence[str]) -> int | None:
    """Find the index of the server's own command after `mcpspy run … --`; None without such a prefix, or with nothing after it."""
    at = _after_verb(argv, "run")
    if at is None:
        return None
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] == "--":
            at += 1
            break
        at += 1 if "=" in argv[at] or argv[at] in RUN_SWITCHES else 2
    return at if at < len(argv) else None


def run_options(argv: Sequence[str]) -> list[str]:
    """List the options in the prefix besides the label, such as where to record. Empty without a prefix."""
    return [word for option in _options(argv) if option[0].partition("=")[0] != "--label" for word in option]


def had_no_args(argv: Sequence[str]) -> bool:
    """Return whether the prefix says that the entry had no `args`."""
    return any(option[0].startswith("--label=") for option in _options(argv))


def _options(argv: Sequence[str]) -> Iterator[list[str]]:
    """Yield each option of `mcpspy run` with its value: a value may look like an option."""
    end = server_command_at(argv)
    words = [] if end is None else list(argv[_after_verb(argv, "run") : end])
    while words and words[0] != "--":
        length = 1 if "=" in words[0] or words[0] in RUN_SWITCHES else 2
        yield words[:length]
        del words[:length]


def is_own(argv: Sequence[str]) -> bool:
    """Return whether a command starts `mcpspy mcp` itself."""
    return server_command_at(argv) is None and _after_verb(argv, OWN_VERB) is not None


def _after_verb(argv: Sequence[str], verb: str) -> int | None:
    """Find the index after `mcpspy verb`; None if the command does not begin so."""
    for at, word in enumerate(argv[:MAX_WORDS_BEFORE]):
        if word == "--":
            return None
        if NAME.fullmatch(word) and argv[at + 1 : at + 2] == [verb]:
            return at + 2
    return None


# --- URLs ---

HOST = "127.0.0.1"
PORTS = range(28_700, 29_000)
"""The ports to reserve: no system picks these by itself, and no well-known service uses them."""

MAX_PORT = 65_535

FRAGMENT = "#mcpspy="
ORIGIN = lazy_pattern(r"(?i)https?://(?:[\w.-]+|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?(?=[/?]|$)")
LOCAL_ORIGIN = lazy_pattern(r"http://127\.0\.0\.1:([0-9]{1,5})(?=[/?#]|$)")
SCHEME = lazy_pattern(r"(?i)https?://")
OWN_URL = lazy_pattern(r"(?i)http://(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d{1,5}/mcpspy-[\w-]+/mcp/?(?:[?#].*)?")


def local_origin(port: int) -> str:
    """Write the origin of a reserved port."""
    return f"http://{HOST}:{port}"


def own_path(word: str) -> str:
    """Write the path at which `mcpspy mcp --listen` serves; `word` is a secret."""
    return f"/mcpspy-{word}/{OWN_VERB}"


def is_own_url(url: str) -> bool:
    """Return whether a URL is that of a `mcpspy mcp --listen` on this machine."""
    return bool(OWN_URL.fullmatch(url))


def origin_of(url: str) -> str:
    """Read the origin of a URL, in its own spelling; empty if it has none that mcpspy can forward to."""
    match = ORIGIN.match(url)
    if not match or int(match[2] or 0) > MAX_PORT or (match[1] and not _is_v6(match[1])):
        return ""
    return match[0]


def path_of(url: str) -> str:
    """Read the path and query of a URL."""
    return url[len(origin_of(url)) :]


def port_of(url: str) -> int | None:
    """Read the port of a URL of 127.0.0.1, as mcpspy writes it; None for all others."""
    match = LOCAL_ORIGIN.match(url)
    return int(match[1]) if match else None


def original_origin(url: str) -> str:
    """Read the original origin from the fragment of a wrapped URL; empty if it has none."""
    front, sign, fragment = url.partition("#")
    if port_of(front) is None or not (sign + fragment).startswith(FRAGMENT):
        return ""
    origin = fragment.removeprefix(FRAGMENT[1:])
    return origin if origin and origin_of(origin) == origin else ""


def original_url(url: str, origin: str) -> str:
    """Replace the local origin of a wrapped URL by `origin`, and remove the fragment."""
    match = LOCAL_ORIGIN.match(url)
    return origin + url[match.end() if match else 0 :].partition(FRAGMENT)[0]


def has_unknown_original(url: str) -> bool:
    """Return whether a URL is at a port that mcpspy reserves, but has no fragment."""
    return port_of(url) in PORTS and not original_origin(url)


def url_problem(url: str) -> str:
    """Explain why a URL that is not wrapped cannot be; empty if it can."""
    match = SCHEME.match(url)
    if not match:
        return "its URL begins with a variable" if url.startswith("$") else "its URL is neither http nor https"
    host = re.split("[/?#]", url[match.end() :], maxsplit=1)[0]
    if "$" in host:
        return "the host of its URL is a variable that only the client knows"
    if "@" in host:
        return "its URL contains a user name"
    if "#" in url:
        return "its URL has a fragment (#…)"
    if not origin_of(url):
        return "its URL has no host"
    if has_unknown_original(url):
        return (
            f"its URL is at {HOST}:{port_of(url)}, a port that mcpspy reserves, and the original URL is unknown: it is neither "
            "in the file, nor in mcpspy's reserved_ports.json, nor in a copy in its folder backups"
        )
    return ""


def _is_v6(host: str) -> bool:
    try:
        return bool(IPv6Address(host))
    except ValueError:
        return False


# --- Logins ---

HEADERS = ("headers", "http_headers", "env_http_headers", "requestInit")
CREDENTIALS = ("bearer_token_env_var", "headersHelper")
LOGINS = ("oauth", "auth", "scopes", "oauth_resource")
SECRET = lazy_pattern(r"(?i)auth|key|token|secret|cookie|password|session")
"""A word in the name of a header field or query parameter that identifies the caller."""


def may_log_in(members: Iterable[Member], url: str) -> bool:
    """Return whether the client may have to log in (OAuth). A login is for one URL, so wrapping would make the client log in again.

    Judged by the entry alone: true if it names a login, or if the URL is https, not of this machine, and nothing in the entry
    identifies the caller. The server is not asked: whoever edits a file may be offline.
    """
    members = list(members)
    if any(member.key in CREDENTIALS for member in members) or any(map(SECRET.search, _header_names(members))):
        return False
    if any(member.key in LOGINS for member in members):
        return True
    try:
        parts = urlsplit(url)
    except ValueError:  # a host with odd letters
        return True
    if any(SECRET.search(name) and value for name, value in parse_qsl(parts.query)):
        return False
    return parts.scheme == "https" and not _is_loopback(parts.hostname or "")


def _header_names(members: Iterable[Member]) -> list[str]:
    return [field.key for member in members if member.key in HEADERS for field in member.value.members]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
