"""The weight of the project, held against `weight.toml`, whose figures only fall.

    python -m tests.weight     print the weight beside its limits, and lower the limits that are higher than they need to be

A statement is one of Python's, whatever its width; docstrings are none. Who has to raise a limit edits weight.toml, and says why
in the commit.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).with_name("weight.toml")

SLACK = 100
"""A limit may be higher than the weight by a hundredth, so that not every change touches it."""


def limits() -> dict[str, Any]:
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))


def statements(source: str) -> int:
    """Count the statements of a module without its docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    documented = [
        node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    docstrings = sum(ast.get_docstring(node, clean=False) is not None for node in documented)
    return sum(isinstance(node, ast.stmt) for node in nodes) - docstrings


def weights(groups: dict[str, list[str]], root: Path = ROOT) -> Counter[str]:
    """Return what `[limits]` limits: statements by group and of the tests, modules, words of docs.

    A package in no group counts as `no group`.
    """
    group_of = {package: group for group, packages in groups.items() for package in packages}
    found: Counter[str] = Counter()
    for path in (root / "mcpspy").rglob("*.py"):
        within = path.relative_to(root / "mcpspy").parts
        package = within[0] if len(within) > 1 else "mcpspy"
        found[group_of.get(package, "no group")] += statements(path.read_text(encoding="utf-8"))
        found["modules"] += 1
    for path in (root / "tests").rglob("*.py"):
        found["tests"] += statements(path.read_text(encoding="utf-8"))
    for path in (root / "docs").rglob("*.md"):
        found["words of docs"] += len(re.findall(r"\S+", path.read_text(encoding="utf-8")))
    return found


def problems(weight: Counter[str], most: dict[str, int]) -> list[str]:
    """Say which weights are over their limit, have none, or have one that should fall."""
    found = []
    for name in sorted(weight.keys() | most.keys()):
        limit = most.get(name, 0)
        if weight[name] > limit:
            found.append(f"{name}: {weight[name]:,} is over the limit of {limit:,}; cut something, or raise it and say why")
        elif limit - weight[name] > limit // SLACK:
            found.append(f"{name}: {weight[name]:,} is far below the limit of {limit:,}; lower it with python -m tests.weight")
    return found


def lowered(text: str, weight: Counter[str]) -> str:
    """Return the text of weight.toml with the limits that may fall."""
    most = tomllib.loads(text)["limits"]
    for name, limit in most.items():
        if weight[name] < limit:
            text = re.sub(rf'^("?{name}"?) = [\d_]+$', rf"\g<1> = {weight[name]:_}", text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    now = weights(limits()["groups"])
    rows = [f"{name:16}{now[name]:9,} of {limit:9,}\n" for name, limit in limits()["limits"].items()]
    sys.stdout.write("".join(rows))
    LIMITS.write_text(lowered(LIMITS.read_text(encoding="utf-8"), now), encoding="utf-8")
