"""Types of values and of commands for click: words that are read by a function, and commands that take WHATs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import click

from ..capture.store.address import STDIN
from .capture_options import UsageError, size_bytes
from .units import age_ns, quota_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem

T = TypeVar("T")


class Word(click.ParamType, Generic[T]):  # type: ignore[type-arg] # it takes an argument from click 8.4 on
    """A value that `read` makes from a word; a shell offers the words in `offered`."""

    def __init__(self, name: str, read: Callable[[str], T], offered: Sequence[str] = ()) -> None:
        self.name = name
        self._read = read
        self._offered = offered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read the word. A default is a value already."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer words."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self._offered if word.startswith(incomplete)]


AGE: Final = Word("age", age_ns)
SIZE: Final = Word("size", size_bytes)
QUOTA: Final = Word("quota", quota_or_none)
"""A quota for the store; 0 for `none`."""


class WhatCommand(click.Command):
    """A command that takes WHATs. `-:7` is row 7 of standard input, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move such WHATs after `--`, where click takes no word for an option."""
        end = args.index("--") if "--" in args else len(args)
        rows = [word for word in args[:end] if word.startswith(f"{STDIN}:")]
        others = [word for word in args[:end] if not word.startswith(f"{STDIN}:")]
        return super().parse_args(ctx, [*others, "--", *rows, *args[end + 1 :]])
