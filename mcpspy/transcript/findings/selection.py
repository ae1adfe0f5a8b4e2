"""Which rules are wanted: names, globs and families, as `--select` and `--ignore` take them. Refuses names that mean no rule."""

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ...errors import RuleError
from .registry import RULES
from .rule import Family, Rule


def selected_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> dict[str, Rule]:
    """The rules that are wanted, by name: those of `select` (all, if that is empty) without those of `ignore`.

    Each text may name several, with commas between. Raises: RuleError: for a name, a glob or a family that means no rule.
    """
    wanted = _named(select) or set(RULES)
    unwanted = _named(ignore)
    return {name: rule for name, rule in RULES.items() if name in wanted and name not in unwanted}


def rule_named(name: str) -> Rule:
    """The rule of this name. Raises: RuleError: if there is none; it names the nearest."""
    rule = RULES.get(name)
    if rule is None:
        raise RuleError(name, _nearest(name, RULES))
    return rule


def _named(texts: Iterable[str]) -> set[str]:
    words = [word.strip() for text in texts for word in text.split(",")]
    return {name for word in words if word for name in _meant(word)}


def _meant(word: str) -> list[str]:
    if word in RULES:
        return [word]
    if word in tuple(Family):
        return [rule.name for rule in RULES.values() if rule.family == word]
    found = [name for name in RULES if fnmatchcase(name, word)] if any(sign in word for sign in "*?[") else []
    if not found:
        raise RuleError(word, _nearest(word, [*RULES, *Family]))
    return found


def _nearest(word: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(get_close_matches(word[:80], [str(name) for name in names], n=3, cutoff=0.5))
