"""Write the captures of the rules' examples: `python -m tests.findings.make`. A test holds that they are there and up to date."""

from pathlib import Path

from mcpspy.transcript.findings.rules import RULES
from tests.findings.telling import capture

FOLDER = Path(__file__).parent


def captures() -> dict[str, bytes]:
    """Every capture by its name: for each rule one that has the fault, and one that has not."""
    made: dict[str, bytes] = {}
    for rule in RULES.values():
        made[f"{rule.name}.mcpspy"] = capture(rule.example)
        made[f"{rule.name}.clean.mcpspy"] = capture(rule.clean)
    return made


if __name__ == "__main__":
    for old in FOLDER.glob("*.mcpspy"):
        old.unlink()
    for name, data in captures().items():
        (FOLDER / name).write_bytes(data)
