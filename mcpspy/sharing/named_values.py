"""Strings of JSON that another string names: a member beside them, an argument before them, the list or object around them.

    {"label":"password","value":"x"}        in either order
    {"element":"Password field","text":"x"}
    ["--token","x"]  ["-e","TOKEN","x"]  [["X-Api-Key","x"]]
    {"passwords":{"bob":"x"}}  {"token":{"value":"x"}}
    {"columns":["id","token"],"rows":[[1,"x"]]}  [["id","token"],[1,"x"]]
    {"kind":"Secret","data":{"a":"x"}}      of Kubernetes

Passwords on command lines: where a secret begins in an argument, and whether the next one is a secret.

    ["--password", "x"]        an option that announces the next argument
    ["--key", "Zx81"]          an option that means a secret if its value looks like one
    ["-u", "user:x"]           a user and a password, of a program that is not in the table
    mysql -pSECRET             an option of one letter, and its value without a blank
    curl -u user:SECRET        an option of one program, as in `capture.redaction.arguments`
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..capture.redaction.arguments import ATTACHED_TO_P, CONTAINERS, PLACES, PROGRAMS, SETTERS, follows_name, password_starts
from ..capture.redaction.names import LOOKS, looks_secret
from ..lazy_pattern import lazy_pattern
from ..wire.json_spans import JsonWalk, Leaf
from .encodings import JSON
from .patterns import SecretNames, SecretSpan, has_digit, looks_random

NAMING: Final = {
    b"element", b"field", b"header", b"id", b"key", b"label", b"locator", b"name", b"object", b"selector", b"type", b"variable",
}  # fmt: skip
"""Members that name the value beside them."""

HOLDING: Final = {b"content", b"text", b"val", b"value", b"values"}
"""Members that hold it."""

_PROSE: Final = {b"content", b"text"}
_VAGUE: Final = {b"id", b"object", b"type"}
"""Members that often name something else: then the value has to look random."""

_INNER: Final = {b"encoded", b"plaintext", b"raw", b"value"}
"""Members that hold the secret itself, where the object that they are in is a secret by its name."""

_FACTS: Final = {
    b"created", b"created_at", b"createdat", b"description", b"email", b"expires", b"expires_at", b"expiresat", b"format", b"hint",
    b"id", b"label", b"name", b"owner", b"path", b"pattern", b"prefix", b"ref", b"scope", b"status", b"title", b"type", b"updated_at",
    b"url", b"user", b"username", b"version",
}  # fmt: skip
"""Members of an object with secrets that hold none."""

# lists of the names of columns, before the rows
_COLUMNS: Final = {b"columns", b"fieldNames", b"field_names", b"fields", b"header", b"headers", b"keys"}

_kubernetes = lazy_pattern(rb'"kind"\s*+:\s*+"Secret"')
_SHORTEST_RANDOM: Final = 8
_LONGEST_LABEL: Final = 256
_MOST_STEPS: Final = 8
"""So many names and items around a string are looked at: in a text that is nested deeper, time stays linear."""

_AROUND_TOKEN: Final = 400

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
_OWNERS: Final = {b"chown", b"docker", b"install", b"nerdctl", b"podman", b"rsync", b"setpriv", b"sudo", b"systemd-run"}
"""Programs to which `user:name` is a user and a group."""

_is_mixed = lazy_pattern(rb"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[^=:/\\(){}<>]{6,}")


class NamedValues:
    """The kinds of the strings of one JSON text: `kind` is to be asked for each leaf in turn.

    `late` has values whose name came after them, with their kinds.
    """

    def __init__(self, data: bytes, walk: JsonWalk, names: SecretNames) -> None:
        self._data = data
        self._walk = walk
        self._names = names
        self._named = (-1, "", False)
        self._waiting: tuple[int, Leaf] | None = None
        self._announced: tuple[int, int] | None = None
        self._heads: dict[str | int, str] = {}
        """The kinds of the columns of the latest table that have secrets."""
        self._is_kubernetes = b"Secret" in data and _kubernetes.search(data) is not None
        self._items: list[tuple[int, bytes]] = []
        """The latest two strings of lists, with the lists that they are in."""
        self.late: list[tuple[Leaf, str]] = []

    def kind(self, leaf: Leaf) -> str | None:
        """Return the kind of secret that a string is by what names it; None if nothing does."""
        if leaf.is_name:
            return None
        steps = self._walk.last_steps(_MOST_STEPS)
        value = self._data[leaf.start : leaf.end]
        name = leaf.name.lower()
        kind = self._sibling_kind(leaf, name, value)
        if kind is None and steps and isinstance(steps[-1], int):
            kind = self._item_kind(leaf, value, steps) or self._cell_kind(leaf.name, value, steps)
        return kind or self._outer_kind(name, value, steps)

    def spares(self, leaf: Leaf) -> bool:
        """Return whether a string is none of the secrets that its name promises: a word of a model, a function's signature."""
        if leaf.name == b"token":
            around = self._data[max(leaf.start - _AROUND_TOKEN, 0) : leaf.end + _AROUND_TOKEN]
            return b'"logprob"' in around and not has_digit(self._data[leaf.start : leaf.end])
        value = self._data[leaf.start : leaf.end]
        if leaf.name in (b"SecretId", b"pin"):  # AWS calls the name of a secret so
            return not has_digit(value) or b" " in value
        is_caption = value.lower() == leaf.name.lower()  # {"password":"Password"}, as a translation has it
        return is_caption or (leaf.name == b"signature" and b"(" in value and b" " in value)

    def _sibling_kind(self, leaf: Leaf, name: bytes, value: bytes) -> str | None:
        here = self._walk.container
        if name in NAMING and len(value) <= _LONGEST_LABEL:
            kind = self._names.label(JSON.read(value))
            if kind is not None:
                self._named = here, kind, name in _VAGUE
                if self._waiting is not None and self._waiting[0] == here and name not in _VAGUE:
                    self.late.append((self._waiting[1], kind))
        if name in HOLDING:
            if self._named[0] == here and self._named[1]:
                _, kind, is_vague = self._named
                is_random = looks_random(value) and b" " not in value
                return kind if is_random or not (is_vague or (name in _PROSE and b" " in value)) else None
            self._waiting = (here, leaf) if name == b"value" else self._waiting
        return None

    def _item_kind(self, leaf: Leaf, value: bytes, steps: Sequence[str | int]) -> str | None:
        """Return the kind of an item of a list, by the items before it."""
        here, at = self._walk.container, int(steps[-1])
        before = [text for where, text in self._items if where == here] if at else []
        self._items = [*self._items[-1:], (here, value)]
        is_announced, self._announced = self._announced == (here, at), None
        if value.startswith(b"-"):
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            if not is_attached_password(value, head) and announces_secret(value, self._is_option):
                self._announced = here, at + 1
            return "key" if is_announced and not value.startswith(b"--") else None
        if is_announced:
            return "key"
        if len(before) > 1 and follows_name(before[0].decode("latin-1"), before[1].decode("latin-1"), value.decode("latin-1")):
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            return None if any(b'"%b"' % program.encode() in head for program in CONTAINERS) else "authorization"
        if before:
            head = self._data[max(leaf.start - LONGEST_COMMAND, 0) : leaf.start]
            program = next((program for program in _OWNERS if b'"%b"' % program in head), b"")
            start = value_start(before[-1], value, program)
            if start > 0:
                self.late.append((leaf._replace(start=leaf.start + start), "key"))
            elif start == 0:
                return "key"
        is_pair = at == 1 and len(steps) > 1 and isinstance(steps[-2], int) and looks_random(value)
        return self._names.label(JSON.read(before[-1])) if is_pair and before else None

    def _cell_kind(self, name: bytes, value: bytes, steps: Sequence[str | int]) -> str | None:
        """Return the kind of a cell by the head of its column, which is in a list of its own or in the first row."""
        *_, row, column = ("", *steps)
        is_random = looks_random(value) and b" " not in value
        if row == 0 and is_random and column not in self._heads:
            self._heads.clear()  # the first row has no names
        if row == 0 or name in _COLUMNS:
            kind = self._names.label(JSON.read(value))
            if kind is not None:
                self._heads[column] = kind
            elif name in _COLUMNS and row != 0:
                self._heads.pop(column, None)
        return self._heads.get(column) if is_random and isinstance(row, int) else None

    def _is_option(self, name: bytes) -> bool:
        return self._names.assigned(JSON.read(name)) is not None

    def _outer_kind(self, name: bytes, value: bytes, steps: list[str | int]) -> str | None:
        """Return the kind of secret that the objects around a string hold, by the names of these."""
        if (
            name in _INNER
            and len(steps) > 1
            and isinstance(steps[-2], str)
            and (kind := self._names.member(steps[-2].encode("utf-8", "replace")))
        ):
            return kind
        around = steps[-2] if len(steps) > 1 else ""
        if (self._is_kubernetes and around in ("data", "stringData")) or (
            name == b"number" and str(around).lower().endswith("card")
        ):
            return "key"
        if len(value) < _SHORTEST_RANDOM or not has_digit(value) or name in _FACTS or b" " in value or b"://" in value:
            return None
        outer = [step.encode("utf-8", "replace") for step in steps if isinstance(step, str)][-3:]
        is_count = value.isdigit() and b"tokens" in outer
        return "key" if any(map(self._names.is_plural, outer)) and not is_count else None


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
    if option in _LOGINS and program.rpartition(b"/")[2] not in _OWNERS:
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
