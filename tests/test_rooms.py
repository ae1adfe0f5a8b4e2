"""The fence: what a room imports, awaits and weighs, held against the table of tests/rooms.py."""

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rooms
from tests.rooms import (
    MAX_FILE_LINES,
    MAX_FUNCTION_LINES,
    MIN_PACKAGE_MODULES,
    PACKAGE,
    ROOMS,
    RULES,
    modules,
    parse,
    programs,
)


@pytest.fixture(autouse=True, scope="module")
def _without_garbage() -> Iterator[None]:
    """Collect none: syntax trees are millions of objects, which all stay, and looking among them takes two thirds of the time."""
    gc.disable()
    yield
    gc.enable()


def test_every_module_keeps_to_its_room() -> None:
    wrong = [f"mcpspy/{module.path}:{sentence}" for module in modules() for rule in RULES for sentence in rule(module)]
    assert not wrong, "\n".join(wrong)


def test_no_loop_outside_the_package_is_nameless() -> None:
    wrong = [f"{module.path}:{sentence}" for module in programs() for sentence in rooms.nameless_loops(module)]
    assert not wrong, "\n".join(wrong)


def test_no_docstring_outside_the_package_begins_with_a_noun_clause() -> None:
    wrong = [f"{module.path}:{sentence}" for module in programs() for sentence in rooms.noun_clauses(module)]
    assert not wrong, "\n".join(wrong)


def test_every_room_has_a_row_in_the_table() -> None:
    assert {module.room for module in modules()} <= set(ROOMS)


def test_every_room_is_a_package() -> None:
    folders = {file.parent for file in PACKAGE.glob("*/*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_a_package_within_a_room_is_worth_opening_and_lies_at_most_two_levels_down() -> None:
    sizes = Counter(module.path.parent for module in modules() if module.path.name != "__init__.py")
    small = {str(folder): count for folder, count in sizes.items() if len(folder.parts) > 1 and count < MIN_PACKAGE_MODULES}
    assert (small, [str(folder) for folder in sizes if len(folder.parts) > 3]) == ({}, [])


def test_the_table_names_no_room_that_the_plan_does_not_have() -> None:
    assert all(row.ours <= set(ROOMS) for row in ROOMS.values())


def test_nobody_imports_the_command_line_but_its_entries() -> None:
    assert [name for name, row in ROOMS.items() if "cli" in row.ours] == ["spark", "__main__"]


def test_no_modules_import_each_other() -> None:
    assert not rooms.rings(rooms.import_graph(modules()))


def test_no_two_classes_have_one_name() -> None:
    assert not rooms.shared_class_names(modules())


def test_no_module_meets_two_of_one_name() -> None:
    assert not rooms.namesakes(rooms.import_graph(modules()))


def test_a_ring_is_seen_whatever_the_import_is_for() -> None:
    graph = rooms.import_graph(
        [
            parse(Path("wire/a.py"), "if TYPE_CHECKING:\n    from .b import B"),
            parse(Path("wire/b.py"), "from . import c"),
            parse(Path("wire/c.py"), "def f():\n    from .a import A"),
            parse(Path("wire/d.py"), "from .a import A"),
        ]
    )
    assert rooms.rings(graph) == [["mcpspy.wire.a", "mcpspy.wire.b", "mcpspy.wire.c"]]


def test_namesakes_are_seen_where_they_meet() -> None:
    graph = rooms.import_graph(
        [
            parse(Path("views/json/rows.py"), "from ..text.rows import Row"),
            parse(Path("views/text/rows.py"), ""),
            parse(Path("views/sequence/rows.py"), ""),
        ]
    )
    assert rooms.namesakes(graph) == ["mcpspy.views.json.rows: mcpspy.views.json.rows, mcpspy.views.text.rows"]


def test_classes_of_one_name_are_seen() -> None:
    twins = [parse(Path("wire/a.py"), "class Answer: ..."), parse(Path("views/b.py"), "class Answer: ...")]
    assert list(rooms.shared_class_names(twins)) == ["Answer"]


TRESPASSES = [
    ("wire/x.py", "from ..records import Frame", rooms.wrong_rooms, "wire may not import records"),
    ("wire/x.py", "from .. import records", rooms.wrong_rooms, "wire may not import records"),
    ("capture/x.py", "def f():\n    from ..transcript import model", rooms.wrong_rooms, "2: capture may not import transcript"),
    ("live/x.py", "from ..capture.writer import Writer", rooms.wrong_rooms, "live may not import capture"),
    ("transcript/x.py", "from .. import __version__", rooms.wrong_rooms, "transcript may not import __init__"),
    ("views/x.py", "import click", rooms.wrong_others, "views may not import click"),
    ("capture/x.py", "import orjson", rooms.wrong_others, "capture may not import orjson"),
    ("transcript/x.py", "import jsonschema", rooms.wrong_others, "inside a function only"),
    ("wire/x.py", "import time", rooms.wrong_standard_modules, "wire never imports time"),
    ("transcript/x.py", "from os.path import join", rooms.wrong_standard_modules, "transcript never imports os.path"),
    ("replay/x.py", "import asyncio", rooms.wrong_standard_modules, "replay never imports asyncio"),
    ("views/x.py", "import sys", rooms.wrong_standard_modules, "views never imports sys"),
    ("cli/x.py", "from mcpspy.errors import McpspyError", rooms.absolute_imports, "import mcpspy.errors relatively"),
    ("transcript/x.py", "open('x')", rooms.impure_calls, "calls open()"),
    ("views/x.py", "datetime.now()", rooms.impure_calls, "reads no clock"),
    ("live/x.py", "import_module('x')", rooms.imports_by_name, "made at run time"),
    ("setup/x.py", "import sys\nif sys.platform == 'win32': ...", rooms.system_questions, "asks for the operating system"),
    ("capture/x.py", "def f():\n    from fcntl import flock", rooms.system_questions, "fcntl is not on every system"),
    ("live/x.py", "os.pipe2(0)", rooms.system_questions, "os.pipe2 is not on every system"),
    ("live/x.py", "open('/proc/1/stat')", rooms.system_questions, "/proc is not on every system"),
    ("capture/x.py", "async def f(): ...", rooms.stray_async, "belongs into live"),
    ("cli/x.py", "\n" * (MAX_FILE_LINES + 1), rooms.too_long, "more than 600 lines"),
    ("cli/x.py", "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES, rooms.too_long, "f has 61 lines"),
    ("wire/utils.py", "", rooms.bad_name, "utils.py says nothing"),
    ("wire/__init__.py", "x = 1", rooms.furnished_init, "is empty"),
    ("wire/x.py", "[one for one in rows]", rooms.nameless_loops, "not `one`"),
    ("wire/x.py", '"""What of an exchange counts."""', rooms.noun_clauses, "begins with"),
]


@pytest.mark.parametrize(("path", "source", "rule", "expected"), TRESPASSES, ids=[f"{row[0]}: {row[3]}" for row in TRESPASSES])
def test_the_fence_sees_a_trespass(path: str, source: str, rule: object, expected: str) -> None:
    assert callable(rule)
    assert [expected in sentence for sentence in rule(parse(Path(path), source))] == [True]


ALLOWED = [
    ("wire/x.py", "import msgspec\nfrom .lines import Lines\nimport json"),
    ("transcript/x.py", "def validate():\n    import jsonschema"),
    ("live/x.py", "import os\nfrom ..wire.lines import Lines\nasync def f(): ..."),
    ("cli/x.py", "import click\nfrom .. import __version__\nfrom ..capture.reader import read"),
    ("__main__.py", "def main():\n    from .cli.run import main"),
]


@pytest.mark.parametrize(("path", "source"), ALLOWED, ids=[row[0] for row in ALLOWED])
def test_the_fence_lets_through_what_the_table_allows(path: str, source: str) -> None:
    assert not [sentence for rule in RULES for sentence in rule(parse(Path(path), source))]
