"""A proxy on stdio in front of a command, which drops the messages of some methods.

    swallow.py METHOD,… COMMAND…

Lines of either side are read, and passed on if their method is none of these. It ends when the command does.
"""

import json
import subprocess
import sys
from threading import Thread
from typing import IO


def passing(source: IO[bytes], to: IO[bytes], swallowed: set[str]) -> None:
    """Pass lines on, to the end."""
    for line in source:
        if json.loads(line).get("method") not in swallowed:
            to.write(line)
            to.flush()
    to.close()


def main(methods: str, *command: str) -> int:
    """Stand between."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        swallowed = set(methods.split(","))
        Thread(target=passing, args=(sys.stdin.buffer, server.stdin, swallowed), daemon=True).start()
        passing(server.stdout, sys.stdout.buffer, swallowed)
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
