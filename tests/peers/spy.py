"""mcpspy, for tests that want it in a process of its own, but not what its start takes.

spy.py ARGUMENT…
SPY_LARGE_BYTES in its environment says from which size on captures are large; SPY_COPIES, that a trial starts mcpspy as spy.py too.
"""

import prepared  # noqa: F401 - saves the imports that follow

import os
import sys

from mcpspy.__main__ import main

if __name__ == "__main__":
    if "SPY_LARGE_BYTES" in os.environ:
        from mcpspy.cli import transcripts

        transcripts.LARGE_BYTES = int(os.environ["SPY_LARGE_BYTES"])
    if "SPY_COPIES" in os.environ:
        from mcpspy.cli import trial_bench

        vars(trial_bench)["MCPSPY"] = (sys.executable, __file__)
    sys.exit(main())
