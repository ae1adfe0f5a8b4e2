"""Another operating system, as far as Linux can play it, in every Python that a test starts with this folder on its path.

PYTHONPATH=tests/systems MCPSPY_TESTED_SYSTEM=darwin pytest -m data_path

PYTHONPATH=tests/systems MCPSPY_TESTED_SYSTEM=win32 pytest tests/systems

What the system lacks is taken away, and what it does otherwise is done so. What tests use to look at mcpspy from outside,
as /proc, is hidden from mcpspy alone. Not played: kqueue itself, launchd, details of terminals.
Of Windows: its paths, its console, its text mode of descriptors, its shares of files among processes, its own calls.
"""

import os

if os.environ.get("MCPSPY_TESTED_SYSTEM") == "darwin":
    import darwin  # type: ignore[import-not-found]  # it stands beside us, and PYTHONPATH names this folder

    darwin.play()
elif os.environ.get("MCPSPY_TESTED_SYSTEM") == "win32":
    import windows  # type: ignore[import-not-found]

    windows.play()
