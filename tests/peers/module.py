"""An installed program on the SDK, as `python -m MODULE` runs it.

module.py MODULE [ARGUMENT…]
"""

import prepared  # noqa: F401 - saves the imports that follow

import runpy
import sys

import mcp.server.mcpserver  # noqa: F401 - what such a program imports

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
