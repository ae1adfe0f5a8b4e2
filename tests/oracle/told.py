"""Texts and JSON that mcpspy makes of a capture, as digests: what the reader of captures is held to while it is rebuilt.

    python -m tests.oracle.told --write      write digests.json anew
    python -m tests.oracle.told [PATH…]      print what differs from the code at the tag `reader-old`, of these captures or of all

With MCPSPY_READER=old the code of that tag is imported, from build/reader-old (`make reader-old`). A digest is BLAKE2b of 8 bytes.
A difference on purpose is written to digests.json in the commit that makes it, which says why.
"""

import difflib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

ROOT = Path(__file__).parents[2]
OLD = ROOT / "build" / "reader-old"
DIGESTS = Path(__file__).with_name("digests.json")

if os.environ.get("MCPSPY_READER") == "old":
    sys.path.insert(0, str(OLD))

from tests.cli.terminal import PLAIN  # noqa: E402 - after the path of what it imports
from tests.golden.printed import run_bytes  # noqa: E402 - likewise

FOLDERS = ("captures", "tests/findings", "tests/golden", "tests/imports/recorded", "tests/transcript", "tests/views")
FILTERS = (
    "status:ok",
    "dur>1ms -status:ok",
    "(method:tools/call or kind:progress)",
    "sender:server",
    '"name"',
    "http:2xx",
    "rule:*",
)
VERBS = {
    "timeline": ["show", "CAPTURE"],
    "rows": ["show", "CAPTURE", "--json"],
    "http": ["show", "CAPTURE", "--http", "--json"],
    "numbers": ["show", "CAPTURE", "--stats", "--json"],
    "messages": ["export", "jsonl", "CAPTURE"],
    "findings": ["check", "CAPTURE", "--json"],
    "diagram": ["export", "mermaid", "CAPTURE"],
    "difference": ["diff", "CAPTURE", "cut.mcpspy", "--json"],
    **{f"filter {expression}": ["show", "CAPTURE", "-F", expression, "--json"] for expression in FILTERS},
}
"""The command lines by the names of their outputs. `cut.mcpspy` is the capture up to some place in it."""

OF_CUT = ("rows", "findings", "http")
"""Outputs that are made of the cut capture too."""


def captures() -> list[Path]:
    """Return the captures of the repository, without those that are no captures."""
    found = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.mcpspy")))
    return [path for path in found if path.stat().st_size]


def told(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what each verb tells of a capture, and some of the capture cut at a place that its name decides."""
    data, before = path.read_bytes(), os.getcwd()
    with TemporaryDirectory() as home:
        os.environ["MCPSPY_HOME"] = home
        Path(home, path.name).write_bytes(data)
        Path(home, "cut.mcpspy").write_bytes(data[: 1 + crc32(path.name.encode()) % len(data)])
        os.chdir(home)
        try:
            for name, words in VERBS.items():
                yield name, run_bytes([word.replace("CAPTURE", path.name) for word in words])
            for name in OF_CUT:
                yield f"{name} of cut", run_bytes([word.replace("CAPTURE", "cut.mcpspy") for word in VERBS[name]])
        finally:
            os.chdir(before)


def digests(paths: list[Path]) -> dict[str, str]:
    """Return a digest of all that is told of each capture, by the captures' paths in the repository."""
    found = {}
    for path in paths:
        digest = blake2b(digest_size=8)
        for name, text in told(path):
            digest.update(b"%b %d\n%b" % (name.encode(), len(text), text))
        found[path.relative_to(ROOT).as_posix()] = digest.hexdigest()
    return found


def digests_of_left(paths: list[Path]) -> dict[str, str]:
    """Do the same where all payloads are left in the files, as long ones of large captures are."""
    from mcpspy.capture.file import frames, reader  # of which the old code does not have all

    frames.LARGE_BYTES = reader.LONG_BYTES = 0
    return digests(paths)


def asked(program: str, paths: list[Path], reader: str = "new") -> Any:
    """Run one of the functions above for captures, in a process without the extras. Returns what it makes."""
    source = f"import sys; from tests.oracle import told; told.answer(told.{program}, sys.argv[1:])"
    path = os.pathsep.join([PLAIN["PYTHONPATH"], str(ROOT)])
    environment = {**os.environ, "TZ": "UTC", "PYTHONPATH": path, "MCPSPY_READER": reader}
    command = [sys.executable, "-c", source, *map(str, paths)]
    return json.loads(subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def texts(paths: list[Path]) -> dict[str, str]:
    """Return what is told of one capture."""
    (path,) = paths
    return {name: text.decode("utf-8", "backslashreplace") for name, text in told(path)}


def answer(make: Callable[[list[Path]], Any], words: list[str]) -> None:
    """Print what a function makes of captures, as JSON."""
    json.dump(make([Path(word) for word in words]), sys.stdout, indent=0)


def changed(paths: list[Path], program: str = "digests") -> list[str]:
    """List the captures of which something else is told than the digests say, by their paths in the repository."""
    known = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return [name for name, now in asked(program, paths).items() if known.get(name) != now]


def differences(paths: list[Path]) -> Iterator[str]:
    """Yield lines that say how what is told now differs from what was told."""
    for name in changed(paths):
        old, new = (asked("texts", [ROOT / name], reader) for reader in ("old", "new"))
        for what, text in new.items():
            before, after = old.get(what, "").splitlines(), text.splitlines()
            yield from difflib.unified_diff(before, after, f"{name}: {what}, old", "new", lineterm="", n=1)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        DIGESTS.write_text(json.dumps(asked("digests", captures()), indent=0) + "\n", encoding="utf-8")
    else:
        sys.stdout.writelines(
            f"{line}\n" for line in differences([Path(word).resolve() for word in sys.argv[1:]] or captures())
        )
