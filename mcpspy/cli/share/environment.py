"""Facts of this machine that a capture may contain: the environment, the home folder, the names of the user and the machine."""

import os
import socket
from collections.abc import Iterable, Iterator
from getpass import getuser

import click

from ...capture.redaction.names import kind_of_option

SHORTEST_VALUE = 8
"""Shorter values of the environment are ordinary words."""

SHORTEST_NAME = 3

_EVERYWHERE = {
    "COLORTERM", "COLUMNS", "DISPLAY", "EDITOR", "HOME", "HOST", "HOSTNAME", "LANG", "LANGUAGE", "LESSCLOSE", "LESSOPEN", "LINES",
    "LOGNAME", "LS_COLORS", "MAIL", "MANPATH", "NAME", "OLDPWD", "PAGER", "PATH", "PS1", "PWD", "PYTHONPATH", "SHELL", "SHLVL",
    "TERM", "TERM_PROGRAM", "TMPDIR", "TZ", "USER", "USERNAME", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "VISUAL", "_",
}  # fmt: skip
"""Variables that every process has, whose values are not secret."""

_EVERYWHERE_BEGINNINGS = ("GIT_", "LC_", "MCPSPY_", "NVM_", "PYTEST_", "SYSTEMD_", "XDG_")
_NOBODY = {"admin", "localhost", "nobody", "root", "runner", "ubuntu", "user"}
"""Names that identify nobody."""


def secret_variables() -> Iterator[tuple[str, bytes]]:
    """Yield variables with names of secrets, and their values."""
    for name, value in os.environ.items():
        if kind_of_option(name) is not None and value and name not in _EVERYWHERE:
            yield name, os.fsencode(value)


def suspicious_variables() -> Iterator[tuple[str, bytes]]:
    """Yield variables whose values should be in no capture: secret ones, and those that are neither short nor a path or a word."""
    yield from secret_variables()
    for name, value in os.environ.items():
        if name in _EVERYWHERE or name.startswith(_EVERYWHERE_BEGINNINGS) or kind_of_option(name) is not None:
            continue
        if len(value) >= SHORTEST_VALUE and not value.startswith(("/", "~", "file:")) and not value.isalpha():
            yield name, os.fsencode(value)


def named_values(names: Iterable[str]) -> list[bytes]:
    """Return the values of variables. Raises: UsageError: for one that is not set."""
    values = []
    for name in names:
        value = os.environ.get(name, "")
        if not value:
            raise click.UsageError(f"There is no environment variable {name}; --env takes the name of one that is set.")
        values.append(os.fsencode(value))
    return values


def people() -> Iterator[tuple[str, bytes]]:
    """Yield the home folder, the user's name and the machine's name, each with its kind, unless they are common to many machines."""
    home = os.path.expanduser("~")
    if os.path.isabs(home) and len(home) > 1 and os.path.basename(home) not in _NOBODY:
        yield "home folder", os.fsencode(home)
    for what, name in (("user name", _user()), ("host name", socket.gethostname())):
        if len(name) >= SHORTEST_NAME and name.lower() not in _NOBODY:
            yield what, os.fsencode(name)


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""
