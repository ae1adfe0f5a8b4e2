"""The page on what replays what says what the tests of the matrix do.

After a change of them: `MCPSPY_WRITE_DOCS=1 pytest tests/interop/test_matrix_page.py`, and look at the difference.
"""

import os
from pathlib import Path

from tests.interop.matrix import LEFT_OUT, SERVED
from tests.interop.matrix_page import page

PAGE = Path(__file__).parents[2] / "docs" / "replay-matrix.md"


def test_the_page_is_what_the_tests_do() -> None:
    made = page()
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8").splitlines() == made.splitlines()


def test_the_page_names_every_capture() -> None:
    assert [name for name in (*SERVED, *LEFT_OUT) if f"`{name}`" not in PAGE.read_text(encoding="utf-8")] == []
