"""Passwords on command lines: arguments in; out comes where a secret begins, and whether the next argument is one.

["--password", "x"]        an option that announces the next argument
["--key", "Zx81"]          an option that means a secret if its value looks like one
["-u", "user:x"]           a user and a password, of a program that is not in the table
mysql -pSECRET             an option of one letter, and its value without a blank
curl -u user:SECRET        an option of one program, as in `capture.redaction.arguments`
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from ..capture.redaction.arguments import ATTACHED_TO_P, PLACES, PROGRAMS, SETTERS, password_starts
from ..capture.redaction.names import LOOKS, looks_secret
from ..lazy_pattern import lazy_pattern
from .patterns import SecretSpan

ATTACHED: Final = len("-p")
"""A value that is attached to an option of one letter begins here."""

_AROUND: Final = "'\"`;|&)]},"
"""Characters that may follow a password in the text of a shell, or in a list."""

LONGEST_COMMAND: Final = 512
"""The name of the program is sought in so many bytes before the option."""

_programs = lazy_pattern(rb"(?<![\w.-])(?:" + "|".join(ATTACHED_TO_P).encode() + rb")[\w-]*\b")
"""Programs whose `-p` is followed by a password without a blank."""

_commands = lazy_pattern(rb"(?<![\w.-])(?:" + "|".join(map(re.escape, PROGRAMS)).encode() + rb")(?:\.exe)?[\"']*[ \t]")
_option = lazy_pattern(rb" [\"']?-(?:[PUapuw]|sS?u|(?:src|dest)?(?:store|key)pass|-(?:user|proxy-user|session))| /p:")
"""An option that passwords follow in `PROGRAMS`: a fast test."""

_by_looks = lazy_pattern(rb"(?<![\w-])(" + "|".join(LOOKS).encode() + rb")(?:=|[ \t]+)[\"']?([^\s\"',;|&)\]]+)")
_PLACE_SIGNS: Final = (b"login ", b"htpasswd ", b" auth ", b" set ", b"host add ", b"authtoken ", b"setapikey ")
_placed = lazy_pattern(
    rb"(?<![\w.-])(?:"
    + "|".join([*PLACES, *(rf"\w+ {' '.join(words)}" for words in SETTERS if len(words) > 1)]).encode()
    + rb") "
)
"""Commands that take a secret without an option; each has one of the signs, by which nearly all texts are told to have none."""

_shell_words = lazy_pattern(r"[^ \t\r\n]+|\n")
_attached = lazy_pattern(rb"(?<![^\s\"'`,\[(])-p([^\s\"'`,;|&\])]{3,})")
_is_word = lazy_pattern(rb"[a-z][a-z_.-]*|[A-Za-z_.-]+[:=].*")
_is_number = lazy_pattern(rb"[0-9][0-9.,:/a-z-]*")
_is_setting = lazy_pattern(rb"[A-Za-z_.-]{1,20}|[0-9.,]+|.*[/\\].*|.*\.(?:crt|env|gpg|json|key|p12|pem|pub|txt|ya?ml)")
"""The name of a column, a number or a file, which `--key` and `--tokens` may have too."""

_login = lazy_pattern(rb"[^:/\\\s]+:(?![0-9]+$)(?!//)([^\s]+)")
_BY_LOOKS: Final = {b"--key", b"--keys", b"--tokens"}
_LOGINS: Final = {b"-u", b"--user", b"--proxy-user", b"--login"}
OWNERS: Final = {b"chown", b"docker", b"install", b"nerdctl", b"podman", b"rsync", b"setpriv", b"sudo", b"systemd-run"}
"""Programs to which `user:name` is a user and a group."""

_is_mixed = lazy_pattern(rb"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[^=:/\\(){}<>]{6,}")


def announces_secret(argument: bytes, is_secret: Callable[[bytes], bool]) -> bool:
    """Return whether the next argument is a secret: after an option without a value, whose name `is_secret`."""
    return argument.startswith(b"-") and b"=" not in argument and is_secret(argument)


def value_start(option: bytes, value: bytes, program: bytes) -> int:
    """Return where the secret begins in the value of an option that need not have one, by its looks; -1 if it has none.

    >>> value_start(b"--user", b"admin:hunter2", b"serve")
    6
    """
    if option in _BY_LOOKS:
        return -1 if _is_setting.fullmatch(value) else 0
    if looks_secret(option.decode("latin-1"), value.decode("utf-8", "replace")):
        return 0
    if option in _LOGINS and program.rpartition(b"/")[2] not in OWNERS:
        login = _login.fullmatch(value)
        return -1 if login is None or value.startswith(login[1] + b":") else login.start(1)
    return -1


def secret_start(argument: bytes, before: bytes, is_secret: Callable[[bytes], bool]) -> int:
    """Return where the secret begins in an argument of a command that was run: `--password=x`, `-pSECRET`; -1 if it has none.

    After `-p`, all that is neither a word, a number nor a setting is taken for a password.
    """
    name, equals, _ = argument.partition(b"=")
    if equals and name.startswith(b"-"):
        return len(name) + 1 if is_secret(name) else -1
    value = argument[ATTACHED:]
    is_password = argument.startswith(b"-p") and value and not _is_word.fullmatch(value) and not _is_number.fullmatch(value)
    return ATTACHED if is_password or is_attached_password(argument, before) else -1


def is_attached_password(argument: bytes, before: bytes) -> bool:
    """Return whether an argument is `-pSECRET`: `before` names a program that takes it so, or it looks like a password."""
    value = argument[ATTACHED:]
    if not argument.startswith(b"-p") or not value or b" " in value:
        return False
    if _is_mixed.fullmatch(value):
        return True
    return _programs.search(before[-LONGEST_COMMAND:].rpartition(b"\n")[2]) is not None


def password_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield the passwords that are attached to `-p` in a text, and those in the commands that it has."""
    if b"-p" in data:
        for match in _attached.finditer(data):
            start, end = match.span(1)
            before = data[max(start - LONGEST_COMMAND, 0) : start - ATTACHED]
            if is_attached_password(match[0], before):
                yield SecretSpan(start, end, "key", match[1])
    if b"--" in data:
        for option in _by_looks.finditer(data):
            if looks_secret(option[1].decode("latin-1"), option[2].decode("latin-1")):
                yield SecretSpan(*option.span(2), "key", option[2])
    command = _commands.search(data) if (b" -" in data or b" /p:" in data) and _option.search(data) else None
    for sign in _PLACE_SIGNS:
        if command is None and sign in data:
            command = _placed.search(data)
    if command is not None:
        yield from _command_spans(data, command.start())


def _command_spans(data: bytes, begin: int) -> Iterator[SecretSpan]:
    """Yield the passwords after options that mean one to some programs, in a text with a command from `begin` on."""
    words = list(_shell_words.finditer(data.decode("latin-1"), begin))
    for at, start in password_starts([word[0] for word in words]).items():
        value = words[at][0][start:].strip(_AROUND).encode("latin-1")
        if value:
            first = data.index(value, words[at].start() + start)
            yield SecretSpan(first, first + len(value), "key", value)
