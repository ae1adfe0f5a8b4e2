"""The rooms of mcpspy and what each may touch, as data; and the rules that hold a module's source against it.

tests/test_rooms.py applies them to the package. A new room gets its row here in the commit that opens it.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mcpspy"

JSON = {"msgspec"}
FILES = {"fcntl", "glob", "io", "mmap", "os", "pathlib", "shutil", "tempfile"}
NETWORK = {"asyncio", "http", "select", "selectors", "socket", "socketserver", "ssl", "urllib.request"}
PROCESSES = {"multiprocessing", "signal", "subprocess", "threading"}
CLOCKS = {"sched", "time"}
RANDOMNESS = {"random", "secrets", "uuid"}
TERMINAL = {"curses", "readline", "sys", "termios", "tty"}
THE_WORLD = FILES | NETWORK | PROCESSES | CLOCKS | RANDOMNESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Imports that a room may have, ours and others, and standard modules that it may not. It may import its own modules."""

    ours: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    others_inside_functions: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    pure: bool = False
    """A pure room also calls neither `open`, `print` and `input`, nor anybody's `now` and `today`."""


def room(
    ours: str = "",
    others: set[str] | None = None,
    never: set[str] | None = None,
    others_inside_functions: set[str] | None = None,
    *,
    pure: bool = False,
) -> Room:
    """Make a row of the table; `ours` is a list in words."""
    return Room(
        ours=frozenset(ours.split()),
        others=frozenset(others or ()),
        others_inside_functions=frozenset(others_inside_functions or ()),
        never=frozenset(never or ()),
        pure=pure,
    )


ROOMS = {
    "errors": room(never=THE_WORLD, pure=True),
    "records": room(never=THE_WORLD, pure=True),
    "lazy_pattern": room(never=THE_WORLD, pure=True),
    "msgspec_alone": room(others=JSON, pure=True),
    "json_path": room("errors lazy_pattern", never=THE_WORLD, pure=True),
    "usual_lines": room("records", others=JSON, never=THE_WORLD, pure=True),
    "compiled": room("__init__"),  # which has speedups.c beside it
    "plain_lines": room(never=THE_WORLD, pure=True),
    # what decodes br and zstd, where it is installed
    "wire": room(
        "compiled lazy_pattern",
        others={"httptools"} | JSON,
        others_inside_functions={"backports", "brotli", "compression"},
        never=THE_WORLD,
        pure=True,
    ),
    "capture": room("errors platform records compiled plain_lines usual_lines lazy_pattern", others=JSON, never=NETWORK),
    # msgspec for its structs, which the garbage collector does not visit; JSON is read in wire
    "transcript": room(
        "errors records usual_lines lazy_pattern wire",
        others=JSON,
        others_inside_functions={"jsonschema", "mcp_types", "referencing"},
        never=THE_WORLD,
        pure=True,
    ),
    # of transcript only which side may send a method
    "imports": room("errors records wire transcript", others=JSON, never=THE_WORLD, pure=True),
    "intercept": room("errors records json_path wire transcript", never=THE_WORLD, pure=True),
    "replay": room("errors records lazy_pattern json_path wire transcript", never=THE_WORLD, pure=True),
    # of capture only what names and heads say about secrets: tests/sharing holds it to that
    "sharing": room("errors records compiled lazy_pattern wire capture transcript", never=THE_WORLD, pure=True),
    # msgspec to write the blocks of the page, which take a sixth of the time with it
    "views": room(
        "records lazy_pattern json_path wire transcript replay", others={"rich"} | JSON, never=THE_WORLD | TERMINAL, pure=True
    ),
    # of views the words of JSON and of times
    "columns": room(
        "records lazy_pattern wire transcript views",
        # extras: the command line imports this room after it has looked for them; and msgspec, which reads errors five times as fast
        others={"pyarrow", "duckdb"} | JSON,
        never=NETWORK | PROCESSES | CLOCKS | RANDOMNESS,
    ),
    "telemetry": room(
        "records lazy_pattern wire transcript views",
        others={"opentelemetry", "requests", "google"},  # an extra, as those of columns, with what its exporter sends with
        never=FILES | NETWORK | PROCESSES | CLOCKS | RANDOMNESS,
        pure=True,
    ),
    # what differs by operating system: nothing else asks which one this is (system_questions)
    "platform": room(never=CLOCKS - {"time"} | RANDOMNESS),
    "live": room("platform records wire transcript replay errors compiled plain_lines", others={"aiohttp", "httptools"}),
    "control": room("errors platform"),
    # captured text for agents; its server is on the official SDK
    "agent": room(
        "errors json_path wire transcript intercept replay views live",
        others={"mcp", "mcp_types", "anyio", "starlette"},
        others_inside_functions={"jsonschema", "pydantic", "uvicorn"},
        never=FILES | PROCESSES | RANDOMNESS,
    ),
    # asyncio to end when a signal comes; the clock for timers; a lock, because its timer asks taps in a thread of Textual's
    "tui": room(
        "errors platform records json_path wire capture transcript intercept replay views control",
        others={"rich", "textual"},
        never=(FILES | NETWORK | PROCESSES | RANDOMNESS) - {"asyncio", "os", "signal", "threading"},
    ),
    "setup": room("errors lazy_pattern platform"),
    "demo": room(),
    "cli": room(
        "__init__ platform compiled errors records lazy_pattern msgspec_alone json_path wire capture transcript imports"
        " intercept replay sharing views columns telemetry live setup demo control agent tui",
        others={"click", "rich"},
    ),
    # the door for a cluster: what `mcpspy export parquet` is for one machine
    "spark": room("capture cli columns", others={"pyarrow", "pyspark"}, never=NETWORK | PROCESSES | CLOCKS | RANDOMNESS),
    "testing": room("errors records capture transcript replay views __main__", others_inside_functions={"mcp"}),
    # What pytest loads: nothing of ours before a test asks for it.
    "pytest_plugin": room("testing", others={"pytest"}),
    # The two doors: the library's, whose names are resolved lazily, and the command line's.
    "__init__": room("errors records capture transcript"),
    "__main__": room("__init__ compiled msgspec_alone cli"),  # the first two for the version
}

ASYNC_ROOMS = {"agent", "live"}
SYSTEM_ROOMS = {"platform", "testing", "demo"}
"""The room for what differs by operating system, and programs that are no part of a tap."""
OF_SOME_SYSTEMS = {"_ctypes", "ctypes", "fcntl", "msvcrt", "pwd", "resource", "termios", "tty", "winreg"}
LACKING_SOMEWHERE = {"O_NOFOLLOW", "eventfd", "fdatasync", "geteuid", "getuid", "memfd_create", "pidfd_open", "pipe2", "splice"}
DYNAMIC_IMPORTS = {"__init__", "cli"}
"""Rooms that may import a module by a name made at run time: the front door, and the verb that was asked for."""
DYNAMIC_TABLE = "mcpspy.transcript.findings.finders"
"""The one other module that may: its table names modules of its own package, and a capture needs few of them."""

FORBIDDEN_FILE_NAMES = {"utils", "util", "common", "base", "helpers", "helper", "misc"}
MAX_FILE_LINES = 600
MIN_PACKAGE_MODULES = 4
MAX_FUNCTION_LINES = 60
NOUN_CLAUSE = re.compile(r"(What|Whose|Where|Which|How|Whether|Who|When|Why)(ever)?\b")
LOOP_OVER_ONE = re.compile(r"\bfor\b[^#\n]*\bone\b")
TEXT_FROM_NOUN_CLAUSE = re.compile(rf"[\"']{NOUN_CLAUSE.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module: `room` if it is ours, else `name`. `inside_function` tells lazy imports from the others."""

    line: int
    name: str
    room: str | None
    relative: bool
    inside_function: bool


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the package, parsed when it has to be; `path` is relative to it, `mcpspy/wire/lines.py` being `wire/lines.py`."""

    path: Path
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.source, str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @property
    def name(self) -> str:
        """The dotted name, as in `mcpspy.wire.lines`; that of a package is its folder's."""
        parts = ("mcpspy", *self.path.with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The room a module stands in; on the ground floor, the module is the room."""
        return self.path.parts[0] if len(self.path.parts) > 1 else self.path.stem

    @cached_property
    def imports(self) -> list[Import]:
        """Every import statement, wherever it stands; `if TYPE_CHECKING` counts like any other."""
        return [imported for node, inside in _statements(self.tree) for imported in self._read(node, inside)]

    def _read(self, node: ast.AST, inside: bool) -> Iterator[Import]:  # noqa: FBT001 - two values of one walk
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield self._import(node.lineno, alias.name, relative=False, inside=inside)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield self._import(node.lineno, module or "", relative=False, inside=inside)
            case ast.ImportFrom(module=module, names=names, level=level):
                package = ("mcpspy", *self.path.parts[:-1])
                base = ".".join(package[: len(package) - level + 1])
                # `from .. import records` imports a room, `from .. import __version__` the door.
                targets = [f"{base}.{module}"] if module else [f"{base}.{alias.name}" for alias in names]
                for target in targets:
                    yield self._import(node.lineno, target, relative=True, inside=inside)

    def _import(self, line: int, name: str, *, relative: bool, inside: bool) -> Import:
        parts = name.split(".")
        ours = parts[0] == "mcpspy"
        room = (parts[1] if len(parts) > 1 and parts[1] in ROOMS else "__init__") if ours else None
        return Import(line=line, name=name, room=room, relative=relative, inside_function=inside)


_HAVE_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def _statements(node: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every statement below, and whether it is inside a function."""
    inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _HAVE_STATEMENTS):
            yield child, inside
            yield from _statements(child, inside=inside)


def parse(path: Path, source: str) -> Module:
    """Take a module as if it were at `path`, relative to the package."""
    return Module(path=path, source=source)


def paths() -> list[Path]:
    """Return the path of every module of the package, relative to it, in their order."""
    return [file.relative_to(PACKAGE) for file in sorted(PACKAGE.rglob("*.py"))]


@cache
def module_at(path: Path) -> Module:
    """Parse the module of the package at `path`."""
    return parse(path, (PACKAGE / path).read_text(encoding="utf-8"))


def modules() -> list[Module]:
    """Return every module of the package, in the order of their paths."""
    return [module_at(path) for path in paths()]


@cache
def programs() -> list[Module]:
    """Return every module outside the package: tests, benchmarks, and the programs that make captures and docs."""
    folders = ("tests", "benchmarks", "captures", "docs")
    files = [file for folder in folders for file in sorted((PACKAGE.parent / folder).rglob("*.py"))]
    return [parse(file.relative_to(PACKAGE.parent), file.read_text(encoding="utf-8")) for file in files]


# --- The rules. Each yields what is wrong with a module, as "line: sentence" ---


def wrong_rooms(module: Module) -> Iterator[str]:
    """Imports of ours that the table does not allow."""
    allowed = ROOMS[module.room].ours | {module.room}
    for imported in module.imports:
        if imported.room and imported.room not in allowed:
            yield f"{imported.line}: {module.room} may not import {imported.room} ({imported.name})"


def wrong_others(module: Module) -> Iterator[str]:
    """Third-party imports that the table does not allow, or not there."""
    row = ROOMS[module.room]
    for imported in module.imports:
        top = imported.name.split(".")[0]
        if imported.room or top in sys.stdlib_module_names or top in row.others:
            continue
        if top not in row.others_inside_functions:
            yield f"{imported.line}: {module.room} may not import {imported.name}"
        elif not imported.inside_function:
            yield f"{imported.line}: {module.room} may import {imported.name} inside a function only"


def wrong_standard_modules(module: Module) -> Iterator[str]:
    """Imports of the standard library that give a room more of the world than it may have."""
    never = ROOMS[module.room].never
    for imported in module.imports:
        if not imported.room and (imported.name in never or imported.name.split(".")[0] in never):
            yield f"{imported.line}: {module.room} never imports {imported.name}"


def absolute_imports(module: Module) -> Iterator[str]:
    """Imports of ours that spell the package's name."""
    for imported in module.imports:
        if imported.room and not imported.relative:
            yield f"{imported.line}: import {imported.name} relatively"


def impure_calls(module: Module) -> Iterator[str]:
    """In a pure room: calls that read a clock, a file or a terminal without an import that would show it."""
    if not ROOMS[module.room].pure:
        return
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id="open" | "print" | "input" as name)):
                yield f"{node.lineno}: {module.room} is pure and calls {name}()"
            case ast.Call(func=ast.Attribute(attr="now" | "utcnow" | "today" as name)):
                yield f"{node.lineno}: {module.room} reads no clock and calls {name}()"


def imports_by_name(module: Module) -> Iterator[str]:
    """Imports that no reader of import statements sees."""
    if module.room in DYNAMIC_IMPORTS or module.name == DYNAMIC_TABLE:
        return
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module")):
                yield f"{node.lineno}: {module.room} imports by a name made at run time"


def system_questions(module: Module) -> Iterator[str]:
    """Find what asks for the operating system, or works on some of them only, outside the room for that."""
    if module.room in SYSTEM_ROOMS:
        return
    for imported in module.imports:
        if imported.name in OF_SOME_SYSTEMS:
            yield f"{imported.line}: {imported.name} is not on every system; see platform"
    for node in module.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="sys"), attr="platform") | ast.Attribute(value=ast.Name(id="os"), attr="name"):
                yield f"{node.lineno}: {module.room} asks for the operating system; see platform"
            case ast.Attribute(value=ast.Name(id="os"), attr=str(name)) if name in LACKING_SOMEWHERE:
                yield f"{node.lineno}: os.{name} is not on every system; see platform"
            case ast.Constant(value=str(text)) if text.startswith("/proc/"):
                yield f"{node.lineno}: /proc is not on every system; see platform"


def stray_async(module: Module) -> Iterator[str]:
    """`async def` outside the rooms that await."""
    if module.room in ASYNC_ROOMS:
        return
    for node in module.nodes:
        if isinstance(node, ast.AsyncFunctionDef):
            yield f"{node.lineno}: async def {node.name} belongs into live"


def too_long(module: Module) -> Iterator[str]:
    """Find files and functions that are too long."""
    lines = module.source.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{lines}: more than {MAX_FILE_LINES} lines"
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{node.lineno}: {node.name} has {length} lines, more than {MAX_FUNCTION_LINES}"


def bad_name(module: Module) -> Iterator[str]:
    """Find files whose name names no subject."""
    if module.path.stem in FORBIDDEN_FILE_NAMES:
        yield f"1: {module.path.name} says nothing of what is in it"


def furnished_init(module: Module) -> Iterator[str]:
    """Find a room's `__init__.py` with something in it; the front door is the package's own."""
    if module.path.name == "__init__.py" and len(module.path.parts) > 1 and module.source.strip():
        yield "1: the __init__.py of a room is empty"


def nameless_loops(module: Module) -> Iterator[str]:
    """Find loops and comprehensions whose variable is called `one`, which does not say what it holds."""
    for node in module.nodes if LOOP_OVER_ONE.search(module.source) else ():
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name) and name.id == "one":
                    yield f"{name.lineno}: a loop variable says what it holds, not `one`"


def noun_clauses(module: Module) -> Iterator[str]:
    """Find docstrings, those of constants too, that begin with a question word, as in "What of an exchange …"."""
    for node in module.nodes if TEXT_FROM_NOUN_CLAUSE.search(module.source) else ():
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), lineno=line) if NOUN_CLAUSE.match(text):
                yield f"{line}: a docstring begins with a noun phrase or an imperative: {text[:40]!r}"


def import_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Build the graph of imports, by dotted names without packages. Imports for types and within functions count."""
    names = {module.name: module for module in modules if module.path.name != "__init__.py"}
    graph: dict[str, set[str]] = {}
    for name, module in names.items():
        targets = {target for node in module.nodes for target in _targets(module, node)}
        graph[name] = {target for target in targets if target in names and target != name}
    return graph


def _targets(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that an import can mean: the module it names, and each name as a module in it."""
    if isinstance(node, ast.ImportFrom) and node.level:
        package = ("mcpspy", *module.path.parts[:-1])
        base = ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))
        yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def rings(graph: dict[str, set[str]]) -> list[list[str]]:
    """Find the groups of modules that import each other, directly or through others."""
    reached = {name: _reachable(graph, name) for name in graph}
    members = [sorted({name, *(other for other in reached[name] if name in reached[other])}) for name in graph]
    return [list(ring) for ring in sorted({tuple(ring) for ring in members if len(ring) > 1})]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()]:
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


def shared_class_names(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Find the names that two or more classes have, and where."""
    places: dict[str, list[str]] = {}
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{module.path}:{node.lineno}")
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def namesakes(graph: dict[str, set[str]]) -> list[str]:
    """Find modules that meet namesakes of one room: their own name, or two among their imports."""
    wrong = []
    for name, imported in graph.items():
        groups: dict[tuple[str, str], set[str]] = {}
        for other in {name, *imported}:
            parts = other.split(".")
            groups.setdefault((parts[1] if len(parts) > 2 else "", parts[-1]), set()).add(other)
        wrong += [f"{name}: {', '.join(sorted(group))}" for group in groups.values() if len(group) > 1]
    return wrong


RULES = (
    wrong_rooms,
    wrong_others,
    wrong_standard_modules,
    absolute_imports,
    impure_calls,
    imports_by_name,
    system_questions,
    stray_async,
    too_long,
    bad_name,
    furnished_init,
    nameless_loops,
    noun_clauses,
)
