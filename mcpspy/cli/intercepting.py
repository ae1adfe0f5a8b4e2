"""The intercepts that `mcpspy run` and `mcpspy proxy` were given: read, with their files, rows and seed, and put into a tap."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Any

from ..errors import AddressError, CaptureError, InterceptError
from ..intercept.decisions import Intercepts
from ..intercept.syntax import parse_intercept
from ..live.stdio.intercepting import InterceptingTap
from ..transcript.model import Exchange, UnpairedMessage
from .capture_options import UsageError, last
from .new_capture import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..live.stdio.tap import StdioTap
    from .capture_options import Values


def tap_maker(values: Values) -> Callable[..., StdioTap]:
    """Return what makes a tap with the intercepts of these options. Raises: UsageError: if one cannot be read."""
    intercepts = intercepts_of(values, "stdio")

    def make(*arguments: Any, **options: Any) -> StdioTap:
        tap = InterceptingTap(*arguments, **options)
        tap.intercept(intercepts)
        return tap

    return make


def intercepts_of(values: Values, transport: str) -> Intercepts:
    """Return the intercepts of these options, for a tap of `stdio` or `http`. Raises: UsageError: if one cannot be read."""
    texts = [*values.get("intercept", ()), *(line for name in values.get("intercepts", ()) for line in _lines(name))]
    try:
        rules = [parse_intercept(text, answer_of, transport) for text in texts]
    except InterceptError as error:
        raise UsageError(str(error).rstrip(".")) from None
    seed = _seed(values)
    intercepts = Intercepts(rules, [Random(f"{seed} {at}") for at in range(len(rules))], seed)  # noqa: S311 - it is no secret
    intercepts.say = lambda text, _: report(f"mcpspy: {text}")
    return intercepts


def _seed(values: Values) -> int:
    if "seed" not in values:
        return int.from_bytes(os.urandom(4), "big")
    text = last(values, "seed")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"--seed is a whole number like 7, not {text}")
    return int(text)


def _lines(name: str) -> list[str]:
    """Return the intercepts in a file. Raises: UsageError: if it cannot be read."""
    try:
        with open(name, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"--intercepts {name}: {reason}; name a text file with one intercept to a line") from None
    return [line for line in lines if line and not line.startswith("#")]


def answer_of(name: str) -> bytes:
    """Return the content of a file, or the answer of a recorded row as in `@:7`. Raises: ValueError: with the reason."""
    if os.path.isfile(name) or ":" not in name:
        try:
            with open(name, "rb") as file:
                return file.read()
        except OSError as error:
            raise ValueError(f"{name}: {error.strerror}") from None
    from .transcripts import select_captures, transcript_of

    try:
        selection = select_captures((name,))
        rows = selection.rows_in(transcript_of(selection)[0]) if selection.is_one_row else []
    except (AddressError, CaptureError) as error:
        raise ValueError(str(error).rstrip(".")) from None
    for row in rows:
        message = row.response if isinstance(row, Exchange) else row.message if isinstance(row, UnpairedMessage) else None
        if message is not None:
            return message.raw
    raise ValueError(f"{name} is no row with an answer")
