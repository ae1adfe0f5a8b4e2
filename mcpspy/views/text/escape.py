r"""Captured text made harmless, one function per medium: what a peer wrote must not control a terminal, a diagram or a page.

Every captured string passes one of these functions before it is printed. They are linear, never raise, and hide nothing: a
character that is dangerous is spelled out, as `\x1b` or `\u202e`.
"""

import re

from ...lazy_pattern import lazy_pattern
from .cells import are_narrow

# Characters that control a screen or are invisible on it: C0 with tab and newline, DEL, C1 (with NEL), the soft hyphen, bidi
# controls, zero-width and other format characters (category Cf), line and paragraph separators, letters that are blank by
# definition, lone surrogates, and noncharacters. Variation selectors stay, because emoji need them and they are harmless.
# tests/views/text/test_escape.py compares the list with `unicodedata`.
_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_INVISIBLE = (
    r"\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_SURROGATES = r"\ud800-\udfff"

_unsafe = lazy_pattern(f"[{_CONTROLS}{_INVISIBLE}{_SURROGATES}]")
_unsafe_in_json = lazy_pattern(f"[\\x7f-\\x9f{_INVISIBLE}{_SURROGATES}]")
_blanks = lazy_pattern(r"[ \t\r\n\v\f\x85\u2028\u2029]+")

_SELECTORS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Code points that fonts leave blank, as they are reserved for selectors and tags, and noncharacters.
_UNUSED = r"\ufdd0-\ufdef\U000e01f0-\U000e0fff" + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 17))
# Emoji need U+FE0E and U+FE0F, one after a sign that is not a letter of ASCII, or before U+20E3, as in a keycap.
_selectors = lazy_pattern(
    rf"[\ufe00-\ufe0d\U000e0100-\U000e01ef{_UNUSED}]|(?<=[{_SELECTORS}])[\ufe0e\ufe0f]"
    rf"|(?<![^\x00-\xa8{_SELECTORS}])(?:(?<![0-9#*])[\ufe0e\ufe0f]|[\ufe0e\ufe0f](?!\u20e3))"
)

# `#` truncates a Mermaid statement and `;` ends it; `<`, `>`, `&` and no-break spaces reach an HTML sanitizer, which rewrites
# them. The rest is Mermaid's own pre-processing (12.3, encodeEntities and preprocess): it drops the `;` after `style…:…#…`,
# removes `%%{…}%%` anywhere, writes entities as `ﬂ°lt¶ß`, takes `%%` for a comment, sets `$$…$$` as a formula, and drops
# `wrap:` before a text.
_MERMAID_SIGNS = str.maketrans(
    {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "\u00a0": "#160;", "ﬂ": "#64258;", "¶": "#182;"}
)
_mermaid_words = lazy_pattern(r"style|classDef|%(?=[%{])|(?<=%)%|\$(?=\$)|(?<=\$)\$|^(?:no)?wrap", re.IGNORECASE)

# PlantUML reads macros (`%date()`, `$x`, `!include`), links, tags, escapes, entities and Creole. A sign that could begin one of
# them is written as `<U+0025>`, which PlantUML reads back inside texts (1.2020 and later). A sign that is special only when
# doubled, or at the beginning, stays readable elsewhere. Quotes of any kind end a name, and dashes become hyphens.
_plantuml_signs = lazy_pattern(
    r"""^[^\w]|[<>%$\\~&\[\]"`^«»\u2010-\u201f]|(?<=/)'|([-*/_=.+|#!@'{}(])(?=\1)|(?<=([-*/_=.+|#!@'{}()]))\2"""
)

# GitHub's Markdown also links addresses, mentions and numbers of issues. No backslash prevents that; a zero-width space does.
_MARKDOWN_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_markdown_signs = lazy_pattern(r"[\\`*_{}\[\]|~$]")
_markdown_calls = lazy_pattern(r"[@#]|:(?=//)|[wW]{3}(?=\.)|[gG][hH]-(?=\d)")
_backticks = lazy_pattern("`+")

_XML_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})

PHRASE_LETTERS = 300
"""The most letters of a captured text that one line shows; `show @:7` shows all of it."""


def decoded(data: bytes) -> str:
    r"""Decode captured bytes; bytes that are not UTF-8 become `\xff`. The result still has to be made safe."""
    return data.decode("utf-8", "backslashreplace")


def safe_text(text: str) -> str:
    """Make `text` safe for one line of a terminal: characters that move, hide or reorder are spelled out, also newline and tab."""
    if (text.isascii() and text.isprintable()) or are_narrow(text):
        return text
    return _unsafe.sub(_spelled, text)


def model_text(text: str) -> str:
    """Make `text` safe for one line that a model reads: as for a terminal, and without variation selectors that no emoji needs.

    A person does not see these, and a model can read a text that is spelled with them.
    """
    return text if text.isascii() and text.isprintable() else _selectors.sub(_spelled, safe_text(text))


def without_logins(text: str) -> str:
    """Leave out of the URLs in a message what may be secret: the user with the password, and the query."""
    return " ".join(map(_without_login, text.split(" ")))


def _without_login(word: str) -> str:
    """Do the same for one word, which may be a URL. Its user may have any sign: a `/` or `?` in it may be why a URL is refused."""
    before, mark, url = word.partition("://") if "://" in word else ("", "", word)
    user, at_sign, host = url.rpartition("@")
    name, colon, password = user.partition(":")
    # without a scheme, `x:y@` is a user, and neither `@scope/package@1` nor `npm:@scope/package` has one
    if at_sign and (mark or (colon and name and "/" not in name and "@" not in name and password[:1] not in ("", "@"))):
        url = f"…@{host}"
    start = min((at for at in map(url.find, "?#") if at >= 0), default=len(url))
    if mark or "=" in url[start:]:
        end = len(url.rstrip(":,;.)'\"”"))
        url = f"{url[: start + 1]}…{url[end:]}" if start < end else url
    return before + mark + url


def one_line(text: str, letters: int = PHRASE_LETTERS) -> str:
    """Put captured text on one safe line: collapse runs of blanks, cut after `letters`."""
    if len(text) > letters:
        text = text[:letters] + "…"
    if not text.isprintable() or "  " in text or text[:1] == " " or text[-1:] == " ":
        text = " ".join(text.split())
    return safe_text(text)


def json_text(text: str) -> str:
    r"""Put valid JSON text on one line and make it harmless on a terminal, without changing its meaning.

    In JSON, newlines occur only between tokens, and dangerous characters only inside strings, where `\u202e` means the same.
    """
    if text.isascii() and text.isprintable():
        return text
    return _unsafe_in_json.sub(_spelled_in_json, text.replace("\n", " ").replace("\r", " ").replace("\t", " "))


def mermaid_text(text: str) -> str:
    """Spell `text` as a Mermaid message, note or alias: one line without statements, comments, directives or markup. Never empty."""
    line = _blanks.sub(" ", text).strip()
    if not line:
        return "#32;"
    return _mermaid_words.sub(_first_encoded, safe_text(line).translate(_MERMAID_SIGNS))


def plantuml_text(text: str) -> str:
    """Spell `text` as a PlantUML message, note or name: one line without statements, macros, links or markup. Never empty."""
    line = _blanks.sub(" ", text).strip()
    if not line:
        return "<U+00A0>"
    return _plantuml_signs.sub(_as_code_point, safe_text(line))


def markdown_text(text: str) -> str:
    """Spell `text` as plain words of Markdown: one line without markup, HTML, links, mentions or issue numbers."""
    line = _blanks.sub(" ", text).strip()
    if not line:
        return "&nbsp;"
    return _markdown_calls.sub(r"\g<0>&#8203;", _markdown_signs.sub(r"\\\g<0>", safe_text(line)).translate(_MARKDOWN_ENTITIES))


def markdown_code(text: str) -> str:
    """Spell `text` as a code span of Markdown, for names and paths."""
    line = safe_text(_blanks.sub(" ", text).strip()).replace("|", "¦") or " "
    fence = "`" * (max(map(len, _backticks.findall(line)), default=0) + 1)
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def markdown_fence(lines: list[str]) -> str:
    """Return a fence of backticks that is longer than any run of backticks in `lines`."""
    return "`" * max(3, *(len(run) + 1 for line in lines for run in _backticks.findall(line)), 0)


def xml_text(text: str) -> str:
    """Spell `text` as character data or an attribute's value of XML or HTML: one line without markup."""
    return safe_text(text).translate(_XML_SIGNS)


def _as_code_point(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"


def _spelled(match: re.Match[str]) -> str:
    sign = match[0]
    code = ord(sign)
    if sign in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[sign]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _spelled_in_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _first_encoded(match: re.Match[str]) -> str:
    return f"#{ord(match[0][0])};{match[0][1:]}"
