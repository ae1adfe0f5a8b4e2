"""Faults of our own, told as where they are, and not as what they say: that may be somebody's secret.

Refuses to end anything: who meets one does.
"""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb


def fault_text(error: BaseException) -> str:
    """A sentence on an exception of ours: its type and its place."""
    where = [f"{Path(frame.f_code.co_filename).name}:{line}" for frame, line in walk_tb(error.__traceback__)]
    place = f" in {where[-1]}" if where else ""
    return f"a fault of mcpspy's own, {type(error).__name__}{place}: it ends one connection, the others go on"
