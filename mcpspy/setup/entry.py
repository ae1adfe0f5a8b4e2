"""The servers that a configuration file names: what each is, whether it is wrapped, and where what wrapping changes stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from . import address, jsonc, login, toml
from .jsonc import ANY
from .ports import Place
from .prefix import inner, options
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
    """What can be done with an entry. LOGIN is an HTTP server that is bound to its URL if the client logs in to it."""

    PLAIN = "plain"
    WRAPPED = "wrapped"
    LOGIN = "login"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of one file. `members` are those of its object or table, in the order of the text.

    `places` are all that there are, by port: a URL at one of them is wrapped, even if it remembers nothing itself.
    """

    path: Path
    layout: Layout
    members: tuple[Member, ...]
    no_object: bool = False
    places: Mapping[int, Place] = field(default_factory=dict)

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
    def is_http(self) -> bool:
        """Whether it has a URL and no command."""
        return not self.command and bool(self._url)

    @property
    def url(self) -> str:
        """Where an HTTP server is, as the file says it; empty for a program."""
        return self._url.value.string if self._url else ""

    @property
    def url_value(self) -> Value:
        """Where that stands."""
        assert self._url is not None
        return self._url.value

    @property
    def place(self) -> Place | None:
        """The place that its URL is at; None if it is at none that is known."""
        return self.places.get(address.port_of(self.url) or 0)

    @property
    def is_lost(self) -> bool:
        """Whether mcpspy put its URL where it is, and nothing says what was there before."""
        return self.is_http and self.place is None and address.is_lost(self.url)

    @property
    def server_url(self) -> str:
        """The URL without what mcpspy put there."""
        origin = address.marked(self.url) or (address.origin_of(self.place.url) if self.place else "")
        return address.inner(self.url, origin) if origin else self.url

    @property
    def may_log_in(self) -> bool:
        """Whether the client may have to log in to its server, which then is bound to its URL."""
        return self.is_http and login.may_log_in(self.members, self.server_url)

    @property
    def argv(self) -> list[str]:
        """The command and its arguments as the client reads them; empty where they cannot be read."""
        if self._unreadable or not self.command:
            return []
        return [self.command.value.string, *(item.string for item in (self.args.value.items if self.args else ()))]

    @property
    def server_argv(self) -> list[str]:
        """The same without what mcpspy put before it."""
        return self.argv[inner(self.argv) or 0 :]

    @property
    def terms(self) -> list[str]:
        """What the file decides of the recording: options of `mcpspy run` but its label, and the store that its `env` names."""
        env = self._member("env")
        home = env.value.member("MCPSPY_HOME") if env else None
        return [*options(self.argv), *([f"MCPSPY_HOME={home.value.string}"] if home else [])]

    @property
    def state(self) -> State:
        """What it is; UNUSABLE has a `problem`."""
        if self.problem:
            return State.UNUSABLE
        if not self.is_http:
            return State.PLAIN if inner(self.argv) is None else State.WRAPPED
        if self.server_url != self.url:
            return State.WRAPPED
        return State.LOGIN if self.may_log_in else State.PLAIN

    @property
    def problem(self) -> str:
        """Why nothing can be put before it; empty if something can, or is."""
        return self._unreadable or ("" if self.is_http or inner(self.argv) is not None else self._obstacle)

    @property
    def _unreadable(self) -> str:
        if self.no_object:
            return "it is no object"
        if not self.command:
            return self._problem_of_url()
        if self.command.value.kind != "string" or not self.command.value.string:
            return "its command is no string"
        if self.args and (self.args.value.kind != "array" or any(one.kind != "string" for one in self.args.value.items)):
            return "its args are no list of strings"
        return ""

    @property
    def _obstacle(self) -> str:
        """Why a command that can be read would not start with mcpspy before it."""
        dev, env = self._member("dev"), self._member("env")
        if dev and dev.value.member("debug"):
            return "VS Code debugs it (dev.debug), and starts only node or Python so"
        if env and env.value.member("PYTHONHOME"):
            return "its env sets PYTHONHOME, with which the Python of mcpspy does not start"
        return ""

    @property
    def _url(self) -> Member | None:
        return self._member("url") or self._member("serverUrl") or self._member("httpUrl")

    def _problem_of_url(self) -> str:
        if not self._url:
            return "it has neither a command nor a URL"
        if self._url.value.kind != "string" or not self.url:
            return "its URL is no string"
        return "" if self.server_url != self.url else address.problem(self.url)

    def _member(self, key: str) -> Member | None:
        return next((one for one in reversed(self.members) if one.key == key), None)


def entries(text: str, syntax: Syntax, section: Path, places: Mapping[int, Place] | None = None) -> list[Entry]:
    """The servers under `section`, in the order of the text. Raises: Unreadable."""
    places = places or {}
    if syntax is Syntax.TOML:
        return _of_toml(toml.lines(text), section, places)
    return [
        Entry(path=path, layout=Layout.JSON, members=value.members, no_object=value.kind != "object", places=places)
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


def _of_toml(lines: list[toml.Line], section: Path, places: Mapping[int, Place]) -> list[Entry]:
    found: dict[Path, Entry] = {}
    depth = len(section)
    tables: dict[Path, list[Member]] = {}
    for line in lines:
        if line.path[:depth] != section:
            continue
        value = line.member.value
        if len(line.path) == depth:
            found |= {(*section, one.key): _braces((*section, one.key), one.value, places) for one in value.members}
        elif len(line.path) == depth + 1:
            found[line.path] = _braces(line.path, value, places)
        else:
            path = line.path[: depth + 1]
            members = tables.setdefault(path, [])
            members.append(toml.nested(line.member, line.path[depth + 1 :]))
            found[path] = Entry(path=path, layout=Layout.LINES, members=tuple(members), places=places)
    return list(found.values())


def _braces(path: Path, value: Value, places: Mapping[int, Place]) -> Entry:
    return Entry(path=path, layout=Layout.BRACES, members=value.members, no_object=value.kind != "object", places=places)
