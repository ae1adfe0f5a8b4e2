"""The names that a reverse proxy must rewrite so that client and server each see one server.

The client knows the server by our name, and the server knows itself by its own. Rewritten are Host, Origin, Location, Link,
challenges, the `endpoint` event of HTTP+SSE, and in OAuth's documents the members that a client compares with the URL that it was
given. Only the value's bytes change. The name of a third party stays as it is: rewriting it would make the tap a way into other
hosts, and would disarm the checks of the SDKs. So do the addresses of other authorization servers: a client logs in there directly.

Where the server is its own authorization server, it knows only its own name as `resource` (RFC 8707), and the client only ours:

    browser ── GET /authorize?resource=OURS ──► tap ── GET /authorize?resource=SERVER ──► server
    browser ◄── to the client, iss=OURS ─────── tap ◄── to the client, iss=SERVER ─────── server      which agreed at once
    browser ◄── to SERVER/authorize ─────────── tap ◄── a page, or to another place ───── server      whose cookies are there
    client ──── POST /token … resource=OURS ──► tap ── POST /token … resource=SERVER ───► server
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import quote, unquote, unquote_plus, urljoin

from ...wire.edits import Edit, apply_edits
from ...wire.json_spans import span_at, string
from ...wire.login import AUTHORIZATION_ENDPOINT, LOGIN_ENDPOINTS, is_metadata_path
from .listener import Authority, HttpOrigin, after_origin, origin

MAX_METADATA_TARGETS: Final = 64
MAX_LOGIN_PATHS: Final = 64
MAX_SERVERS: Final = 8
"""So many authorization servers of a resource are looked at."""

_parameter = re.compile(
    r"(?<![\w!#$%&'*+.^`|~-])([\w!#$%&'*+.^`|~-]++)[ \t]*+=[ \t]*+(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s,\"]++))|\"(?:[^\"\\]|\\.)*+\"",
    re.ASCII,
)
"""A parameter of a challenge: its name, and its value in quotes or without (RFC 9110, section 11.2); or a text in quotes alone.
A URL is no token, and some servers send it without quotes all the same."""
_link = re.compile(r"<([^>]*+)>|\"(?:[^\"\\]|\\.)*+\"")
"""The target of a link (RFC 8288, section 3), or a text in quotes."""
_issuer = re.compile(r"(?<=[?&#]iss=)[^&#]++")
"""The issuer in the redirect that ends a login (RFC 9207, section 2)."""
_quoted_pair = re.compile(r"\\(.)")
_to_quote = re.compile(r"[\"\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Rewriting between the `upstream` and `own`, the name by which a client calls us, as in its Host field."""

    upstream: HttpOrigin
    own: str
    allowed_endpoints: Collection[HttpOrigin] = field(default_factory=tuple)
    """Other origins whose endpoints are rewritten too, because the user said so."""
    metadata_targets: set[bytes] = field(default_factory=set)
    """Targets at which a challenge or a redirect said that there is metadata."""
    login_paths: dict[bytes, str] = field(default_factory=dict)
    """Paths of a login at the server, each with the origin at which a browser goes on; empty if the path is not for browsers."""

    @property
    def own_origin(self) -> str:
        return f"http://{self.own}"

    def origin_field(self, value: bytes) -> bytes:
        """Rewrite the value of an Origin field for the upstream: our origin becomes its own, any other stays."""
        mine, named = origin(self.own_origin), origin(value.decode("latin-1").strip())
        return str(self.upstream).encode() if named is not None and named == mine else value

    def location(self, value: bytes) -> bytes:
        """Rewrite the value of a Location field, by the rule for an `endpoint`; and the issuer that it takes to a client."""
        return _issuer.sub(self._issuer, self.endpoint(value.decode("latin-1"))).encode("latin-1")

    def _issuer(self, value: re.Match[str]) -> str:
        issuer = unquote(value[0])
        ours = self._resource(issuer)
        return value[0] if ours == issuer else quote(ours, safe="")

    def link(self, value: bytes) -> bytes:
        """Rewrite the targets in the value of a Link field, by the rule for an `endpoint`."""
        return _link.sub(lambda link: f"<{self.endpoint(link[1])}>" if link[1] else link[0], value.decode("latin-1")).encode(
            "latin-1"
        )

    def challenge(self, value: bytes) -> bytes:
        """Rewrite the URLs in the value of a WWW-Authenticate field; the rest stays, and so does a scope that looks like one."""
        return _parameter.sub(self._parameter, value.decode("latin-1")).encode("latin-1")

    def _parameter(self, parameter: re.Match[str]) -> str:
        name, quoted, bare = parameter.groups()
        if name is None or name.lower() == "scope":
            return parameter[0]
        old = bare if quoted is None else _quoted_pair.sub(r"\1", quoted)
        new = self.endpoint(old)
        if name.lower() == "resource_metadata":
            self.expect_metadata(old)
        if new == old:
            return parameter[0]
        if quoted is None:
            return parameter[0].removesuffix(bare) + new
        return parameter[0].removesuffix(quoted + '"') + _to_quote.sub(r"\\\g<0>", new) + '"'

    def expect_metadata(self, uri: str, referrer: bytes = b"") -> None:
        """Expect metadata at a URI that a response to `referrer` named, if it is the tap's or the upstream's."""
        absolute = urljoin(self.own_origin + referrer.decode("latin-1"), self.endpoint(uri))
        if origin(absolute) == origin(self.own_origin) and len(self.metadata_targets) < MAX_METADATA_TARGETS:
            target = after_origin(absolute).partition("#")[0]
            self.metadata_targets.add((target if target.startswith("/") else f"/{target}").encode("latin-1"))

    def is_metadata(self, target: bytes) -> bool:
        """Return whether OAuth's metadata is at this target."""
        return is_metadata_path(target) or target in self.metadata_targets

    def endpoint(self, uri: str) -> str:
        """Rewrite the URI of an `endpoint` event. A relative one stays; an absolute one at the upstream becomes ours."""
        named = self._origin_of(uri)
        if named is None or not self._is_upstreams(named):
            return uri
        if uri.startswith("//"):
            return f"//{self.own}" + after_origin(f"{self.upstream.scheme}:{uri}")
        return self.own_origin + after_origin(uri)

    def endpoint_data(self, data: str) -> str:
        """Rewrite the data of an `endpoint` event: a URI, or in one dialect JSON with a `uri`, where only that value changes."""
        if not data.lstrip().startswith("{"):
            return self.endpoint(data)
        return _with_member(data.encode("utf-8", "surrogateescape"), "uri", self.endpoint).decode("utf-8", "surrogateescape")

    def metadata(self, body: bytes) -> bytes:
        """Rewrite the metadata of a protected resource, that of an authorization server, or its answer to a registration.

        Of the first, the `resource` becomes ours, and then so do `authorization_servers` that are the server. Of the others, the
        `issuer` and `LOGIN_ENDPOINTS`. Names are rewritten as the user spelled the upstream: clients compare
        them with the URL that they were given, and one that does not match without a tap must not match with it.
        """
        ours = _with_member(body, "resource", self._resource)
        if ours != body:
            return self._with_servers(ours)
        ours = _with_member(body, "issuer", self._resource)
        for name in LOGIN_ENDPOINTS:
            ours = _with_member(ours, name, partial(self._login_endpoint, is_for_browsers=name == AUTHORIZATION_ENDPOINT))
        return ours

    def _with_servers(self, body: bytes) -> bytes:
        """Rewrite the server's name among the authorization servers; MCP 2025-03-26 has paths for one without a document."""
        ours = body
        for at in range(MAX_SERVERS):
            ours = _with_member(ours, "authorization_servers", self._resource, at)
        if ours != body:
            self.login_paths.setdefault(b"/token", "")
            self.login_paths.setdefault(b"/authorize", str(self.upstream))
        return ours

    def _login_endpoint(self, url: str, *, is_for_browsers: bool) -> str:
        ours, path = self.endpoint(url), path_of(after_origin(url).encode("utf-8", "replace"))
        if ours == url or (len(self.login_paths) >= MAX_LOGIN_PATHS and path not in self.login_paths):
            return url
        self.login_paths[path] = url.removesuffix(after_origin(url)) if is_for_browsers else ""
        return ours

    def browser_location(self, target: bytes) -> bytes:
        """Return where a browser goes on that was sent to this target for a login; nothing if it was not."""
        place = self.login_paths.get(path_of(target))
        return place.encode("latin-1") + self.login_target(target) if place else b""

    def login_target(self, target: bytes) -> bytes:
        """Return the target of a request in a login for the upstream."""
        path, mark, query = target.partition(b"?")
        return path + mark + self.login_parameters(query)

    def login_parameters(self, parameters: bytes) -> bytes:
        """Rewrite each `resource` that names us to name the upstream, in the query or the form of a login; every other byte stays."""
        return b"&".join(map(self._login_parameter, parameters.split(b"&")))

    def _login_parameter(self, parameter: bytes) -> bytes:
        name, equals, value = parameter.partition(b"=")
        resource = unquote_plus(value.decode("latin-1"), "latin-1")
        if unquote_plus(name.decode("latin-1")) != "resource" or origin(resource) != origin(self.own_origin):
            return parameter
        return name + equals + quote(f"{self.upstream}{after_origin(resource)}", "", "latin-1").encode()

    def _resource(self, url: str) -> str:
        return self.own_origin + after_origin(url) if origin(url) == self.upstream else url

    def third_party(self, data: str) -> str | None:
        """Return the third party that an `endpoint` names: an origin, or one with a user's name; None if it names none.

        The text never holds a password. For SDKs a user's name makes a URL a different one, so it is never rewritten.
        """
        uri: str | None = data
        if data.lstrip().startswith("{"):
            uri = string(_member(data.encode("utf-8", "surrogateescape"), "uri"))
        if not uri:
            return None
        named, user = self._origin_of(uri), self._origin_of(_without_user(uri))
        if named is None:
            return None if user is None else f"{user} with a user's name before the host"
        return None if self._is_upstreams(named) else str(named)

    def _origin_of(self, uri: str) -> HttpOrigin | None:
        """Return the origin of an `endpoint`, which may leave out the scheme."""
        return origin(f"{self.upstream.scheme}:{uri}" if uri.startswith("//") else uri)

    def _is_upstreams(self, named: HttpOrigin) -> bool:
        if named == self.upstream or named in self.allowed_endpoints:
            return True
        local: Authority = named.authority
        return local.is_local and local.port == self.upstream.authority.port and named.scheme == self.upstream.scheme


def _without_user(uri: str) -> str:
    """Remove the userinfo from the authority of a URI."""
    scheme, slashes, rest = uri.partition("//")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    return scheme + slashes + rest[rest.rfind("@", 0, end) + 1 :]


def _member(body: bytes, name: str) -> bytes:
    """Return the value of `name` in a JSON object, as it is spelled; nothing if there is none."""
    span = span_at(body, (name,))
    return b"" if span is None else body[slice(*span)]


def path_of(target: bytes) -> bytes:
    """Return the path of a target."""
    return target.partition(b"?")[0] or b"/"


def _with_member(body: bytes, name: str, change: Callable[[str], str], *item: int) -> bytes:
    """Put the string under `name` in a JSON object, or an item of the array there, through `change`; every other byte stays."""
    span = span_at(body, (name, *item))
    old = None if span is None else string(body[slice(*span)])
    if span is None or old is None or (new := change(old)) == old:
        return body
    return apply_edits(body, [Edit(*span, json.dumps(new).encode())])
