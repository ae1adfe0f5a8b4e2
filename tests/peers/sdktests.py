"""pytest, for tests that are written for the SDK.

sdktests.py ARGUMENT…
"""

import prepared  # noqa: F401 - saves the imports that follow

import sys

import mcp.client.stdio
import mcp.client.streamable_http  # noqa: F401 - what tests import
import pytest

if __name__ == "__main__":
    sys.exit(pytest.main())
