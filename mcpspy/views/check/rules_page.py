"""The page on findings, docs/findings.md: made of the rules in `transcript.findings`. Refuses to add to them."""

from collections.abc import Iterable
from typing import Final

from ...transcript.findings.rule import Family, Rule
from .complaints import PAINS, pains_table

HEAD = """\
# Findings

What mcpspy finds worth a human's eye, rule by rule: what it sees, why that is bad, who is to blame and how that is known, what
it looks like, and what to do. Findings stand below the timeline of [`mcpspy show`](start.md#look) and in
[its JSON](json.md#mcpspy-show---json) under these names, which are stable. The severity is the usual one; a finding may be milder
where it does no harm. Where records are missing, nobody is blamed for what was not seen.

[`mcpspy check`](check.md) lists them by culprit, and alone tells of cost, of trust, and of what tools and types promise.

In the examples `→` is what the client sends, `←` what the server sends, `!` what it writes to stderr, and `·` what else happens;
`…` at the end of a line means that it has no line feed. `tools/call 7 {…}` is short for a request with the id 7 and these params,
`result 7 {…}` and `error 7 -32602 …` for its answer, `handshake 2025-11-25, client: roots, server: tools` for initialize with these
capabilities, its answer and notifications/initialized; after `revision 2026-07-28` requests say so in their `_meta`. `⇒` goes to a
model's API and `⇐` comes from it: `asks` is a prompt with a turn of the user's, and with the tools that it `offers` from there on;
`uses c1 forecast {…}` is an answer that wants a tool called, `says` one in words, and `returns c1 …` the prompt that tells what came.

Each example is a capture in `tests/findings/`, and so is its twin that is as it should be: the tests hold that the rule finds the
one and is silent about the other.

This page is made of the rules in `mcpspy/transcript/findings/`: change them, and write the page with
`MCPSPY_WRITE_DOCS=1 pytest tests/views/check/test_rules_page.py`.
"""

REAL: Final = (
    (
        "Python SDK servers over HTTP (`mcp` 2.3.0 on uvicorn)",
        "body-waits",
        "An answer as JSON comes in two pieces: uvicorn writes head and body apart, without TCP_NODELAY: 40 ms for each call.",
    ),
    (
        "`@modelcontextprotocol/server-everything` on stdio",
        "unanswered-request",
        "A client that leaves soon after its handshake is asked for its roots when its stdin is closed already. Info: nobody waits.",
    ),
    (
        "`@modelcontextprotocol/server-filesystem`",
        "server-died",
        "With a folder that does not exist it exits with 1 while the client waits for initialize, and says why on stderr alone.",
    ),
)
"""Where real programs are really wrong: the program, the rule, and what it does."""

_REAL: Final = """\
## Found in real programs

The tests let servers and clients that nobody here wrote talk to each other: the official SDKs, their servers and inspector, on stdio,
HTTP+SSE and Streamable HTTP, in both eras. Nothing is found in these sessions at the default level, warning, but for what is listed
here and for what scenes do on purpose (they call tools that there are not, and with wrong arguments). What stands here is true:

"""


def rules_page(rules: Iterable[Rule]) -> str:
    """The page in Markdown: a table of the rules of each family, and a section for each rule."""
    rules = list(rules)
    tables = [_table(family, [rule for rule in rules if rule.family is family]) for family in Family]
    real = [f"| {program} | [`{rule}`](#{rule}) | {_cell(what)} |" for program, rule, what in REAL]
    found = "\n".join([_REAL + "| program | rule | what it does |", "| --- | --- | --- |", *real, ""])
    return "\n".join([HEAD, *filter(None, tables), pains_table(PAINS), found, *map(section, rules)])


def _table(family: Family, rules: list[Rule]) -> str:
    if not rules:
        return ""
    rows = [f"| [`{rule.name}`](#{rule.name}) | {rule.severity} | {_cell(rule.what)} |" for rule in rules]
    return "\n".join([f"| {family} | severity | what it sees |", "| --- | --- | --- |", *rows, ""])


def section(rule: Rule) -> str:
    """All about one rule, in Markdown."""
    clean = f"\nAs it should be:\n\n```text\n{rule.clean}\n```\n" if rule.clean else ""
    return f"""\
## {rule.name}

{rule.what} *{rule.severity.capitalize()}, {rule.family}.*

**Why this is bad.** {rule.why}

**Who is to blame.** {rule.blame}

```text
{rule.example}
```
{clean}
**What to do.** {rule.fix}
"""


def _cell(text: str) -> str:
    """`text` in a table's cell."""
    return text.replace("|", r"\|")
