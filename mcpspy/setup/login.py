"""Whether a client may have to log in to an HTTP server (OAuth): a login holds for one URL, and so binds the server to it.

Told by what the entry says alone. Refuses to ask the server: whoever edits a file need not be on the network.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from .spans import Member

HEADERS = ("headers", "http_headers", "env_http_headers", "requestInit")
CREDENTIALS = ("bearer_token_env_var", "headersHelper")
LOGINS = ("oauth", "auth", "scopes", "oauth_resource")
SECRET = re.compile(r"(?i)auth|key|token|secret|cookie|password|session")
"""In the name of a header field, or of a part of a query: it says who calls."""


def may_log_in(members: Iterable[Member], url: str) -> bool:
    """True if the entry says that the client logs in, or if it is https, another machine, and nothing in it says who calls."""
    members = list(members)
    if any(one.key in CREDENTIALS for one in members) or any(map(SECRET.search, _header_names(members))):
        return False
    if any(one.key in LOGINS for one in members):
        return True
    try:
        parts = urlsplit(url)
    except ValueError:  # a host with odd letters
        return True
    if any(SECRET.search(name) and value for name, value in parse_qsl(parts.query)):
        return False
    return parts.scheme == "https" and not _is_loopback(parts.hostname or "")


def _header_names(members: Iterable[Member]) -> list[str]:
    return [field.key for one in members if one.key in HEADERS for field in one.value.members]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
