"""Rules of findings: as a list or one by one on a terminal, and one by one in Markdown."""

from collections.abc import Iterable, Iterator

from ...transcript.findings.rule import Family, Rule
from ..text.cells import wrapped
from ..text.line import Line
from ..timeline.findings import STYLES

INDENT = "    "
MAX_LINES = 20

MIN_CELLS = 30
"""In less width a sentence is hard to read."""


def rules_lines(rules: Iterable[Rule], *, width: int | None = None) -> Iterator[Line]:
    """List rules by family, each with its severity and what it finds."""
    rules = list(rules)
    longest = max((len(rule.name) for rule in rules), default=0)
    is_first = True
    for family in Family:
        members = [rule for rule in rules if rule.family is family]
        if members:
            yield from [] if is_first else [[]]
            is_first = False
            yield [(family.value, "strong")]
        for rule in members:
            yield from _listed(rule, longest, width)


def _listed(rule: Rule, longest: int, width: int | None) -> Iterator[Line]:
    """Show a rule and what it finds beside it, or below it on a narrow screen."""
    severity = (f"{rule.severity.value:7}  ", STYLES[rule.severity])
    indent = longest + 2 + len(severity[0]) + 2
    if width is not None and width - indent < MIN_CELLS:
        yield [(f"  {rule.name}  ", ""), severity]
        yield from ([(INDENT + part, "dim")] for part in wrapped(rule.what, width - len(INDENT), MAX_LINES))
        return
    first, *more = wrapped(rule.what, None if width is None else width - indent, MAX_LINES)
    yield [(f"  {rule.name:{longest}}  ", ""), severity, (first, "")]
    yield from ([(" " * indent + part, "")] for part in more)


def rule_lines(rule: Rule, *, width: int | None = None) -> Iterator[Line]:
    """Explain one rule."""
    yield [(rule.title, "strong")]
    yield [(rule.name, "strong"), (f"  {rule.severity.value}", STYLES[rule.severity]), (f", {rule.family.value}", "dim")]
    yield []
    for part in wrapped(rule.what, width, MAX_LINES):
        yield [(part, "")]
    room = None if width is None else width - len(INDENT)
    for title, words in (("Why this is bad", rule.why), ("Who is to blame", rule.blame), ("What to do", rule.advice)):
        yield []
        yield [(title, "strong")]
        yield from ([(INDENT + part, "")] for part in wrapped(words, room, MAX_LINES))
    for title, account in (("Example", rule.example), ("As it should be", rule.clean)):
        if account:
            yield []
            yield [(title, "strong")]
            for line in account.split("\n"):
                yield from ([(INDENT + part, "dim")] for part in wrapped(line, room, MAX_LINES))


def rule_markdown(rule: Rule) -> str:
    """Explain one rule in Markdown, under a heading with its name."""
    clean = f"\nAs it should be:\n\n```text\n{rule.clean}\n```\n" if rule.clean else ""
    return f"""\
## {rule.name}

*{rule.title}: {rule.severity}, {rule.family}.* {rule.what}

**Why this is bad.** {rule.why}

**Who is to blame.** {rule.blame}

```text
{rule.example}
```
{clean}
**What to do.** {rule.advice}
"""
