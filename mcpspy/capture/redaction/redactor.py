"""Pseudonyms for secrets, before anything reaches the disk: in commands, URLs, HTTP heads, `endpoint` events and OAuth bodies.

A value becomes `redacted-` and 12 hex digits of its keyed digest, which is legal wherever values are. The key stays with the store:
equal values stay equal, in one capture and across captures, and a guess cannot be checked with the capture alone. JSON-RPC payloads
are not looked into, for that would mean parsing on the data path.

Nothing is imported before there is something to redact: this is on the tap's start-up path.
"""

from __future__ import annotations

from ...records import PSEUDONYM_DIGITS, PSEUDONYM_PREFIX
from .arguments import BLANKS, CONTAINERS, FIELDS, SHELL_TEXTS, follows_name, is_option, password_starts
from .names import LOOKS, SCHEMES, SECRET_PREFIX_BYTES, SECRET_PREFIXES, kind_of, kind_of_field, kind_of_option, looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

    from ...records import Redaction
    from .names import Redacted
    from .oauth_bodies import BodyFilter
    from .spans import Span

    Announced = Literal["value", "credential", "--key", "--pin", "--session"] | None
    """The next argument: a secret, one with a scheme, or the value of an option whose looks decide."""

_PREFIX = PSEUDONYM_PREFIX.encode()
_DIGEST_BYTES = PSEUDONYM_DIGITS // 2
_PSEUDONYM_BYTES = len(PSEUDONYM_PREFIX) + PSEUDONYM_DIGITS


class Redactor:
    """A source of pseudonyms, made with `key` (the store's, at most 64 bytes), and of texts that have them for their secrets."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def pseudonym(self, value: bytes) -> bytes:
        """Return the pseudonym of `value`. A pseudonym is its own pseudonym, so redacting twice changes nothing."""
        if len(value) == _PSEUDONYM_BYTES and value.startswith(_PREFIX):
            return value
        from hashlib import blake2b

        return _PREFIX + blake2b(value, key=self._key, digest_size=_DIGEST_BYTES).hexdigest().encode()

    def argv(self, arguments: list[str]) -> list[str]:
        """Redact a command: options, `NAME=value`, headers, URLs, JSON, tokens that are known by their beginning."""
        redacted: list[str] = []
        announced: Announced = None
        starts = password_starts(arguments)
        names_variables = not any(argument.rpartition("/")[2] in CONTAINERS for argument in arguments)
        for at, argument in enumerate(arguments):
            if at > 1 and names_variables and follows_name(arguments[at - 2], arguments[at - 1], argument):
                is_scheme = _is_scheme(argument)
                redacted.append(argument if is_scheme else self._credential(argument))
                announced = "credential" if is_scheme else None
            elif at and arguments[at - 1] in SHELL_TEXTS and " " in argument.strip():
                redacted.append(self._shell(argument))
            elif at in starts:
                redacted.append(argument[: starts[at]] + self._value(argument[starts[at] :]))
                announced = None
            elif argument in BLANKS:
                redacted.append(argument)
            elif announced is None or is_option(argument):
                redacted.append(self._argument(argument))
                is_value = at > 1 and arguments[at - 2] in FIELDS and ":" not in arguments[at - 1]
                announced = None if is_value else _announced(argument)
            elif announced == "credential" and _is_scheme(argument):
                redacted.append(argument)
            elif announced in LOOKS and not looks_secret(announced, argument.strip("'\"")):
                redacted.append(self._argument(argument))
                announced = _announced(argument)
            else:
                redacted.append(self._credential(argument))
                announced = None
        return redacted

    def url(self, text: str) -> str:
        """Redact a URL: its user's password, its secret and session parameters, and keys in its path."""
        from .spans import url_spans

        data = _bytes(text)
        return _text(self._replaced(data, url_spans(data, 0, len(data)))[0])

    def head(self, data: bytes) -> Redacted:
        """Redact an HTTP head: the values of secret header fields, and secrets in its URLs."""
        from .spans import head_spans

        return self._replaced(data, head_spans(data))

    def trailers(self, text: str) -> str:
        """Redact trailers, which are fields without a request line before them."""
        return self.head(b"\n" + text.encode("latin-1"))[0][1:].decode("latin-1")

    def endpoint(self, data: bytes) -> Redacted:
        """Redact the session id of an SSE event, if it is an `endpoint` event (HTTP+SSE, 2024-11-05), also in its JSON dialect."""
        if b"endpoint" not in data:
            return data, ()
        from .spans import endpoint_spans

        return self._replaced(data, endpoint_spans(data))

    def body(self, data: bytes, content_type: str) -> Redacted:
        """Redact the tokens, codes and secrets of an OAuth form or JSON body. JSON-RPC passes untouched."""
        body_filter = self.body_filter(content_type.lower())
        redacted, ranges = body_filter.feed(data)
        rest, more = body_filter.close()
        return redacted + rest, (*ranges, *((len(redacted) + at, length, kind) for at, length, kind in more))

    def body_filter(
        self, content_type: str, *, is_sealed: bool = False, may_be_rpc: bool = True, seals_markup: bool = False
    ) -> BodyFilter:
        """Make a filter for the pieces of an OAuth body. One that `is_sealed` cannot be searched; the type is in lower case."""
        from . import oauth_bodies as bodies

        sealed = bodies.SealedBody(self._key, _PREFIX, _DIGEST_BYTES)
        if is_sealed:
            return sealed
        return bodies.filter_for(content_type, self.pseudonym, may_be_rpc=may_be_rpc, sealed=sealed, seals_markup=seals_markup)

    def _argument(self, text: str, *, nested: bool = False) -> str:
        """Redact an argument that no earlier one announced as a secret; or, `nested`, what follows its `=`."""
        if text.startswith(SECRET_PREFIXES) and len(text) >= SECRET_PREFIX_BYTES:
            return self._value(text)
        if '"' in text and "{" in text:
            redacted = self._json(text)
            if " " not in text or _is_json(text):
                return redacted
            text = redacted  # the text of a shell, say
        if text.startswith('["') and text.endswith('"]'):
            return self._list(text)
        name, equals, value = text.partition("=")
        slash = _slash_option(text)
        if slash:
            return text[:slash] + self._value(text[slash:])
        if equals and _is_setting(name) and (kind_of_option(name.lstrip("-'\"$/")) or looks_secret(name, value.strip("'\""))):
            return f"{name}={self._value(value)}"
        field, colon, credential = text.partition(":")
        if (
            colon
            and not credential.startswith("//")
            and _is_name(field)
            and _is_secret_field(field.lstrip("-H'\""), credential)
        ):
            return f"{field}:{self._credential(credential)}"
        if text.startswith("-") and equals and not nested:
            return f"{name}={self._argument(value, nested=True)}"
        if " " in text.strip():
            return self._shell(text)
        if "=" in text and not ("://" in text and "?" in text):
            for sign in ";,&":  # a connection string, several variables, a query
                first, *more = text.split(sign)
                if more and all(_is_name(part.partition("=")[0]) for part in more if part):
                    if sign == "&":
                        return self.url("?" + text)[1:]
                    return sign.join(self._argument(part, nested=True) for part in (first, *more))
        return self.url(text) if "?" in text or "://" in text else text

    def _shell(self, text: str) -> str:
        """Redact the text of a shell."""
        return " ".join(self.argv(text.replace("\n", " \n ").split(" "))).replace(" \n ", "\n")

    def _value(self, text: str) -> str:
        """Return the pseudonym of `text`, whose quotes (in the text of a shell) are no part of the secret."""
        bare = text.strip("'\" ")
        if text[:1] in ("'", '"'):  # in the text of a shell, a sign may follow the quote
            bare = bare.partition(text[0])[0]
        if not bare:
            return text
        from .spans import is_placeholder

        if is_placeholder(_bytes(bare)):
            return text
        at = text.index(bare)
        return text[:at] + self.pseudonym(_bytes(bare)).decode() + text[at + len(bare) :]

    def _credential(self, text: str) -> str:
        """Redact a credential on a command line: all of it, or what follows its scheme."""
        scheme, blank, secret = text.strip().partition(" ")
        if blank and _is_scheme(scheme):
            at = text.index(secret, text.index(scheme) + len(scheme))
            return text[:at] + self._value(text[at:])
        return self._value(text)

    def _list(self, text: str) -> str:
        """Redact a list of arguments in JSON: `--args='["--token", "x"]'`. One that has no secret stays as it is spelled."""
        from json import dumps, loads

        try:
            arguments = loads(text)
        except (ValueError, RecursionError):
            return text
        if not all(isinstance(argument, str) for argument in arguments):
            return text
        redacted = self.argv(arguments)
        return text if redacted == arguments else dumps(redacted, ensure_ascii=False)

    def _json(self, text: str) -> str:
        """Redact JSON on a command line (`--config '{"apiKey": …}'`), and the URLs in it."""
        from .spans import member_spans, text_spans

        start = text.index("{")
        if _is_json(text):
            text = text[:start] + self._with_lists(text[start:])
        data, _ = self._replaced(_bytes(text), member_spans(_bytes(text), lambda name: kind_of(name) is not None))
        return _text(self._replaced(data, text_spans(data, 0, len(data)))[0])

    def _with_lists(self, text: str) -> str:
        """Redact lists of arguments and variables in a JSON object: `{"args": ["--token", "x"]}`. Keep it where none has a secret."""
        from json import dumps, loads

        is_changed = False

        def redacted(value: Any) -> Any:
            nonlocal is_changed
            if isinstance(value, dict):
                return {name: redacted(inner) for name, inner in value.items()}
            if not isinstance(value, list):
                return value
            if not all(isinstance(item, str) for item in value):
                return [redacted(item) for item in value]
            arguments = self.argv(value)
            is_changed = is_changed or arguments != value
            return arguments

        try:
            value = redacted(loads(text))
        except (ValueError, RecursionError):
            return text
        return dumps(value, ensure_ascii=False) if is_changed else text

    def _replaced(self, data: bytes, spans: Iterable[Span]) -> Redacted:
        pieces: list[bytes] = []
        ranges: list[Redaction] = []
        done = length = 0
        for start, end, kind, secret in spans:
            if start >= end:
                continue
            pseudonym = self.pseudonym(secret)
            pieces += (data[done:start], pseudonym)
            length += start - done
            ranges.append((length, len(pseudonym), kind))
            length += len(pseudonym)
            done = end
        if not ranges:
            return data, ()
        return b"".join((*pieces, data[done:])), tuple(ranges)


class NoRedaction:
    """A redactor that changes nothing, for `--redact none`, which is explicit and is named in the capture's header."""

    __slots__ = ()

    def argv(self, arguments: list[str]) -> list[str]:
        """Return the arguments as they are."""
        return arguments

    def url(self, text: str) -> str:
        """Return the URL as it is."""
        return text

    def head(self, data: bytes) -> Redacted:
        """Return the head as it is."""
        return data, ()

    def endpoint(self, data: bytes) -> Redacted:
        """Return the event as it is."""
        return data, ()

    def body(self, data: bytes, content_type: str) -> Redacted:
        """Return the body as it is."""
        return data, ()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


# --- Command lines ---


def _is_name(text: str) -> bool:
    """Return whether a text may name an option, a variable or a header field; a quote or hyphens may come before the name."""
    return text.lstrip("-'\"").replace("-", "").replace("_", "").replace(".", "").isalnum()


def _is_setting(text: str) -> bool:
    """Return whether a text may name what is set: also `$env:NAME` of PowerShell, `Section:Name` of .NET, `/p:Name` of MSBuild."""
    return _is_name(text.lstrip("-'\"$/").replace(":", ""))


def _is_json(text: str) -> bool:
    """Return whether an argument is a JSON object, or an option or a variable that has one for its value."""
    before = text[: text.index("{")].strip("'\"")
    return not before or (before.endswith("=") and _is_name(before[:-1]))


def _slash_option(text: str) -> int:
    """Return where the secret begins in an option as Windows spells it, `/password:SECRET`; 0 if it has none.

    A volume, as in `-v /secrets:/run/secrets`, has a path there.
    """
    bare = text.lstrip("'\"")
    colon = min((at for at in (bare.find(":"), bare.find("=")) if at > 0), default=0)
    is_option = bare.startswith("/") and bare[1:colon].replace("-", "").replace("_", "").isalnum()
    is_secret = is_option and not bare.startswith(("/", "\\"), colon + 1) and kind_of_option(bare[1:colon])
    return len(text) - len(bare) + colon + 1 if is_secret and bare[colon + 1 :] else 0


def _is_secret_field(name: str, value: str) -> bool:
    """Return whether this is a secret header field. Only the blank or `X-` tells it from a name and a tag, as in `auth-proxy:2`."""
    is_field = value.startswith(" ") or name[:2] in ("X-", "x-")
    return kind_of(name) is not None or (is_field and kind_of_field(name) is not None)


def _is_scheme(text: str) -> bool:
    return text.strip("'\"").lower() in SCHEMES


def _announced(text: str) -> Announced:
    """Return what the next argument is, after one like `--token`, `-token`, `Authorization:` or `Bearer`."""
    bare = text.lstrip("'\"")
    if bare.startswith("-") and "=" not in bare and kind_of_option(bare.lstrip("-")):
        return "value"
    if bare in LOOKS:
        return bare  # type: ignore[return-value]  # one of three
    if bare.endswith(":") and kind_of(bare[:-1]):
        return "credential"
    return "value" if bare.lower() in ("bearer", "basic") else None
