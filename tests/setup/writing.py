"""Configuration texts as people leave them: odd white space, comments, trailing commas, every way that TOML has for a table."""

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["run", "mcpspy", "--", "-y", "${workspaceFolder}/a b", '"', "\\", "é", "]", "}", "#", "//"]),
)
COMMANDS = st.one_of(
    st.sampled_from(["uvx", "npx", "/opt/a b/server", "C:\\x.exe"]), st.text("abc/é\"\\'", min_size=1, max_size=6)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Command of an entry; `args` is None if the entry has none."""

    command: str
    args: list[str] | None = field(default=None)


SERVERS: SearchStrategy[Server] = st.builds(Server, command=COMMANDS, args=st.none() | st.lists(WORDS, max_size=3))
NAMES = st.lists(
    st.one_of(st.sampled_from(["time", "git", "a.b", "--", "-x", "ü"]), st.text(max_size=5)),
    min_size=1,
    max_size=3,
    unique=True,
)


def json_blank(comments: bool, newline: str) -> SearchStrategy[str]:  # noqa: FBT001 - a strategy's two settings
    """White space, with comments where they are allowed."""
    plain = st.sampled_from(["", " ", "\t", newline, newline + "  ", "  " + newline + "\t"])
    odd = st.sampled_from([f"/* c, ]}} */{newline}", f' // "x": [{newline}'])
    return (plain | odd) if comments else plain


@st.composite
def json_string(draw: DrawFn, text: str) -> str:
    """One of the ways to spell it."""
    return json.dumps(text, ensure_ascii=draw(st.booleans()))


@st.composite
def json_list(draw: DrawFn, items: list[str], signs: str, *, comments: bool, newline: str) -> str:
    """Items between brackets or braces."""
    blank = json_blank(comments, newline)
    pieces = [draw(blank) + item + draw(blank) for item in items]
    trailing = "," + draw(blank) if comments and items and draw(st.booleans()) else ""
    return signs[0] + (",".join(pieces) + trailing if items else draw(blank)) + signs[1]


@st.composite
def json_entry(draw: DrawFn, server: Server, *, comments: bool, newline: str) -> str:
    """An object with the server's members among others, in any order, now and then with a first `command` that counts for nothing."""
    blank = json_blank(comments, newline)

    def member(key: str, value: str) -> str:
        return draw(json_string(key)) + draw(blank) + ":" + draw(blank) + value

    members = [member("command", draw(json_string(server.command))), member("env", '{"A": "${B}"}')]
    if server.args is not None:
        strings = [draw(json_string(arg)) for arg in server.args]
        members.append(member("args", draw(json_list(strings, "[]", comments=comments, newline=newline))))
    members = list(draw(st.permutations(members)))
    if draw(st.booleans()):
        members.insert(0, member("command", '"first of two"'))
    return draw(json_list(members, "{}", comments=comments, newline=newline))


@st.composite
def json_file(draw: DrawFn, servers: dict[str, Server], *, comments: bool) -> str:
    """A file that names `servers` under mcpServers, and says other things too."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    entries = [
        draw(json_string(name)) + ":" + draw(json_entry(server, comments=comments, newline=newline))
        for name, server in servers.items()
    ]
    named = '"mcpServers":' + draw(json_list(entries, "{}", comments=comments, newline=newline))
    others = ['"other": [1, 2.50, null, true, {"mcpServers": {}}]', '"mcpservers" : "x"']
    body = draw(json_list(draw(st.permutations([named, *others])), "{}", comments=comments, newline=newline))
    return draw(st.sampled_from(["", "\ufeff"])) + body + draw(st.sampled_from(["", newline]))


def toml_string(text: str) -> SearchStrategy[str]:
    """Draw one of TOML's spellings of a text."""
    basic = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    spellings = [basic, f'""{basic[:-1]}"""']
    if "'" not in text and text.isprintable():
        spellings += [f"'{text}'", f"'''{text}'''"]
    return st.sampled_from(spellings)


@st.composite
def toml_list(draw: DrawFn, items: list[str], newline: str) -> str:
    """An array, on one line or several, with comments and a trailing comma."""
    blank = st.sampled_from(["", " ", newline, f" # ], '{newline}  "])
    ends_in_comma = bool(items) and draw(st.booleans())
    trailing = "," + draw(blank) if ends_in_comma else ""
    return "[" + (",".join(draw(blank) + item + draw(blank) for item in items) + trailing if items else draw(blank)) + "]"


@st.composite
def toml_entry(draw: DrawFn, name: str, server: Server, newline: str) -> str:
    """A server under a header, behind dotted keys, or within braces."""
    key = draw(toml_string(name).filter(lambda text: not text.startswith(('"""', "'''"))))
    members = [("command", draw(toml_string(server.command))), ("cwd", '"${HOME}"')]
    if server.args is not None:
        strings = [draw(toml_string(arg)) for arg in server.args]
        members.append(("args", draw(toml_list(strings, newline))))
    members = draw(st.permutations(members))
    comment = st.sampled_from(["", " # [x]", "  "])
    layout = draw(st.sampled_from(["header", "dotted", "braces"]))
    if layout == "braces":
        inner = ", ".join(f"{member} = {value}" for member, value in members)
        return f"mcp_servers . {key} = {{ {inner} }}{draw(comment)}{newline}"
    if layout == "dotted":
        return "".join(f"mcp_servers.{key} . {member}={value}{draw(comment)}{newline}" for member, value in members)
    indent = draw(st.sampled_from(["", "  ", "\t"]))
    body = "".join(f"{indent}{member} = {value}{draw(comment)}{newline}" for member, value in members)
    return f"[mcp_servers.{key}]{draw(comment)}{newline}{body}{newline}[mcp_servers.{key}.env]{newline}A = 1{newline}"


@st.composite
def toml_file(draw: DrawFn, servers: dict[str, Server]) -> str:
    """A file that names `servers` under mcp_servers, and says other things too."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    parts = [draw(toml_entry(name, server, newline)) for name, server in servers.items()]
    headers = [part for part in parts if part.startswith("[")]
    loose = [part for part in parts if not part.startswith("[")]
    first = f"model = 'o' # x{newline}when = 1979-05-27 07:32:00{newline}"
    last = f"[[profiles]]{newline}a.b = {{ c = [1, 2] }}{newline}[profiles.mcp_servers.x]{newline}command = 'no'{newline}"
    text = "".join([first, *loose, *headers, last] if draw(st.booleans()) else [first, *loose, *headers])
    return text if draw(st.booleans()) else text.removesuffix(newline)
