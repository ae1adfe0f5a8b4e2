"""Playing a scene: a real client with a real server, directly, and through mcpspy between two byte loggers.

Each run has a folder of its own for what the server works on (`FOLDER` in a scene's words), and the small environment in which
captures are recorded, so that nothing of the machine takes part.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import mcpspy
from captures.make import nothing, repository
from captures.serving import environment
from mcpspy.records import Exit, Frame, Header, Note, Record, Spawn
from tests.conftest import PEERS
from tests.deadlines import SCENE_S

CLOCK = re.compile(r"\[\d\d/\d\d/\d\d \d\d:\d\d:\d\d\]")
"""The time before a line of the Python SDK's log, which leaves it out where it is the same as in the line above."""

LEAVING = re.compile(
    r"Error parsing SSE message\nTraceback \(most recent call last\):\n(?:[ ].*\n)+\S*(?:Broken|Closed)ResourceError.*\n"
)
"""Traceback that the Python SDK's client may log when an event arrives while it disconnects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Client and server of one scene: their command lines, and the words that the client's command line ends with.

    `opening` is the method of the first message, so that a scene cannot drift into another era unnoticed. `is_node`: the client
    gives its servers sockets. `eats_dashes`: the client takes a `--` for its own.
    """

    client: tuple[str, ...]
    server: tuple[str, ...]
    after: tuple[str, ...] = ()
    opening: str = "initialize"
    prepare: Callable[[Path], None] = nothing
    variables: dict[str, str] = field(default_factory=dict)
    is_node: bool = False
    eats_dashes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Output and exit status of a client."""

    output: str
    errors: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The bytes of a server's three streams."""

    stdin: bytes
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Output of a client without mcpspy and with it, the capture, and the bytes on either side of mcpspy."""

    direct: Played
    tapped: Played
    records: list[Record]
    client_end: Wire
    server_end: Wire


class Playing:
    """A scene under way in `folder`; it runs beside the test until its `end` is asked for."""

    def __init__(self, scene: Scene, folder: Path, through: Sequence[str] = ()) -> None:
        self.folder = folder
        (folder / "home").mkdir(parents=True)
        scene.prepare(folder)
        words = [*scene.client, *through, *scene.server, *scene.after]
        self._process = subprocess.Popen(
            [word.replace("FOLDER", str(folder)) for word in words],
            cwd=folder,
            env={
                **environment(folder),
                **{key: value.replace("FOLDER", str(folder)) for key, value in scene.variables.items()},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> Played:
        """Wait for the client to be done. What differs from run to run (its folder, the clock) is made equal."""
        try:
            output, errors = self._process.communicate(timeout=SCENE_S)
        finally:
            self._process.kill()
        return Played(
            output=self._neutral(output), errors=LEAVING.sub("", self._neutral(errors)), status=self._process.returncode
        )

    def _neutral(self, text: str) -> str:
        return CLOCK.sub(lambda match: " " * len(match[0]), text.replace(str(self.folder), "FOLDER"))


def tap(scene: Scene, *options: str) -> list[str]:
    """Return the words that put mcpspy before the server's command, as its documentation says."""
    return [sys.executable, "-m", "mcpspy", "run", *options, *([] if scene.eats_dashes else ["--"])]


def play(scene: Scene, folder: Path) -> Run:
    """Play a scene directly and, at the same time, through logger, mcpspy and logger."""
    capture, outer, inner = folder / "a.mcpspy", folder / "outer", folder / "inner"
    logger = [sys.executable, str(PEERS / "bytelog.py")]
    outside = [*logger, *(["--sockets"] if scene.is_node else []), str(outer)]
    through = [*outside, *tap(scene, "--redact", "none", "--capture", str(capture)), *logger, str(inner)]
    playing = Playing(scene, folder / "direct"), Playing(scene, folder / "tapped", through)
    direct, tapped = (played.end() for played in playing)
    return Run(
        direct=direct, tapped=tapped, records=list(mcpspy.read(capture)), client_end=logged(outer), server_end=logged(inner)
    )


def logged(folder: Path) -> Wire:
    """Read the streams that a byte logger kept."""
    return Wire(**{name: (folder / name).read_bytes() for name in ("stdin", "stdout", "stderr")})


def recorded(records: Sequence[Record]) -> Wire:
    """Join the frames of each stream of a capture."""
    streams = [
        b"".join(record.data for record in records if isinstance(record, Frame) and record.stream == number)
        for number in range(3)
    ]
    return Wire(stdin=streams[0], stdout=streams[1], stderr=streams[2])


def opening(wire: Wire) -> str:
    """Return the method of the client's first message."""
    method: str = json.loads(wire.stdin.splitlines()[0])["method"]
    return method


def stored(folder: Path) -> list[Record]:
    """Read the one capture in the store of a run's home folder."""
    (capture,) = (folder / "home" / ".mcpspy" / "captures").iterdir()
    return list(mcpspy.read(capture))


def pids(records: Sequence[Record]) -> list[int]:
    """Return the processes that a capture names: mcpspy and the server."""
    return [record.pid for record in records if isinstance(record, Header | Spawn)]


def exits(records: Sequence[Record]) -> list[Exit]:
    return [record for record in records if isinstance(record, Exit)]


def escalations(records: Sequence[Record]) -> list[str]:
    """List the steps that mcpspy took to end a server that did not end by itself."""
    return [record.text for record in records if isinstance(record, Note) and record.topic == "escalation"]


def is_alive(pid: int) -> bool:
    """Check that a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def git_repository(folder: Path) -> None:
    """`FOLDER/repository`, as the captures have it."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    repository(folder)
