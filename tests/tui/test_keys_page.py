"""The screen and the table of keys in docs/tui.md are those of the interface. `MCPSPY_WRITE_DOCS=1` writes the table."""

import os
from pathlib import Path

from mcpspy.tui.keys import KEYS

GOLDEN = Path(__file__).parent / "golden" / "rows-80x24.txt"
PAGE = Path(__file__).parents[2] / "docs" / "tui.md"


def test_the_page_has_the_keys_of_the_help() -> None:
    rows = ["| key | what it does |", "| --- | --- |"]
    rows += [f"| {' '.join(f'`{key}`' for key in key.shown.split())} | {key.help} |" for key in KEYS]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- keys -->\n")
    _, _, after = rest.partition("<!-- /keys -->")
    text = f"{before}<!-- keys -->\n" + "\n".join(rows) + f"\n<!-- /keys -->{after}"
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_the_page_has_a_golden_screen() -> None:
    assert f"```\n{GOLDEN.read_text(encoding='utf-8').rstrip()}\n```" in PAGE.read_text(encoding="utf-8")
