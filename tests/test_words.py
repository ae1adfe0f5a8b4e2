"""Words that the project has replaced: no text of the package and no page uses them."""

import re

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


@pytest.mark.parametrize("phrase", REPLACED)
def test_a_replaced_word_is_used_nowhere(phrase: str) -> None:
    search = re.compile(rf"(?<![\w-]){re.escape(phrase)}s?\b", re.IGNORECASE).search
    uses = [f"{path.relative_to(ROOT)}: {match[0]}" for path in FILES if (match := search(path.read_text(encoding="utf-8")))]
    assert not uses
