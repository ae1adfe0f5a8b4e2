"""A log that grows: imported as it is written, by `mcpspy import --follow`; and shown, by `mcpspy show -f LOG`.

To show one, a second mcpspy imports it into a temporary store, and the captures there are followed as those of a tap are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import rmtree

from ...errors import ImportFileError
from ...platform.watch import Watch
from .convert import CaptureFiles
from .open_source import CHUNK_BYTES, OpenedSource, can_be_imported

CAUGHT_UP = "caught up"
"""The line on standard output after which only new lines are imported."""


def import_growing(source: OpenedSource, path: str, files: CaptureFiles, caught_up: Callable[[], None]) -> None:
    """Import a file as it grows, until the user ends it. Raises: OSError; ImportFileError."""
    watch = Watch(reader_fd=1)
    watch.add(path)
    is_behind = True
    try:
        while True:
            chunk = source.file.read(CHUNK_BYTES)
            if chunk:
                files.take(source.importer.feed(chunk))
                continue
            if is_behind:
                is_behind = False
                caught_up()
            watch.wait()
    except KeyboardInterrupt:
        pass
    finally:
        watch.close()
        files.take(source.importer.close())


@contextmanager
def followed_log(whats: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the WHATs to follow: for a log that can be imported those of a temporary store, into which it is imported as it grows.

    Raises: ImportFileError.
    """
    logs = [what for what in whats if os.path.isfile(what) and can_be_imported(what)]
    if not logs:
        yield whats
        return
    if len(whats) > 1:
        raise ImportFileError(logs[0], "a log that is followed is followed alone; name it without others")
    home = tempfile.mkdtemp(prefix="mcpspy-follow-")
    kept = os.environ.get("MCPSPY_HOME")
    os.environ["MCPSPY_HOME"] = home
    importer = subprocess.Popen(
        [sys.executable, "-P", "-m", "mcpspy", "import", "--follow", logs[0]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert importer.stdout is not None
        for line in importer.stdout:
            if line.strip() == CAUGHT_UP:
                break
        else:
            raise ImportFileError(logs[0], "it could not be imported; see the message above")
        yield ()
    finally:
        importer.terminate()
        importer.wait()
        if kept is None:
            del os.environ["MCPSPY_HOME"]
        else:
            os.environ["MCPSPY_HOME"] = kept
        rmtree(home, ignore_errors=True)
