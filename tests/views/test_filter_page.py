"""The page on filters agrees with the parser's table, and every filter on it can be parsed.

After a change, run `MCPSPY_WRITE_DOCS=1 pytest tests/views/test_filter_page.py` and look at the difference.
"""

import os
import re

import pytest

from mcpspy.transcript.filter.filter import filter_of
from mcpspy.transcript.filter.keys import KEYS
from mcpspy.views.filter_page import EXAMPLES, keys_section, page_lines, sections
from mcpspy.views.text.cells import cells
from mcpspy.views.text.filter_lines import caret_lines, matching_line
from mcpspy.views.text.line import line_cells, plain
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "filter.md"

MAX_MARKDOWN_LETTERS = 120
"""The longest line of Markdown, where a clause ends early enough."""

_sentences = re.compile(r"(?<=\.) (?=[A-Z`])").split
_parts = re.compile(r"(?<=[,;:]) ").split


def markdown() -> str:
    """Return the page in Markdown."""
    first, *rest = sections()
    parts = [f"# {first.title}", *map(_clauses, first.paragraphs)]
    for section in rest:
        parts += [f"## {section.title}", *map(_clauses, section.paragraphs)]
        if section.heads:
            table = [section.heads, ("---",) * len(section.heads), *section.rows]
            parts.append("\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table))
    parts.append(
        "`mcpspy help filter` shows the same on a terminal. This page is generated from `mcpspy/transcript/filter/keys.py` and\n"
        "`mcpspy/views/filter_page.py`; to write it again, run `MCPSPY_WRITE_DOCS=1 pytest tests/views/test_filter_page.py`."
    )
    return "\n\n".join(parts) + "\n"


def _clauses(paragraph: str) -> str:
    """Break a paragraph of Markdown after sentences, and a long sentence after its clauses too, so that diffs are readable."""
    lines: list[str] = []
    for sentence in _sentences(paragraph):
        line = ""
        for clause in _parts(sentence):
            if line and len(line) + 1 + len(clause) > MAX_MARKDOWN_LETTERS:
                lines.append(line)
                line = clause
            else:
                line = f"{line} {clause}".lstrip()
        lines.append(line)
    return "\n".join(lines)


def test_the_page_is_generated_from_the_table() -> None:
    page = markdown()
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").splitlines() == page.splitlines()


def test_every_key_is_on_the_page_with_its_operators_and_an_example() -> None:
    rows = {row[0]: row for row in keys_section().rows}
    assert list(rows) == [f"`{name}`" for name in KEYS]
    for key in KEYS.values():
        assert all(f"`{operator}`" in rows[f"`{key.name}`"][2] for operator in key.operators)


@pytest.mark.parametrize("example", [code for row in EXAMPLES.rows for code in re.findall("`(.+)`", row[1])])
def test_every_example_of_the_page_can_be_read(example: str) -> None:
    assert filter_of([example]) is not None


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_page_fits_a_terminal(width: int) -> None:
    assert all(line_cells(line) <= width for line in page_lines(width))


def test_nothing_is_left_out_on_a_narrow_terminal() -> None:
    words = [" ".join(plain(line) for line in page_lines(width)).split() for width in (80, None)]
    assert sorted(words[0]) == sorted(words[1])


@pytest.mark.parametrize(
    ("expression", "column", "above"),
    [
        ("tol:x", 1, "t"),
        ("status:ok dur>2", 15, "2"),
        ("status:ok", 10, ""),
        ("tool:杭州 dur>2", 13, "2"),
        ("x" * 500 + "!", 501, "!"),
    ],
    ids=["first", "last", "behind", "wide", "long"],
)
def test_the_caret_is_below_its_column(expression: str, column: int, above: str) -> None:
    line, caret = caret_lines(expression, column, 60)
    assert cells(line) <= 60
    assert caret.endswith("^")
    before = next(at for at in range(len(line) + 1) if cells(line[:at]) == cells(caret) - 1)
    assert line[before : before + 1] == above


def test_control_characters_are_spelled_out() -> None:
    assert "\x1b" not in "".join(caret_lines("tool:\x1b[2J dur>2", 14, 60))


@pytest.mark.parametrize(
    ("matching", "of", "logs", "words"),
    [
        (17, 1234, 0, "17 of 1,234 rows match tool:search*"),
        (1, 9, 0, "1 of 9 rows matches tool:search*"),
        (0, 1, 0, "0 of 1 row matches tool:search*"),
        (0, 9, 3, "0 of 9 rows and 3 lines of stderr match tool:search*"),
    ],
)
def test_the_number_of_matches_is_one_line(matching: int, of: int, logs: int, words: str) -> None:
    wanted = filter_of(["tool:search*"])
    assert wanted is not None
    assert plain(matching_line(wanted, matching, of, logs)) == words
