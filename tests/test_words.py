"""Words that the project has replaced: no text of the package and no page uses them."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

REPLACED = (
    "sitting", "errand", "forged", "verdict", "oddity", "live name", "standing stream", "held back", "left over", "slipped through",
    "stands before", "stands behind", "stand behind", "goes with neither", "is ours", "thereof", "nobody for certain",
    "when you ask for it", "plays again", "of whom",
)  # fmt: skip

FILES = sorted(
    path
    for pattern in ("mcpspy/**/*.py", "mcpspy/page/*", "docs/**/*.md", "*.md", "captures/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)


@cache
def texts() -> list[tuple[Path, str]]:
    return [(path, path.read_text(encoding="utf-8").lower()) for path in FILES]


@pytest.mark.parametrize("phrase", REPLACED)
def test_a_replaced_word_is_used_nowhere(phrase: str) -> None:
    search = re.compile(rf"(?<![\w-]){re.escape(phrase)}s?\b").search
    uses = [f"{path.relative_to(ROOT)}: {phrase}" for path, text in texts() if phrase in text and search(text)]
    assert not uses
