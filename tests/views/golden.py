"""Golden files: the output of views, compared with files beside the tests.

After an intended change, run `MCPSPY_WRITE_GOLDEN=1 pytest tests/views` and look at the difference.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from mcpspy.views.text.line import Line, plain

FOLDER = Path(__file__).parent / "golden"


def same_as_golden(name: str, lines: Iterable[Line]) -> bool:
    """Compare `lines`, as a pipe would get them, with the file."""
    text = "".join(f"{plain(line)}\n" for line in lines)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MCPSPY_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == text.splitlines()
    return True
