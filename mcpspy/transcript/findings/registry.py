"""All rules by name, and the rules that `--select` and `--ignore` choose. `finders` has the modules that they are in.

docs/findings/ is generated from the rules, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from ...errors import RuleError
from .finders import CAPTURE_FINDERS, HOP_FINDERS, MODEL_FINDERS, TRANSCRIPT_FINDERS, finder, is_optional
from .rule import Family, Rule

RULES: Final[dict[str, Rule]] = {
    rule.name: rule
    for name in sorted((*CAPTURE_FINDERS, *HOP_FINDERS, *TRANSCRIPT_FINDERS, *MODEL_FINDERS), key=is_optional)
    for rule in finder(name).RULES
}
"""All rules by name; those that have to be asked for are the last."""


def selected_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> dict[str, Rule]:
    """Give the rules named by `select` (all, if that is empty) without those named by `ignore`, by name.

    Each text has names, globs or families, separated by commas. Raises: RuleError: for one that names no rule.
    """
    wanted = _named(select) or set(RULES)
    unwanted = _named(ignore)
    return {name: rule for name, rule in RULES.items() if name in wanted and name not in unwanted}


def rule_named(name: str) -> Rule:
    """Give the rule of this name. Raises: RuleError: if there is none; it names the nearest."""
    rule = RULES.get(name)
    if rule is None:
        raise RuleError(name, _nearest(name, RULES))
    return rule


def _named(texts: Iterable[str]) -> set[str]:
    words = [word.strip() for text in texts for word in text.split(",")]
    return {name for word in words if word for name in _matching(word)}


def _matching(word: str) -> list[str]:
    if word in RULES:
        return [word]
    if word in tuple(Family):
        return [rule.name for rule in RULES.values() if rule.family == word]
    names = [name for name in RULES if fnmatchcase(name, word)] if any(sign in word for sign in "*?[") else []
    if not names:
        raise RuleError(word, _nearest(word, [*RULES, *Family]))
    return names


def _nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(get_close_matches(word[:80], [str(name) for name in names], n=3, cutoff=0.5))
