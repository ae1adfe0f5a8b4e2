"""The words about mcpspy, held against it: links lead somewhere, verbs exist, no line names the machine it was written on."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.cli.verbs import VERBS
from tests.cli.helps import unknown_options

ROOT = Path(__file__).parents[1]
IGNORED = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Return every file of the project that no tool made."""
    for path in sorted(folder.iterdir()):
        if path.name == ".git" or path.name in IGNORED or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


FILES = list(files())
PAGES = [path for path in FILES if path.suffix == ".md"]

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CALL = re.compile(r"(?:^|[`$|;&(] ?|/bin/)mcpspy ([a-z][a-z-]*(?: [^\n|;&>`]*)?)", re.MULTILINE)
INDENTED = re.compile(r"^ {4}\S.*$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|[`$|;&(] ?|/bin/)mcpspy ([a-z][a-z-]*)", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """List the fragments that a link into a page may have."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(FENCE.sub("", page)))
    return {heading.replace(" ", "-") for heading in plain}


def broken_links(page: str, folder: Path) -> list[str]:
    """Find the relative links of a page in `folder` that lead nowhere, or out of the project."""
    broken = []
    for target in LINK.findall(CODE_SPAN.sub("", FENCE.sub("", page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (folder / name).resolve()
        exists = not name or (path.exists() and path.is_relative_to(ROOT))
        if not exists or (anchor and anchor not in anchors(path.read_text(encoding="utf-8") if name else page)):
            broken.append(target)
    return broken


def unknown_verbs(page: str) -> set[str]:
    """Verbs that commands of a page use and mcpspy does not have."""
    code = [match[0] for match in FENCE.finditer(page)] + CODE_SPAN.findall(FENCE.sub("", page))
    return {verb for text in code for verb in COMMAND.findall(text)} - set(VERBS)


def options_gone(page: str) -> set[str]:
    """Options that commands of a page use and mcpspy does not have."""
    plain = FENCE.sub("", page)
    code = [match[0] for match in FENCE.finditer(page)] + CODE_SPAN.findall(plain) + INDENTED.findall(plain)
    calls = [call.split() for text in code for call in CALL.findall(text.replace("    mcpspy", "$ mcpspy"))]
    return set().union(*(unknown_options(words) for words in calls if words[0] in VERBS))


def local_paths() -> list[str]:
    """List the paths that exist only on the machine that runs the tests: this checkout, its neighbours, the user's home."""
    too_common = {Path("/"), Path("/tmp"), Path("/home"), Path("/opt"), Path("/usr/src")}
    return [f"{path}/" for path in {ROOT, ROOT.parent, Path.home()} - too_common]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert not broken_links(page.read_text(encoding="utf-8"), page.parent)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_uses_a_verb_that_exists(page: Path) -> None:
    assert not unknown_verbs(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_a_page_uses_options_that_exist(page: Path) -> None:
    assert not options_gone(page.read_text(encoding="utf-8"))


def test_no_file_names_the_machine_it_was_written_on() -> None:
    pattern = re.compile("|".join(rf"(?<![\w./~@}}-]){re.escape(path)}" for path in local_paths()).encode())
    named = [f"{file.relative_to(ROOT)}: {match[0].decode()}" for file in FILES if (match := pattern.search(file.read_bytes()))]
    assert not named


@pytest.mark.parametrize("target", ["gone.md", "README.md#no-such-heading", "#no-such-heading", "../elsewhere.md"])
def test_a_link_that_leads_nowhere_is_seen(target: str) -> None:
    assert broken_links(f"# Here\n[text]({target})\n", ROOT) == [target]


@pytest.mark.parametrize("target", ["README.md", "README.md#mcpspy", "#here-and-now", "https://example.org/x", "docs"])
def test_a_link_that_leads_somewhere_is_let_through(target: str) -> None:
    assert not broken_links(f"# Here, and now\n[text]({target})\n", ROOT)


@pytest.mark.parametrize(
    "code", ["`mcpspy frobnicate x`", "```\n$ mcpspy frobnicate\n```", "```\n.venv/bin/mcpspy frobnicate\n```"]
)
def test_a_verb_that_does_not_exist_is_seen(code: str) -> None:
    assert unknown_verbs(f"text\n\n{code}\n") == {"frobnicate"}


@pytest.mark.parametrize(
    "text", ["mcpspy is a proxy", "`mcpspy run -- true`", "```python\nfrom mcpspy import read\n```", "`mcpspy`"]
)
def test_what_is_no_command_names_no_verb(text: str) -> None:
    assert not unknown_verbs(text)


@pytest.mark.parametrize("code", ["`mcpspy show --gone`", "```sh\nmcpspy show @ --gone\n```", "    mcpspy show --gone | head"])
def test_an_option_that_does_not_exist_is_seen(code: str) -> None:
    assert options_gone(f"text\n\n{code}\n") == {"--gone"}


@pytest.mark.parametrize("code", ["`mcpspy run -- server --gone`", "`mcpspy show` and `--gone`", "`mcpspy show --json`"])
def test_what_is_no_option_of_ours_is_let_through(code: str) -> None:
    assert not options_gone(f"text\n\n{code}\n")
