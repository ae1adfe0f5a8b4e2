"""Documents of a login, OAuth's metadata, to the URLs in them that a tap rewrites; and the hosts that are one server."""

from collections.abc import Iterator
from typing import Final

from .json_spans import JsonWalk, string

LOGIN_NAMES: Final = ("resource", "authorization_servers", "issuer")
"""Members that clients compare with the URL that they were given: only a server's own name is rewritten in them."""
AUTHORIZATION_ENDPOINT: Final = "authorization_endpoint"
LOGIN_ENDPOINTS: Final = (
    "token_endpoint", "pushed_authorization_request_endpoint", "device_authorization_endpoint", "registration_client_uri",
    AUTHORIZATION_ENDPOINT,
)  # fmt: skip
"""The endpoints that take a `resource` (RFC 8707, section 2), and the one in the answer to a registration (RFC 7592, section 3)."""

_WELL_KNOWN: Final = b"/.well-known/"
_DOCUMENTS: Final = (b"oauth-protected-resource", b"oauth-authorization-server", b"openid-configuration")
"""Documents of RFC 9728, section 3, RFC 8414, section 3, and OpenID Connect Discovery 1.0, section 4. They belong at the beginning of
the path, only the last at its end; some clients look for each of them at both places."""
_MEMBERS: Final = frozenset(name.encode() for name in (*LOGIN_NAMES, *LOGIN_ENDPOINTS))


def is_metadata_path(target: bytes) -> bool:
    """Return whether OAuth's metadata belongs at this target."""
    return target.partition(b"?")[0].partition(_WELL_KNOWN)[2].startswith(_DOCUMENTS)


def login_urls(document: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the URLs that a tap rewrites in a document, also where it is no JSON, or in UTF-16, and whether each is an endpoint.

    Those within another object count only if the document itself has no member of their name.
    """
    data = document.replace(b"\0", b"")
    walk, outer, urls = JsonWalk(data), set(), []
    for leaf in walk.leaves(bare=False):
        is_item = leaf.name == b"authorization_servers"
        if leaf.name in _MEMBERS and is_item == isinstance(walk.last_steps(1)[0], int):
            depth = walk.depth - is_item
            outer |= {leaf.name} if depth <= 1 else set()
            urls.append((leaf.name, depth, string(b'"%b"' % data[leaf.start : leaf.end])))
    return ((url, name.decode() in LOGIN_ENDPOINTS) for name, depth, url in urls if url and (depth <= 1 or name not in outer))


def is_local(host: str) -> bool:
    """Return whether a host is this machine: localhost, a loopback address, or that of all interfaces. No name is resolved."""
    from ipaddress import ip_address  # slow to import

    try:
        return host == "localhost" or (address := ip_address(host)).is_loopback or address.is_unspecified
    except ValueError:
        return False
