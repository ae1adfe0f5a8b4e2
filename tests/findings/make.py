"""Write the captures of the rules' examples: `python -m tests.findings.make`. A test checks that they are up to date.

A capture that has to be large is not written: it is made whenever it is read.
"""

from functools import cache
from pathlib import Path

from mcpspy.transcript.findings.registry import RULES
from tests.findings.account import ANOTHER_SERVER, ANOTHER_SESSION, BEHIND_GATEWAY
from tests.findings.account import captures as account_captures

FOLDER = Path(__file__).parent

MAX_FILE_BYTES = 10_000

PARTS = ("", ".other", ".third")
"""Ends of the names of the captures that make one example."""


@cache
def captures() -> dict[str, bytes]:
    """Make every capture, by its name: for each rule one with the fault, and one without.

    A second server, a second session and a model have captures of their own.
    """
    made: dict[str, bytes] = {}
    for rule in RULES.values():
        for name, account in ((rule.name, rule.example), (f"{rule.name}.clean", rule.clean)):
            of_client, _, behind = account.partition(BEHIND_GATEWAY)
            sessions, _, other = of_client.partition(ANOTHER_SERVER)
            parts = [part for session in sessions.split(ANOTHER_SESSION) for part in account_captures(session)]
            parts += account_captures(other, "other") if other else []
            parts += account_captures(behind, "behind") if behind else []
            made |= dict(zip((f"{name}{part}.mcpspy" for part in PARTS), parts, strict=False))
    return made


def files() -> dict[str, bytes]:
    """Give the captures that are files of this folder."""
    return {name: data for name, data in captures().items() if len(data) <= MAX_FILE_BYTES}


if __name__ == "__main__":
    for old in FOLDER.glob("*.mcpspy"):
        old.unlink()
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)
