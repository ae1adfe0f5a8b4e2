"""The service of the user that serves wrapped HTTP servers: `mcpspy.socket` listens at their ports and starts `mcpspy.service`.

Both are units of systemd. They name ports, the path of mcpspy and its folder, but no server. Their first lines say who wrote
them, and hold the digest of the rest, so that a unit of somebody else, or one that was edited, is neither changed nor
removed.

The command with which a client or a service can start this mcpspy needs no PATH, shim or activated environment.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..errors import SetupError
from ..lazy_pattern import lazy_pattern
from ..platform.system import CLIENT_VARIABLES, HAS_SYSTEMD, PROGRAM_SUFFIX, client_path
from .files import write_own
from .wrapping import HOST

SOCKET = "mcpspy.socket"
SERVICE = "mcpspy.service"

SYSTEMCTL_S = 30
"""The time that systemctl has: it waits until a unit has started."""

MARK = (
    "# Written by `mcpspy wrap`; `mcpspy unwrap` removes it. To change it: systemctl --user edit {name}\n# sha256: {digest}\n"
)

WRITTEN = lazy_pattern(r"# Written by `mcpspy wrap`.*\n# sha256: ([0-9a-f]{64})\n")
LISTEN = lazy_pattern(rf"(?m)^ListenStream={re.escape(HOST)}:(\d+)$")
FIRST_WORD = lazy_pattern(r'(?m)^ExecStart="((?:[^"\\]|\\.)*)"')
UNSTARTABLE = lazy_pattern(r"""["'\\]""")
HOME = lazy_pattern(r"(?m)^Environment=.*$")

SOCKET_TEXT = """[Unit]
Description=Ports of the HTTP servers that mcpspy has wrapped

[Socket]
{ports}

[Install]
WantedBy=sockets.target
"""

SERVICE_TEXT = """[Unit]
Description=mcpspy in front of the HTTP servers that it has wrapped

[Service]
ExecStart={command}
{home}Restart=on-failure
"""

CACHES = ("cache", "caches")

START_S = 20


class UnitOwner(StrEnum):
    """The author of a unit. EDITED is one of ours that was changed since."""

    NOBODY = "none"
    MCPSPY = "mcpspy"
    EDITED = "edited"
    OTHERS = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserService:
    """The units in `folder` as they are on the disk; a text is empty if there is no such file."""

    folder: Path
    socket: str = ""
    service: str = ""

    @property
    def owner(self) -> UnitOwner:
        """The author of both units; the worst if they differ."""
        owners = {_owner(self.socket), _owner(self.service)}
        worst_first = (UnitOwner.OTHERS, UnitOwner.EDITED, UnitOwner.MCPSPY)
        return next((owner for owner in worst_first if owner in owners), UnitOwner.NOBODY)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports at which the socket of ours listens."""
        return tuple(map(int, LISTEN.findall(self.socket))) if self.owner is not UnitOwner.OTHERS else ()

    @property
    def program(self) -> str:
        """The path of the mcpspy that the service starts."""
        match = FIRST_WORD.search(self.service)
        return match[1].replace("%%", "%") if match else ""

    @property
    def problem(self) -> str:
        """The reason why mcpspy does not touch the units; empty if it may."""
        match self.owner:
            case UnitOwner.OTHERS:
                return "was not written by mcpspy, and stays as it is; rename that unit, or use mcpspy wrap --without-service"
            case UnitOwner.EDITED:
                by_hand = f"systemctl --user disable --now {SOCKET}, then delete the file"
                return f"was edited since mcpspy wrote it, and stays as it is; remove it by hand: {by_hand}"
        return ""

    @property
    def problem_file(self) -> Path:
        """The unit that `problem` is about."""
        name = SOCKET if _owner(self.socket) in (UnitOwner.OTHERS, UnitOwner.EDITED) else SERVICE
        return self.folder / name


def service_folder(home: Path) -> Path:
    """Return the folder of the user's units."""
    return home / ".config" / "systemd" / "user"


def read_service(folder: Path) -> UserService:
    """Read both units. Raises: SetupError."""
    return UserService(folder=folder, socket=_text(folder / SOCKET), service=_text(folder / SERVICE))


def wanted_service(folder: Path, ports: Iterable[int], program: Sequence[str], mcpspy_home: str) -> UserService:
    """Write the units that serve `ports`, without storing them. `mcpspy_home` is empty for the usual folder."""
    listen = "\n".join(f"ListenStream={HOST}:{port}" for port in sorted(ports))
    home = f"Environment={_quoted(f'MCPSPY_HOME={mcpspy_home}', dollar=False)}\n" if mcpspy_home else ""
    # of the program itself systemd expands no variables
    command = " ".join([_quoted(program[0], dollar=False), *map(_quoted, [*program[1:], "proxy", "--all", "--quiet"])])
    return UserService(
        folder=folder,
        socket=_marked(SOCKET, SOCKET_TEXT.format(ports=listen)),
        service=_marked(SERVICE, SERVICE_TEXT.format(command=command, home=home)),
    )


def why_no_service() -> str:
    """Explain why no user service can be set up here; empty if one can be."""
    if not HAS_SYSTEMD:
        return "services of the user need systemd, which this system does not have"
    if shutil.which("systemctl") is None:
        return "there is no systemctl here to set up a service of the user"
    reason = _systemctl("show", "--property=Version")
    return f"no user service can be set up here (systemctl --user: {reason})" if reason else ""


def active_state(unit: str) -> str:
    """Return the state of a unit as systemd names it: `active`, `inactive`, `failed`; `unknown` if it cannot say."""
    try:
        done = _ran("is-active", unit)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


def set_up(wanted: UserService) -> None:
    """Write the units and let systemd listen. If that fails, everything is as before. Raises: SetupError.

    While the service runs, its sockets cannot be replaced. It serves new ports by itself, and the socket has them from its next
    start on.
    """
    before = read_service(wanted.folder)
    ensure_ours(before, wanted)
    try:
        wanted.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            str(wanted.folder), f"cannot be made: {error.strerror}; make it by hand, or use mcpspy wrap --without-service"
        ) from error
    _store(wanted)
    try:
        _do("daemon-reload")
        _do("enable", "--now", SOCKET)
        if before.socket not in ("", wanted.socket) and active_state(SERVICE) != "active":
            _do("restart", SOCKET)
    except SetupError:
        _store(before)
        _systemctl("daemon-reload")
        raise


def remove(folder: Path) -> None:
    """Stop and remove the units, if they are as mcpspy wrote them. Raises: SetupError."""
    present = read_service(folder)
    if present.owner is UnitOwner.NOBODY:
        return
    ensure_ours(present)
    _do("disable", "--now", SOCKET)
    _do("stop", SERVICE)
    _store(UserService(folder=folder))
    _do("daemon-reload")


def ensure_ours(present: UserService, wanted: UserService | None = None) -> None:
    """Raise SetupError if a unit is not as mcpspy wrote it, serves another MCPSPY_HOME than the `wanted` one, or cannot start."""
    if present.problem:
        raise SetupError(str(present.problem_file), present.problem)
    if wanted and UNSTARTABLE.search(wanted.program):
        advice = "install mcpspy elsewhere, or use mcpspy wrap --without-service"
        raise SetupError(wanted.program, f"systemd starts no program with a quote or backslash in its path; {advice}")
    if wanted and not has_same_home(present, wanted):
        raise SetupError(
            str(present.folder / SERVICE),
            "serves another MCPSPY_HOME, and stays as it is; set the same one, or unwrap there first (mcpspy unwrap)",
        )


def has_same_home(present: UserService, wanted: UserService) -> bool:
    """Return whether both serve the same MCPSPY_HOME; true if there is no service yet."""
    return not present.service or HOME.findall(present.service) == HOME.findall(wanted.service)


def _owner(text: str) -> UnitOwner:
    if not text:
        return UnitOwner.NOBODY
    match = WRITTEN.match(text)
    if not match:
        return UnitOwner.OTHERS
    return UnitOwner.MCPSPY if match[1] == _digest(text[match.end() :]) else UnitOwner.EDITED


def _marked(name: str, text: str) -> str:
    return MARK.format(name=name, digest=_digest(text)) + text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _quoted(word: str, *, dollar: bool = True) -> str:
    """Write a word as systemd reads it: quoted, with its specifiers, and in commands its variables, as plain characters."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word.replace("$", "$$") if dollar else word}"'


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise SetupError(str(file), f"cannot be read: {error.strerror}; change its permissions") from error


def _store(units: UserService) -> None:
    """Write each unit that differs from its file; remove the file of one without a text."""
    for name, text in ((SOCKET, units.socket), (SERVICE, units.service)):
        file = units.folder / name
        if not text:
            _remove(file)
        elif _text(file) != text:
            write_own(file, text.encode())


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(str(file), f"cannot be removed: {error.strerror}; remove it by hand") from error


def _do(*words: str) -> None:
    reason = _systemctl(*words)
    if reason:
        raise SetupError(f"systemctl --user {' '.join(words)}", f"failed: {reason}; systemctl --user status {SOCKET} says more")


def _systemctl(*words: str) -> str:
    """Run systemctl for the user. Returns why it failed; empty if it did not."""
    try:
        done = _ran(*words)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0].rstrip(".")


def _ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemctl", "--user", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SYSTEMCTL_S,
        check=False,
    )


def program() -> list[str]:
    """Find the console script beside the running interpreter, else use the interpreter with `-m mcpspy`. Both paths are absolute.

    PATH is not searched: pyenv's shims depend on the working folder. `-P` keeps Python from starting a `mcpspy` in the client's
    working folder instead.
    """
    folder = Path(os.path.abspath(sys.executable)).parent
    script = folder / f"mcpspy{PROGRAM_SUFFIX}"
    if script.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    return [os.path.abspath(sys.executable), "-P", "-m", "mcpspy"]


def is_in_cache(argv: list[str]) -> bool:
    """Return whether it is in a cache, as with `uvx` and `pipx run`: wrapped servers do not start once the cache is emptied."""
    return any(part.lstrip(".").casefold() in CACHES for part in Path(argv[0]).parts)


def ensure_starts(argv: list[str]) -> None:
    """Start it as a client would: from another folder, with a small environment. Raises: SetupError."""
    environment = {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ} | {"PATH": client_path()}
    try:
        done = subprocess.run(
            [*argv, "--version"],
            cwd=os.path.abspath(os.sep),
            env=environment,
            capture_output=True,
            timeout=START_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(argv[0], f"cannot be started as a client would: {error}") from error
    if done.returncode:
        raise SetupError(
            argv[0], "cannot be started as a client would; install mcpspy first (pip install, pipx, uv tool install)"
        )
