"""Fixtures of all tests: a store of their own, the peers, the npm programs, the tier, and the rule about skips.

It starts nothing but the processes of tests/preparing.py: a test that starts a process ends it, by its id.
"""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.deadlines import DEADLINE_S
from tests.preparing import ready
from tests.systems.lacking import TESTED_SYSTEM, reason
from tests.tiers import Tier, covering, current_tier, load_hypothesis_profile, spread

ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).parent / "peers"
NPM_SCRIPTS = Path(__file__).parent / "npm"
NPM_MODULES = ROOT / "build" / "npm" / "node_modules"

NpmProgram = Callable[[str], list[str]]
DebianProgram = Callable[[str], str]
BuiltProgram = Callable[[str], str]
Peer = Callable[[str], list[str]]
FlowReader = Callable[[Path], list[dict[str, Any]]]
MermaidReader = Callable[[list[str]], list[dict[str, Any]]]

load_hypothesis_profile(current_tier())

os.environ.setdefault("SETUPTOOLS_USE_DISTUTILS", "stdlib")
"""Keeps setuptools from importing its own distutils into each Python that a test starts: half a millisecond of twelve."""

for number in (getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT") if hasattr(signal, name)):
    # A script's background job or `nohup` has us ignore these, all that we start would too, and the tests send them.
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths for stores. No folder is made for them, for few tests need one: making and removing it takes longer than most tests."""
    folder = tmp_path_factory.mktemp("stores")
    os.environ["MCPSPY_HOME"] = str(folder / "shared")  # of fixtures that several tests share
    return (folder / f"store{number}" for number in count())


@pytest.fixture(autouse=True)
def store(_stores: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `MCPSPY_HOME` names for this test: its own, not yet made.

    No test ever sees the user's store, nor their systemd.
    """
    folder = next(_stores)
    for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MCPSPY_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _plain_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what would make the screen differ from desk to desk; a test that wants a width or colours sets them."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
        os.unsetenv(name)  # which GNU readline sets for processes that get no `env`, without os.environ


@pytest.fixture
def mcpspy() -> list[str]:
    """The argv that starts mcpspy in this environment."""
    return [sys.executable, "-m", "mcpspy"]


@pytest.fixture
def peer() -> Peer:
    """`peer("stubborn.py")` is the argv of a program of tests/peers."""

    def argv(name: str) -> list[str]:
        path = PEERS / name
        assert path.is_file(), f"no peer {name} in {PEERS}"
        return [sys.executable, str(path)]

    return argv


@pytest.fixture
def tier() -> Tier:
    """`tier(sample=5, more=20, full=200)` is how often to do it. Who asks for it is run by `make soak` too."""
    return current_tier()


@pytest.fixture
def npm_program() -> NpmProgram:
    """`npm_program("mcp-server-memory")` is the argv of an installed npm program; the test is skipped where there is none."""

    def argv(name: str) -> list[str]:
        return [_node(), str(_npm_file(f".bin/{name}").resolve())]

    return argv


@pytest.fixture
def debian_program() -> DebianProgram:
    """`debian_program("tmux")` is the path of a program of the system; the test is skipped where there is none."""

    def path(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return path


@pytest.fixture
def read_mermaid() -> MermaidReader:
    """`read_mermaid(texts)` is what Mermaid's own parser finds in each: participants and signals (read_mermaid.mjs)."""

    def read(texts: list[str]) -> list[dict[str, Any]]:
        _npm_file("mermaid/package.json")
        done = subprocess.run(
            [_node(), str(NPM_SCRIPTS / "read_mermaid.mjs")],
            cwd=NPM_MODULES.parent,
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        diagrams: list[dict[str, Any]] = json.loads(done.stdout)
        return diagrams

    return read


@pytest.fixture
def read_flows(built: BuiltProgram) -> FlowReader:
    """`read_flows(path)` is what mitmproxy makes of a file that it imports (tests/views/read_flows.py)."""

    def read(path: Path) -> list[dict[str, Any]]:
        words = [built("mitmproxy/bin/python"), str(ROOT / "tests" / "views" / "read_flows.py"), str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr
        flows: list[dict[str, Any]] = json.loads(done.stdout)
        return flows

    return read


@pytest.fixture(scope="session")
def built() -> BuiltProgram:
    """`built("mcp1/bin/python")` is the path of what `make npm` installed into build; the test is skipped where there is none."""

    def path(name: str) -> str:
        path = ROOT / "build" / name
        if not path.exists():
            pytest.skip(f"build/{name} is not installed: make npm")
        return str(path)

    return path


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return node


def _npm_file(name: str) -> Path:
    path = NPM_MODULES / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: make npm")
    return path


# --- Processes that have imported the SDK and the verbs of mcpspy, so that what tests start need not ---

PREPARED = pytest.StashKey[ExitStack]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start them, once for all workers of xdist."""
    if not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        stack = session.config.stash[PREPARED] = ExitStack()
        stack.enter_context(ready())
        stack.enter_context(ready("tests.cli.copied"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End them."""
    if PREPARED in session.config.stash:
        session.config.stash[PREPARED].close()


# --- Transcripts are in cycles, and hold the captures that they read until garbage is collected ---

MANY_DESCRIPTORS = 256


def pytest_runtest_teardown() -> None:
    collect_where_many_are_open()


def collect_where_many_are_open() -> None:
    """Collect garbage before a limit of descriptors is reached, which is 1,024 on many systems.

    A test calls it too, if each of its examples reads captures.
    """
    fd = os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    os.close(fd)
    if fd >= MANY_DESCRIPTORS:
        gc.collect()


# --- Collected tests are a million objects, which stay to the end: looking for garbage among them takes a fifth of the time ---


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# --- Marks that follow from what a test asks for, so that none can be forgotten ---

MARK_OF_FIXTURE = {
    "npm_program": "npm",
    "read_mermaid": "npm",
    "built": "npm",
    "debian_program": "debian",
    "tier": "tiered",
}


def _thin_grids(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out combinations of a grid whose values all occur in others, or all but so many as its mark says.

    Leave out what is marked `more` too. What was asked for by its name is run.
    """
    grids: dict[str, list[pytest.Function]] = {}
    left_out = [item for item in items if item.get_closest_marker("more") and item.nodeid not in config.args]
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("grid") and item.nodeid not in config.args:
            grids.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out += [item for grid in grids.values() for item, is_chosen in zip(grid, _chosen(grid), strict=True) if not is_chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _chosen(grid: list[pytest.Function]) -> list[bool]:
    mark = grid[0].get_closest_marker("grid")
    assert mark is not None
    if mark.args:
        return spread(len(grid), *mark.args)
    return covering([{name: id(value) for name, value in cell.callspec.params.items()} for cell in grid])


DATA_PATH = tuple(
    str(Path(__file__).parent / name)
    for name in (
        "live/stdio",
        "live/http",
        "platform",
        "capture/file/test_writer.py",
        "capture/file/test_round_trip.py",
        "test_speedups.py",
    )
)
"""Tests that `make data-path` runs with and without speedups.c; `make mac` and `make windows` on systems that have less."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if current_tier() is Tier.SAMPLE:
        _thin_grids(config, items)
    for item in items:
        if str(item.path).startswith(DATA_PATH):
            item.add_marker("data_path")
        marks = {mark.name for mark in item.iter_markers()}
        if "current_tier" in vars(getattr(item, "module", item)) or marks & {"grid", "more"}:  # the tier decides which run
            item.add_marker("tiered")
        if TESTED_SYSTEM != "linux" and (why := reason(item.path.relative_to(Path(__file__).parent).as_posix(), item.name)):
            item.add_marker(pytest.mark.skip(reason=why))
        for fixture, mark in MARK_OF_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)


# --- A worker of xdist reports how each test went, and else only failures: to report everything took half of the time ---


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test as pytest does, but report neither its start and end nor the setup and teardown that passed."""
    if not hasattr(item.config, "workerinput") or item.config.option.verbose > 0 or item.config.getoption("xmlpath", None):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


# --- Where everything is installed, a skip hides a test that should have run ---


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure under `MCPSPY_NO_SKIP=1`; an expected failure is none."""
    if os.environ.get("MCPSPY_NO_SKIP") != "1" or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason} (a skip is a failure under MCPSPY_NO_SKIP=1)"
