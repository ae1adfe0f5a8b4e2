"""The pages on findings, docs/findings.md and a page for each family in docs/findings/, generated from the rules.

Write them with `MCPSPY_WRITE_DOCS=1 pytest tests/findings/test_pages.py`.
"""

import re
from collections.abc import Iterable
from typing import Final

from mcpspy.transcript.findings.rule import Family, Rule
from mcpspy.views.check.rules import rule_markdown

SUBJECTS: Final = {
    Family.TRANSPORT: "Losses and delays between what one side writes and what the other reads: lines, streams, processes, HTTP.",
    Family.PROTOCOL: "Messages that violate JSON-RPC or the revision of MCP in force.",
    Family.BEHAVIOUR: "Traffic that is allowed, but slow or wasteful.",
    Family.COST: (
        "Tokens of a model's context that tools and results take.\n"
        "They are estimated from the bytes of a text: mostly within 15 % of the vocabularies o200k_base and cl100k_base,\n"
        "and within a tenth for the definitions of tools together."
    ),
    Family.TRUST: "Things that a server hides from the user, shows but should not, or has changed since somebody accepted it.",
    Family.MODEL: (
        "Traffic between a model and the servers:\nthe tools that its prompts offer, the tools that it uses, and their results."
    ),
    Family.CAPTURE: "Records that a capture lacks.",
}

MAX_COLUMNS: Final = 120
CLAUSE: Final = re.compile(r"(?:`[^`]*`|[^`])+?(?:[.,;:]\**(?: |$)|$)")

INDEX: Final = """\
# Findings

A finding is something in a capture that somebody should look at.
Findings are shown below the timeline of [`mcpspy show`](start.md#look) and in [its JSON](json.md#mcpspy-show---json).
[`mcpspy check`](check.md) groups them by culprit.
In captures of more than 10,000 messages, only it reports those about cost, trust, schemas and types,
and about calls that go together.

Each finding follows a rule.
The rule's name is stable, and its severity is the default: a harmless case gets a lower one.
Where records are missing, nobody is blamed for what was not seen.
[Known problems](known-problems.md) lists what users of MCP complain about, with the rules that find it.

## How to read the examples

Each rule has an example with the problem, and the same traffic without it.
In them `→` is sent by the client, `←` by the server, `!` is what the server writes to stderr,
and `·` is anything else that happens.

- `…` at the end of a line means that it has no line feed.
- `tools/call 7 {…}` stands for a request with the id 7 and these params,
  `result 7 {…}` and `error 7 -32602 …` for its response.
- `handshake 2025-11-25, client: roots, server: tools` stands for initialize with these capabilities, its response and
  notifications/initialized.
- After `revision 2026-07-28` each request names that revision in its `_meta`.
- `⇒` is sent to a model's API and `⇐` by it:
  `asks` is a prompt with a turn of the user, and with the tools that it `offers` from there on;
  `uses c1 forecast {…}` is an answer that asks for a tool, `says` an answer in words,
  and `returns c1 …` the prompt that tells the result.

The examples are captures in `tests/findings/`: the tests check that a rule finds its example and nothing in the other.

## The rules

These pages are generated from the rules in `mcpspy/transcript/findings/`: change them, and write the pages with
`MCPSPY_WRITE_DOCS=1 pytest tests/findings/test_pages.py`.
"""


def pages(rules: Iterable[Rule]) -> dict[str, str]:
    """Make the text of each page, by its path in docs/."""
    rules = list(rules)
    families = {family: [rule for rule in rules if rule.family is family] for family in Family}
    index = "\n".join([INDEX, *(_index_section(family, members) for family, members in families.items())])
    return {"findings.md": index, **{_path(family): _page(family, members) for family, members in families.items()}}


def link(rule: Rule, folder: str = "findings/") -> str:
    """Link to the section of a rule, from a page in docs/."""
    return f"[`{rule.name}`]({folder}{rule.family}.md#{rule.name})"


def _path(family: Family) -> str:
    return f"findings/{family}.md"


def _index_section(family: Family, rules: list[Rule]) -> str:
    head = f"### {family.capitalize()}\n\n{SUBJECTS[family]}\n[All about these rules]({_path(family)}).\n"
    rows = (f"| {link(rule)} | {rule.severity} | {_cell(rule.title)} |" for rule in rules)
    return "\n".join([head, "| rule | severity | what |", "| --- | --- | --- |", *rows, ""])


def _page(family: Family, rules: list[Rule]) -> str:
    head = f"# Findings: {family}\n\n{SUBJECTS[family]}\n[How to read the examples](../findings.md#how-to-read-the-examples).\n"
    rows = (f"| [`{rule.name}`](#{rule.name}) | {rule.severity} | {_cell(rule.what)} |" for rule in rules)
    return "\n".join([head, "| rule | severity | what it finds |", "| --- | --- | --- |", *rows, "", *map(_section, rules)])


def _section(rule: Rule) -> str:
    """Explain a rule, with its text broken into sentences where it is long; the examples stay as they are."""
    parts = re.split(r"(^```.*?^```$)", rule_markdown(rule), flags=re.MULTILINE | re.DOTALL)
    parts[::2] = ["\n".join(map(_broken, part.split("\n"))) for part in parts[::2]]
    return "".join(parts)


def _broken(line: str) -> str:
    """Break a long line after each sentence, and a long sentence after the last clause that fits."""
    if len(line) <= MAX_COLUMNS:
        return line
    lines = [""]
    for clause in CLAUSE.findall(line):
        if lines[-1].endswith((". ", ".* ", ".** ")) or len(lines[-1] + clause.rstrip()) > MAX_COLUMNS:
            lines.append("")
        lines[-1] += clause
    return "\n".join(part.rstrip() for part in lines if part)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
