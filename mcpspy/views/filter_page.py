"""The page that explains filters: docs/filter.md, and `mcpspy help filter` on a terminal. Both are made of what the parser uses.

Refuses to know a key that the parser does not, and to leave one out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..transcript.filter.keys import KEYS
from .text.cells import cells, padded, wrapped
from .text.line import Line

MAX_LINES = 50
"""No paragraph has more lines than this."""

MIN_CELLS = 30
"""A column narrower than this is no column."""

_MARGIN = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A title, paragraphs, and a table with its heads; a table without heads is none. `code` in backquotes."""

    title: str
    paragraphs: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


INTRODUCTION = PageSection(
    title="Filters",
    paragraphs=(
        (
            "A filter says which rows of a timeline to show: `mcpspy show -F 'tool:search* dur>2s'`. The same language holds for"
            " every verb that takes `--filter`, or `-F` for short; of several filters all have to match. Put it in single quotation"
            ' marks, because the shell has its own ideas of `>`, `*`, `(` and `"`.'
        ),
        "Rows keep their order and their numbers, and it is said how many match. With `-f` a row appears when it first matches.",
    ),
)

GRAMMAR = PageSection(
    title="How to write one",
    heads=("written", "matches"),
    rows=(
        ("`key:value`", "what has this value: `status:error`"),
        ("`key>value`", "what has more; also `>=`, `<`, `<=`, and `key:7..20` for a range, both ends included"),
        ('`"text"`', "what has this text anywhere in its payload, as it is or as JSON spells it"),
        ("`a b`, `a and b`", "what matches both"),
        ("`a or b`", "what matches one of them; `and` binds closer"),
        ("`not a`", "what does not match; `not` binds closest"),
        ("`( … )`", "what belongs together, within one another up to 50 deep"),
        (
            '`key:"a value"`',
            'a value with blanks, parentheses, or a `*` that is meant as one; `\\"` and `\\\\` stand for `"` and `\\`',
        ),
    ),
)

MATCHING = PageSection(
    title="What matches",
    paragraphs=(
        (
            "A filter is held against each message, with the facts of its exchange; an exchange is shown if one of its messages"
            " matches. `kind:result bytes>1mb` finds calls whose result is larger than 1 MB. `not kind:progress` leaves out progress"
            " that stands alone; a call stays, whatever progress it made, because its request is no progress."
        ),
        (
            "What has no message is held against it too: lines of stderr (`kind:stderr`), what happened to the channel"
            " (`kind:event`), HTTP requests without a message (`kind:transaction`), calls of a model (`kind:model`), whose payload is"
            " the prompt and what the model said. What a row does not have matches no value: a call that is pending has no duration,"
            " so neither `dur>2s` nor `dur<2s` finds it."
        ),
        (
            "In a word `*` stands for any letters, also none, and `?` for one. Upper and lower case differ. There are no regular"
            " expressions: the time a filter takes grows with what is filtered, and no faster."
        ),
    ),
)

VALUES = PageSection(
    title="Amounts and times",
    heads=("written", "means"),
    rows=(
        ("`300ms`, `1.5s`, `2m`, `1h`", "a time span: `ns`, `us`, `ms`, `s`, `m` (minutes), `h`"),
        ("`500`, `10kb`, `1.5mb`", "a size in bytes: `kb`, `mb` and `gb` are powers of 1000"),
        ("`+2.5s`", "a point in time, counted from the beginning of the first capture as the timeline does"),
        (
            "`12:30:05`",
            "a time of the day on which the first capture began, in the local time zone; also `12:30` and `12:30:05.250`",
        ),
        ("`2026-11-21`", "the beginning of that day, in the local time zone"),
        ("`2026-11-21T12:30:05`", "that instant, in the local time zone, or in another: `2026-11-21T12:30:05Z`"),
    ),
)

EXAMPLES = PageSection(
    title="Examples",
    heads=("to find", "write"),
    rows=(
        ("slow calls of tools", "`method:tools/call dur>2s`"),
        ("everything that failed", "`status:failed`"),
        ("one error code", "`status:-32602`"),
        ("what the server asked of the client", "`dir:server kind:request`"),
        ("large results", "`kind:result bytes>100kb`"),
        ("what happened around a time", "`after:+12s before:+14s`"),
        ("everything but handshake and pings", "`not (method:initialize or method:ping)`"),
        ("calls without an answer", "`status:pending or status:unanswered`"),
        ("where a file is mentioned", '`"diary.txt"`'),
        ("noise on stdout, and what is about it", "`kind:noise or kind:stderr`"),
        ("refused HTTP requests", "`http:401 or http:403`"),
        ("what a finding points at", "`rule:unanswered-request`"),
        ("calls of a tool, and who wanted them", "`tool:*search`"),
    ),
)


def keys_section() -> PageSection:
    """The table of keys, from the parser's own."""
    return PageSection(
        title="Keys",
        heads=("key", "what it is about", "operators", "values", "example"),
        rows=tuple(
            (f"`{key.name}`", key.meaning, " ".join(f"`{one}`" for one in key.operators), key.values, f"`{key.example}`")
            for key in KEYS.values()
        ),
    )


def sections() -> tuple[PageSection, ...]:
    """The page, part by part."""
    return (INTRODUCTION, GRAMMAR, MATCHING, keys_section(), VALUES, EXAMPLES)


def markdown() -> str:
    """The page in Markdown."""
    first, *rest = sections()
    parts = [f"# {first.title}", *first.paragraphs]
    for section in rest:
        parts += [f"## {section.title}", *section.paragraphs]
        if section.heads:
            table = [section.heads, ("---",) * len(section.heads), *section.rows]
            parts.append("\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table))
    parts.append(
        "On a terminal `mcpspy help filter` says the same. This page is made of the table in `mcpspy/transcript/filter/keys.py`"
        " and of\n`mcpspy/views/filter_page.py`: change these, and write it with"
        " `MCPSPY_WRITE_DOCS=1 pytest tests/views/test_filter_page.py`."
    )
    return "\n\n".join(parts) + "\n"


def page_lines(width: int | None) -> Iterator[Line]:
    """The page for a terminal. `width` in cells; None: as wide as its lines are."""
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
    """The first column beside the others, which stand below each other; on a narrow screen above them."""
    left = max(cells(_bare(row[0])) for row in section.rows) + 2 * len(_MARGIN)
    is_narrow = width is not None and width - left < MIN_CELLS
    indent = " " * (2 * len(_MARGIN) if is_narrow else left)
    for row in section.rows:
        first, second, *others = map(_bare, row)
        name = padded(_MARGIN + first, left)
        if is_narrow:
            yield [(name.rstrip(), "key")]
            name = indent
        for text, style in ((second, ""), (" · ".join(one for one in others if one != ":"), "dim")):
            for part in _wrapped(text, width, len(indent)) if text else ():
                yield [(name, "key"), (part, style)]
                name = indent


def _wrapped(text: str, width: int | None, taken: int) -> list[str]:
    return [text] if width is None else wrapped(text, max(1, width - taken), MAX_LINES)


def _bare(text: str) -> str:
    return text.replace("`", "")
