"""The steps of the workflows in .github/workflows, one function each; a test runs those that run on any machine.

python .ci/steps.py tests [PYTEST_ARGS…]   the tests that need Python and PyPI alone; on Windows those that can run there
python .ci/steps.py packages FOLDER        build the sdist and the wheel without speedups, and check what an index would refuse
python .ci/steps.py try WHEEL              install a wheel into a new environment, and run the demo and a capture of the first format
python .ci/steps.py releasable TAG         fail unless TAG may be released: docs/release.md says what has to be true
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MARKS = "not npm and not debian and not browser and not soak"


def run(*words: str | Path, **environment: str) -> None:
    """Run a program, and fail as it does."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def tests(*arguments: str) -> None:
    """Run the tests of this system."""
    if sys.platform == "win32" and not arguments:
        paths = (ROOT / "tests" / "systems" / "windows.txt").read_text(encoding="utf-8").split()
        arguments = ("--continue-on-collection-errors", *paths)
    run(sys.executable, "-m", "pytest", "-n", "4", "--dist", "worksteal", "-m", MARKS, *arguments)


def packages(folder: str) -> None:
    """Build the packages that need no compiler."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, MCPSPY_PURE="1")
    run(sys.executable, "-m", "twine", "check", "--strict", *Path(folder).glob("mcpspy-*"))


def try_wheel(wheel: str) -> None:
    """Run mcpspy as a user has it, from the wheel alone."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
        run(programs / "mcpspy", "--version")
        run(programs / "mcpspy", "demo", MCPSPY_HOME=folder)
        run(programs / "mcpspy", "show", ROOT / "captures" / "git.mcpspy")


def releasable(tag: str) -> None:
    """Fail with all reasons against a release under this tag."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    front_door = ast.parse((ROOT / "mcpspy" / "__init__.py").read_text(encoding="utf-8"))
    (version,) = (
        ast.literal_eval(node.value)
        for node in front_door.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    reasons = []
    if not project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]:
        reasons.append("pyproject.toml names no repository: fill it in")
    if tag != f"v{version}":
        reasons.append(f"the tag is {tag}, and mcpspy/__init__.py says {version}")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        reasons.append(f"CHANGELOG.md has no section '## [{version}] - DATE'")
    if reasons:
        sys.exit("not released: " + "; ".join(reasons))


STEPS = {"tests": tests, "packages": packages, "try": try_wheel, "releasable": releasable}

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in STEPS:
        STEPS[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(__doc__)
