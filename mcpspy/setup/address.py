"""What `mcpspy wrap` makes of a server's URL, and how it is known again: its origin becomes a place of ours, and moves behind `#`.

`https://mcp.example.com/mcp?x=1` becomes `http://127.0.0.1:28700/mcp?x=1#mcpspy=https://mcp.example.com`. No client sends on what
stands behind `#`, so the file itself remembers what was there, and `unwrap` needs nothing else. Refuses URLs that it could not
give back.
"""

import re
from ipaddress import IPv6Address

HOST = "127.0.0.1"
PORTS = range(28_700, 29_000)
"""Where places are taken: no system picks ports there for itself, and nobody's well-known service is there."""

MAX_PORT = 65_535

MARK = "#mcpspy="
ORIGIN = re.compile(r"(?i)https?://(?:[\w.-]+|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?(?=[/?]|$)")
LOCAL = re.compile(r"http://127\.0\.0\.1:([0-9]{1,5})(?=[/?#]|$)")
SCHEME = re.compile(r"(?i)https?://")


def local(port: int) -> str:
    """The origin of a place."""
    return f"http://{HOST}:{port}"


def origin_of(url: str) -> str:
    """The origin that `url` begins with, in its letters; empty where it has none that a tap could stand before."""
    found = ORIGIN.match(url)
    if not found or int(found[2] or 0) > MAX_PORT or (found[1] and not _is_v6(found[1])):
        return ""
    return found[0]


def rest_of(url: str) -> str:
    """What follows on the origin: path and query."""
    return url[len(origin_of(url)) :]


def is_lost(url: str) -> bool:
    """Whether it is at a place but does not remember what was there before."""
    return port_of(url) in PORTS and not marked(url)


def _is_v6(host: str) -> bool:
    try:
        return bool(IPv6Address(host))
    except ValueError:
        return False


def port_of(url: str) -> int | None:
    """The port of a URL of this machine, as we write it; None for all others."""
    found = LOCAL.match(url)
    return int(found[1]) if found else None


def marked(url: str) -> str:
    """The origin that a wrapped URL remembers; empty where it remembers none."""
    front, mark, origin = url.partition("#")
    if port_of(front) is None or not (mark + origin).startswith(MARK):
        return ""
    origin = origin.removeprefix(MARK[1:])
    return origin if origin and origin_of(origin) == origin else ""


def inner(url: str, origin: str) -> str:
    """The URL as it was, with `origin` instead of the place's."""
    found = LOCAL.match(url)
    return origin + url[found.end() if found else 0 :].partition(MARK)[0]


def problem(url: str) -> str:
    """Why a URL that is not wrapped cannot be; empty if it can."""
    found = SCHEME.match(url)
    if not found:
        return "its URL begins with a variable" if url.startswith("$") else "its URL is neither http nor https"
    host = re.split("[/?#]", url[found.end() :], maxsplit=1)[0]
    if "$" in host:
        return "the host of its URL is a variable, whose value only the client knows"
    if "@" in host:
        return "its URL holds a user's name"
    if "#" in url:
        return "its URL has a part behind #"
    if not origin_of(url):
        return "its URL has no host"
    if is_lost(url):
        return (
            f"it is at {HOST}:{port_of(url)}, a port that mcpspy gives, and what was there before is not known: neither the file "
            "nor mcpspy's places.json nor a copy in its folder backups says it"
        )
    return ""
