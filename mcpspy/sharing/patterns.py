"""Patterns of secrets in texts: tokens of well-known services, keys, credentials in URLs, values after names. Texts in, spans out.

Texts are taken as they are meant, without the escapes of their spelling. Names of members, options and variables can say that
their value is a secret. Work is linear in the bytes.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from ..capture.redaction.names import (
    SCHEMES,
    TOKEN_PREFIXES,
    TOKENS,
    is_oauth_member,
    kind_of,
    kind_of_field,
    kind_of_option,
    kind_of_parameter,
    kind_of_plural,
)
from ..lazy_pattern import lazy_pattern
from ..records import PSEUDONYM_PATTERN
from .encodings import JSON, PERCENT

PSEUDONYM: Final = lazy_pattern(PSEUDONYM_PATTERN.encode())
"""A pseudonym that replaced a secret earlier."""

_plain = lazy_pattern(rb"[\w.,;!()'/ \x80-\xff-]{0,12}|(?:[A-Za-z_\x80-\xff-]{1,15}[.,;!()' ]+)*[A-Za-z_\x80-\xff-]{0,15}")

_MEMBERS: Final = {"auth", "bearer", "requeststate"}
"""Names that mean a secret as a member of JSON, besides those of header fields. Only its server can read `requestState`."""

_words = lazy_pattern(rb"[^\W_]+")
_INPUTS: Final = {b"box", b"edit", b"element", b"field", b"input", b"textbox"}
"""Words after the name of a field of a form."""

_PRESSED: Final = {b"button", b"checkbox", b"forgot", b"link", b"show", b"toggle"}
"""Words that make a field something to press."""

_MAX_NAME_BYTES: Final = 128


def is_plain(data: bytes) -> bool:
    """Return whether a text is so plain that no pattern matches in it: a short word, or words without digits and signs.

    Most texts in JSON are, and this takes a tenth of the time of all patterns.
    """
    return _plain.fullmatch(data) is not None and b"-p" not in data and b"--" not in data and b" -" not in data


class LongWords:
    """A search for words of at least `shortest` of these letters; long words are few, and this takes a fifth of a pattern's time."""

    __slots__ = ("_long", "_marks")

    def __init__(self, letters: bytes, shortest: int) -> None:
        self._long = b"a" * shortest
        self._marks = bytes(97 if letter in letters else 32 for letter in range(256))

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where each of them begins and ends."""
        marked = data.translate(self._marks)
        at = marked.find(self._long)
        while at >= 0:
            end = marked.find(b" ", at)
            end = len(data) if end < 0 else end
            yield at, end
            at = marked.find(self._long, end)


class SecretSpan(NamedTuple):
    """A secret: its offsets, its kind, and its value, which is the same however it is spelled."""

    start: int
    end: int
    kind: str
    value: bytes


LETTERS_AND_DIGITS: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# --- Tokens ---

_TOKEN_PATTERNS: Final = (f"(?:{'|'.join(map(re.escape, prefixes.split()))}){rest}" for prefixes, rest in TOKENS)
_tokens = lazy_pattern(f"(?<![A-Za-z0-9])(?:{'|'.join(_TOKEN_PATTERNS)})".encode())
_private_keys = lazy_pattern(
    rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?![ \t]+[a-z]).*?"
    rb"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)

_bearers = lazy_pattern(rb"(?i:\bbearer|\bbasic)\s+(?!HTTP/)([A-Za-z0-9._~+/-]{8,}={0,2})")
KEY_SIGN: Final = b"PRIVATE KEY"
BEGINNINGS: Final = tuple(prefix.encode() for prefix in TOKEN_PREFIXES)
"""A text with a token has one of these: searching for each takes a tenth of the time of trying all patterns at each letter."""


def token_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield tokens of well-known services, JWTs, private keys, and credentials after `Bearer`."""
    if not has_digit(data) and KEY_SIGN not in data:
        return
    for beginning in BEGINNINGS:
        if beginning in data:
            for match in _tokens.finditer(data):
                if has_digit(match[0]):
                    yield SecretSpan(match.start(), match.end(), "token", match[0])
            break
    if KEY_SIGN in data:
        for match in _private_keys.finditer(data):
            yield SecretSpan(match.start(), match.end(), "key", match[0])
    for match in _bearers.finditer(data):
        if has_digit(match[1]) and not PSEUDONYM.fullmatch(match[1]):
            yield SecretSpan(match.start(1), match.end(1), "authorization", match[1])


def token_at(data: bytes) -> bytes | None:
    """Return the token that a text begins with; None if it begins with none."""
    match = _tokens.match(data)
    return match[0] if match is not None and has_digit(match[0]) else None


def has_digit(value: bytes) -> bool:
    """Return whether a value has a digit, as nearly all random values and hardly any words have."""
    return _digit.search(value) is not None


_digit = lazy_pattern(rb"[0-9]")

# --- Names before values ---

HINTS: Final = (
    b"token", b"key", b"pass", b"secret", b"auth", b"cookie", b"session", b"credential", b"bearer", b"otp", b"jwt",
    b"signature", b"assertion", b"dpop", b"requeststate", b"pw", b"csrf", b"hmac", b"--pat", b"-pin", b"psk",
)  # fmt: skip


def may_assign(data: bytes) -> bool:
    """Return whether a text may have the name of a secret before a value, apart from names that the user gives."""
    if b"=" not in data and b":" not in data and b"--" not in data:
        return False
    return has_hint(data.lower())


def has_hint(small: bytes) -> bool:
    """Return whether a text in small letters may have the name of a secret."""
    for hint in HINTS:  # noqa: SIM110 - `any` takes three times as long, for each string there is
        if hint in small:
            return True
    return False


_assigned = lazy_pattern(
    rb"""(?P<name>(?<![\w.%?&-])-{0,2}[A-Za-z_][\w.-]{1,127})(?P<quote>["']?\*{0,2})
    (?P<sign>[ \t]*(?:\.{3,}[ \t]*)?(?:=|:=?|=>)[ \t]*(?:(?<=:)\r?\n[ \t]++|(?<=:\ )[|>][+-]?\r?\n[ \t]++)?)
    (?:\*{1,2}[ \t]+)?(?:![\w/]+[ \t]+)?+
    (?:"(?P<double>(?:[^"\\\n]|\\.)*+)|'(?P<single>[^'\n]*+)|`(?P<tick>[^`\n]*+)
    |\xe2\x80\x9c(?P<curly>[^\n\xe2]*+)
    |(?P<scheme>[A-Za-z][\w-]*+[ \t]+)?(?P<bare>[^\s"',;&<>()\[\]{}|\\][^\s"',;&<>()\[\]{}|]*+))""",
    re.VERBOSE,
)

_options = lazy_pattern(
    rb"(?<![\w-])(--[A-Za-z][\w-]*+)(?:[\"'],[ \t]*|[ \t]+)(?:\"([^\"]+)\"|'([^']+)'|([^\s\"'-][^\s\"'`]*+))"
)

_line = lazy_pattern(rb"(?:[^\r\n]|\r?\n[ \t])*+")
_pairs = lazy_pattern(rb"[^=;\s\"']{1,256}+=([^;\"']*[^;\s\"'])")
_members = lazy_pattern(rb"[0-9]+ (?:item|member)s?")
"""A list or an object, as our own views sum it up."""

_FOLDERS: Final = (b"OLDPWD", b"PWD")
"""Variables of a shell that hold folders."""


class SecretNames:
    """Secret names, and `more` that the user gives, in any spelling of case, `_` and `-`."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = {_squashed(name) for name in more}
        self.member = lru_cache(10_000)(self._member)
        """Return the kind of secret that a member of this name holds; None if it holds none."""
        self.assigned = lru_cache(10_000)(self._assigned)
        """Return the same for a name before `=` or `:` in a text: of an option, a variable or a field."""
        self.parameter = lru_cache(10_000)(self._parameter)
        """Return the same for a parameter of a URL or a form."""

        self.label = lru_cache(10_000)(self._label)
        """Return the same for a text that names what is beside it: a head of a column, a field of a form, another member."""
        self.is_plural = lru_cache(10_000)(self._is_plural)
        """Return whether a list or an object of this name holds several secrets."""

    @property
    def has_more(self) -> bool:
        """True if the user gave names."""
        return bool(self._more)

    def is_wanted(self, name: bytes) -> bool:
        """Return whether the user gave this name: then values that are no strings are secrets too."""
        return bool(self._more) and _squashed(_text(name)) in self._more

    def _member(self, name: bytes) -> str | None:
        text = _text(name)
        squashed = _squashed(text)
        if squashed in self._more or squashed in _MEMBERS:
            return "key"
        return _kind_of(text) or ("token" if "-" not in text and is_oauth_member(text) else None)

    def _assigned(self, name: bytes) -> str | None:
        text = _text(name)
        if _squashed(text) in self._more:
            return "key"
        return kind_of_option(text.lstrip("-")) if text.startswith("-") or not _is_field(text) else kind_of_field(text)

    def _label(self, text: bytes) -> str | None:
        kind = self.assigned(text)
        words = _words.findall(text) if kind is None else []
        while words and words[-1].lower() in _INPUTS:
            words.pop()
        if not words or any(word.lower() in _PRESSED for word in words):
            return kind
        name = b"_".join(words)
        is_code = len(words) > 1 and is_oauth_member(_text(name))  # "One-time code"
        return "token" if is_code or name.lower() == b"concealed" else self.assigned(name)

    def _is_plural(self, name: bytes) -> bool:
        text = _text(name)
        return kind_of_plural(text) is not None or _squashed(text) in ("tokens", "credentials")

    def _parameter(self, name: bytes) -> str | None:
        text = _text(PERCENT.read(name))
        return "key" if _squashed(text) in self._more else kind_of_parameter(text)


def assigned_spans(data: bytes, names: SecretNames) -> Iterator[SecretSpan]:
    """Yield values after `NAME=`, `name: `, `"name": "`, `--name=`, `--name `, `'--name', '` if the name says that they are secret.

    After a colon or blanks, a value without quotes must not look like a word: that may be the text of a description.
    Of a line of cookies all values are yielded, of a line that sets a cookie only the first.
    """
    at = cookies_end = line_end = 0
    while match := _assigned.search(data, at):
        at = match.end("sign")
        kind = names.assigned(match["name"])
        if kind is None or data.endswith(b"://", 0, match.start()):  # the user before a host
            continue
        if kind == "cookie":
            if at >= cookies_end:  # else they are among those of an earlier name
                if at > line_end and (line := _line.match(data, at)):
                    line_end = line.end()
                cookies_end = line_end
                for pair in _pairs.finditer(data, at, line_end):
                    yield SecretSpan(*pair.span(1), "cookie", pair[1])
                    if match["name"].lower().startswith((b"set", b"document.")):  # what follows are attributes
                        cookies_end = pair.end()
                        break
            continue
        span = _value_span(data, match, kind)
        if span is not None:
            value = data[slice(*span)]
            yield SecretSpan(*span, kind, JSON.read(value) if match["double"] is not None else value)
            at = span[1]
    if b"--" in data:
        for option in _options.finditer(data):
            kind = names.assigned(option[1])
            if kind is not None:
                which = option.lastindex or 0
                yield SecretSpan(*option.span(which), kind, option[which])


def _value_span(data: bytes, match: re.Match[bytes], kind: str) -> tuple[int, int] | None:
    """Return the span of the value without its quotes and its scheme; None if there is no value."""
    for group in ("double", "single", "tick", "curly"):
        if match[group] is not None:
            start, end = match.span(group)
            is_vague = group == "tick" or (group == "curly" and match["name"] in (b"signature", b"token"))
            if (is_vague and (b" " in match[group] or not looks_random(match[group]))) or _members.fullmatch(match[group]):
                return None
            return None if match[group] == b")" else _without_scheme(data, start, end)  # `input("Password: ")`
    start, end = match.span("bare")
    scheme = match["scheme"]
    if scheme is not None and kind == "authorization" and end - start >= _ENOUGH and looks_random(data[start:end]):
        start = match.end("scheme") if is_scheme(scheme.strip()) else match.start("scheme")
    elif scheme is not None and not is_scheme(scheme.strip()):
        start, end = match.start("scheme"), match.start("scheme") + len(scheme.rstrip())
    value = data[start:end].rstrip(b".:!?")
    if b":\n" in match["sign"].replace(b"\r", b"").replace(b" ", b"") and (
        data[start:end].endswith(b":") or b"-" not in match["name"]
    ):
        return None  # the next line of a list of settings, and not of a header field
    is_tight = match["sign"] in (b"=", b":=")
    name = match["name"]
    if value == name or not (is_tight or looks_random(value)):
        return None
    if name in _FOLDERS and value.startswith((b"/", b"~")):
        return None
    return start, start + len(value)


def _without_scheme(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    blank = data.find(b" ", start, end)
    if blank > 0 and is_scheme(data[start:blank]):
        start = blank + 1
    return (start, end) if start < end else None


_ENOUGH: Final = 20


def looks_random(value: bytes) -> bool:
    """Return whether a value is more likely a secret than a word or a count: by a digit, a sign, or its length."""
    if value.isdigit() and len(value) < len("1234"):
        return False
    is_long = len(value) >= _ENOUGH and _path.fullmatch(value) is None
    return has_digit(value) or is_long or any(letter in b"!#$%^*+@~" for letter in value)


_path = lazy_pattern(rb"[A-Za-z_]+(?:\.[A-Za-z_]+)+")
"""The name of something in source code."""


# --- URLs ---

_parameter = lazy_pattern(rb"(?:[?&]|(?<=\A))([\w.%\[\]-]{1,128})=")
_parameter_value = lazy_pattern(rb"(?:(?!\xe2\x80\x9d)[^&#\s\"'<>\\`{}])*+")
_users = lazy_pattern(rb"://([^/\s\"'<>@:]*:)?([^/\s\"'<>@]+)@(?=[^\s@])")
_forms = lazy_pattern(rb"[\w.%\[\]-]+=[^\s&=]*(?:&[\w.%\[\]-]+=[^\s&]*)*\s*")


def url_spans(data: bytes, names: SecretNames) -> Iterator[SecretSpan]:
    """Yield values of secret parameters of URLs and forms, and passwords before a host; the values without percent signs."""
    if b"=" in data and (b"?" in data or b"&" in data or _forms.fullmatch(data)):
        at = 0
        while parameter := _parameter.search(data, at):
            at = parameter.end()
            kind = names.parameter(parameter[1])
            is_folder = parameter[1] in _FOLDERS and data.startswith(b"/", at)
            if kind is not None and not is_folder and (value := _parameter_value.match(data, at)) and value[0]:
                at = value.end()
                yield SecretSpan(*value.span(), kind, PERCENT.read(value[0].replace(b"+", b" ")))
    if b"://" in data and b"@" in data:
        for match in _users.finditer(data):
            if match[1] is not None or looks_random(match[2]):  # else it is the name of a user
                yield SecretSpan(*match.span(2), "userinfo", PERCENT.read(match[2]))


# --- What is personal ---

_mails = lazy_pattern(rb"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_homes = lazy_pattern(rb"(?:/home/|/Users/|\b[A-Za-z]:[\\/]+(?i:users)[\\/]+)([^/\\\s\"':;,<>()|]+)")
_NOBODY: Final = {b"Public", b"Shared", b"Default", b"runner", b"user", b"username", b"you"}


def personal_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield e-mail addresses, and the names of users in paths of home folders."""
    if b"@" in data:
        yield from (SecretSpan(match.start(), match.end(), "personal", match[0]) for match in _mails.finditer(data))
    for match in _homes.finditer(data):
        if match[1] not in _NOBODY:
            yield SecretSpan(match.start(1), match.end(1), "personal", match[1])


def is_scheme(word: bytes) -> bool:
    """Return whether a word comes before a credential without being part of it: `Bearer`."""
    return word.lower().decode("latin-1") in SCHEMES


def _is_field(name: str) -> bool:
    """Return whether a name before a value is more likely that of a header field than of anything else."""
    return "-" in name and (name[:2] in ("X-", "x-") or kind_of(name) is not None)


def _kind_of(name: str) -> str | None:
    return kind_of_field(name) if _is_field(name) else kind_of(name)


def _squashed(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _text(name: bytes) -> str:
    return name[:_MAX_NAME_BYTES].decode("utf-8", "replace")
