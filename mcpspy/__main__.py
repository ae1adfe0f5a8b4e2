"""The entry point: `run` and `mock` have parsers of their own, every other verb goes through click.

`run` and `mock` are on the start-up path of somebody's editor, so nothing is imported before the verb is known.
"""

import os
import sys

PIPES = 8
"""Pipes opened to see that descriptors suffice: `run` needs 14 descriptors for a moment, more than any other verb."""

LOOKS = (["show"], ["list"], ["check"])
"""Verbs that read and print, without a thread or a process that could be left."""

BY_UNIX_SOCKETS = ("control",)
"""Verbs that need what Python lacks on Windows."""


def main() -> int:
    """Run one command line. Return the exit status."""
    if not hasattr(os, "fork") and sys.argv[1:2] and sys.argv[1] in BY_UNIX_SOCKETS:
        os.write(2, f"mcpspy: {sys.argv[1]} does not work on Windows yet; use it in WSL.\n".encode())
        return 2
    if not _has_descriptors():
        os.write(2, b"mcpspy: too few files may be open at once; allow at least 64: ulimit -n 64\n")
        return 127 if sys.argv[1:2] == ["run"] else 2
    if sys.argv[1:2] == ["run"]:
        from .cli.run import main as run

        # All is written. Ending the interpreter in order would take 2 ms, and PYTHONINSPECT, meant for the server, would keep it up.
        os._exit(run(sys.argv[2:]))
    if sys.argv[1:2] == ["mock"]:
        from .msgspec_alone import import_msgspec

        import_msgspec()
        from .cli.mock.command import main as mock

        return mock(sys.argv[2:])
    if sys.argv[1:] == ["--version"] and _says_version():
        return 0
    import gc

    gc.disable()  # imports make many objects and no garbage: else a tenth of the start is looking for some
    from .cli.main import main as others

    status = others()
    if sys.argv[1:2] in LOOKS and sys.getprofile() is None and sys.gettrace() is None:
        _end(status)
    return status


def _end(status: int) -> None:
    """End this process, which has written everything: to take the interpreter apart in order would take 5 ms."""
    import atexit

    atexit._run_exitfuncs()  # noqa: SLF001 - it is what the interpreter calls
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            return  # the interpreter reports it
    os._exit(status)


def _says_version() -> bool:
    """Print the version with hardly an import; return False if it cannot be written, so that the others say why."""
    from . import __version__
    from .compiled import VERSION_SUFFIX

    try:
        return os.write(1, f"mcpspy, version {__version__}{VERSION_SUFFIX}\n".encode()) > 0
    except OSError:
        return False


def _has_descriptors() -> bool:
    """Return whether this process may open as many descriptors as mcpspy needs."""
    opened: list[int] = []
    try:
        for _ in range(PIPES):
            opened += os.pipe()
    except OSError:
        return False
    finally:
        for fd in opened:
            os.close(fd)
    return True


if __name__ == "__main__":
    sys.exit(main())
