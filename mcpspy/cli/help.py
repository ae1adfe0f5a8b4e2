"""`mcpspy help`: the list of verbs and topics, one verb's options, a rule, or a topic.

Each topic's text fits a screen of 24 lines and 80 columns, and tests run every command in it. The pages of docs/ say more.
"""

from typing import Final

import click

from ..transcript.findings.registry import RULES
from ..views.check.rules import rule_lines, rules_lines
from .screen import Screen
from .verbs import TOPICS, VERBS, verb_command

_CAPTURES: Final = """\
Captures: one file for each server and each run of it, with everything that
client and server sent.

They are in ~/.mcpspy/captures, or in the folder `captures` of MCPSPY_HOME. To
commands that read captures you give a WHAT:

  @              the newest recording: one client with all its servers
  @1             the recording before that
  weather        the newest capture with this label
  FILE, -        this file; standard input
  @:7, @:2..5    row 7 of it; rows 2 to 5

  mcpspy list                               list the recordings
  mcpspy show weather:3                     show row 3 in full
  mcpspy verify weather                     is it intact? if not, what is lost?
  mcpspy show --since 1h                    show what happened in the last hour
  mcpspy prune --older-than 30d --dry-run   list what this would delete
  mcpspy prune --quota 2gb                  never keep more than 2 GB
  mcpspy export html weather -o page.html   write a page for the browser

A capture holds everything that was forwarded, even if mcpspy was killed. It is
JSON Lines, for grep, jq and git diff (docs/capture.md). Before you share one:
mcpspy help privacy.
"""

_REPLAY: Final = """\
Replay: use a capture in place of the server or of the client.

As the server, for a client, a test or a bug report. A request that was never
recorded gets an error that names the nearest recorded one (docs/mock.md):

  mcpspy mock weather                        on stdio, instead of its command
  mcpspy mock weather --listen 127.0.0.1:0   over HTTP
  mcpspy mock @ --listen 127.0.0.1:0         all servers of a recording

As the client: does a server still give the same answers? (docs/replay.md)

  mcpspy replay weather --dry-run            list what would be sent
  mcpspy replay weather -- ./server          exit status 1 if anything differs
  mcpspy replay weather --until crash -- ./server   find the calls that crash it
  mcpspy call weather:5 --yes -- ./server           send one call again

As a test that needs no server (docs/pytest.md):

  mcpspy export pytest weather -o test_weather.py

A replay is recorded too. mcpspy does not start or call the server that a
capture names unless you agree: name the server yourself, or add --yes.
"""

_PRIVACY: Final = """\
Privacy: what mcpspy records, what it replaces, and what to share.

A capture holds everything that was sent: arguments, results, logs; and prompts,
if a model API was recorded. Only you can read the file (mode 0600). mcpspy
sends nothing to anybody: no telemetry, no update checks. Proxies, mocks and
pages listen on 127.0.0.1 unless you say otherwise.

Before they reach the disk, secrets in header fields such as Authorization and
Cookie, in URLs, in OAuth bodies and in the command are replaced by pseudonyms,
and so are session ids. The same secret always gets the same pseudonym. Of the
environment only names are recorded. Payloads are not searched for secrets.
Only --redact none switches this off; no file and no variable does.

  mcpspy export share weather -o bug.mcpspy   remove secrets from payloads too
  mcpspy export share --verify bug.mcpspy     look for secrets that are left
  mcpspy export markdown weather              write a report without secrets
  mcpspy prune --keep 10 --dry-run            list what this would delete

Read a file before you share it: mcpspy cannot know what is secret to you. See
docs/security.md for the threats, docs/share.md for what is not searched.
"""

TEXTS: Final = {"captures": _CAPTURES, "replay": _REPLAY, "privacy": _PRIVACY}
"""The texts of topics; `filter` and `rules` are made from tables."""


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Explain a verb, a topic or a rule; without an argument, list the verbs and the topics.

    \b
    Examples:
      mcpspy help show           the same as mcpspy show --help
      mcpspy help filter         a topic: filter, captures, replay, privacy, rules
      mcpspy help stdout-noise   a rule of mcpspy check
    """
    parent = ctx.find_root()
    if topic is None:
        click.echo(parent.get_help())
        click.echo("\nTopics (mcpspy help TOPIC):")
        for name, line in TOPICS.items():
            click.echo(f"  {name:8}  {line}")
    elif topic in TOPICS:
        _print_topic(topic)
    elif topic in VERBS:
        verb = verb_command(topic)
        with click.Context(verb, parent=parent, info_name=topic) as context:
            click.echo(verb.get_help(context))
    elif topic in RULES:
        screen = Screen()
        screen.lines(rule_lines(RULES[topic], width=screen.width))
    else:
        known = ", ".join([*VERBS, *TOPICS])
        raise click.UsageError(
            f"There is no help on {topic!r}. Choose one of {known}, or a rule that `mcpspy help rules` lists."
        )


def _print_topic(topic: str) -> None:
    screen = Screen()
    if topic == "rules":
        screen.lines(rules_lines(RULES.values(), width=screen.width))
        return
    if topic in TEXTS:
        screen.texts(TEXTS[topic].splitlines())
        return
    from ..views.filter_page import page_lines

    screen.lines(page_lines(screen.width))
