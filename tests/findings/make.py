"""Write the captures of the rules' examples: `python -m tests.findings.make`. A test holds that they are there and up to date."""

from pathlib import Path

from mcpspy.transcript.findings.registry import RULES
from tests.findings.telling import ANOTHER_SERVER
from tests.findings.telling import captures as told

FOLDER = Path(__file__).parent


def captures() -> dict[str, bytes]:
    """Every capture by its name: for each rule one that has the fault, and one that has not.

    A second server has one of its own, and so has the model.
    """
    made: dict[str, bytes] = {}
    for rule in RULES.values():
        for name, account in ((rule.name, rule.example), (f"{rule.name}.clean", rule.clean)):
            first, _, other = account.partition(ANOTHER_SERVER)
            legs = told(first) + (told(other, "other") if other else [])
            made |= dict(zip((f"{name}.mcpspy", f"{name}.other.mcpspy"), legs, strict=False))
    return made


if __name__ == "__main__":
    for old in FOLDER.glob("*.mcpspy"):
        old.unlink()
    for name, data in captures().items():
        (FOLDER / name).write_bytes(data)
