"""Names that carry secrets, of headers, query parameters, options, variables and members: a name in, the kind of secret out.

Values are not looked at, except for those that are known by their beginning. Nothing is imported: this is on the tap's start-up path.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from ...records import Redaction

    Kind: TypeAlias = Literal["authorization", "cookie", "dpop", "key", "path", "session", "token", "userinfo"]

    Redacted: TypeAlias = tuple[bytes, tuple[Redaction, ...]]
    """Bytes with pseudonyms in them, and where: `(offset, length, kind)` in these bytes."""

FORM_TYPE = "application/x-www-form-urlencoded"
FORM_TYPES = (FORM_TYPE, "application/x-amz-json-")
"""Types of requests that are never JSON-RPC, nor is what answers them. AWS has its logins in JSON of a type of its own."""

SCHEMES = {
    "accesskey", "api-key", "api-token", "apikey", "apitoken", "aws4-hmac-sha256", "basic", "bearer", "digest", "dpop", "geniekey",
    "hawk", "key", "negotiate", "ntlm", "oauth", "ssws", "token", "zoho-oauthtoken",
}  # fmt: skip
"""Words that come before a credential and are no part of it."""

TOKENS = (
    ("sk- sk_ rk- rk_", "[A-Za-z0-9_-]{16,}"),  # OpenAI, Anthropic, OpenRouter, Stripe and others
    ("gho_ ghp_ ghr_ ghs_ ghu_", "[A-Za-z0-9]{16,}"),
    ("github_pat_", "[A-Za-z0-9_]{20,}"),
    ("gldt- glpat- glptt- glrt-", "[A-Za-z0-9_-]{16,}"),
    ("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", "[A-Za-z0-9-]{8,}"),
    ("xoxe.", "[A-Za-z0-9.-]{16,}"),
    ("xapp-", "[A-Za-z0-9-]{16,}"),
    ("AIDA AKIA AROA ASIA", "[A-Z0-9]{12,}"),
    ("AIza", "[A-Za-z0-9_-]{30,}"),
    ("ya29. GOCSPX-", "[A-Za-z0-9_-]{16,}"),
    ("hf_ lin_api_ lin_oauth_ ntn_", "[A-Za-z0-9]{16,}"),
    ("npm_ gsk_ pplx- r8_", "[A-Za-z0-9]{20,}"),
    ("pypi- figd_", "[A-Za-z0-9_-]{16,}"),
    ("tvly-", "[A-Za-z0-9-]{16,}"),
    ("doo_v1_ dop_v1_ dor_v1_", "[a-f0-9]{32,}"),
    ("shpat_ shpca_ shppa_ shpss_", "[a-f0-9]{16,}"),
    ("nvapi- xai- glsa_ whsec_", "[A-Za-z0-9_-]{20,}"),
    ("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("secret_", "[A-Za-z0-9]{32,}"),  # Notion
    ("ATATT3 ATCTT3", "[A-Za-z0-9_=-]{30,}"),  # Atlassian
    ("dckr_pat_ dp.pt. dp.st. pcsk_ sntrys_ sntryu_ tskey-", "[A-Za-z0-9_.-]{20,}"),  # Docker, Doppler, Pinecone, Sentry
    ("lsv2_pt_ lsv2_sk_ rubygems_ sbp_ xkeysib-", "[a-f0-9]{32,}"),  # LangSmith, RubyGems, Supabase, Brevo
    ("AGE-SECRET-KEY-1 NRAK- PMAK-", "[A-Za-z0-9-]{24,}"),  # New Relic, Postman
    ("hvb. hvr. hvs.", "[A-Za-z0-9_-]{20,}"),  # HashiCorp Vault
    ("eyJ", r"(?<![_-]eyJ)[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_.-]*"),  # a JWT (RFC 7519), signed or encrypted
)
"""Tokens of well-known services: how they begin, and a pattern of what follows, which sharing and findings search for in texts."""

TOKEN_PREFIXES = tuple(" ".join(prefixes for prefixes, _ in TOKENS).split())

SECRET_PREFIXES = ("-----BEGIN ", *TOKEN_PREFIXES)
"""An argument or a field's value that begins so is a secret."""

SECRET_PREFIX_BYTES = 20
"""Shorter texts with such a beginning are ordinary words."""

_SECRET_ENDS = (
    "accesskey", "apikey", "appkey", "assertion", "authkey", "clientsecret", "credential", "credentials", "jwt", "licensekey",
    "masterkey", "otpseed", "passphrase", "passwd", "password", "privatekey", "psk", "secret", "secretanswer", "secretbinary",
    "secretkey", "secretkeybase", "secretstring", "securityanswer", "signature", "subscriptionkey", "token",
    "contrasena", "contraseña", "haslo", "hasło", "heslo", "kennwort", "losenord", "lösenord", "motdepasse", "mậtkhẩu", "passwort",
    "senha", "sifre", "şifre", "wachtwoord", "пароль", "パスワード", "密码", "密碼", "비밀번호",
)  # fmt: skip
_SESSION_ENDS = ("sessid", "sessionid", "sessionkey")
_LAST_WORDS = {"auth", "bearer", "cred", "creds", "key", "pass", "pat", "pswd", "pw", "pwd"}
"""Words that mean a secret at the end of a longer name: `SMTP_PASS`, `mysqlPwd`, `mapKey`; alone they may mean anything."""

_AGAIN = {"again", "confirm", "confirmation", "repeat", "verify"}
"""Words after a secret that is to be written twice: `passwordConfirmation`."""

_SPELLINGS = ("data", "hex", "pem", "value")
"""Words at the end of a name that say how a secret is spelled, besides `base64`."""

_PUBLIC_TOKENS = {
    "bos", "cancel", "cancellation", "continuation", "cursor", "eos", "next", "pad", "page", "paging", "pagination", "previous",
    "progress", "stop", "sync",
}  # fmt: skip
"""Words before `token` that make it a place in a list or in a text."""

_QUESTIONS = {"has", "is", "needs", "no", "requires", "show", "uses", "with", "without"}
"""First words of a name that make its value a fact about the secret: `hasPassword`."""

_PARAMETERS: dict[str, Kind] = {
    "auth": "authorization", "bearer": "token",
    "code": "token", "idtokenhint": "token", "key": "key", "mnemonic": "key", "passkey": "key", "pin": "key",
    "samlresponse": "token", "session": "session", "sid": "session", "sig": "key", "state": "token", "ticket": "token",
    "wresult": "token",
}  # fmt: skip
"""Names that mean a secret as a parameter of a URL or a form, and too little in other places."""

_MEMBERS = {
    "appsecretproof", "authreqid", "cvc", "cvv", "interactionhandle", "loginticket", "mnemonic", "otp", "pass", "passcode", "pin",
    "pswd", "pw", "pwd", "secretid", "statehandle", "totp",
}  # fmt: skip
"""Secret parameters, and members of JSON of OAuth and logins, with names that mean too little in other places (OpenID CIBA)."""

_MEMBER_ENDS = (
    "accesscode", "activationcode", "authcode", "authorizationcode", "authorizedcode", "backupcode", "confirmationcode", "devicecode",
    "logincode", "mfacode", "onetimecode", "oobcode", "otpcode", "recoverycode", "securitycode", "smscode", "totpcode",
    "txcode", "usercode", "verificationcode", "verifier",
)  # fmt: skip
"""Ends of such names (RFC 5849, 7636, 8628, OpenID4VCI): codes that let in, and what proves that a code is one's own."""

_PUBLIC_FIELDS = {
    "accept-signature", "authentication-info", "last-event-id", "proxy-authenticate", "proxy-authentication-info",
    "mcp-method", "mcp-name", "mcp-protocol-version", "public-key-pins", "public-key-pins-report-only", "www-authenticate",
    "x-oauth-client-id",
}  # fmt: skip
_PUBLIC_BEGINNINGS = ("access-control-", "mcp-param-", "sec-")
"""Header fields that carry no secret. `Mcp-Param-…` repeats arguments, which are kept in bodies too."""

_FIELD_WORDS: dict[str, Kind] = {
    "auth": "authorization", "authentication": "authorization", "authn": "authorization", "authorisation": "authorization",
    "authz": "authorization",
    "authorization": "authorization", "oauth": "authorization", "xauth": "authorization",
    "cookie": "cookie", "crumb": "key", "csrf": "key", "dpop": "dpop", "macaroon": "key", "session": "session", "sid": "session",
    "xsrf": "key",
    "2fa": "key", "bearer": "key", "cred": "key", "hmac": "key", "key": "key", "mfa": "key", "mnemonic": "key", "otp": "key",
    "pass": "key", "passcode": "key", "passkey": "key", "pat": "key", "pin": "key", "pswd": "key", "pw": "key", "pwd": "key",
    "sig": "key", "sign": "key", "tfa": "key", "ticket": "key", "totp": "key",
}  # fmt: skip
"""Words of a field's name that mean a secret, besides those that end in one of `_SECRET_ENDS`."""

_SECRET_FIELDS = {"x-honeycomb-team", "x-jfrog-art-api", "x-registry-config", "x-vercel-protection-bypass"}
"""Header fields that carry a key under a name that does not say so."""

_CODE_WORDS = {
    "access", "activation", "authenticator", "backup", "confirmation", "device", "login", "otc", "pairing", "recovery", "reset",
    "security", "sms", "time", "unlock", "verification",
}  # fmt: skip
"""Words before `code` that make it one that lets in: `X-Verification-Code`, unlike `X-Error-Code`."""

_DESKS = {"bug", "desk", "freshdesk", "helpdesk", "issue", "jira", "otrs", "rt", "service", "servicenow", "support", "zendesk"}
"""Words before `ticket` that make it the number of a request for help."""

_PUBLIC_KEYS = {
    "cache", "end", "epic", "foreign", "group", "idempotency", "issue", "message", "object", "ordering", "partition", "primary",
    "project", "public", "publishable", "routing", "row", "search", "sort", "start", "surrogate", "translation",
}  # fmt: skip
"""Words before `key` that make it no secret."""

_COUNTS = {
    "budget", "cached", "completion", "count", "input", "limit", "max", "output", "prompt", "ratelimit", "reasoning", "remaining",
    "thinking", "total", "usage", "used",
}  # fmt: skip
"""Words beside `tokens` that make them those of a model."""

_OWNED = (["access"], ["api"], ["auth"], ["bearer"], ["bot"], ["refresh"], ["secret"])
"""Words before `tokens` that make them secrets."""

_FACTS = _COUNTS | {
    "affinity", "age", "agent", "alg", "algorithm", "consent",
    "control", "duration", "email", "enabled", "endpoint", "exp", "expire", "expiration",
    "expiry", "file", "format", "group", "issuer", "length", "level", "lifetime", "method", "mode", "name", "policy", "provider",
    "realm", "redirect", "required", "result", "role", "scanning", "scheme", "scope", "status", "through", "timeout",
    "timestamp", "ttl",
    "type", "uri", "url", "user", "username", "version",
}  # fmt: skip
"""Words after a secret word that make the value a fact about the secret."""

_DIGESTS = {"fingerprint", "id", "md", "sha", "thumbprint"}
"""Words after `key` that name a key without giving it away."""

_OWN_FACTS = {
    "key": _DIGESTS,
    "mfa": {"authenticated", "device", "id", "needed", "present", "serial", "verified"},
    "ticket": {"id", "no", "number", "priority", "subject", "title"},
}
"""Words that make the value a fact after one secret word only: the number of a PIN is the PIN."""

_PATH_WORDS = {
    "apikey", "auth", "authenticate", "authn", "authorization", "authorize", "backchannel", "ciba", "cred", "credential", "dcr",
    "device", "gnap", "introspect", "introspection", "jwt", "login", "logout", "mfa", "oauth", "oidc", "openid", "par",
    "passwordless", "refresh", "reg", "register", "registration", "revocation", "revoke", "saml", "session", "signin", "signup",
    "sso", "sts", "userinfo",
}  # fmt: skip
_PATH_ENDS = ("token", "devicecode", "deviceauthorization", "registration")
"""Words, and ends of words, in the paths of authorization servers (RFC 6749, 7009, 7591, 7662, 8628, 9126)."""

_SHORTEST_CREDENTIAL = 6
_TOKEN68 = {ord(letter): None for letter in "-._~+/"}
"""Characters of a credential besides letters, digits and `=` at its end (RFC 9110 §11.2)."""

LOOKS = ("--key", "--pin", "--session")
"""Options that have a secret for their value if that looks like one: `@smithery/cli run … --key UUID`, `--pin 1234`."""

_OPTIONS = {
    "2fa", "2fa-code", "auth", "basic-auth", "bindpw", "csrf", "hmac", "keypass", "mfa-code", "mnemonic", "otp", "otp-code", "pass",
    "passcode", "passin", "passout", "pat", "pin-code", "pincode", "pw", "pwd", "seed-phrase", "storepass", "totp", "totp-code",
}  # fmt: skip
"""Options with a secret whose names mean too little in other places."""

_SHORTEST_PIN = 4
_SHORTEST_MIXED = 12
_ID_BYTES = 32
_SHORTEST_RANDOM = 20
_LETTERS_A_TURN = 8
"""In random text one of so many letters follows a digit, or comes before one; in names fewer do."""

_MARKS = bytes(48 if 48 <= letter <= 57 else 97 if bytes((letter,)).isalpha() else 32 for letter in range(256))
"""A sign for digits, one for letters, and one for all else."""


def kind_of(name: str) -> Kind | None:
    """Return the kind of secret that an option, variable or member called `name` carries; None if it carries none."""
    words = words_of(name)
    if len(words) > 1 and words[-1] in _SPELLINGS:
        words.pop()
    if not words or _is_about_secret(words):
        return None
    squashed = "".join(words).removesuffix("base64").rstrip("0123456789")
    for spelling in _SPELLINGS:
        squashed = squashed.removesuffix(spelling)
    if squashed.endswith(_SESSION_ENDS):
        return "session"
    if squashed.endswith("authorization") or squashed in ("auth", "xauth"):
        return "authorization"
    if squashed.endswith("cookie"):
        return "cookie"
    if squashed in ("dpop", "dpopnonce"):
        return "dpop"
    last = words[-2] if len(words) > 1 and words[-1] in _AGAIN else words[-1].rstrip("0123456789")
    if len(words) > 1 and last in _LAST_WORDS and not name.endswith(".key"):
        return "key"
    return "key" if squashed.endswith(_SECRET_ENDS) or last.endswith(_SECRET_ENDS) or words[-2:] == ["seed", "phrase"] else None


def _is_about_secret(words: list[str]) -> bool:
    """Return whether the words of a name mean what is public beside secrets: `nextPageToken`, `primaryKey`, `hasPassword`."""
    before = words[-2] if len(words) > 1 else ""
    return (
        (words[-1] == "token" and before in _PUBLIC_TOKENS)
        or (words[-1] in ("key", "keys") and before in _PUBLIC_KEYS)
        or (len(words) > 1 and words[0] in _QUESTIONS)
    )


def kind_of_field(name: str) -> Kind | None:
    """Return the same for an HTTP header field, by the words of its name: `X-Secret-Id`, `X-Api-Keys`, `X-Registry-Auth`."""
    if is_public_field(name):
        return "session" if name.lower() == "mcp-session-id" else None
    words = _words(name)
    bare = [_bare(word) for word in words]
    kinds = [_kind_of_word(word) for word in bare]
    if name.lower() in _SECRET_FIELDS or _is_code(words):
        return "key"
    if not any(kinds):
        return kind_of(name)  # by its capitals: `X-MapKey`
    last = max(at for at, kind in enumerate(kinds) if kind is not None)
    word, before = bare[last], words[last - 1] if last else ""
    facts = _FACTS | _OWN_FACTS.get(word, set())
    is_public = (
        not facts.isdisjoint((*words[last + 1 :], *bare[last + 1 :]))
        or (words[last] == "tokens" and not _COUNTS.isdisjoint(words))
        or (word == "key" and before in _PUBLIC_KEYS)
        or (word == "ticket" and before in _DESKS)
    )
    return None if is_public else kinds[last]


def is_public_field(name: str) -> bool:
    """Return whether a header field carries no secret, whatever its name and its value look like; or the session id of MCP."""
    return name.lower().startswith(_PUBLIC_BEGINNINGS) or name.lower() in _PUBLIC_FIELDS


def is_credential(value: str) -> bool:
    """Return whether a value is secret under any name: by a scheme with one word after it, or as a well-known service's token."""
    value = value.strip("'\"").replace("\t", " ")
    scheme, blank, secret = value.partition(" ")
    if blank and scheme.rstrip(":").lower() in SCHEMES:
        secret = secret.strip()
        is_word = secret.isalpha() and len(secret) < SECRET_PREFIX_BYTES and (secret.islower() or secret.istitle())
        bare = secret.rstrip("=").translate(_TOKEN68)
        return scheme.upper() == "AWS4-HMAC-SHA256" or (
            len(secret) >= _SHORTEST_CREDENTIAL and bare.isalnum() and bare.isascii() and not is_word
        )
    # base64 of JSON begins as a JWT, which has dots (RFC 7519 §3)
    return len(value) >= SECRET_PREFIX_BYTES and value.startswith(SECRET_PREFIXES) and ("." in value or value[:3] != "eyJ")


def kind_of_parameter(name: str) -> Kind | None:
    """Return the same for a parameter of a URL or a form, where shorter names say enough."""
    squashed = name.replace("_", "").replace("-", "").lower()
    return kind_of_option(name) or _PARAMETERS.get(squashed) or ("token" if _is_member(squashed) else None)


def kind_of_option(name: str) -> Kind | None:
    """Return the same for an option on a command line, or a variable; `--no-token` and `--token-file` carry none."""
    if name.startswith(("no-", "no_", "disable-", "without-")):
        return None
    if name.lower().replace("_", "-") in _OPTIONS or name.lower().endswith("bearer"):
        return "key"
    return kind_of(name) or kind_of_plural(name)


def kind_of_plural(name: str) -> Kind | None:
    """Return the same for a name of several secrets, as `API_KEYS` and `passwords`; not of counted tokens, as `max_tokens`."""
    is_count = name.lower().endswith("tokens") and words_of(name)[-2:-1] not in _OWNED
    return kind_of(name[:-1]) if name.lower().endswith("s") and not is_count else None


def looks_secret(option: str, value: str) -> bool:
    """Return whether the value of an option, which may be something else too, looks like a secret.

    `--key` may name a file, `--pin` a version or a pin of a chip, `--session` a session of a terminal.
    """
    if option not in LOOKS:
        return False
    if is_identifier(value.encode("utf-8", "surrogatepass")):
        return True
    if option == "--pin" and value.isdigit():
        return len(value) >= _SHORTEST_PIN
    bare = value.rstrip("=").translate(_TOKEN68)
    is_mixed = bare.isalnum() and bare.isascii() and not bare.isalpha() and not bare.islower() and not bare.isupper()
    return option != "--key" and is_mixed and "." not in value and len(bare) >= _SHORTEST_MIXED


def is_oauth_member(name: str) -> bool:
    """Return whether this is a secret member of OAuth's JSON bodies, in any spelling: `access_token`, `accessToken`."""
    return kind_of(name) is not None or _is_member(name.replace("_", "").replace("-", "").lower())


def is_oauth_path(path: str) -> bool:
    """Return whether an authorization server's endpoint may have this path, by the words of its segments: `/api/oauth.v2.access`."""
    words = [*_words(path), *("".join(_words(segment)) for segment in path.split("/"))]  # `sign_in` is `signin`
    return any(word in _PATH_WORDS or word.endswith(_PATH_ENDS) for word in (*words, *map(_bare, words)))


def is_identifier(segment: bytes) -> bool:
    """Return whether a path's segment looks like a key or a session id: a UUID, or at least 32 letters and digits.

    Services put them there (`/mcp/s/KEY/sse`, `/messages/UUID`), and whoever knows the address has access.
    Base64 may have its signs and its padding. Letters of one case are random if digits are all over them.
    """
    bare = segment.rstrip(b"=").translate(None, b"-_+")
    if len(bare) < _SHORTEST_RANDOM or not bare.isalnum():
        return False
    is_long = len(bare) >= _ID_BYTES
    if is_long and not bare.lower().strip(b"0123456789abcdef"):
        return True
    if not any(48 <= letter <= 57 for letter in bare):
        return False
    is_mixed = not bare.islower() and not bare.isupper()
    marks = segment.translate(_MARKS)
    is_random = (marks.count(b"a0") + marks.count(b"0a")) * _LETTERS_A_TURN >= len(bare)
    return (is_long and is_mixed) or ((is_long or is_mixed) and is_random)


def _is_member(squashed: str) -> bool:
    return squashed in _MEMBERS or squashed.removesuffix("s").endswith(_MEMBER_ENDS)


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()


def words_of(name: str) -> list[str]:
    """Return the words of a name, in small letters: `openAIKey`, `db-password`, `SMTP_PASS`.

    >>> words_of("openAIKey")
    ['open', 'ai', 'key']
    """
    following = f"{name[1:]} "
    ends = (
        (letter.islower() and next_letter.isupper())
        or (letter.isupper() and next_letter.isupper() and after.islower() and after != "s")
        for letter, next_letter, after in zip(name, following, f"{following[1:]} ", strict=False)
    )
    return _words("".join(letter + " " * end for letter, end in zip(name, ends, strict=False)))


def _bare(word: str) -> str:
    """Return a word without a number at its end, in the singular."""
    word = word.rstrip("0123456789")
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _is_code(words: list[str]) -> bool:
    """Return whether a field's name ends in a code that lets in: `X-Verification-Code`, `X-2FA-Code`."""
    return words[-1:] == ["code"] and not _CODE_WORDS.isdisjoint(words[:-1])


def _kind_of_word(word: str) -> Kind | None:
    if word in _FIELD_WORDS:
        return _FIELD_WORDS[word]
    if word.endswith(_SESSION_ENDS):
        return "session"
    if word.endswith(("authorization", "cookie")):
        return "cookie" if word.endswith("cookie") else "authorization"
    return "key" if word.endswith(_SECRET_ENDS) else None
