"""Reader of the interpreter's import log (`-X importtime`): which modules a program imported."""

import re
import subprocess
import sys
from collections.abc import Collection
from importlib.util import find_spec

from tests.deadlines import DEADLINE_S

IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s*(\S+)$")


def imports(log: str) -> set[str]:
    """Return the modules of an import log."""
    return {match[1] for line in log.splitlines() if (match := IMPORTED.match(line))}


def bare_interpreter() -> str:
    """Return the import log of an interpreter that runs nothing."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    ).stderr


def assert_absent(names: Collection[str], imported: Collection[str]) -> None:
    """Assert that none of these modules was imported, and first that each exists: a test must not pass because one was renamed."""
    unknown = [name for name in names if not _exists(name)]
    assert not unknown, f"no such modules: {', '.join(sorted(unknown))}"
    present = set(names) & set(imported)
    assert not present, f"imported: {', '.join(sorted(present))}"


def _exists(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its package does not exist
        return False
