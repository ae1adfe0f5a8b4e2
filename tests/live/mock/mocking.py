"""Captures made by hand, and a mock that serves one of them, as a process with pipes."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.writer import Writer
from mcpspy.records import Header, Record
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import COPY
from tests.deadlines import DEADLINE_S
from tests.starting import Program


def written(path: Path, records: Sequence[Record]) -> Path:
    """Write a capture of these records to `path`; the first is its header."""
    header, *others = records
    assert isinstance(header, Header)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    writer = Writer(fd, header_line(header))
    writer(others)
    writer.close(others[-1].at_ns if others else 0)
    return path


class Mocking:
    """`mcpspy mock` of a capture. Leaving the `with` block ends it."""

    def __init__(self, capture: Path, *options: str) -> None:
        self.own = capture.with_name(f"{capture.stem}-own.mcpspy")
        words = [*COPY, "mock", str(capture), "--capture", str(self.own), *options]
        self.process = Program(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, *lines: Any) -> None:
        """Send lines: bytes unchanged, anything else as JSON."""
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def told(self) -> Any:
        """Read and parse the next line."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ends(self) -> tuple[int, list[bytes], str]:
        """Close its input. Returns its exit status, the lines that it still writes, and its stderr."""
        stdout, stderr = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, stdout.splitlines(), stderr.decode()

    @property
    def records(self) -> list[Record]:
        return list(read(str(self.own)))

    @property
    def transcript(self) -> Transcript:
        return transcribe(self.records)
