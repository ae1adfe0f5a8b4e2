"""The file of `mcpspy trial --expect`: a line for each fault, `slow: went on`, with commas between several outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...replay.trial.outcome import TrialOutcome
from ...views.text.escape import safe_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ...replay.trial.result import TrialResult

_OUTCOMES = frozenset(outcome.value for outcome in TrialOutcome)


def read_expectations(path: str, faults: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Read the expected outcomes. Raises: click.UsageError: if the file cannot be read, with the line that is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"--expect {path}: {reason}. Add --accept to write the outcomes there.") from None
    expected: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        name, _, words = line.partition("#")[0].partition(":")
        if not name.strip():
            continue
        outcomes = tuple(word.strip() for word in words.split(","))
        wrong = next((word for word in outcomes if word not in _OUTCOMES), None)
        if name.strip() not in faults:
            raise click.UsageError(
                f"{path}, line {number}: there is no fault {safe_text(name.strip())}; mcpspy trial --list has all."
            )
        if wrong is not None:
            known = ", ".join(sorted(_OUTCOMES))
            raise click.UsageError(f"{path}, line {number}: {safe_text(wrong) or 'nothing'} is no outcome. They are {known}.")
        expected[name.strip()] = outcomes
    return expected


def write_expectations(path: str, results: Iterable[TrialResult]) -> None:
    """Write the outcomes. Raises: OSError."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{result.fault}: {result.judgement.outcome}\n" for result in results)
