"""mcpspy, for tests that want it in a process of its own, but not what its start takes.

spy.py ARGUMENT…
"""

import prepared  # noqa: F401 - saves the imports that follow

import sys

from mcpspy.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
