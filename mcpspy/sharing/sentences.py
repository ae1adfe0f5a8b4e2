"""Secrets that the words around them tell, without the name of a member or a variable: texts in, spans out.

Your code is 482913                  codes and PINs, one or a list
Passphrase: blue onion drives harps  words
user / x, changed from x to y        sentences
Kennwort: x                          other languages
echo x | passwd --stdin              commands
connect(url, "user", "x")            source code

A value has to look like what the words promise. Work is linear in the bytes.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ..capture.redaction.names import is_identifier
from ..lazy_pattern import lazy_pattern
from .names import SecretNames
from .patterns import SecretSpan, has_digit, looks_random

Layout: TypeAlias = tuple[tuple[bytes, ...], re.Pattern[bytes], Callable[[bytes], bool]]
"""Signs or words of which a text has one, a pattern of the secret, and a test of it."""

letters = lazy_pattern(rb"[A-Za-z]")
_public = lazy_pattern(rb"[0-9]{4}-[0-9]{2}|[a-z]+://|[./~]|.*[(){}\[\]<>]|[\w.-]+\.[a-z]{2,4}$")


def is_mixed(value: bytes) -> bool:
    """Return whether a value in a sentence is a secret: letters and digits, and neither a date, an address nor a file."""
    return len(value) >= len("hunter22") and has_digit(value) and letters.search(value) is not None and not _public.match(value)


def is_one_word(value: bytes) -> bool:
    """Return whether a value is one word that looks random."""
    return looks_random(value) and b" " not in value


def _is_code(value: bytes) -> bool:
    return value.isdigit() or is_mixed(value)


def _is_card(value: bytes) -> bool:
    """Check the last digit of the number of a card (ISO/IEC 7812-1)."""
    digits = [letter - 48 for letter in reversed(value) if 48 <= letter <= 57]
    return sum(digit if at % 2 == 0 else digit * 2 - 9 * (digit > 4) for at, digit in enumerate(digits)) % 10 == 0


def layout(signs: bytes | tuple[bytes, ...], pattern: bytes, is_meant: Callable[[bytes], bool] = has_digit) -> Layout:
    """Return a layout whose pattern is compiled when a text has a sign of it."""
    return (signs,) if isinstance(signs, bytes) else signs, lazy_pattern(pattern), is_meant


_MIXED: Final = rb"(?P<value>(?=\S{0,64}[0-9])(?=\S{0,64}[a-z])[^\s`\"'|,;]{6,512})"
_WORD: Final = rb"(?P<value>[^\s`\"'|,;]{3,512})"
_QUOTED: Final = rb"[\"'](?P<value>[^\"'\s]{3,512})[\"']"
_DIGITS: Final = rb"(?P<value>[0-9]{4,8}#?|[0-9]{2,4}(?:[ -][0-9]{2,4}){1,3})(?![\w-]|\.[0-9])"
_BEFORE_KEY: Final = rb"(?:access|api|auth|bearer|client|personal|private|secret|security)[ _-]"
_END: Final = rb"(?=[\"'`.]{0,2}[ \t\r]*(?:$|[\"\\]))"
_CODE: Final = (
    rb"(?:(?:2fa|access|auth(?:entication)?|backup|confirmation|door|gate|log-?in|mfa|one[ -]time|otp|security|sign-?in|sms|unlock|"
    rb"verification) (?:pass)?code|one[ -]time (?:pass(?:code|word)|pin)|combination|otp|passcode|pin(?: code)?)"
)
_SECRETS: Final = (b"key", b"passcode", b"passphrase", b"password", b"pw", b"pwd", b"secret", b"token")
_SECRET: Final = rb"(?:api key|pass(?:code|phrase|word)|pw|pwd|secret|token)"
_IS: Final = "ist|lautet|est|es|è|é|er|je|jest|är|это|은|는".encode()


def _foreign(*words: str) -> Layout:
    return layout(
        tuple(word.rpartition(" ")[2].encode() for word in words),
        rb"(?<![\w-])(?:%b)(?: d'ordine)?(?:[ \t]*(?:[:=]|\xef\xbc\x9a)[ \t]*|[ \t]+(?:%b)[ \t]+|(?:\xe6\x98\xaf|\xe3\x81\xaf)[ \t]*"
        rb"|[ \t]+(?=[^\s\\]{0,64}[0-9]))[\"'`]?(?P<value>[^\s`\"'|,;]{4,512})" % ("|".join(words).encode(), _IS),
        is_one_word,
    )


_PHRASES: Final[tuple[Layout, ...]] = (
    # codes
    layout(
        (b"code", b"combination", b"otp", b"passcode", b"pin"),
        rb"(?<![\w-])%b(?: (?:for|of|to) [^\n:=.0-9]{0,40})?(?: is|:|=)[ \t:\"'`]{1,4}%b" % (_CODE, _DIGITS),
    ),
    layout((b"code", b"passcode", b"pin"), rb"\b(?:enter|use|with) (?:the |this )?(?:code|passcode|pin)[: ]{1,2}%b" % _DIGITS),
    layout(
        (b"code", b"pin", *_SECRETS),
        rb"(?<![^\s\"])(?P<value>[^\s`\"',;|]{4,512}) is (?:my|our|the|your) (?:[\w'-]{1,20} ){0,4}(?:code|pin|%b)"
        rb"(?= for | of | to |[.,;:!)\"\s]|\Z)" % _SECRET,
        _is_code,
    ),
    layout((b"cvc", b"cvc2", b"cvv", b"cvv2"), rb"\bcv[cv]2?(?: is|:|=)?[ \t]{1,3}(?P<value>[0-9]{3,4})(?![\w-])"),
    layout((b"card", b"cards"), rb"(?<![\w-])(?P<value>[3-6][0-9]{3}([ -])[0-9]{4}\2[0-9]{4}\2[0-9]{4})(?![\w-])", _is_card),
    # words
    layout(
        (b"mnemonic", b"passphrase", b"phrase", b"words"),
        rb"(?m)\b(?:pass ?phrase|(?:mnemonic|recovery|secret|seed)[ _-](?:phrase|words)|mnemonic)(?: is)?[ \t]*[:=]?[ \t]*"
        rb"(?:(?<=[:=][ \t])|(?<=[\"'`]))?[\"'`]?(?![^\n\"]*\b(?:a|for|is|must|of|should|that|the|to|used)\b)"
        rb"(?P<value>[a-z]{3,12}(?: [a-z]{3,12}){3,23})" + _END,
        bool,
    ),
    layout(
        (b"2fa", b"authenticator", b"otp", b"secret", b"setup", b"totp"),
        rb"\b(?:2fa|authenticator|otp|secret|setup|totp)[ -](?:key|secret|seed)[ \t:=]{1,4}"
        rb"(?P<value>[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})",
    ),
    # sentences
    layout(
        (b"cred", b"credenciales", b"credential", b"credentials", b"creds", b"identifiants", b"log", b"login", b"zugangsdaten"),
        rb"\b(?:cred(?:ential|enciale)?s?|identifiants|log ?in|zugangsdaten)\b[^\n:=/]{0,30}?(?::|=| as| with)[ \t]{1,3}"
        rb"[\w.@+-]{1,64}(?:[ \t]{0,2}/[ \t]{0,2}|:)%b" % _MIXED,
        is_mixed,
    ),
    layout(
        _SECRETS,
        rb"\b(?:chang|reset|rotat|set|updat)\w{0,6} [^\n:=]{0,40}?\b%b\b[^\n:=]{0,40}? "
        rb"(?:from [`\"']?(?P<old>[^\s`\"']{6,512})[`\"']? )?to [`\"']?%b" % (_SECRET, _MIXED),
        is_mixed,
    ),
    layout(
        (*_SECRETS, *(word + b"s" for word in _SECRETS)),
        rb"(?<![\w-])(?P<name>(?:%b){0,3}(?:key|token|secret|pass(?:word|phrase|code))s?)(?![\w-])"
        rb"(?: [^\n\"'`:.=|]{0,40}?)??(?: is|:)[ \t:]{1,9}[`\"']?(?P<value>[^\s`\"'|,;]{8,512})" % _BEFORE_KEY,
        is_mixed,
    ),
    layout(b"key", rb"(?<![\w-])(?P<name>(?:%b){1,3}key) (?P<value>[\w+/=-]{32,512})" % _BEFORE_KEY, is_mixed),
    layout(
        (b"password", b"pw", b"pwd"),
        rb"\b(?:password|pw|pwd) (?:[\w'@.-]{1,30} ){0,6}?(?:[\w'@.-]{1,30}:|is)[ \t]{1,3}[`\"']?%b" % _MIXED,
        is_mixed,
    ),
    layout(
        (b"key", b"token"),
        rb"(?<![\w-])(?:(?:access|api|auth|bearer|secret)[ _-](?:key|token)|"
        rb"(?<!next )(?<!page )(?<!sync )(?<!cursor )(?<!progress )(?<!continuation )token)[ \t]+[`\"']?(?P<value>[\w+/=.-]{20,512})",
        is_identifier,
    ),
    layout(b"answer", rb"\b(?:secret|security) answer\)?(?: is|:)[ \t]{1,3}[\"']?%b" % _WORD, bool),
    _foreign("clave", "heslo", "kennwort", "mot de passe", "parola", "passwort", "senha", "wachtwoord"),
    # commands and protocols
    layout(
        b"echo",
        rb"\becho[ \t]+(?:-n[ \t]+)?[\"']?(?:[a-z_][\w-]{0,32}:)?(?P<value>[^\s\"'|:$]{4,512})[\"']?[ \t]*\|[^|\n]{0,200}"
        rb"(?:--(?:password-)?stdin|--with-token|\bchpasswd\b)",
        bool,
    ),
    layout((b"stdin", b"token"), rb"--(?:password-stdin|with-token)[ \t]*<<<[ \t]*[\"']?%b" % _WORD, bool),
    layout(b"net", rb"\bnet use\b[^\n]{0,200}/user:\S{1,128}[ \t]+(?!/)%b" % _WORD, bool),
    layout((b"requirepass", b"masterauth"), rb"(?:requirepass|masterauth)[ \t]+%b" % _WORD, bool),
    layout(b"auth", rb"(?m)\bauth[ \t]+(?:(?:plain|login|default)[ \t]+)?%b" % _MIXED + _END, is_mixed),
    layout((b"sqlplus", b"thin"), rb"(?::thin:|\bsqlplus[ \t]+)[\w.-]{1,64}/(?P<value>[^\s@/\"']{1,512})@", bool),
    layout(
        b"private",
        rb"\bprivate-lines: [0-9]{1,3}\r?\n(?!redacted-)(?P<value>(?:[a-z0-9+/=]{4,128}(?:\r?\n)?){1,200})",
        bool,
    ),
    # source code
    layout(
        (b"auth", b"basicauth", b"connection", b"dbi", b"getconnection", b"networkcredential", b"pdo", b"setbasicauth"),
        rb"(?:\bget_?connection|\bnetwork_?credential|basic_?auth|\bnew pdo|\bdbi->connect|\bauth[ \t]*=)[ \t]*"
        rb"\([^()\n]{0,200}?[\"'][^\"'\n]{0,100}[\"'],[ \t]*%b[ \t]*\)" % _QUOTED,
        bool,
    ),
    layout(b"securestring", rb"\bconvertto-securestring[ \t]+(?:-string[ \t]+)?%b" % _QUOTED, bool),
)


_NOT_ASCII: Final = _foreign(
    *("clé api", "clé d'api", "contraseña", "hasło", "lösenord", "mật khẩu", "şifre", "Şifre", "пароль", "Пароль"),
    *("كلمة المرور", "パスワード", "口令", "密码", "密碼", "비밀번호"),
)
_WORDS: Final = {word for words, _, _ in _PHRASES for word in words}
_SEPARATORS: Final = bytes(letter if letter >= 128 or bytes((letter,)).isalnum() else 32 for letter in range(256))

_code_list = lazy_pattern(
    rb"\b(?:backup|emergency|recovery|rescue|scratch)[ -]codes?\b[^\n:]{0,40}:\s{0,9}"
    rb"(?:(?:[0-9]{1,2}[.)]|[*-])?[ \t]{0,9}[\w-]{6,24}(?:[\s,;]{1,9}|\Z)){1,30}"
)
_listed = lazy_pattern(rb"(?<![\w-])(?=[\w-]{0,24}[0-9])[\w-]{6,24}(?![\w-])")


def sentence_spans(data: bytes, small: bytes, names: SecretNames) -> Iterator[SecretSpan]:
    """Yield the secrets of a text that the words around them tell; `small` is the text in small letters."""
    words = set(small.translate(_SEPARATORS).split())  # to search for each word takes ten times as long
    phrases = [] if _WORDS.isdisjoint(words) else [phrase for phrase in _PHRASES if not words.isdisjoint(phrase[0])]
    if not small.isascii() and any(word in small for word in _NOT_ASCII[0]):
        phrases.append(_NOT_ASCII)
    for _, pattern, is_meant in phrases:
        for match in pattern.finditer(small):
            groups = match.groupdict()
            name = groups.pop("name", None)
            if name is not None and names.label(name) is None:
                continue
            for group in groups:
                value = data[slice(*match.span(group))].rstrip(b".,;:!\r\n")
                if value and is_meant(value):
                    yield SecretSpan(match.start(group), match.start(group) + len(value), "key", value)
    if b"codes" in words:
        for match in _code_list.finditer(small):
            yield from (SecretSpan(*code.span(), "key", code[0]) for code in _listed.finditer(data, *match.span()))
