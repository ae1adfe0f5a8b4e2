"""A tap through which nothing passes still notices what others do to its capture. A minute is played as a twentieth of a second."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mcpspy
from mcpspy.records import Gap, Header
from tests.deadlines import DEADLINE_S, eventually, readable

RUN = """
import sys
from mcpspy.live.stdio import tap
tap.LOOK_NS = tap.PUT_OFF_NS = 50_000_000
from mcpspy.cli.run import main
sys.exit(main(sys.argv[1:]))
"""
PROXY = """
import sys
from mcpspy.cli.proxy import listening
listening.LOOK_S = listening.SYNC_S = 0.05
sys.argv = ["mcpspy", *sys.argv[1:]]
from mcpspy.cli.main import main
sys.exit(main())
"""


@contextmanager
def idle(path: Path, transport: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a tap through which nothing passes, and which has begun its capture."""
    if transport == "stdio":
        words = [RUN, "--quiet", "--capture", str(path), "--", "cat"]
    else:
        words = [PROXY, "proxy", "http://127.0.0.1:1/mcp", "--listen", "127.0.0.1:0", "--quiet", "--capture", str(path)]
    with subprocess.Popen(
        [sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            begun = b"spawn" if transport == "stdio" else b"mcpspy"
            eventually(lambda: path.exists() and begun in path.read_bytes(), "the beginning of the capture")
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("harm", ["cut", "removed"])
def test_an_idle_tap_says_what_others_did_to_its_capture(harm: str, transport: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with idle(path, transport) as process:
        assert process.stderr is not None
        if harm == "cut":
            path.write_bytes(b"")
        else:
            path.unlink()
        assert readable(process.stderr.fileno(), DEADLINE_S)
        said = process.stderr.readline().decode()
        assert said.startswith(f"mcpspy: {path}, which is being recorded, was {harm}")
    records = list(mcpspy.read(path))
    assert isinstance(records[0], Header)
    assert sum(isinstance(record, Gap) for record in records) == (transport == "stdio")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_idle_tap_whose_capture_is_renamed_or_read_only_says_nothing(transport: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with idle(path, transport) as process:
        path.chmod(0o400)
        path.rename(tmp_path / "y.mcpspy")
        assert process.stderr is not None
        assert not readable(process.stderr.fileno(), 0.5)
    assert isinstance(next(mcpspy.read(tmp_path / "y.mcpspy")), Header)
