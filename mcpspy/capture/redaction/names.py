"""Names that carry secrets, of headers, query parameters, options, variables and members: a name in, the kind of secret out.

Values are not looked at, except for a few that are known by their beginning. Nothing is imported: this is on the tap's start-up path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from ...records import Redaction

    Kind: TypeAlias = Literal["authorization", "cookie", "dpop", "key", "path", "session", "token", "userinfo"]

    Redacted: TypeAlias = tuple[bytes, tuple[Redaction, ...]]
    """Bytes with pseudonyms in them, and where: `(offset, length, kind)` in these bytes."""

SCHEMES = {
    "apikey", "aws4-hmac-sha256", "basic", "bearer", "digest", "dpop", "hawk", "key", "negotiate", "ntlm", "oauth", "token",
}  # fmt: skip
"""Words that come before a credential and are no part of it."""

SECRET_PREFIXES = (
    "-----BEGIN ", "AIza", "AKIA", "eyJ", "gho_", "ghp_", "ghs_", "ghu_", "github_pat_", "glpat-", "hf_", "npm_", "pypi-",
    "sk-", "sk_live_", "sk_test_", "xapp-", "xoxb-", "xoxp-",
)  # fmt: skip
"""Beginnings of the tokens of well-known services: an argument that begins so is a secret, whatever comes before it."""

SECRET_PREFIX_BYTES = 20
"""Shorter arguments with such a beginning are ordinary words."""

_SECRET_ENDS = (
    "accesskey", "apikey", "assertion", "authkey", "clientsecret", "credential", "credentials", "jwt", "passphrase", "passwd",
    "password", "privatekey", "secret", "secretkey", "signature", "subscriptionkey", "token",
)  # fmt: skip
_SESSION_ENDS = ("sessionid", "sessionkey")
_NO_SECRETS = {
    "cachekey", "foreignkey", "idempotencykey", "partitionkey", "primarykey", "progresstoken", "publickey", "secwebsocketkey",
    "sortkey", "surrogatekey",
}  # fmt: skip
_PARAMETERS: dict[str, Kind] = {
    "auth": "authorization", "code": "token", "codeverifier": "token", "devicecode": "token", "key": "key", "pass": "key",
    "pwd": "key", "session": "session", "sid": "session", "sig": "key", "state": "token", "ticket": "token",
    "usercode": "token",
}  # fmt: skip
"""Names that mean a secret as a parameter of a URL or a form, and too little in other places."""

_MEMBERS = {
    "access_token", "actor_token", "assertion", "client_assertion", "client_secret", "code_verifier", "device_code", "id_token",
    "password", "refresh_token", "registration_access_token", "subject_token", "user_code",
}  # fmt: skip
"""Secret members of OAuth's JSON bodies (RFC 6749 §5.1, RFC 7591 §3.2.1, RFC 8628 §3.2, RFC 8693 §2.2)."""

_ID_BYTES = 32


def kind_of(name: str) -> Kind | None:
    """Return the kind of secret that a header, option, variable or member called `name` carries; None if it carries none."""
    squashed = "".join(letter for letter in name.lower() if letter.isalnum()).rstrip("0123456789")
    if squashed.endswith(_SESSION_ENDS):
        return "session"
    if squashed.endswith("authorization") or squashed in ("auth", "xauth"):
        return "authorization"
    if squashed.endswith("cookie"):
        return "cookie"
    if squashed in ("dpop", "dpopnonce"):
        return "dpop"
    if squashed in _NO_SECRETS:
        return None
    if squashed.endswith(_SECRET_ENDS) or _ends_in_key(name):
        return "key"
    return None


def kind_of_parameter(name: str) -> Kind | None:
    """Return the same for a parameter of a URL or a form, where shorter names say enough."""
    return kind_of(name) or _PARAMETERS.get(name.replace("_", "").replace("-", "").lower())


def kind_of_option(name: str) -> Kind | None:
    """Return the same for an option on a command line; `--no-token` and `--token-file` carry none."""
    if name.startswith(("no-", "no_", "disable-", "without-")):
        return None
    if name.lower() in ("auth", "basic-auth", "bearer", "pass", "pat", "pwd") or name.lower().endswith(("_pwd", "-pwd")):
        return "key"
    return kind_of(name)


def is_oauth_member(name: str) -> bool:
    """Tell whether this is a secret member of OAuth's JSON bodies."""
    return name in _MEMBERS


def is_identifier(segment: bytes) -> bool:
    """Tell whether a path's segment looks like a key or a session id: a UUID, or at least 32 letters and digits.

    Services put them there (`/mcp/s/KEY/sse`, `/messages/UUID`), and whoever knows the address has access.
    """
    bare = segment.replace(b"-", b"").replace(b"_", b"")
    if len(bare) < _ID_BYTES or not bare.isalnum():
        return False
    if not bare.lower().strip(b"0123456789abcdef"):
        return True
    return any(48 <= letter <= 57 for letter in bare) and not bare.islower() and not bare.isupper()


def _ends_in_key(name: str) -> bool:
    """Tell whether a name means a key of something, as `OPENAI_KEY`, `x-functions-key`, `mapKey`; a plain `key` may be anything."""
    return name.lower().endswith(("_key", "-key")) or (name.endswith("Key") and name != "Key")
