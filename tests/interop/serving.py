"""HTTP scenes: a server that is started for one run, mcpspy before it, byte loggers around mcpspy, and a client at the front.

What runs has the folder and the small environment of the stdio scenes (playing.py). Whatever was started here is ended here.
"""

import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen

import mcpspy
from captures.make import nothing
from captures.serving import PEERS, environment, port, started, tapped
from mcpspy.records import Record
from tests.cli.terminal import COPY
from tests.deadlines import DEADLINE_S, eventually
from tests.interop.playing import Played, Playing, Scene
from tests.starting import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpScene:
    """Client and server of one scene over HTTP: their command lines; URL in the client's is replaced with the server's.

    `opening` is the method of the first message. `logged` are words that the server puts on stderr once per client, and late.
    """

    client: tuple[str, ...]
    server: tuple[str, ...]
    path: str
    opening: str = "initialize"
    logged: str = ""
    prepare: Callable[[Path], None] = nothing
    variables: dict[str, str] = field(default_factory=dict)


@contextmanager
def recorded(url: str, folder: Path, *options: str) -> Iterator[str]:
    """Put mcpspy before `url`, recording to `FOLDER/a.mcpspy`. Yields the URL for clients."""
    with tapped(url, folder, "--capture", str(folder / "a.mcpspy"), *options, program=(*COPY,), start=Program) as tap:
        yield tap


@contextmanager
def logged(url: str, folder: Path, name: str) -> Iterator[str]:
    """A TCP logger before `url`, which writes to `FOLDER/NAME`. Yields the URL that leads through it.

    At the end it has passed on all that was sent, by clients too that have gone.
    """
    origin, number, path = re.fullmatch(r"(http://127\.0\.0\.1:)(\d+)(.*)", url).groups()  # type: ignore[union-attr]  # ours
    words = [sys.executable, str(PEERS / "tcplog.py"), str(folder / name), number]
    with Popen(words, cwd=folder, env=environment(folder), stdin=PIPE, stdout=PIPE, text=True) as logger:
        try:
            assert logger.stdin is not None
            assert logger.stdout is not None
            yield f"{origin}{int(logger.stdout.readline())}{path}"
            logger.stdin.close()
            assert logger.wait(DEADLINE_S) == 0
        finally:
            logger.kill()


@contextmanager
def serving(scene: HttpScene, folder: Path, clients: int = 1) -> Iterator[str]:
    """The scene's server in a new folder. Yields its URL; at the end it has said what it has to say."""
    (folder / "home").mkdir(parents=True)
    scene.prepare(folder)
    with started(scene.server, folder, folder / "server.log", scene.variables, Program) as output:
        yield f"http://127.0.0.1:{port(output)}{scene.path}"
        if scene.logged:
            eventually(lambda: output().count(scene.logged) >= clients, f"the server to say {scene.logged!r} of each client")


def play(scene: HttpScene, url: str, folder: Path) -> Played:
    """Run the scene's client against `url`, and return its output with the port masked."""
    work = folder / "client"
    played = Playing(Scene(client=tuple(word.replace("URL", url) for word in scene.client), server=()), work).end()
    origin = re.compile(r"127\.0\.0\.1:\d+")
    return Played(output=origin.sub("ORIGIN", played.output), errors=origin.sub("ORIGIN", played.errors), status=played.status)


def play_tapped(scene: HttpScene, folder: Path, *options: str) -> tuple[Played, list[Record]]:
    """Run the scene's client through mcpspy, and return its output and the capture."""
    with serving(scene, folder) as url, recorded(url, folder, *options) as tap:
        played = play(scene, tap, folder)
    return played, list(mcpspy.read(folder / "a.mcpspy"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRun:
    """Output of a client without mcpspy and with it, the capture, and the folder of the TCP loggers on either side."""

    direct: Played
    tapped: Played
    records: list[Record]
    wires: Path


def play_both(scene: HttpScene, folder: Path) -> HttpRun:
    """Play a scene directly and, at the same time and with the same server, through logger, mcpspy and logger.

    These write to FOLDER/outer and FOLDER/inner.
    """
    with serving(scene, folder, clients=2) as url, ThreadPoolExecutor() as pool:
        direct = pool.submit(play, scene, url, folder / "direct")
        with (
            logged(url, folder, "inner") as inner,
            recorded(
                inner, folder, "--redact", "none", "--allowed-host", "127.0.0.1"
            ) as tap,  # the client names the logger's port
            logged(tap, folder, "outer") as outer,
        ):
            tapped = play(scene, outer, folder / "tapped")
    return HttpRun(direct=direct.result(), tapped=tapped, records=list(mcpspy.read(folder / "a.mcpspy")), wires=folder)
