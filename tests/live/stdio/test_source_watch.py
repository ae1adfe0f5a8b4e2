"""Changes of a server's files."""

import subprocess
import sys
from pathlib import Path

CHANGED_BEFORE_THE_THREAD_RUNS = """
import os, sys, _thread
from pathlib import Path
from mcpspy.live.stdio import source_watch

begun = []
source_watch.start_new_thread = lambda function, arguments: begun.append((function, arguments))
changes = source_watch.watch_in_a_thread([sys.argv[1]])
Path(sys.argv[1], "server.py").write_text("two versions")
_thread.start_new_thread(*begun[0])
print(os.read(changes, 4096).decode())
"""


def test_a_change_is_seen_though_the_thread_that_looks_comes_to_run_later(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("one", encoding="utf-8")
    command = [sys.executable, "-c", CHANGED_BEFORE_THE_THREAD_RUNS, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert told.strip() == str(tmp_path / "server.py")
