"""The rows of the tables of secrets, with values of their own for each form in which a door is shown a row."""

import json
import re
import string
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID

SECRET: Final = "\x01"
"""The sign of a secret in the text that is expected."""

PSEUDONYM: Final = r"redacted-[0-9a-f]{12}"
_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_LOWER: Final = string.ascii_lowercase + string.digits
_WORDS: Final = ("falcon", "river", "stone", "maple", "copper", "velvet", "harbor", "candle", "tunnel", "marble")


def _letters(letters: str, count: int) -> Callable[[Random], str]:
    return lambda random: "".join(random.choices(letters, k=count))


def _mixed(count: int, before: str = "") -> Callable[[Random], str]:
    """Make letters and digits in which each kind of letter occurs."""
    return lambda random: before + "aK7" + "".join(random.choices(_ALPHANUMERIC, k=count - 3))


def _base64(count: int) -> Callable[[Random], str]:
    """Make base64 without signs, with the padding that so many letters need."""
    return lambda random: "tR4" + "".join(random.choices(_ALPHANUMERIC, k=count - 4)) + "A" + "=" * (-count % 4)


def _jwt(random: Random) -> str:
    parts = ('{"alg":"HS256"}', f'{{"sub":"{random.randrange(10**9)}"}}')
    signature = "".join(random.choices(_ALPHANUMERIC, k=40))
    return ".".join((*(b64encode(part.encode()).decode().rstrip("=") for part in parts), signature))


_KINDS: Final[dict[str, Callable[[Random], str]]] = {
    "pw": _mixed(13),
    "weak": lambda random: f"{random.choice(_WORDS)}{random.randrange(10**5, 10**6)}",
    "alnum24": _mixed(24),
    "alnum40": _mixed(40),
    "b64": _base64(46),
    "b64pad": lambda random: _base64(46)(random).replace("R", "+", 1),
    "b64one": _base64(47),
    "b64url": lambda random: "_".join(("tR4", _mixed(20)(random), "x-" + _mixed(16)(random))),
    "b64percent": lambda random: quote(_base64(46)(random)),
    "base32": lambda random: "K7" + _letters(string.ascii_uppercase + "234567", 30)(random),
    "lower32": lambda random: "k7" + _letters(_LOWER, 34)(random),
    "upper32": lambda random: "K7" + _letters(_LOWER.upper(), 34)(random),
    "digits6": lambda random: str(random.randrange(10**5, 10**6)),
    "uuid": lambda random: str(UUID(int=random.getrandbits(128), version=4)),
    "jwt": _jwt,
    "shadow": lambda random: f"$6$salt${_letters(_ALPHANUMERIC, 43)(random)}",
    "apr1": lambda random: f"$apr1$salt${_letters(_ALPHANUMERIC, 22)(random)}",
    **{f"hex{count}": _letters("0123456789abcdef", count) for count in (16, 32, 40, 64)},
    "hex16b": _letters("0123456789abcdef", 16),
    "hex40b": _letters("0123456789abcdef", 40),
    # tokens of services, whose beginnings stand apart so that no scanner takes this file for a leak
    "ghp": _mixed(36, "gh" + "p_"),
    "openai": _mixed(40, "s" + "k-pro" + "j-"),
    "anthropic": _mixed(40, "s" + "k-an" + "t-api03-"),
    "slack": lambda random: "xo" + "xb-" + _letters(string.digits, 12)(random) + "-" + _mixed(24)(random),
    "aws": lambda random: "AK" + "IA" + _letters(string.ascii_uppercase + "234567", 16)(random) + "7",
    "stripe": _mixed(24, "s" + "k_li" + "ve_"),
    "hf": _mixed(34, "h" + "f_"),
}

_MARK: Final = re.compile("«([^»]*)»")
_KIND: Final = re.compile("§([a-z0-9]+)§")


class Instance(NamedTuple):
    """A row in one form: its text, the text that is right, and the secrets. `name` is found beside it in what a door gives."""

    name: str
    place: str
    form: str
    text: str
    expected: str
    secrets: tuple[str, ...]

    def spelled(self, spell: Callable[[str], str]) -> tuple[str, str]:
        """Return the text in a spelling, and a pattern of what is right."""
        sign = spell(SECRET).strip('"')
        return spell(self.text), re.escape(spell(self.expected)).replace(re.escape(sign), PSEUDONYM)

    def __str__(self) -> str:
        return f"[{self.place}] as {self.form}: {self.text!r}"


class Row(NamedTuple):
    """A line of the file."""

    number: int
    place: str
    line: str

    @property
    def is_secret(self) -> bool:
        """True if something has to be masked."""
        return "«" in self.line

    def instance(self, form: str, wrap: Callable[[str], str] = str) -> Instance:
        """Give the row values of its own, and put it where `wrap` says."""
        random = Random(f"{self.number} {form}")
        filled = _KIND.sub(lambda kind: _KINDS[kind[1]](random), self.line).replace("⏎", "\n").replace("⇥", "\t")
        secrets = tuple(_MARK.findall(filled))
        text, expected = _MARK.sub(r"\1", filled), _MARK.sub(SECRET, filled)
        in_place = wrap(expected).replace("\\u0001", SECRET)
        return Instance(f"r{self.number:03}{form}", self.place, form, wrap(text), in_place, secrets)


TABLES: Final = ("secrets.txt", "secrets_of_another.txt")
"""The table beside which the rules were written, and one that was written by another author who had not seen them."""


def rows(table: str) -> list[Row]:
    """Read a table."""
    place = ""
    found = []
    for number, line in enumerate(Path(__file__).with_name(table).read_text("utf-8").splitlines(), 1):
        head = re.fullmatch(r"\[([a-z]+)\]", line)
        if head is not None:
            place = head[1]
        elif line and not line.startswith("# "):
            found.append(Row(number, place, line))
    return found


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\\u0001", SECRET)


def _field(text: str) -> str:
    name, _, value = text.partition(":")
    return f'{{"headers":{{"{name}":"{_in_json(value.strip())}"}}}}'


def _variable(text: str) -> str:
    name, _, value = text.partition("=")
    return f'{{"env":{{"{name}":"{value}"}}}}'


def _arguments(text: str) -> str:
    inner = text[1:-1].partition(", ")
    return f'{{"command":{inner[0]},"args":[{inner[2]}]}}'


def _shell(text: str) -> str:
    words: list[str] = json.loads(text.replace(SECRET, "\\u0001"))
    return "$ " + " ".join(f"'{word}'" if re.search(r'[ "{;]', word) and "'" not in word else word for word in words)


FORMS: Final[dict[str, dict[str, tuple[str, Callable[[str], str]]]]] = {
    "header": {
        "log": ("text", lambda text: f"> {text}"),
        "member": ("json", _field),
    },
    "url": {
        "url in text": ("text", lambda text: f"connecting to {text} failed"),
        "url in json": ("json", lambda text: f'{{"url":"{text}"}}'),
    },
    "argv": {
        "shell": ("text", _shell),
        "configuration": ("json", _arguments),
    },
    "endpoint": {"data": ("text", lambda text: "event: endpoint\n" + "".join(f"data: {line}\n" for line in text.split("\n")))},
    "form": {"body": ("text", str), "body in json": ("json", lambda text: f'{{"body":"{text}"}}')},
    "token": {"body": ("text", str), "json": ("json", str)},
    "env": {
        "line": ("text", str),
        "export": ("text", lambda text: f"export {text.partition('=')[0]}='{text.partition('=')[2]}'"),
        "env in json": ("json", _variable),
    },
    "text": {"text": ("text", str)},
    "json": {"json": ("json", str)},
}
"""For each place, the forms in which its rows are shown in payloads: what they are there, and how they are put there."""


def in_payloads(kind: str, table: str) -> Iterator[Instance]:
    """Yield all rows of a table as texts, or as JSON, of payloads."""
    for row in rows(table):
        for form, (where, wrap) in FORMS[row.place].items():
            if where == kind and not (form == "member" and "⏎" in row.line):
                yield row.instance(form, wrap)


def parsed(text: str) -> Any:
    """Read JSON that may have the sign of a secret in it."""
    return json.loads(text.replace(SECRET, "\\u0001"))
