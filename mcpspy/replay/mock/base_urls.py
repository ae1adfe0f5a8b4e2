"""With which base URLs clients find a mock of a model's API: as they were configured when it was recorded, but for the host."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from .http.exchanges import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .recorded_prompts import Recorded

OPENAI: Final = "OPENAI_BASE_URL"
ANTHROPIC: Final = "ANTHROPIC_BASE_URL"

_VARIABLES: Final = (
    ("/chat/completions", OPENAI),
    ("/responses", OPENAI),
    ("/v1/messages", ANTHROPIC),
)
"""What follows on a base in a path, and the variable from which the official clients take it."""


def bases(recorded: Iterable[Recorded], origin: str) -> list[tuple[str, str]]:
    """The variables to set for what was asked, each with its URL; of several bases of one API the most frequent."""
    found: dict[str, Counter[str]] = {}
    for one in recorded:
        for variable, base in _named(path_of(one.transaction.target)):
            found.setdefault(variable, Counter())[base] += 1
    return [(variable, f"{origin}{counts.most_common(1)[0][0]}") for variable, counts in sorted(found.items(), reverse=True)]


def _named(path: str) -> Iterator[tuple[str, str]]:
    yield from ((variable, path.removesuffix(end)) for end, variable in _VARIABLES if path.endswith(end))
