"""The pytest plugin: the fixture `mcpspy`, its options, and the report of a miss in the test that had it.

pytest loads it wherever mcpspy is installed, so it imports nothing of ours before a test asks for the fixture.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .testing.servers import ServersUnderTest

_SERVERS = pytest.StashKey["ServersUnderTest"]()

RECORD = "--mcpspy-record"
MATCH = "--mcpspy-match"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of mcpspy."""
    group = parser.getgroup("mcpspy", "mcpspy: MCP servers played from captures")
    group.addoption(
        RECORD,
        choices=("none", "once", "all"),
        help="What to record: `once` what has no capture yet (the default), `none` nothing (the default where CI is set),"
        " `all` everything again.",
    )
    group.addoption(
        MATCH,
        choices=("strict", "default", "loose"),
        help="How alike a request and a recorded one have to be, unless the test says so itself (mcpspy mock --help).",
    )


@pytest.fixture
def mcpspy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServersUnderTest]:
    """Serve MCP servers to this test, played from captures: `mcpspy.serve("weather", record=["python", "server.py"])`."""
    from .testing.servers import ServersUnderTest, is_ci

    servers = ServersUnderTest(
        test_file=request.path,
        test=request.node.nodeid,
        record=request.config.getoption(RECORD) or ("none" if is_ci(os.environ) else "once"),
        match=request.config.getoption(MATCH),
        make_folder=lambda: tmp_path_factory.mktemp("mcpspy"),
    )
    request.node.stash[_SERVERS] = servers
    yield servers
    failures = servers.close()
    if failures:
        pytest.fail(failures, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that passed although its code made a request that was never recorded, and hid the error."""
    yield
    servers = item.stash.get(_SERVERS, None)
    if servers is not None:
        misses = servers.new_misses()
        if misses:
            pytest.fail(misses, pytrace=False)
        servers.is_well = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the requests to the servers of a failed test to its report."""
    report = yield
    servers = item.stash.get(_SERVERS, None)
    if servers is not None and report.failed:
        try:
            report.sections += servers.sections()
        except Exception as error:  # noqa: BLE001 - an exception here would end the whole session, where a test has only failed
            report.sections.append(("mcpspy", f"The requests cannot be shown: {error!r}"))
    return report
