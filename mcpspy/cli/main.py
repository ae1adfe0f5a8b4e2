"""The command line of all verbs but `run` and `mock`: imports the verb's module, and turns errors into a sentence and an exit status.

docs/start.md lists the exit statuses. Tracebacks are shown only with `--debug`.
"""

from __future__ import annotations

import gc
import os
import sys
from errno import EACCES, ENOENT, ENOSPC, EROFS
from importlib import import_module
from io import TextIOWrapper

from ..errors import FilterError, McpspyError, sentence
from ..msgspec_alone import import_msgspec
from ..platform.descriptors import ensure_standard_streams
from .capture_options import usual_values
from .invocation import invoke
from .verbs import COMPLETES, VERBS

WITHOUT_CLICK = {"show": "what", "list": "", "tui": "what"}
"""The verbs that are looked at most, which click would make wait 30 ms, and the parameter that takes their words; "" if none does."""

_OBJECTS_PER_COLLECTION = 20_000
"""With Python's 700 a look at a small capture spends 3 ms on garbage, and finds none worth it."""


def main() -> int:
    """Run the verb named on the command line. Returns the exit status."""
    if instruction := os.environ.get(COMPLETES):
        from .by_click import complete

        return complete(instruction)
    debug = "--debug" in sys.argv[1:2]
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without our characters is no reason to fail
    try:
        status = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # `| head` has read enough, which is no error
        return 0
    except FilterError as error:
        if debug:
            raise
        from .filter_option import explain

        explain(error)
        return error.exit_status
    except McpspyError as error:
        if debug:
            raise
        from ..views.text.escape import safe_text, without_logins  # labels in it come from captures

        _say(f"mcpspy: {sentence(safe_text(without_logins(str(error))))}")
        return error.exit_status
    except ModuleNotFoundError as error:
        if debug or error.name is None or error.name.partition(".")[0] == "mcpspy":
            raise
        package = error.name.partition(".")[0]
        _say(f"mcpspy: this installation lacks the package {package}; install it again: pip install --upgrade mcpspy")
        return 2
    except OSError as error:
        if debug:
            raise
        from ..views.text.escape import without_logins

        name = f"{without_logins(str(error.filename))}: " if error.filename else ""
        _say(f"mcpspy: {name}{sentence(f'{error.strerror or error}{_remedy(error)}')}")
        _flush_or_drop()
        return 2
    return status


def _run(arguments: list[str]) -> int:
    """Run the verb that `arguments` name: at once if its options can be read without click, else by click."""
    if not arguments:
        from .list import overview

        overview()
        return 0
    verb = arguments[0]
    if verb in WITHOUT_CLICK:
        import_msgspec()
        module = import_module(f".{VERBS[verb].module}", __package__)
        usual = usual_values(arguments[1:], module.OPTIONS)
        takes_words = WITHOUT_CLICK[verb]
        if usual is not None and (takes_words or not usual[1]):
            values = {**usual[0], takes_words: usual[1]} if takes_words else usual[0]
            gc.freeze()
            gc.set_threshold(_OBJECTS_PER_COLLECTION)
            gc.enable()  # `__main__` turned it off
            try:
                invoke(module.run, values)
            except Exception as error:
                if not _is_click_usage(error):
                    raise
            else:
                return 0
    from .by_click import run

    return run(arguments)


def _is_click_usage(error: Exception) -> bool:
    """Return whether a verb found before it began that its options cannot be combined. Click says so with the verb's name."""
    click = sys.modules.get("click")
    return click is not None and isinstance(error, click.UsageError)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _remedy(error: OSError) -> str:
    """Return what to do about a file that cannot be read or written; empty if nothing better than the system's words is known."""
    path = str(error.filename or "")
    folder = os.path.dirname(path)
    if error.errno == ENOENT and folder and not os.path.isdir(folder):
        from shlex import quote

        from ..views.text.escape import without_logins

        if without_logins(path) != path:
            return "; name a file here, not a URL"
        return f"; there is no folder {folder}. Make it with `mkdir -p {quote(folder)}`, or name a file elsewhere"
    if error.errno in (EACCES, EROFS) and path:
        return "; name a file that you may use, or change its permissions"
    if error.errno == ENOSPC:
        return "; make room on the disk, or name a file on another one"
    return ""


def _open_closed_streams() -> None:
    """Open the null device where a standard stream is closed, so that no file of ours gets its number, and Python has all three."""
    ensure_standard_streams()
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, mode, closefd=False))  # noqa: SIM115 - for as long as we run


def _flush_or_drop() -> None:
    """Drop output that cannot be written, as on a full disk: else Python tries again when it exits, and prints an error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
