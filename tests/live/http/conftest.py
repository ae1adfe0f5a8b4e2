"""The fixture of tests that look at a proxy from outside."""

import pytest

from tests.cli.terminal import MCPSPY
from tests.live.http import ends


@pytest.fixture
def real_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start `mcpspy proxy` as a user does: the process of a `Proxy` is mcpspy."""
    monkeypatch.setattr(ends, "program", MCPSPY)
