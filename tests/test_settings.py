"""docs/settings.md, held against the package: every variable that it reads is on the page, and none that it does not read."""

import ast
import re
from collections.abc import Iterator

from tests.conftest import ROOT
from tests.rooms import PACKAGE, Module, parse

PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))}
ENVIRONMENTS = {"environ", "environb", "environment"}
OF_LIBRARIES = {"TZ", "BROWSER", "SSL_CERT_FILE", "SSL_CERT_DIR"}
"""Variables that Python and OpenSSL read, not mcpspy."""
OF_TESTS = {"MCPSPY_WRITE_DOCS"}
"""Variables that docstrings mention and only the tests read."""


def readers() -> list[Module]:
    """Return the modules that may read the environment: few enough to be parsed anew."""
    return [parse(file.relative_to(PACKAGE), text) for file, text in SOURCES.items() if re.search("environ|getenv", text)]


def is_environment(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ENVIRONMENTS


def keys(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the key of each access to an environment."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=asked, attr="get" | "pop"), args=[key, *_]) if is_environment(asked):
                yield key
            case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=[key, *_]):
                yield key
            case ast.Subscript(value=asked, slice=key) if is_environment(asked):
                yield key
            case ast.Compare(left=key, comparators=[asked]) if is_environment(asked):
                yield key


def constants(all_modules: list[Module]) -> dict[str, str]:
    """Texts that modules give a name in capitals."""
    texts: dict[str, str] = {}
    for module in all_modules:
        for node in module.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if name.isupper():
                    texts[name] = text
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))) if name.isupper():
                    texts[name] = text
    return texts


def variables(all_modules: list[Module]) -> set[str]:
    """Return the names of the variables that the package reads, without those whose names are made at run time."""
    named = constants(all_modules)
    names = set()
    for module in all_modules:
        for key in keys(module.tree):
            match key:
                case ast.Constant(value=str(name)):
                    names.add(name)
                case ast.Constant(value=bytes(name)):
                    names.add(name.decode())
                case ast.Name(id=name) if name in named:
                    names.add(named[name])
    return names


def documented() -> set[str]:
    """Return the variables in the first cells of the page's tables."""
    cells = re.findall(r"^\| (`[A-Z_`, ]+`) \|", PAGE, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"[A-Z_]+", cell)}


def test_the_page_names_every_variable_that_is_read_and_no_other() -> None:
    assert documented() == variables(readers()) | OF_LIBRARIES


def test_every_variable_of_ours_is_on_the_page_wherever_it_is_spelled() -> None:
    spelled = {name for text in SOURCES.values() for name in re.findall(r"\b_?MCPSPY_[A-Z_]+\b", text)}
    assert spelled - OF_TESTS == {name for name in documented() if "MCPSPY_" in name}


def test_a_variable_that_is_read_in_any_way_is_seen() -> None:
    source = (
        'NAME = "MCPSPY_NAMED"\nos.environ.get("A")\nos.environ["B"]\n"C" in os.environ\nenviron.get(NAME)\nos.getenv("D")\n'
        'os.environb[b"E"]\nfor name in names: os.environ[name]\n'
    )
    assert variables([parse(ROOT / "x.py", source)]) == {"A", "B", "C", "D", "E", "MCPSPY_NAMED"}
