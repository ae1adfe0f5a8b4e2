"""Which names carry secrets: of headers, query parameters, options, variables and members, in any of their spellings.

Refuses to look at values, except for the few whose beginning gives them away. No imports: the tap's start-up path
comes through here.
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
"""Words before a credential that are no part of it."""

SECRET_PREFIXES = (
    "-----BEGIN ", "AIza", "AKIA", "eyJ", "gho_", "ghp_", "ghs_", "ghu_", "github_pat_", "glpat-", "hf_", "npm_", "pypi-",
    "sk-", "sk_live_", "sk_test_", "xapp-", "xoxb-", "xoxp-",
)  # fmt: skip
"""How the tokens of well-known services begin: a bare argument like that is a secret whatever stands before it."""

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
"""Names that mean a secret as a parameter of a URL or a form, and too little elsewhere."""

_MEMBERS = {
    "access_token", "actor_token", "assertion", "client_assertion", "client_secret", "code_verifier", "device_code", "id_token",
    "password", "refresh_token", "registration_access_token", "subject_token", "user_code",
}  # fmt: skip
"""What OAuth's JSON bodies hold (RFC 6749 §5.1, RFC 7591 §3.2.1, RFC 8628 §3.2, RFC 8693 §2.2)."""

_ID_BYTES = 32


def kind_of(name: str) -> Kind | None:
    """What kind of secret a header, option, variable or member called `name` carries; None for none."""
    squashed = "".join(one for one in name.lower() if one.isalnum()).rstrip("0123456789")
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
    """The same for a parameter of a URL or a form, where shorter names say enough."""
    return kind_of(name) or _PARAMETERS.get(name.replace("_", "").replace("-", "").lower())


def kind_of_option(name: str) -> Kind | None:
    """The same for an option on a command line; `--no-token` and `--token-file` carry none."""
    if name.startswith(("no-", "no_", "disable-", "without-")):
        return None
    if name.lower() in ("auth", "basic-auth", "bearer", "pass", "pat", "pwd") or name.lower().endswith(("_pwd", "-pwd")):
        return "key"
    return kind_of(name)


def is_oauth_member(name: str) -> bool:
    """True for the members of OAuth's JSON bodies that are secrets."""
    return name in _MEMBERS


def is_identifier(segment: bytes) -> bool:
    """True for a path's segment that is a key or a session id by its looks: a UUID, or 32 letters and digits and more.

    Services put them there (`/mcp/s/KEY/sse`, `/messages/UUID`), and to know the address is to be let in.
    """
    bare = segment.replace(b"-", b"").replace(b"_", b"")
    if len(bare) < _ID_BYTES or not bare.isalnum():
        return False
    if not bare.lower().strip(b"0123456789abcdef"):
        return True
    return any(48 <= one <= 57 for one in bare) and not bare.islower() and not bare.isupper()


def _ends_in_key(name: str) -> bool:
    """`OPENAI_KEY`, `x-functions-key`, `mapKey`: a key of something; a plain `key` may be anything."""
    return name.lower().endswith(("_key", "-key")) or (name.endswith("Key") and name != "Key")
