"""The page on the rules that findings follow: docs/findings.md, made of the table in `transcript.rules`. Refuses to add to it."""

from collections.abc import Iterable

from ..transcript.flaws import Flaw
from ..transcript.rules import Rule

HEAD = """\
# Findings

What mcpspy finds worth a human's eye, rule by rule: what it sees, why that is bad, what it looks like, and what to do.
Findings stand below the timeline of [`mcpspy show`](start.md#look) and in [its JSON](json.md#mcpspy-show---json) under
these names, which are stable. The severity is the usual one; a finding may be milder where it does no harm. Where records
are missing, nobody is blamed for what was not seen.

In the examples `→` is what the client sends, `←` what the server sends, and `·` what else happens.

This page is made of the table in `mcpspy/transcript/rules.py`: change that, and write the page with
`MCPSPY_WRITE_DOCS=1 pytest tests/views/test_rules_page.py`.
"""

FLAWED = "flawed-message"
"""The rule under which the flaws are listed."""


def rules_page(rules: Iterable[Rule], flaws: Iterable[Flaw]) -> str:
    """The page in Markdown: a table of the rules, and a section for each; the flaws stand with the rule that tells of them."""
    rules = list(rules)
    rows = [f"| [`{rule.name}`](#{rule.name}) | {rule.severity} | {_cell(rule.what)} |" for rule in rules]
    table = "\n".join(["| rule | severity | what it sees |", "| --- | --- | --- |", *rows])
    sections = [_section(rule) + (_flaws(flaws) if rule.name == FLAWED else "") for rule in rules]
    return "\n".join([HEAD, table, "", *sections])


def _section(rule: Rule) -> str:
    return f"""\
## {rule.name}

{rule.what} *{rule.severity.capitalize()}.*

**Why this is bad.** {rule.why}

```text
{rule.example}
```

**What to do.** {rule.fix}
"""


def _flaws(flaws: Iterable[Flaw]) -> str:
    rows = [f"| {_cell(one.what)} | {one.severity} | {_cell(one.fix)} |" for one in flaws]
    return "\n" + "\n".join(["| the flaw | severity | what to do |", "| --- | --- | --- |", *rows]) + "\n"


def _cell(text: str) -> str:
    """`text` in a table's cell."""
    return text.replace("|", r"\|")
