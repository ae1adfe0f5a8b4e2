"""`mcpspy help`: the verbs and the topics, one verb's options, or a topic."""

import click

from ..transcript.findings.registry import RULES
from ..views.check.rules_list import rule_lines, rules_lines
from .help_topics import TEXTS
from .screen import Screen
from .verbs import VERBS, verb_command

TOPICS = {
    "filter": "which rows to show: the language of --filter",
    "captures": "where they are, and how to name one",
    "replay": "a capture as a server, as a client, as a test",
    "privacy": "what is kept, what becomes a pseudonym, what others get",
    "rules": "what `mcpspy check` looks for; the name of a rule is a topic too",
}
"""What is explained that is no verb, or more than one: `replay` is both, and the verb's options are those of `replay --help`."""


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Explain a verb or a topic; without one, name them all.

    \b
    Examples:
      mcpspy help show              the same as mcpspy show --help
      mcpspy help filter            a topic: filter, captures, replay, privacy, rules
      mcpspy help stdout-noise      a rule of mcpspy check
    """
    from .main import cli

    parent = ctx.parent or ctx
    if topic is None:
        click.echo(cli.get_help(parent))
        click.echo("\nTopics (mcpspy help TOPIC):")
        for name, words in TOPICS.items():
            click.echo(f"  {name:8}  {words}")
    elif topic in TOPICS:
        _topic(topic)
    elif topic in VERBS:
        verb = verb_command(topic)
        with click.Context(verb, parent=parent, info_name=topic) as context:
            click.echo(verb.get_help(context))
    elif topic in RULES:
        screen = Screen()
        screen.lines(rule_lines(RULES[topic], width=screen.width))
    else:
        known = ", ".join([*VERBS, *TOPICS, "the rules of findings"])
        raise click.UsageError(f"There is no help on {topic!r}; there is on {known}.")


def _topic(topic: str) -> None:
    screen = Screen()
    if topic == "rules":
        screen.lines(rules_lines(RULES.values(), width=screen.width))
        return
    if topic in TEXTS:
        screen.texts(TEXTS[topic].splitlines())
        return
    from ..views.filter_page import page_lines

    screen.lines(page_lines(screen.width))
