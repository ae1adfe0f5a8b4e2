"""The servers that a configuration file names: what each is, whether it is wrapped, and the positions of what wrapping changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from . import jsonc, toml
from .jsonc import ANY
from .ports import ReservedPort
from .spans import Member, Value
from .wrapping import (
    has_unknown_original,
    is_own,
    is_own_url,
    may_log_in,
    origin_of,
    original_origin,
    original_url,
    port_of,
    run_options,
    server_command_at,
    url_problem,
)

Path = tuple[str, ...]


class Syntax(StrEnum):
    """The syntax of a file."""

    JSON = "json"
    TOML = "toml"


class EntryLayout(StrEnum):
    """The separation of an entry's members: as in JSON, within the braces of TOML, or on lines of their own."""

    JSON = "json"
    BRACES = "braces"
    LINES = "lines"


class EntryState(StrEnum):
    """The state of an entry. LOGIN is an HTTP server that the client may be logged in to, which binds it to its URL.

    OWN is `mcpspy mcp`, by its command or its URL, which is never wrapped; ABSENT is the same where it could be added.
    """

    PLAIN = "plain"
    WRAPPED = "wrapped"
    LOGIN = "login"
    UNUSABLE = "unusable"
    OWN = "own"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One server of one file. `members` are those of its object or table, in the order of the text.

    `ports` are the reserved ports of the file: a URL at one of them is wrapped, even without a fragment.
    """

    path: Path
    layout: EntryLayout
    members: tuple[Member, ...]
    no_object: bool = False
    is_absent: bool = False
    ports: Mapping[int, ReservedPort] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The client's name for the server."""
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
        """True if it has a URL and no command."""
        return not self.command and bool(self._url)

    @property
    def url(self) -> str:
        """The URL of an HTTP server, as the file has it; empty for a program."""
        return self._url.value.string if self._url else ""

    @property
    def url_value(self) -> Value:
        """The position of the URL."""
        assert self._url is not None
        return self._url.value

    @property
    def reserved_port(self) -> ReservedPort | None:
        """The reserved port of its URL; None if it has none."""
        return self.ports.get(port_of(self.url) or 0)

    @property
    def has_unknown_original(self) -> bool:
        """True if mcpspy changed its URL, and neither the file nor the reserved ports have the original."""
        return self.is_http and self.reserved_port is None and has_unknown_original(self.url)

    @property
    def server_url(self) -> str:
        """The original URL."""
        origin = original_origin(self.url) or (origin_of(self.reserved_port.url) if self.reserved_port else "")
        return original_url(self.url, origin) if origin else self.url

    @property
    def may_log_in(self) -> bool:
        """True if the client may be logged in to its server, which binds it to its URL."""
        return self.is_http and may_log_in(self.members, self.server_url)

    @property
    def argv(self) -> list[str]:
        """The command and its arguments as the client reads them; empty if they cannot be read."""
        if self._unreadable or not self.command:
            return []
        return [self.command.value.string, *(item.string for item in (self.args.value.items if self.args else ()))]

    @property
    def server_argv(self) -> list[str]:
        """The same without mcpspy's prefix."""
        return self.argv[server_command_at(self.argv) or 0 :]

    @property
    def recording_settings(self) -> list[str]:
        """The settings of the recording in the file: options of `mcpspy run` but its label, and MCPSPY_HOME from its `env`."""
        env = self._member("env")
        home = env.value.member("MCPSPY_HOME") if env else None
        return [*run_options(self.argv), *([f"MCPSPY_HOME={home.value.string}"] if home else [])]

    @property
    def state(self) -> EntryState:
        """Its state; an UNUSABLE one has a `problem`."""
        if self.is_absent:
            return EntryState.ABSENT
        if is_own(self.argv) or (self.is_http and is_own_url(self.url)):
            return EntryState.OWN
        if self.problem:
            return EntryState.UNUSABLE
        if not self.is_http:
            return EntryState.PLAIN if server_command_at(self.argv) is None else EntryState.WRAPPED
        if self.server_url != self.url:
            return EntryState.WRAPPED
        return EntryState.LOGIN if self.may_log_in else EntryState.PLAIN

    @property
    def problem(self) -> str:
        """The reason why it cannot be wrapped; empty if it can be, or is."""
        if self.is_absent:
            return ""
        return self._unreadable or ("" if self.is_http or server_command_at(self.argv) is not None else self._obstacle)

    @property
    def _unreadable(self) -> str:
        if self.no_object:
            return "it is not an object"
        if not self.command:
            return self._problem_of_url()
        if self.command.value.kind != "string" or not self.command.value.string:
            return "its command is not a string"
        if self.args and (self.args.value.kind != "array" or any(item.kind != "string" for item in self.args.value.items)):
            return "its args are not a list of strings"
        return ""

    @property
    def _obstacle(self) -> str:
        """The reason why its command would not start through mcpspy."""
        dev, env = self._member("dev"), self._member("env")
        if dev and dev.value.member("debug"):
            return "VS Code debugs it (dev.debug), and can debug only node and Python"
        if env and env.value.member("PYTHONHOME"):
            return "its env sets PYTHONHOME, which keeps mcpspy's Python from starting"
        return ""

    @property
    def _url(self) -> Member | None:
        return self._member("url") or self._member("serverUrl") or self._member("httpUrl")

    def _problem_of_url(self) -> str:
        if not self._url:
            return "it has neither a command nor a URL"
        if self._url.value.kind != "string" or not self.url:
            return "its URL is not a string"
        return "" if self.server_url != self.url else url_problem(self.url)

    def _member(self, key: str) -> Member | None:
        return next((member for member in reversed(self.members) if member.key == key), None)


def entries(text: str, syntax: Syntax, section: Path, ports: Mapping[int, ReservedPort] | None = None) -> list[ConfigEntry]:
    """Find the servers under `section`, in the order of the text. Raises: Unreadable."""
    ports = ports or {}
    if syntax is Syntax.TOML:
        return _of_toml(toml.lines(text), section, ports)
    return [
        ConfigEntry(path=path, layout=EntryLayout.JSON, members=value.members, no_object=value.kind != "object", ports=ports)
        for path, value in _below(jsonc.parse(text, section), (*section, ANY), ())
    ]


def _below(value: Value, keys: Path, path: Path) -> Iterator[tuple[Path, Value]]:
    if not keys:
        yield path, value
        return
    for key in dict.fromkeys(member.key for member in value.members) if keys[0] == ANY else (keys[0],):
        member = value.member(key)
        if member:
            yield from _below(member.value, keys[1:], (*path, key))


def _of_toml(lines: list[toml.TomlLine], section: Path, ports: Mapping[int, ReservedPort]) -> list[ConfigEntry]:
    by_path: dict[Path, ConfigEntry] = {}
    depth = len(section)
    tables: dict[Path, list[Member]] = {}
    for line in lines:
        if line.path[:depth] != section:
            continue
        value = line.member.value
        if len(line.path) == depth:
            for member in value.members:
                by_path[*section, member.key] = _in_braces((*section, member.key), member.value, ports)
        elif len(line.path) == depth + 1:
            by_path[line.path] = _in_braces(line.path, value, ports)
        else:
            path = line.path[: depth + 1]
            members = tables.setdefault(path, [])
            members.append(toml.nested(line.member, line.path[depth + 1 :]))
            by_path[path] = ConfigEntry(path=path, layout=EntryLayout.LINES, members=tuple(members), ports=ports)
    return list(by_path.values())


def _in_braces(path: Path, value: Value, ports: Mapping[int, ReservedPort]) -> ConfigEntry:
    return ConfigEntry(
        path=path, layout=EntryLayout.BRACES, members=value.members, no_object=value.kind != "object", ports=ports
    )
