"""What a reverse proxy must change so that both sides go on believing in one server, and nothing else.

The client knows the server under our name, the server itself under its own. Names that cross are mapped: Host, Origin, Location,
the `endpoint` of HTTP+SSE, the addresses in OAuth's resource metadata. Refuses to touch anything that names a third party: to map
that would make the tap a way into other hosts, and would disarm the checks of the SDKs.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field

from .listener import Authority, HttpOrigin, after_origin, origin

METADATA_PREFIX = b"/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Between the `upstream` and the name under which one client connection knows us: `own`, as its Host field spells it."""

    upstream: HttpOrigin
    own: str
    allowed_endpoints: Collection[HttpOrigin] = field(default_factory=tuple)
    """Other origins whose endpoints are mapped too, because the user said so."""

    @property
    def own_origin(self) -> str:
        return f"http://{self.own}"

    def origin_field(self, value: bytes) -> bytes:
        """An Origin field's value as the upstream must see it: our origin becomes its own, any other stays."""
        mine, named = origin(self.own_origin), origin(value.decode("latin-1").strip())
        return str(self.upstream).encode() if named is not None and named == mine else value

    def url(self, text: str) -> str:
        """A URL at the upstream's origin with our origin instead; any other as it is."""
        return self.own_origin + after_origin(text) if origin(text) == self.upstream else text

    def location(self, value: bytes) -> bytes:
        """The value of a Location field."""
        return self.url(value.decode("latin-1")).encode("latin-1")

    def challenge(self, value: bytes) -> bytes:
        """The value of a WWW-Authenticate field: the address of the resource's metadata is mapped, the rest stays."""
        text = value.decode("latin-1")
        start = text.lower().find('resource_metadata="')
        if start < 0:
            return value
        start += len('resource_metadata="')
        end = text.find('"', start)
        if end < 0:
            return value
        return (text[:start] + self.url(text[start:end]) + text[end:]).encode("latin-1")

    def endpoint(self, uri: str) -> str:
        """The URI of an `endpoint` event. Relative ones stay; absolute ones at the upstream become ours."""
        named = self._origin_of(uri)
        if named is None or not self._is_upstreams(named):
            return uri
        if uri.startswith("//"):
            return f"//{self.own}" + after_origin(f"{self.upstream.scheme}:{uri}")
        return self.own_origin + after_origin(uri)

    def endpoint_data(self, data: str) -> str:
        """The data of an `endpoint` event: a URI, or in a dialect JSON with a `uri`, of which only that value changes."""
        if not data.lstrip().startswith("{"):
            return self.endpoint(data)
        uri = _member(data, "uri")
        return data if uri is None else _replaced_member(data, uri, self.endpoint(uri))

    def metadata(self, body: bytes) -> bytes:
        """Protected-resource metadata (RFC 9728): the value of `resource` is mapped, every other byte stays."""
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return body
        resource = _member(text, "resource")
        return body if resource is None else _replaced_member(text, resource, self.url(resource)).encode()

    def names_a_third(self, data: str) -> str | None:
        """Whom an `endpoint` names that is neither ours nor mapped: an origin, or one with a user's name; None if there is none.

        A password is no part of what is said. A name before the host makes a URL another one for SDKs, so that it is never mapped.
        """
        uri = _member(data, "uri") if data.lstrip().startswith("{") else data
        if not uri:
            return None
        named, user = self._origin_of(uri), self._origin_of(_without_user(uri))
        if named is None:
            return None if user is None else f"{user} with a user's name before the host"
        return None if self._is_upstreams(named) else str(named)

    def _origin_of(self, uri: str) -> HttpOrigin | None:
        """The origin of an `endpoint`, which may leave the scheme to the stream that it comes on."""
        return origin(f"{self.upstream.scheme}:{uri}" if uri.startswith("//") else uri)

    def _is_upstreams(self, named: HttpOrigin) -> bool:
        if named == self.upstream or named in self.allowed_endpoints:
            return True
        local: Authority = named.authority
        return (local.is_loopback or local.is_any) and local.port == self.upstream.authority.port


def _without_user(uri: str) -> str:
    """A URI without what stands before an `@` in its authority."""
    scheme, slashes, rest = uri.partition("//")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    return scheme + slashes + rest[rest.rfind("@", 0, end) + 1 :]


def _member(text: str, name: str) -> str | None:
    """The string under `name` in the JSON object `text`; None where there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _replaced_member(text: str, old: str, new: str) -> str:
    """`text` with the string `old` in it spelt `new`, if it stands there once, however its slashes are escaped."""
    if old == new:
        return text
    for spelt in (json.dumps(old), json.dumps(old, ensure_ascii=False), json.dumps(old).replace("/", "\\/")):
        if text.count(spelt) == 1:
            return text.replace(spelt, json.dumps(new))
    return text
