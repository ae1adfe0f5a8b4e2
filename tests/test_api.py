"""The library: docs/api.md describes every exported name and attribute, the export is complete, and wrong arguments are explained."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mcpspy
from mcpspy.records import Frame, Record
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FILE = str(ROOT / "captures" / "git.mcpspy")
SNIPPETS = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
TEXT = re.sub(r"^```.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
CLASSES = [name for name in mcpspy.__all__ if inspect.isclass(getattr(mcpspy, name))]
RECORDS = [record.__name__ for record in Record.__args__]
INTERNAL = {
    "assembly", "body", "credentials", "frames", "known", "leave", "limits", "payload", "place", "rare", "raw_bytes",
}  # fmt: skip
"""Attributes that other modules of mcpspy need, and users do not."""


def sections() -> Iterator[tuple[str, str]]:
    """Yield each heading of the page with the text below it."""
    parts = re.split(r"^#{2,3} (.+)$", TEXT, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def described(name: str) -> str:
    """Return the part of the page that describes a class: a table of its own, its rows of the records' table, or its section."""
    if name in RECORDS:
        table = next(text for heading, text in sections() if heading == "Records")
        rows = re.search(rf"^\| `{name}` \|.*\n(?:\| \|.*\n)*", table, re.MULTILINE)
        return table.partition("| record |")[0] + (rows[0] if rows else "")
    (section,) = [text for heading, text in sections() if name in re.findall(r"\w+", heading)]
    own_table = re.search(rf"^\| (?:attribute of )?`{name}` \|.*\n(?:\|.*\n)*", section, re.MULTILINE)
    return own_table[0] if own_table else section


def attributes(name: str) -> set[str]:
    """Return the public attributes of an exported class, those of its exception class or its enumeration included."""
    exported = getattr(mcpspy, name)
    names = {attribute for attribute in vars(exported) if not attribute.startswith("_")} - INTERNAL
    if issubclass(exported, Exception):
        names |= set(inspect.signature(exported.__init__).parameters) - {"self", "args", "kwargs"}
    return names


@pytest.mark.parametrize("name", CLASSES)
def test_the_page_describes_every_attribute(name: str) -> None:
    words = {word for code in re.findall(r"`([^`]+)`", described(name)) for word in re.findall(r"\w+", code)}
    assert attributes(name) <= words


@pytest.mark.parametrize("name", mcpspy.__all__)
def test_the_page_describes_every_name_and_has_an_example_of_it(name: str) -> None:
    assert re.search(rf"`{name}\b", TEXT) or f"## {name}\n" in TEXT
    assert re.search(rf"\bmcpspy\.{name}\b", SNIPPETS)


def annotations(exported: Any) -> Iterator[str]:
    """Yield the annotations of a class's fields, and of the results of its properties and methods."""
    yield from (str(text) for name, text in inspect.get_annotations(exported).items() if name not in INTERNAL)
    for value in vars(exported).values():
        function = value.fget if isinstance(value, property) else value
        if inspect.isfunction(function) and not function.__name__.startswith("_"):
            yield str(inspect.get_annotations(function).get("return", ""))


def our_classes() -> set[str]:
    """Return the names of all classes in the modules that the exported names come from."""
    exported = [getattr(mcpspy, name) for name in CLASSES]
    modules = {sys.modules[cls.__module__] for cls in exported}
    values = (value for module in modules for value in vars(module).values() if inspect.isclass(value))
    return {value.__name__ for value in values if value.__module__.startswith("mcpspy.")}


@pytest.mark.parametrize("name", CLASSES)
def test_the_type_of_every_attribute_is_exported(name: str) -> None:
    words = set(re.findall(r"\w+", " ".join(annotations(getattr(mcpspy, name)))))
    assert words & our_classes() <= set(mcpspy.__all__)


def test_a_capture_is_opened_by_its_path() -> None:
    transcript = mcpspy.open(FILE)
    assert [exchange.row for exchange in transcript.exchanges] == [
        exchange.row for exchange in mcpspy.transcribe(mcpspy.read(FILE)).exchanges
    ]
    assert len(mcpspy.open(Path(FILE), FILE).captures) == 2


def test_a_file_that_is_no_capture_is_refused() -> None:
    with pytest.raises(mcpspy.CaptureError):
        mcpspy.open(ROOT / "README.md")


transcribe: Any = mcpspy.transcribe
open_captures: Any = mcpspy.open
"""The functions without their types, so that they can be called with wrong arguments."""


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: transcribe("x"), "transcribe takes records, not a path: use mcpspy.open('x')"),
        (lambda: transcribe(Path("x")), "transcribe takes records, not a path: use mcpspy.open('x')"),
        (lambda: transcribe("x", "y"), "transcribe takes records, not a path: use mcpspy.open('x')"),
        (lambda: transcribe(7), "transcribe takes records, as mcpspy.read returns them, not int: use mcpspy.open(path)"),
        (lambda: transcribe(mcpspy.open(FILE)), "not Transcript"),
        (lambda: transcribe(["x"]), "transcribe takes records, not items of type str"),
        (lambda: transcribe([mcpspy.read(FILE)]), "each capture as an argument of its own: use transcribe(*captures)"),
        (lambda: transcribe(Frame(0, 0, 0, b"")), "not one record: use transcribe([record, …])"),
        (mcpspy.open, "open takes the path of at least one capture: use mcpspy.open('FILE.mcpspy')"),
        (lambda: open_captures([FILE]), "each as an argument of its own, not list: use mcpspy.open(*paths)"),
    ],
)
def test_a_wrong_argument_is_explained(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(TypeError, match=re.escape(sentence)):
        call()


def test_a_name_that_is_not_exported_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'mcpspy' has no attribute 'Transcriber'"):
        getattr(mcpspy, "Transcriber")  # noqa: B009 - mypy knows that it is none


def snippets() -> Iterator[tuple[str, str]]:
    """Yield the Python of every page, each snippet with a name for its file."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        matches = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        yield from ((f"{page.stem}_{number}.py", code) for number, code in enumerate(matches))


def test_the_python_of_every_page_passes_mypy_strict(tmp_path: Path) -> None:
    # Tests of users have no annotations, and Spark is not in this environment.
    files = {name: code for name, code in snippets() if "def test_" not in code and "spark" not in code}
    for name, code in files.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(ROOT / ".mypy_cache" / "pages")]
    run = subprocess.run([*mypy, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S * 6, check=False)
    assert (run.returncode, run.stdout.replace(str(tmp_path), "")) == (
        0,
        f"Success: no issues found in {len(files)} source files\n",
    )
