"""The entry point: `run` goes its own short way, every other verb goes through click.

`run` stands in the start-up path of somebody's editor, so nothing is imported before the verb has been looked at.
"""

import sys


def main() -> int:
    """Run one command line. Returns the exit status."""
    if len(sys.argv) > 1 and sys.argv[1] == "run" and not _asks_for_help(sys.argv[2:]):
        from .cli.run import main as run

        return run(sys.argv[2:])
    from .cli.main import main as others

    return others()


def _asks_for_help(arguments: list[str]) -> bool:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in own or "-h" in own


if __name__ == "__main__":
    sys.exit(main())
