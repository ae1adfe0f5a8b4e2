"""The real `mcp-server-time`, for which it is always the same moment.

    timeserver.py NOW [OPTION…]

NOW is a time with its offset, as ISO 8601 spells it. The options are those of `mcp-server-time`.
"""

import prepared  # noqa: F401 - saves the imports that follow

import sys
from datetime import datetime, tzinfo
from typing import Self

import mcp_server_time.server

_, moment, *options = sys.argv
NOW = datetime.fromisoformat(moment)


class StoppedClock(datetime):
    """A datetime whose `now` is NOW."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(NOW.timestamp(), tz)


mcp_server_time.server.datetime = StoppedClock
sys.argv = ["mcp-server-time", *options]
mcp_server_time.main()
