"""Secrets beside their names, or told by the words around them: texts in, spans out. No sign of assignment is between them.

    | Password | x |            rows and columns of tables, in Markdown, HTML and CSV
    <apiKey>x</apiKey>          elements and attributes of markup
    IDENTIFIED BY 'x'           SQL, .netrc, .pgpass
    let token: string = "x"     source code that assigns, calls or fills in a form

A value without quotes has to look random, and more so the less its surroundings say. Without a name, words tell:

    Your code is 482913                  codes and PINs, one or a list
    Passphrase: blue onion drives harps  words
    user / x, changed from x to y        sentences
    Kennwort: x                          other languages
    echo x | passwd --stdin              commands
    connect(url, "user", "x")            source code

Such a value has to look like what the words promise. Work is linear in the bytes.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from ..capture.redaction.arguments import CONTAINERS, follows_name
from ..capture.redaction.names import is_identifier
from ..capture.redaction.spans import endpoint_spans, url_spans
from ..lazy_pattern import lazy_pattern
from .patterns import SecretNames, SecretSpan, has_digit, has_hint, looks_random

Cells: TypeAlias = list[tuple[int, int]]
"""The spans of the cells of a row."""

_LABEL: Final = rb"[A-Za-z][\w .-]{0,40}?"
_QUOTED: Final = rb"""["'](?P<value>[^"'\n]{1,512})["']"""

_Layout: TypeAlias = tuple[tuple[bytes, ...], re.Pattern[bytes], Callable[[bytes], bool]]
"""Signs or words of which a text has one, a pattern of the secret, and a test of it."""

_letters = lazy_pattern(rb"[A-Za-z]")
_public = lazy_pattern(rb"[0-9]{4}-[0-9]{2}|[a-z]+://|[./~]|.*[(){}\[\]<>]|[\w.-]+\.[a-z]{2,4}$")


def _any(value: bytes) -> bool:
    """Return whether a value in quotes may be a secret: unless it is short."""
    return len(value) >= _SHORTEST_QUOTED and b" " not in value


_SHORTEST_QUOTED: Final = 3


_NAME: Final = rb"(?<![\w.-])(?P<name>[A-Za-z_][\w-]{1,60}+)"
_CELL: Final = rb"(?P<value>[^<>\s]{1,512})"
_WORD: Final = rb"""(?P<value>[^\s"']{1,512})"""
_FILLS: Final = rb"(?:\.(?:fill|press_?[sS]equentially|send_keys|setValue|type)\(|\)\.value[ \t]*=)[ \t]*"


def _is_mixed(value: bytes) -> bool:
    """Return whether a value in a sentence is a secret: letters and digits, and neither a date, an address nor a file."""
    return (
        len(value) >= len("hunter22") and has_digit(value) and _letters.search(value) is not None and not _public.match(value)
    )


def _is_one_word(value: bytes) -> bool:
    """Return whether a value is one word that looks random."""
    return looks_random(value) and b" " not in value


def _layout(signs: bytes | tuple[bytes, ...], pattern: bytes, is_meant: Callable[[bytes], bool] = has_digit) -> _Layout:
    """Return a layout whose pattern is compiled when a text has a sign of it."""
    return (signs,) if isinstance(signs, bytes) else signs, lazy_pattern(pattern), is_meant


_PATTERNS: Final[tuple[_Layout, ...]] = (
    # a row of two cells
    _layout(
        b"|",
        rb"\|[ \t]*[*_`]{0,2}(?P<name>%b)[*_`]{0,2}[ \t]*\|[ \t]*`?(?P<value>[^|`\s]{1,512})`?[ \t]*\|" % _LABEL,
        looks_random,
    ),
    # an element, and a cell after the cell of its name
    _layout(b"</", rb"<(?P<name>[A-Za-z][\w:.-]{1,60})(?:\s[^<>]{0,300})?>%b</" % _CELL, _any),
    _layout(
        b"</",
        rb"<(?:t[hd]|dt|key|string)>\s{0,9}(?:<\w{1,20}>)?(?P<name>%b):?(?:</\w{1,20}>)?\s{0,9}</(?:t[hd]|dt|key|string)>\s{0,9}"
        rb"<(?:td|dd|string)>\s{0,9}(?:<\w{1,20}>)?%b" % (_LABEL, _CELL),
        looks_random,
    ),
    # .netrc
    _layout(b"login ", rb"\blogin[ \t]+\S{1,256}\s{1,99}(?P<name>password)[ \t]+(?P<value>\S{1,512})", _any),
    _layout(b"user", rb"\buser(?:name)?[ \t]+\S{1,256}[ \t]+(?P<name>password)[ \t]+" + _WORD, _is_mixed),
    # SQL
    _layout(
        b"'", rb"(?i)\b(?P<name>password)[ \t]++(?:for[ \t]++\S{1,128}[ \t]*+)?(?:=[ \t]*+)?N?'(?P<value>[^'\n]{1,512})'", _any
    ),
    # source code: an annotated name, an item, a call with a name and a value, a setter, a macro, a wrapped value
    _layout(b"=", _NAME + rb"\??[ \t]*:[ \t]*[A-Za-z_][\w.\[\]|]{0,60}[ \t]*=[ \t]*" + _QUOTED, _any),
    _layout(b"]", rb"""\[["'](?P<name>[\w.-]{2,60})["']\][ \t]*=[ \t]*""" + _QUOTED, _any),
    _layout(b"(", rb"""\([ \t]*["'](?P<name>[#.\w\[\]=-]{2,60})["'],[ \t]*""" + _QUOTED, looks_random),
    _layout(b"set", rb"\bset(?P<name>[A-Z]\w{1,60})\([ \t]*" + _QUOTED, _any),
    _layout((b" '", b' "'), _NAME + rb"[ \t]+" + _QUOTED, _is_one_word),
    _layout(
        (b"from(", b"getbytes(", b"ok(", b"optional(", b"secret(", b"secretstr(", b"some("),
        _NAME + rb"[ \t]*[:=][ \t]*(?:(?:new )?[\w.:]{1,60}\(){0,3}"
        rb"(?:[\w.:]{1,60}(?:\.|::))?(?:Ok|Optional|Secret|SecretStr|Some|from|GetBytes|getBytes)\(" + _QUOTED,
        _any,
    ),
    _layout(b"(", rb"\.(?P<name>\w{2,60})\([ \t]*" + _QUOTED, _is_mixed),
    _layout(b"->", _NAME + rb"""[ \t]*=[ \t]*"[^"\n]{1,512}"[ \t]*->[ \t]*""" + _QUOTED, _any),
    _layout(b"=>", rb"""\[["']?(?P<name>[\w.-]{2,60})["']?\][ \t]*=>\s{0,9}(?:string\([0-9]+\)[ \t])?["']?%b""" % _WORD, _any),
    # a list of variables in YAML, and a form in parts
    _layout(b"name: ", rb"""\bname:[ \t]+["']?(?P<name>\w{2,60})["']?[ \t]*\r?\n[ \t]+value:[ \t]+["']?%b""" % _WORD, _any),
    _layout(
        b"form-data", rb"""\bname="(?P<name>[^"\n]{2,60})"[ \t]*\r?\n(?:[^\r\n]+\r?\n)?\r?\n(?P<value>[^\r\n]{1,512})""", _any
    ),
    # a browser that fills in a form, and the form
    _layout(b"(", rb"""["'](?P<name>[^"'\n]{1,80})["'][^"'\n]{0,40}""" + _FILLS + _QUOTED, _any),
    _layout(b"textbox ", rb'textbox "(?P<name>[^"\n]{1,80})"[^:\n]{0,80}?(?::[ \t]+|\bvalue=)"?(?P<value>[^"\s]{1,512})', _any),
    # a shell
    _layout((b"setx ", b"set -"), rb"\bset(?:x|[ \t]+-[Ugx]{1,2})[ \t]+(?P<name>\w{2,60})[ \t]+" + _WORD, _any),
    _layout(b"secret ", rb"\bsecret set (?P<name>\w{2,60})[ \t]+(?:--body|-b)[ \t]+" + _WORD, _any),
)
"""For each layout signs of which it has one, a pattern of the name and the value, and a test of the value."""

_SIGNS: Final = {sign for signs, _, _ in _PATTERNS for sign in signs}

_identified = lazy_pattern(rb"(?i)\bidentified\s+(?:with\s+\S{1,128}\s+)?by\s+(?:password\s+)?[\"'](?P<value>[^\"'\n]{1,512})")
_pgpass = lazy_pattern(
    rb"(?<![\w.:*/-])(?P<host>[\w.-]{1,100}|\*):(?:[0-9]{3,5}|\*):(?:[A-Za-z_][\w-]{0,100}|\*):[\w.@-]{1,100}:"
    rb"(?P<value>[^:\s\"]{4,512})(?![:\w])"
)

_events = lazy_pattern(rb"(?:[^\r\n]+(?:\r\n?|\n|\Z))+")
_hash = lazy_pattern(rb"(?<![\w$])\$(?:1|2[abxy]|5|6|y|apr1|argon2id?|scrypt)\$[./\w$=,+-]{20,512}")
_pair = lazy_pattern(
    rb"(?<![\w-])(?P<option>-e|--env|-H|--headers?)[ \t]+[\"']?(?P<name>[A-Za-z_][\w-]{1,60})[\"']?[ \t]+"
    rb"(?:\"(?P<double>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<bare>[^\s\"'-][^\s\"']*))"
)

_servers = lazy_pattern(
    rb"https?://(?=(?:hooks|mcp)\b|[^\s\"'<>\\`{}?#]{1,300}(?:/|\.|-)(?:(?:ical|invite|magic-link|mcp|messages?|sse|webhook\w{0,4})\b|bot[0-9]{6,}:))"
    rb"(?:(?!\xe2\x80\x9d)[^\s\"'<>\\`{}]|\$?\{[\w:-]{1,64}\}){1,2000}"
)
"""URLs of MCP servers and of hooks, which have keys in their paths; the ids in other URLs are none."""

_containers = lazy_pattern(rb"(?<![\w.-])(?:" + "|".join(CONTAINERS).encode() + rb")\b")
_LONGEST_COMMAND: Final = 256
_tag = lazy_pattern(rb"<[A-Za-z][^<>]{1,1000}>")
_attribute = lazy_pattern(rb"""([A-Za-z][\w:.-]{0,60})\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)')""")
_NAMING: Final = (b"key", b"name", b"id", b"type", b"property")
_HOLDING: Final = (b"value", b"content")
_body = lazy_pattern(rb"([^<>\s]{1,512})</")


def layout_spans(data: bytes, names: SecretNames) -> Iterator[SecretSpan]:
    """Yield the secrets of a text that stand beside their names."""
    if b":" in data:
        for match in _pgpass.finditer(data):
            if looks_random(match["value"]) and (match["host"] == b"*" or _letters.search(match["host"])):
                yield _span(match, "value")
    if b"$" in data:
        for match in _hash.finditer(data):
            yield _span(match, 0)
    if b"://" in data:
        for match in _servers.finditer(data):
            yield from (SecretSpan(*span) for span in url_spans(data, *match.span()) if span[2] == "path")
    small = data.lower()
    if b"identified" in small:
        for match in _identified.finditer(data):
            yield _span(match, "value")
    if b"endpoint" in small and b"data:" in small:
        for event in _events.finditer(data):
            at = event.start()
            yield from (SecretSpan(at + start, at + end, kind, value) for start, end, kind, value in endpoint_spans(event[0]))
    yield from _sentence_spans(data, small, names)
    if not has_hint(small) and b"textbox" not in small:
        return
    signs_here = {sign for sign in _SIGNS if sign in small}
    for signs, pattern, is_meant in _PATTERNS:
        if not signs_here.isdisjoint(signs):
            for match in pattern.finditer(data):
                if names.label(match["name"]) is not None and is_meant(match["value"].rstrip(b".,;!")):
                    yield _span(match, "value")
    if b" -" in data:
        yield from _pair_spans(data)
    if b"<" in data:
        yield from _tag_spans(data, names)
    names_of_columns: Cells = []
    secret: list[int] = []
    for head, row in _tables(data):
        if head is not names_of_columns:
            names_of_columns = head
            secret = [at for at, (start, end) in enumerate(head) if names.label(data[start:end].strip(b" \t\"'*`")) is not None]
        for at in secret:
            start, end = _stripped(data, *row[at]) if at < len(row) else (0, 0)
            if looks_random(data[start:end]) and b" " not in data[start:end]:
                yield SecretSpan(start, end, "key", data[start:end])


def _span(match: re.Match[bytes], group: str | int) -> SecretSpan:
    start, end = match.span(group)
    value = match[group].rstrip(b".,;!")
    return SecretSpan(start, end - len(match[group]) + len(value), "key", value)


def _stripped(data: bytes, start: int, end: int) -> tuple[int, int]:
    value = data[start:end]
    bare = value.strip(b" \t\r\"'`*")
    at = value.find(bare)
    return start + at, start + at + len(bare)


def _pair_spans(data: bytes) -> Iterator[SecretSpan]:
    """Yield values after an option and a name in the text of a shell: `-e GITHUB_TOKEN x`, `-H X-Api-Key x`."""
    for match in _pair.finditer(data):
        which = match.lastgroup or "bare"
        option, name = match["option"].decode(), match["name"].decode("utf-8", "replace")
        before = data[max(match.start() - _LONGEST_COMMAND, 0) : match.start()].rpartition(b"\n")[2]
        if follows_name(option, name, "") and _containers.search(before) is None:
            start, end = match.span(which)
            scheme, blank, rest = match[which].partition(b" ")
            yield SecretSpan(start + len(scheme + blank) if rest else start, end, "key", rest or scheme)


def _tag_spans(data: bytes, names: SecretNames) -> Iterator[SecretSpan]:
    """Yield values in tags that another attribute names, and texts of such elements: `<add key="ApiKey" value="x"/>`."""
    for tag in _tag.finditer(data):
        attributes = {match[1].lower(): match for match in _attribute.finditer(data, *tag.span())}
        values = (attributes[name] for name in _NAMING if name in attributes)
        if not any(names.label(match[2] or match[3] or b"") for match in values):
            continue
        held = next((attributes[name] for name in _HOLDING if name in attributes), None)
        if held is not None:
            which = 2 if held[2] is not None else 3
            if _any(held[which]):
                yield SecretSpan(*held.span(which), "key", held[which])
        elif (body := _body.match(data, tag.end())) is not None and _any(body[1]) and body[1] not in tag[0]:
            yield SecretSpan(*body.span(1), "key", body[1])


# --- Tables with the names in their first row ---

_MOST_CELLS: Final = 64
_separator = lazy_pattern(rb"(?=.*---)[ \t]*+[|+]?(?:[ \t]*+:?-{3,}+:?[ \t]*+[|+])*+(?:[ \t]*+:?-{3,}+:?)?[ \t\r]*+")
_head_cell = lazy_pattern(rb"[ \t]*\"?[A-Za-z][\w .-]{0,40}\"?[ \t\r]*")
_cells = {
    sign: lazy_pattern(rb"[ \t]*\"(?:[^\"\n]|\"\")*+\"[ \t\r]*(?=%b|\Z)|[^%b\n]+|(?<=%b)(?=%b|\Z)" % ((re.escape(sign),) * 4))
    for sign in (b",", b";", b"\t", b"|")
} | {b"  ": lazy_pattern(rb"[^ \t\r\n]+(?: [^ \t\r\n]+)*")}

_aligned_head = lazy_pattern(rb"[A-Z][A-Z0-9_-]{1,40}(?: {1,99}[A-Z][A-Z0-9_()-]{0,40}){1,20}[ \r]*+")
_html_row = lazy_pattern(rb"(?i)<tr\b[^<>]{0,200}>")
_html_cell = lazy_pattern(rb"(?i)<t[hd]\b[^<>]{0,200}>([^<>]*)")
_inserted = lazy_pattern(rb"(?i)\(([^()]{1,2000})\)\s*values\s*(\([^()]{1,4000}\))")


def _tables(data: bytes) -> Iterator[tuple[Cells, Cells]]:
    """Yield the names and a row, for each row of each table: of Markdown, CSV and HTML, and of `INSERT` in SQL."""
    if b"\n" in data:
        yield from _line_tables(data)
    small = data.lower()
    if b"<tr" in small:
        starts = [match.end() for match in _html_row.finditer(data)]
        rows = ([match.span(1) for match in _html_cell.finditer(data, *span)] for span in pairwise([*starts, len(data)]))
        head = next(rows, [])
        yield from ((head, row) for row in rows)
    if b"values" in small:
        for match in _inserted.finditer(data):
            yield (
                [cell.span() for cell in _cells[b","].finditer(data, *match.span(1))],
                [cell.span() for cell in _cells[b","].finditer(data, match.start(2) + 1, match.end(2) - 1)],
            )


def _line_tables(data: bytes) -> Iterator[tuple[Cells, Cells]]:
    head: Cells = []
    sign = b""
    at = 0
    for line, following in pairwise([*data.split(b"\n"), b""]):
        cells = _line_cells(data, at, line, sign) if sign else []
        if len(cells) == len(head) > 1:
            yield head, cells
        elif not (head and _separator.fullmatch(line)):
            sign = _sign_of_head(line, following)
            head = _line_cells(data, at, line, sign) if sign else []
        at += len(line) + 1


def _sign_of_head(line: bytes, following: bytes) -> bytes:
    """Return what separates the cells of a line that has the names of columns; empty if it has none."""
    if b"|" in line:
        return b"|" if _separator.fullmatch(following) else b""
    for sign in (b",", b";", b"\t"):
        cells = line.split(sign, _MOST_CELLS)
        if len(cells) > 1 and following.count(sign) >= len(cells) - 1 and all(map(_head_cell.fullmatch, cells)):
            return sign
    return b"  " if b"  " in line and _aligned_head.fullmatch(line) else b""


def _line_cells(data: bytes, at: int, line: bytes, sign: bytes) -> Cells:
    if sign == b"|":  # a sign at an end separates nothing
        end = at + len(line.rstrip(b" \t\r|"))
        start = at + len(line) - len(line.lstrip(b" \t|"))
        return [match.span() for match in _cells[sign].finditer(data, start, end)]
    return [match.span() for match in _cells[sign].finditer(data, at, at + len(line))]


def _is_code(value: bytes) -> bool:
    return value.isdigit() or _is_mixed(value)


def _is_card(value: bytes) -> bool:
    """Check the last digit of the number of a card (ISO/IEC 7812-1)."""
    digits = [letter - 48 for letter in reversed(value) if 48 <= letter <= 57]
    return sum(digit if at % 2 == 0 else digit * 2 - 9 * (digit > 4) for at, digit in enumerate(digits)) % 10 == 0


_MIXED: Final = rb"(?P<value>(?=\S{0,64}[0-9])(?=\S{0,64}[a-z])[^\s`\"'|,;]{6,512})"

_SENTENCE_WORD: Final = rb"(?P<value>[^\s`\"'|,;]{3,512})"

_QUOTED_TEXT: Final = rb"[\"'](?P<value>[^\"'\s]{3,512})[\"']"

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


def _foreign(*words: str) -> _Layout:
    return _layout(
        tuple(word.rpartition(" ")[2].encode() for word in words),
        rb"(?<![\w-])(?:%b)(?: d'ordine)?(?:[ \t]*(?:[:=]|\xef\xbc\x9a)[ \t]*|[ \t]+(?:%b)[ \t]+|(?:\xe6\x98\xaf|\xe3\x81\xaf)[ \t]*"
        rb"|[ \t]+(?=[^\s\\]{0,64}[0-9]))[\"'`]?(?P<value>[^\s`\"'|,;]{4,512})" % ("|".join(words).encode(), _IS),
        _is_one_word,
    )


_PHRASES: Final[tuple[_Layout, ...]] = (
    # codes
    _layout(
        (b"code", b"combination", b"otp", b"passcode", b"pin"),
        rb"(?<![\w-])%b(?: (?:for|of|to) [^\n:=.0-9]{0,40})?(?: is|:|=)[ \t:\"'`]{1,4}%b" % (_CODE, _DIGITS),
    ),
    _layout((b"code", b"passcode", b"pin"), rb"\b(?:enter|use|with) (?:the |this )?(?:code|passcode|pin)[: ]{1,2}%b" % _DIGITS),
    _layout(
        (b"code", b"pin", *_SECRETS),
        rb"(?<![^\s\"])(?P<value>[^\s`\"',;|]{4,512}) is (?:my|our|the|your) (?:[\w'-]{1,20} ){0,4}(?:code|pin|%b)"
        rb"(?= for | of | to |[.,;:!)\"\s]|\Z)" % _SECRET,
        _is_code,
    ),
    _layout((b"cvc", b"cvc2", b"cvv", b"cvv2"), rb"\bcv[cv]2?(?: is|:|=)?[ \t]{1,3}(?P<value>[0-9]{3,4})(?![\w-])"),
    _layout((b"card", b"cards"), rb"(?<![\w-])(?P<value>[3-6][0-9]{3}([ -])[0-9]{4}\2[0-9]{4}\2[0-9]{4})(?![\w-])", _is_card),
    # words
    _layout(
        (b"mnemonic", b"passphrase", b"phrase", b"words"),
        rb"(?m)\b(?:pass ?phrase|(?:mnemonic|recovery|secret|seed)[ _-](?:phrase|words)|mnemonic)(?: is)?[ \t]*[:=]?[ \t]*"
        rb"(?:(?<=[:=][ \t])|(?<=[\"'`]))?[\"'`]?(?![^\n\"]*\b(?:a|for|is|must|of|should|that|the|to|used)\b)"
        rb"(?P<value>[a-z]{3,12}(?: [a-z]{3,12}){3,23})" + _END,
        bool,
    ),
    _layout(
        (b"2fa", b"authenticator", b"otp", b"secret", b"setup", b"totp"),
        rb"\b(?:2fa|authenticator|otp|secret|setup|totp)[ -](?:key|secret|seed)[ \t:=]{1,4}"
        rb"(?P<value>[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})",
    ),
    # sentences
    _layout(
        (b"cred", b"credenciales", b"credential", b"credentials", b"creds", b"identifiants", b"log", b"login", b"zugangsdaten"),
        rb"\b(?:cred(?:ential|enciale)?s?|identifiants|log ?in|zugangsdaten)\b[^\n:=/]{0,30}?(?::|=| as| with)[ \t]{1,3}"
        rb"[\w.@+-]{1,64}(?:[ \t]{0,2}/[ \t]{0,2}|:)%b" % _MIXED,
        _is_mixed,
    ),
    _layout(
        _SECRETS,
        rb"\b(?:chang|reset|rotat|set|updat)\w{0,6} [^\n:=]{0,40}?\b%b\b[^\n:=]{0,40}? "
        rb"(?:from [`\"']?(?P<old>[^\s`\"']{6,512})[`\"']? )?to [`\"']?%b" % (_SECRET, _MIXED),
        _is_mixed,
    ),
    _layout(
        (*_SECRETS, *(word + b"s" for word in _SECRETS)),
        rb"(?<![\w-])(?P<name>(?:%b){0,3}(?:key|token|secret|pass(?:word|phrase|code))s?)(?![\w-])"
        rb"(?: [^\n\"'`:.=|]{0,40}?)??(?: is|:)[ \t:]{1,9}[`\"']?(?P<value>[^\s`\"'|,;]{8,512})" % _BEFORE_KEY,
        _is_mixed,
    ),
    _layout(b"key", rb"(?<![\w-])(?P<name>(?:%b){1,3}key) (?P<value>[\w+/=-]{32,512})" % _BEFORE_KEY, _is_mixed),
    _layout(
        (b"password", b"pw", b"pwd"),
        rb"\b(?:password|pw|pwd) (?:[\w'@.-]{1,30} ){0,6}?(?:[\w'@.-]{1,30}:|is)[ \t]{1,3}[`\"']?%b" % _MIXED,
        _is_mixed,
    ),
    _layout(
        (b"key", b"token"),
        rb"(?<![\w-])(?:(?:access|api|auth|bearer|secret)[ _-](?:key|token)|"
        rb"(?<!next )(?<!page )(?<!sync )(?<!cursor )(?<!progress )(?<!continuation )token)[ \t]+[`\"']?(?P<value>[\w+/=.-]{20,512})",
        is_identifier,
    ),
    _layout(b"answer", rb"\b(?:secret|security) answer\)?(?: is|:)[ \t]{1,3}[\"']?%b" % _SENTENCE_WORD, bool),
    _foreign("clave", "heslo", "kennwort", "mot de passe", "parola", "passwort", "senha", "wachtwoord"),
    # commands and protocols
    _layout(
        b"echo",
        rb"\becho[ \t]+(?:-n[ \t]+)?[\"']?(?:[a-z_][\w-]{0,32}:)?(?P<value>[^\s\"'|:$]{4,512})[\"']?[ \t]*\|[^|\n]{0,200}"
        rb"(?:--(?:password-)?stdin|--with-token|\bchpasswd\b)",
        bool,
    ),
    _layout((b"stdin", b"token"), rb"--(?:password-stdin|with-token)[ \t]*<<<[ \t]*[\"']?%b" % _SENTENCE_WORD, bool),
    _layout(b"net", rb"\bnet use\b[^\n]{0,200}/user:\S{1,128}[ \t]+(?!/)%b" % _SENTENCE_WORD, bool),
    _layout((b"requirepass", b"masterauth"), rb"(?:requirepass|masterauth)[ \t]+%b" % _SENTENCE_WORD, bool),
    _layout(b"auth", rb"(?m)\bauth[ \t]+(?:(?:plain|login|default)[ \t]+)?%b" % _MIXED + _END, _is_mixed),
    _layout((b"sqlplus", b"thin"), rb"(?::thin:|\bsqlplus[ \t]+)[\w.-]{1,64}/(?P<value>[^\s@/\"']{1,512})@", bool),
    _layout(
        b"private",
        rb"\bprivate-lines: [0-9]{1,3}\r?\n(?!redacted-)(?P<value>(?:[a-z0-9+/=]{4,128}(?:\r?\n)?){1,200})",
        bool,
    ),
    # source code
    _layout(
        (b"auth", b"basicauth", b"connection", b"dbi", b"getconnection", b"networkcredential", b"pdo", b"setbasicauth"),
        rb"(?:\bget_?connection|\bnetwork_?credential|basic_?auth|\bnew pdo|\bdbi->connect|\bauth[ \t]*=)[ \t]*"
        rb"\([^()\n]{0,200}?[\"'][^\"'\n]{0,100}[\"'],[ \t]*%b[ \t]*\)" % _QUOTED_TEXT,
        bool,
    ),
    _layout(b"securestring", rb"\bconvertto-securestring[ \t]+(?:-string[ \t]+)?%b" % _QUOTED_TEXT, bool),
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


def _sentence_spans(data: bytes, small: bytes, names: SecretNames) -> Iterator[SecretSpan]:
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
