"""mcpspy with the SDK, for tests of `mcpspy mcp`.

agentserver.py mcp ARGUMENT…
"""

import prepared  # noqa: F401 - saves the imports that follow

import sys

import mcpspy.agent.server
import mcpspy.cli.web.agent_captures  # noqa: F401 - "
from mcpspy.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
