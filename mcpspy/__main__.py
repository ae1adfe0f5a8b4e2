"""The entry point: `run` and `mock` have parsers of their own, every other verb goes through click.

`run` and `mock` are on the start-up path of somebody's editor, so nothing is imported before the verb is known.
"""

import os
import sys


def main() -> int:
    """Run one command line. Return the exit status."""
    if sys.argv[1:2] == ["run"]:
        from .cli.run import main as run

        # All is written. Ending the interpreter in order would take 2 ms, and PYTHONINSPECT, meant for the server, would keep it up.
        os._exit(run(sys.argv[2:]))
    if sys.argv[1:2] == ["mock"]:
        from .cli.mock.command import main as mock

        return mock(sys.argv[2:])
    from .cli.main import main as others

    return others()


if __name__ == "__main__":
    sys.exit(main())
