"""The servers that a configuration file names: what each is, whether it is wrapped, and where what wrapping changes stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from . import jsonc, toml
from .jsonc import ANY
from .prefix import inner
from .spans import Member, Value

Path = tuple[str, ...]


class Syntax(StrEnum):
    """How a file is written."""

    JSON = "json"
    TOML = "toml"


class Layout(StrEnum):
    """How the members of an entry stand beside each other: as in JSON, within TOML's braces, or on lines of their own."""

    JSON = "json"
    BRACES = "braces"
    LINES = "lines"


class State(StrEnum):
    """What can be done with an entry."""

    PLAIN = "plain"
    WRAPPED = "wrapped"
    HTTP = "http"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of one file. `members` are those of its object or table, in the order of the text."""

    path: Path
    layout: Layout
    members: tuple[Member, ...]
    no_object: bool = False

    @property
    def name(self) -> str:
        """The name that the client knows the server by."""
        return self.path[-1]

    @property
    def command(self) -> Member | None:
        """The member `command`; of several the last."""
        return self._member("command")

    @property
    def args(self) -> Member | None:
        """The member `args`; of several the last."""
        return self._member("args")

    @property
    def url(self) -> str:
        """Where an HTTP server is; empty for a program."""
        found = self._member("url") or self._member("serverUrl") or self._member("httpUrl")
        return found.value.string if found else ""

    @property
    def argv(self) -> list[str]:
        """The command and its arguments as the client reads them; empty where they cannot be read."""
        if self.problem or not self.command:
            return []
        return [self.command.value.string, *(item.string for item in (self.args.value.items if self.args else ()))]

    @property
    def server_argv(self) -> list[str]:
        """The same without what mcpspy put before it."""
        return self.argv[inner(self.argv) or 0 :]

    @property
    def state(self) -> State:
        """What it is; UNUSABLE has a `problem`."""
        if not self.command and self.url:
            return State.HTTP
        if self.problem:
            return State.UNUSABLE
        return State.PLAIN if inner(self.argv) is None else State.WRAPPED

    @property
    def problem(self) -> str:
        """Why nothing can be put before its command; empty if something can."""
        if self.no_object:
            return "it is no object"
        if not self.command:
            return "" if self.url else "it has neither a command nor a URL"
        if self.command.value.kind != "string" or not self.command.value.string:
            return "its command is no string"
        if self.args and (self.args.value.kind != "array" or any(one.kind != "string" for one in self.args.value.items)):
            return "its args are no list of strings"
        return ""

    def _member(self, key: str) -> Member | None:
        return next((one for one in reversed(self.members) if one.key == key), None)


def entries(text: str, syntax: Syntax, section: Path) -> list[Entry]:
    """The servers under `section`, in the order of the text. Raises: Unreadable."""
    if syntax is Syntax.TOML:
        return _of_toml(toml.lines(text), section)
    return [
        Entry(path=path, layout=Layout.JSON, members=value.members, no_object=value.kind != "object")
        for path, value in _below(jsonc.parse(text, section), (*section, ANY), ())
    ]


def _below(value: Value, keys: Path, path: Path) -> Iterator[tuple[Path, Value]]:
    if not keys:
        yield path, value
        return
    wanted = dict.fromkeys(one.key for one in value.members) if keys[0] == ANY else (keys[0],)
    for key in wanted:
        member = value.member(key)
        if member:
            yield from _below(member.value, keys[1:], (*path, key))


def _of_toml(lines: list[toml.Line], section: Path) -> list[Entry]:
    found: dict[Path, Entry] = {}
    depth = len(section)
    tables: dict[Path, list[Member]] = {}
    for line in lines:
        if line.path[:depth] != section:
            continue
        value = line.member.value
        if len(line.path) == depth:
            found |= {(*section, one.key): _braces((*section, one.key), one.value) for one in value.members}
        elif len(line.path) == depth + 1:
            found[line.path] = _braces(line.path, value)
        else:
            path = line.path[: depth + 1]
            members = tables.setdefault(path, [])
            if len(line.path) == depth + 2:
                members.append(line.member)
            found[path] = Entry(path=path, layout=Layout.LINES, members=tuple(members))
    return list(found.values())


def _braces(path: Path, value: Value) -> Entry:
    return Entry(path=path, layout=Layout.BRACES, members=value.members, no_object=value.kind != "object")
