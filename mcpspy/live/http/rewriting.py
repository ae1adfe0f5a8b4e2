"""The names that a reverse proxy must rewrite so that client and server each see one server.

The client knows the server by our name, and the server knows itself by its own. Rewritten are Host, Origin, Location, the `endpoint`
event of HTTP+SSE and the addresses in OAuth's resource metadata. The name of a third party stays as it is: rewriting it would make
the tap a way into other hosts, and would disarm the checks of the SDKs.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from .listener import Authority, HttpOrigin, after_origin, origin

METADATA_PREFIX = b"/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Rewriting between the `upstream` and `own`, the name by which a client calls us, as in its Host field."""

    upstream: HttpOrigin
    own: str
    allowed_endpoints: Collection[HttpOrigin] = field(default_factory=tuple)
    """Other origins whose endpoints are rewritten too, because the user said so."""

    @property
    def own_origin(self) -> str:
        return f"http://{self.own}"

    def origin_field(self, value: bytes) -> bytes:
        """Rewrite the value of an Origin field for the upstream: our origin becomes its own, any other stays."""
        mine, named = origin(self.own_origin), origin(value.decode("latin-1").strip())
        return str(self.upstream).encode() if named is not None and named == mine else value

    def location(self, value: bytes) -> bytes:
        """Rewrite the value of a Location field, by the rule for an `endpoint`."""
        return self.endpoint(value.decode("latin-1")).encode("latin-1")

    def challenge(self, value: bytes) -> bytes:
        """Rewrite the address of the resource's metadata in the value of a WWW-Authenticate field; the rest stays."""
        text = value.decode("latin-1")
        start = text.lower().find('resource_metadata="')
        if start < 0:
            return value
        start += len('resource_metadata="')
        end = text.find('"', start)
        if end < 0:
            return value
        return (text[:start] + self.endpoint(text[start:end]) + text[end:]).encode("latin-1")

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
        uri = _member(data, "uri")
        return data if uri is None else _replace_member(data, uri, self.endpoint(uri))

    def metadata(self, body: bytes) -> bytes:
        """Rewrite the value of `resource` in protected-resource metadata (RFC 9728); every other byte stays.

        Only the upstream's origin as the user named it is rewritten: clients compare a resource with the URL that they were given,
        and one that does not match without a tap must not match with it.
        """
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return body
        resource = _member(text, "resource")
        if resource is None or origin(resource) != self.upstream:
            return body
        return _replace_member(text, resource, self.own_origin + after_origin(resource)).encode()

    def third_party(self, data: str) -> str | None:
        """Return the third party that an `endpoint` names: an origin, or one with a user's name; None if it names none.

        The text never holds a password. For SDKs a user's name makes a URL a different one, so it is never rewritten.
        """
        uri = _member(data, "uri") if data.lstrip().startswith("{") else data
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
        is_local = local.is_loopback or local.is_any
        return is_local and local.port == self.upstream.authority.port and named.scheme == self.upstream.scheme


def _without_user(uri: str) -> str:
    """Remove the userinfo from the authority of a URI."""
    scheme, slashes, rest = uri.partition("//")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    return scheme + slashes + rest[rest.rfind("@", 0, end) + 1 :]


def _member(text: str, name: str) -> str | None:
    """Return the string under `name` in the JSON object `text`; None if there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, str) else None


def _replace_member(text: str, old: str, new: str) -> str:
    """Replace the JSON string `old` by `new` if `text` has it once, however its slashes are escaped."""
    if old == new:
        return text
    for spelt in (json.dumps(old), json.dumps(old, ensure_ascii=False), json.dumps(old).replace("/", "\\/")):
        if text.count(spelt) == 1:
            return text.replace(spelt, json.dumps(new))
    return text
