"""The page that explains filters, as docs/filter.md and as `mcpspy help filter`. The list of keys is the parser's own."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..transcript.filter.keys import KEYS
from .text.cells import cells, padded, wrapped
from .text.line import Line

MAX_LINES = 50
"""The most lines of a paragraph."""

MIN_CELLS = 30
"""If the second column were narrower than this, it is put below the first one."""

_MARGIN = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A title, paragraphs, and a table with its heads; without heads there is no table. Code is in backquotes."""

    title: str
    paragraphs: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


INTRODUCTION = PageSection(
    title="Filters",
    paragraphs=(
        (
            "A filter selects the rows of a timeline to show: `mcpspy show -F 'tool:search* dur>2s'`. Every verb with the option"
            " `--filter`, or `-F` for short, takes the same language, and so does the search box of the page in the browser."
            " If you give several filters, a row has to match all of them."
            ' Put a filter in single quotation marks, because `>`, `*`, `(` and `"` have a meaning in the shell.'
        ),
        "Rows keep their order and their numbers, and the number of matches is shown. With `-f` a row appears when it first matches.",
    ),
)

GRAMMAR = PageSection(
    title="Syntax",
    heads=("syntax", "matches"),
    rows=(
        ("`key:value`", "rows with this value: `status:error`"),
        ("`key>value`", "rows with a greater value; also `>=`, `<`, `<=`, and `key:7..20` for a range, both ends included"),
        ('`"text"`', "rows with this text anywhere in their payload, as it is or as JSON spells it"),
        ("`a b`, `a and b`", "rows that match both"),
        ("`a or b`", "rows that match one of them; `and` binds tighter"),
        ("`not a`", "rows that do not match; `not` binds tightest"),
        ("`( … )`", "a group; groups can be nested 50 deep"),
        (
            '`key:"a value"`',
            'a value with spaces, parentheses, or a literal `*`; `\\"` and `\\\\` are `"` and `\\`',
        ),
    ),
)

MATCHING = PageSection(
    title="What matches",
    paragraphs=(
        (
            "A filter is applied to each message, together with the facts of its exchange. An exchange is shown if one of its"
            " messages matches. `kind:result bytes>1mb` finds calls whose result is larger than 1 MB. `not kind:progress` leaves out"
            " progress that belongs to no call; a call is still shown, because its request is not progress."
        ),
        (
            "Rows without a message are filtered too: lines of stderr (`kind:stderr`), channel events (`kind:event`), HTTP requests"
            " without a message (`kind:transaction`), and model calls (`kind:model`), whose payload is the prompt and the answer."
            " A fact that a row does not have matches no value: a pending call has no duration, so neither `dur>2s` nor `dur<2s`"
            " finds it."
        ),
        (
            "In a word, `*` matches any characters, also none, and `?` matches one. Upper and lower case differ. There are no regular"
            " expressions, so the time that a filter takes is linear in the size of what it reads."
        ),
    ),
)

VALUES = PageSection(
    title="Amounts and times",
    heads=("value", "meaning"),
    rows=(
        ("`300ms`, `1.5s`, `2m`, `1h`", "a time span: `ns`, `us`, `ms`, `s`, `m` (minutes), `h`"),
        ("`500`, `10kb`, `1.5mb`", "a size in bytes: `kb`, `mb` and `gb` are powers of 1000"),
        ("`+2.5s`", "a point in time, counted from the beginning of the first capture, like the times in the timeline"),
        (
            "`12:30:05`",
            "a time on the day on which the first capture began, in the local time zone; also `12:30` and `12:30:05.250`",
        ),
        ("`2026-11-21`", "the beginning of that day, in the local time zone"),
        ("`2026-11-21T12:30:05`", "that point in time, in the local time zone, or in another: `2026-11-21T12:30:05Z`"),
    ),
)

EXAMPLES = PageSection(
    title="Examples",
    heads=("to find", "write"),
    rows=(
        ("slow calls of tools", "`method:tools/call dur>2s`"),
        ("everything that failed", "`status:failed`"),
        ("one error code", "`status:-32602`"),
        ("requests by the server", "`dir:server kind:request`"),
        ("large results", "`kind:result bytes>100kb`"),
        ("everything around a point in time", "`after:+12s before:+14s`"),
        ("everything but handshake and pings", "`not (method:initialize or method:ping)`"),
        ("calls without an answer", "`status:pending or status:unanswered`"),
        ("rows that mention a file", '`"diary.txt"`'),
        ("noise on stdout, and stderr", "`kind:noise or kind:stderr`"),
        ("refused HTTP requests", "`http:401 or http:403`"),
        ("rows with a certain finding", "`rule:unanswered-request`"),
        ("calls of a tool, and its tool uses", "`tool:*search`"),
    ),
)


def keys_section() -> PageSection:
    """Return the table of keys, from the parser's own table."""
    return PageSection(
        title="Keys",
        heads=("key", "meaning", "operators", "values", "example"),
        rows=tuple(
            (
                f"`{key.name}`",
                key.meaning,
                " ".join(f"`{operator}`" for operator in key.operators),
                key.values,
                f"`{key.example}`",
            )
            for key in KEYS.values()
        ),
    )


def sections() -> tuple[PageSection, ...]:
    """Return the sections of the page."""
    return (INTRODUCTION, GRAMMAR, MATCHING, keys_section(), VALUES, EXAMPLES)


def page_lines(width: int | None) -> Iterator[Line]:
    """Yield the page for a terminal. `width` in cells; None means unbounded."""
    for number, section in enumerate(sections()):
        if number:
            yield []
        yield [(section.title, "strong")]
        for paragraph in section.paragraphs:
            yield []
            for part in _wrapped(_bare(paragraph), width, 0):
                yield [(part, "")]
        if section.heads:
            yield []
            yield from _table(section, width)


def _table(section: PageSection, width: int | None) -> Iterator[Line]:
    """Yield a table: the first column beside the others, which are below each other; on a narrow screen above them."""
    left = max(cells(_bare(row[0])) for row in section.rows) + 2 * len(_MARGIN)
    is_narrow = width is not None and width - left < MIN_CELLS
    indent = " " * (2 * len(_MARGIN) if is_narrow else left)
    for row in section.rows:
        first, second, *others = map(_bare, row)
        name = padded(_MARGIN + first, left)
        if is_narrow:
            yield [(name.rstrip(), "key")]
            name = indent
        for text, style in ((second, ""), (" · ".join(text for text in others if text != ":"), "dim")):
            for part in _wrapped(text, width, len(indent)) if text else ():
                yield [(name, "key"), (part, style)]
                name = indent


def _wrapped(text: str, width: int | None, taken: int) -> list[str]:
    return [text] if width is None else wrapped(text, max(1, width - taken), MAX_LINES)


def _bare(text: str) -> str:
    return text.replace("`", "")
