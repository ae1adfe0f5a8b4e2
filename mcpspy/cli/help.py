"""`mcpspy help`: the verbs and the topics, one verb's options, or a topic."""

from importlib import import_module

import click

from .screen import Screen

TOPICS = {"filter": "which rows to show: the language of --filter"}
"""What is explained that is no verb."""


@click.command("help")
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> None:
    """Explain a verb or a topic; without one, name them all.

    `mcpspy help show` is the same as `mcpspy show --help`.
    """
    from .main import VERBS, cli

    parent = ctx.parent or ctx
    if topic is None:
        click.echo(cli.get_help(parent))
        click.echo("\nTopics (mcpspy help TOPIC):")
        for name, words in TOPICS.items():
            click.echo(f"  {name}  {words}")
    elif topic in TOPICS:
        _topic(topic)
    elif topic in VERBS:
        verb: click.Command = import_module(f"mcpspy.cli.{topic}").command
        with click.Context(verb, parent=parent, info_name=topic) as context:
            click.echo(verb.get_help(context))
    else:
        known = ", ".join([*VERBS, *TOPICS])
        raise click.UsageError(f"There is no help on {topic!r}; there is on {known}.")


def _topic(topic: str) -> None:
    from ..views.filter_page import page_lines

    screen = Screen()
    screen.lines({"filter": page_lines}[topic](screen.width))
