"""The rules of findings on a terminal: all of them as a list, or all about one."""

from collections.abc import Iterable, Iterator

from ...transcript.findings.rule import Family, Rule
from ..text.cells import wrapped
from ..text.line import Line
from ..timeline.findings import STYLES

INDENT = "    "
MAX_LINES = 20

MIN_CELLS = 30
"""In less than this a sentence is no longer read."""


def rules_lines(rules: Iterable[Rule], *, width: int | None = None) -> Iterator[Line]:
    """The rules by family, each with its severity and what it sees."""
    rules = list(rules)
    longest = max((len(one.name) for one in rules), default=0)
    is_first = True
    for family in Family:
        chosen = [one for one in rules if one.family is family]
        if chosen:
            yield from [] if is_first else [[]]
            is_first = False
            yield [(family.value, "strong")]
        for rule in chosen:
            yield from _listed(rule, longest, width)


def _listed(rule: Rule, longest: int, width: int | None) -> Iterator[Line]:
    """A rule and what it sees beside it; below it, where the screen is narrow."""
    severity = (f"{rule.severity.value:7}  ", STYLES[rule.severity])
    indent = longest + 2 + len(severity[0]) + 2
    if width is not None and width - indent < MIN_CELLS:
        yield [(f"  {rule.name}  ", ""), severity]
        yield from ([(INDENT + part, "dim")] for part in _wrapped(rule.what, width - len(INDENT)))
        return
    first, *more = _wrapped(rule.what, None if width is None else width - indent)
    yield [(f"  {rule.name:{longest}}  ", ""), severity, (first, "")]
    yield from ([(" " * indent + part, "")] for part in more)


def rule_lines(rule: Rule, *, width: int | None = None) -> Iterator[Line]:
    """Explain one rule."""
    yield [(rule.title, "strong")]
    yield [(rule.name, "strong"), (f"  {rule.severity.value}", STYLES[rule.severity]), (f", {rule.family.value}", "dim")]
    yield []
    for part in _wrapped(rule.what, width):
        yield [(part, "")]
    for title, words in (("Why this is bad", rule.why), ("Who is to blame", rule.blame), ("What to do", rule.fix)):
        yield []
        yield from ([(part, style)] for part, style in _titled(title, words, width))
    for title, account in (("Example", rule.example), ("As it should be", rule.clean)):
        if account:
            yield []
            yield [(title, "strong")]
            for line in account.split("\n"):
                yield from ([(INDENT + part, "dim")] for part in _wrapped(line, None if width is None else width - len(INDENT)))


def _titled(title: str, words: str, width: int | None) -> Iterator[tuple[str, str]]:
    yield title, "strong"
    yield from ((INDENT + part, "") for part in _wrapped(words, None if width is None else width - len(INDENT)))


def _wrapped(words: str, limit: int | None) -> list[str]:
    return [words] if limit is None else wrapped(words, max(limit, 1), MAX_LINES)
