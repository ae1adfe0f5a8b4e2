"""A process that has imported what mcpspy may import, and copies itself for each mcpspy that a test starts.

A test runs it to its end (forked.py), or starts tests/peers/spy.py.
"""

import gc
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import mcpspy
from mcpspy.__main__ import main
from mcpspy.cli import transcripts
from mcpspy.setup import ports, wrapping
from tests.peers.prepared import STREAMS
from tests.preparing import Copies, Request, run_program

EXTRAS = ("mcp_types",)
TYPES = "mcp_types.methods"
CHECKING = {"check", "diff", "replay", "show"}
"""Verbs that look at messages with the official types, if they have them."""
PACKAGE = Path(mcpspy.__file__).parent
VERBS = ("cli", "transcript", "views", "replay", "live/http", "live/mock", "live/stdio")
ROOMS_OF = {"otlp": ("telemetry",), "query": ("columns",), "parquet": ("columns",)}
"""Rooms that import much, by the word of the command line that needs them."""


def import_verbs(request: Request) -> None:
    """Import the rooms that all verbs need, and those that the requested verb needs besides, each once."""
    missing = [room for room in VERBS if room not in _imported]
    missing += [room for word in request[0][1:3] for room in ROOMS_OF.get(word, ()) if room not in _imported]
    types = [TYPES] if request[0][0] != "mcpspy" and {*request[0][1:2]} & CHECKING and TYPES not in sys.modules else []
    if not missing + types:
        return
    _imported.update(missing)
    for room in missing:
        for file in (PACKAGE / room).rglob("*.py"):
            import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
    for name in types:
        with suppress(ImportError):
            import_module(name)
    import_module("jsonschema")  # which `check` imports when it needs it
    gc.collect()
    gc.freeze()  # what is not looked at need not be copied


_imported: set[str] = set()


def _be_mcpspy(request: Request, fds: list[int]) -> NoReturn:
    """Run mcpspy to its end, without the extras; or tests/peers/spy.py, which is mcpspy with them."""
    argv, _, folder, environment, _ = request
    if argv[0] != "mcpspy":
        run_program(request, fds)
    status = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115 - until the end
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.modules.update(dict.fromkeys(EXTRAS))  # type: ignore[arg-type]  # with None, an import fails
        sys.argv = argv
        _apply_test_settings(environment)
        status = main()
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _apply_test_settings(environment: dict[str, str]) -> None:
    """Set the size from which on captures are large, and the reserved ports, if the test names them in the environment."""
    if size := environment.get("SPY_LARGE_BYTES"):
        transcripts.LARGE_BYTES = int(size)
    if ends := environment.get("SPY_PORTS"):
        vars(ports)["PORTS"] = wrapping.PORTS[slice(*map(int, ends.split(":")))]


if __name__ == "__main__":
    Copies(socket.socket(fileno=int(sys.argv[1])), import_verbs, _be_mcpspy).serve()
