"""Command lines that are read without click mean what they mean to click."""

from importlib import import_module
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli.capture_options import usual_values
from mcpspy.cli.main import WITHOUT_CLICK
from mcpspy.cli.verbs import VERBS, verb_command
from tests.cli.terminal import run

MODULES = {verb: import_module(f"mcpspy.cli.{VERBS[verb].module}") for verb in WITHOUT_CLICK}


def without_click(verb: str, arguments: list[str]) -> dict[str, Any] | None:
    """Return the parameters that `arguments` have without click; None if click has to read them."""
    usual = usual_values(arguments, MODULES[verb].OPTIONS)
    takes_words = WITHOUT_CLICK[verb]
    if usual is None or (usual[1] and not takes_words):
        return None
    left_out = {"since": None} if verb != "tui" else {}
    return usual[0] | left_out | ({takes_words: usual[1]} if takes_words else {})


def by_click(verb: str, arguments: list[str]) -> dict[str, Any] | None:
    """Return the same as click reads them; None for a usage error."""
    try:
        with verb_command(verb).make_context(verb, list(arguments)) as context:
            return dict(context.params)
    except (click.UsageError, click.exceptions.Exit):
        return None


def words(verb: str) -> st.SearchStrategy[str]:
    """Generate words of command lines: options in all spellings, values, WHATs, and odd ones."""
    options = MODULES[verb].OPTIONS
    spellings = [spelling for option in options for spelling in option.spellings]
    values = [value for option in options for value in option.choices]
    odd = [
        "",
        "-",
        "--",
        "-:7",
        "@",
        "@:7..20",
        "weather",
        "=",
        "-x",
        "-ff",
        "--hel",
        "--jso",
        "tool:* dur>2s",
        "FULL",
        "\udcff",
    ]
    spelled = st.tuples(st.sampled_from(spellings), st.sampled_from(["=", "", "=="]), st.sampled_from([*values, *odd])).map(
        "".join
    )
    return st.one_of(st.sampled_from([*spellings, *values, *odd]), spelled)


@pytest.mark.parametrize("verb", WITHOUT_CLICK)
@given(data=st.data())
def test_a_command_line_means_the_same_to_click(verb: str, data: st.DataObject) -> None:
    arguments = data.draw(st.lists(words(verb), max_size=5))
    read = without_click(verb, arguments)
    assert read is None or read == by_click(verb, arguments)


@pytest.mark.parametrize("verb", WITHOUT_CLICK)
def test_each_option_of_the_table_is_read_without_click(verb: str) -> None:
    for option in MODULES[verb].OPTIONS:
        for spelling in option.spellings:
            arguments = [spelling] if option.is_switch else [spelling, *(option.choices[:1] or ["x"])]
            assert without_click(verb, arguments) == by_click(verb, arguments) != by_click(verb, [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--raw", "--json"],
        ["show", "--nothing"],
        ["list", "more"],
        ["show", "--detail", "all"],
        ["show", "@", "-f", "--sort"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_used_is_explained_with_its_verb(arguments: list[str]) -> None:
    failed = run(*arguments)
    assert failed.returncode == 2
    assert failed.stderr.startswith(f"mcpspy {arguments[0]}: ")
    assert failed.stderr.endswith(f"mcpspy {arguments[0]} --help explains the options.\n")
