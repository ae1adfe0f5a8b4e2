"""Passwords on command lines: arguments in; out comes where a secret begins, and whether the next argument is one.

["--password", "x"]        an option that announces the next argument
mysql -pSECRET             an option of one letter, and its value without a blank
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from ..capture.redaction.arguments import ATTACHED_TO_P
from .patterns import SecretSpan

ATTACHED: Final = len("-p")
"""A value that is attached to an option of one letter begins here."""

LONGEST_COMMAND: Final = 512
"""The name of the program is sought in so many bytes before the option."""

_programs = re.compile(rb"(?<![\w.-])(?:" + "|".join(ATTACHED_TO_P).encode() + rb")[\w-]*\b").search
"""Programs whose `-p` is followed by a password without a blank."""

_attached = re.compile(rb"(?<![^\s\"'`,\[(])-p([^\s\"'`,;|&\])]{3,})").finditer
_is_word = re.compile(rb"[a-z][a-z_.-]*|[A-Za-z_.-]+[:=].*").fullmatch
_is_number = re.compile(rb"[0-9][0-9.,:/a-z-]*").fullmatch
_is_mixed = re.compile(rb"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[^=:/\\(){}<>]{6,}").fullmatch


def announces_secret(argument: bytes, is_secret: Callable[[bytes], bool]) -> bool:
    """Tell whether the next argument is a secret: after an option without a value, whose name `is_secret`."""
    return argument.startswith(b"-") and b"=" not in argument and is_secret(argument)


def secret_start(argument: bytes, before: bytes, is_secret: Callable[[bytes], bool]) -> int:
    """Return where the secret begins in an argument of a command that was run: `--password=x`, `-pSECRET`; -1 if it has none.

    After `-p`, all that is neither a word, a number nor a setting is taken for a password.
    """
    name, equals, _ = argument.partition(b"=")
    if equals and name.startswith(b"-"):
        return len(name) + 1 if is_secret(name) else -1
    value = argument[ATTACHED:]
    is_password = argument.startswith(b"-p") and value and not _is_word(value) and not _is_number(value)
    return ATTACHED if is_password or is_attached_password(argument, before) else -1


def is_attached_password(argument: bytes, before: bytes) -> bool:
    """Tell whether an argument is `-pSECRET`: `before` names a program that takes it so, or it looks like a password."""
    value = argument[ATTACHED:]
    if not argument.startswith(b"-p") or not value or b" " in value:
        return False
    if _is_mixed(value):
        return True
    return _programs(before[-LONGEST_COMMAND:].rpartition(b"\n")[2]) is not None


def password_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield the passwords that are attached to `-p` in a text."""
    if b"-p" not in data:
        return
    for match in _attached(data):
        start, end = match.span(1)
        before = data[max(start - LONGEST_COMMAND, 0) : start - ATTACHED]
        if is_attached_password(match[0], before):
            yield SecretSpan(start, end, "key", match[1])
