"""The doors through which captured text leaves: each is shown rows of a table of secrets, and says what came out of each."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from mcpspy.capture.file.reader import Reader
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.records import CLIENT, SERVER, End, Frame, Header, Open, Record
from mcpspy.transcript.findings.rule import Finding, Severity
from tests.agent.agents import Agent, play
from tests.cli.terminal import run
from tests.columns.reading import rows_of
from tests.sharing.hiding import lines
from tests.sharing.secret_rows import Instance, in_payloads, rows
from tests.telemetry.receiver import attributes, receiving
from tests.transcript.dialogue import Dialogue, make_header, notification, request, result, tool_call

Outcome = tuple[Instance, str, str]
"""An instance, what came out, and a pattern of what is right."""

_REDACTOR: Final = Redactor(b"of the tests")


def _plain(text: str) -> str:
    return text


def _json_text(text: str) -> str:
    return json.dumps(text)


def is_right(outcome: Outcome) -> bool:
    """Return whether what came out is what is right."""
    return re.search(outcome[2], outcome[1]) is not None


# --- The tap ---


def tap(table: str) -> Iterator[Outcome]:
    """Redact each row where it stands, as a tap does before anything is written."""
    for row in rows(table):
        redact = _REDACTIONS.get(row.place)
        if redact is None:
            continue
        for form, (do, wrap) in redact.items():
            instance = row.instance(f"tap {form}", wrap)
            yield instance, do(instance.text), instance.spelled(_plain)[1]


def _head(text: str) -> str:
    return _REDACTOR.head(text.encode())[0].decode()


def _command(text: str) -> str:
    return json.dumps(_REDACTOR.argv(json.loads(text)))


def _event(text: str) -> str:
    return _REDACTOR.endpoint(text.encode())[0].decode()


def _body(content_type: str) -> Callable[[str], str]:
    return lambda text: _REDACTOR.body(text.encode(), content_type)[0].decode()


def _request(text: str) -> str:
    return "POST /mcp HTTP/1.1\r\nHost: mcp.example.com\r\n" + text.replace("\n", "\r\n") + "\r\n\r\n"


def _target_of(text: str) -> str:
    rest = text.partition("://")[2]
    return f"POST /{rest.partition('/')[2].partition('#')[0]} HTTP/1.1\r\nHost: x\r\n\r\n"


def _endpoint(text: str) -> str:
    return "event: endpoint\n" + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"


_REDACTIONS: Final[dict[str, dict[str, tuple[Callable[[str], str], Callable[[str], str]]]]] = {
    "header": {"field": (_head, _request)},
    "url": {
        "upstream": (_REDACTOR.url, str),
        "target": (_head, _target_of),
        "argument": (_command, lambda text: json.dumps(["npx", "mcp-remote", text])),
    },
    "argv": {"command": (_command, str)},
    "endpoint": {"event": (_event, _endpoint)},
    "form": {"body": (_body("application/x-www-form-urlencoded"), str)},
    "token": {"body": (_body("application/json"), str)},
    "env": {"command": (_command, lambda text: json.dumps(["env", text, "server"]))},
}
"""For each place the redaction of a tap, and the way in which a row is put there."""


# --- A capture with all rows in payloads ---


def _instances(table: str) -> list[Instance]:
    return [*in_payloads("text", table), *in_payloads("json", table)]


def scene(instances: Iterable[Instance]) -> list[Record]:
    """Record a call for each instance: JSON in its arguments, a text in its result."""
    dialogue = Dialogue("secrets")
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    dialogue.client(request(0, "initialize", {**about, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}))
    dialogue.server(result(0, {**about, "serverInfo": {"name": "s", "version": "1"}}))
    dialogue.client(notification())
    for id, instance in enumerate(instances, 1):
        if instance.form in _JSON_FORMS:
            head = json.dumps(tool_call(id, instance.name, row=1))
            dialogue.client(head.replace('{"row": 1}', instance.text).encode() + b"\n")
            dialogue.server(result(id, {"content": []}))
        else:
            dialogue.client(tool_call(id, instance.name))
            dialogue.server(result(id, {"content": [{"type": "text", "text": instance.text}]}))
    return dialogue.closes().records


_JSON_FORMS: Final = {"json", "member", "url in json", "configuration", "body in json", "env in json"}


def _written(folder: Path, instances: Iterable[Instance]) -> Path:
    path = folder / "secrets.mcpspy"
    path.write_bytes(lines(scene(instances)))
    return path


def _answers(records: Iterable[Record]) -> dict[str, str]:
    """Return the lines of each call, by the name of its tool."""
    names: dict[int, str] = {}
    answers: dict[str, str] = {}
    for record in records:
        if isinstance(record, Frame):
            line = record.data.decode()
            id = json.loads(line).get("id")
            if record.stream == 0:
                names[id] = json.loads(line).get("params", {}).get("name", "")
                answers[names[id]] = line
            elif id in names:
                answers[names[id]] += line
    return answers


def _outcomes(instances: Iterable[Instance], given: dict[str, str]) -> Iterator[Outcome]:
    for instance in instances:
        pattern = instance.spelled(_plain if instance.form in _JSON_FORMS else _json_text)[1]
        yield instance, given.get(instance.name, "nothing"), pattern


def share(folder: Path, table: str) -> Iterator[Outcome]:
    """Share a capture with all rows in payloads."""
    instances = _instances(table)
    path, out = _written(folder, instances), folder / "out.mcpspy"
    done = run("export", "share", str(path), "-o", str(out))
    assert done.returncode in (0, 1), done.stderr
    reader = Reader("out")
    records = [*reader.feed(out.read_bytes()), *reader.close()]
    yield from _outcomes(instances, _answers(records))


def shared_places(folder: Path, table: str) -> Iterator[Outcome]:
    """Share captures that a tap made without redaction: with commands, URLs, heads, events and bodies."""
    wanted: dict[str, tuple[Instance, Callable[[list[Record]], str]]] = {}
    paths = []
    for row in rows(table):
        for form, (make, take, wrap) in _PLACES.get(row.place, {}).items():
            instance = row.instance(f"place {form}", wrap)
            path = folder / f"{instance.name.replace(' ', '-')}.mcpspy"
            header = make_header(label="x")
            path.write_bytes(lines(make(header, instance.text)))
            paths.append(str(path))
            wanted[path.name] = instance, take
    out = folder / "out"
    done = run("export", "share", *paths, "-o", str(out))
    assert done.returncode in (0, 1), done.stderr
    for path in sorted(out.iterdir()):
        instance, take = wanted[path.name]
        reader = Reader(path.name)
        yield instance, take([*reader.feed(path.read_bytes()), *reader.close()]), instance.spelled(_plain)[1]


def _with_argv(header: Header, text: str) -> list[Record]:
    header.tapped["argv"] = json.loads(text)
    return [header, End(at_ns=1, frames=0, bytes=0)]


def _argv_of(records: list[Record]) -> str:
    assert isinstance(records[0], Header)
    return json.dumps(records[0].tapped["argv"])


def _with_url(header: Header, text: str) -> list[Record]:
    header.tapped = {"transport": "http", "url": text, "listen": "http://127.0.0.1:1"}
    return [header, End(at_ns=1, frames=0, bytes=0)]


def _url_of(records: list[Record]) -> str:
    assert isinstance(records[0], Header)
    return str(records[0].tapped["url"])


def _with_head(header: Header, text: str, body: str = "", framing: str = "json") -> list[Record]:
    header.tapped = {"transport": "http", "url": "http://127.0.0.1:2/mcp", "listen": "http://127.0.0.1:1"}
    sender, name = (SERVER, "response") if text.startswith("HTTP/") else (CLIENT, "request")
    opened = Open(at_ns=1, stream=1, sender=sender, name=name, framing=framing, transaction=1, connection=1, head=text.encode())
    frames = [Frame(1, 2, 2, body.encode())] if body else []
    return [header, opened, *frames, End(at_ns=3, frames=0, bytes=0)]


def _head_of(records: list[Record]) -> str:
    return next(record.head.decode() for record in records if isinstance(record, Open))


def _body_of(records: list[Record]) -> str:
    return b"".join(record.data for record in records if isinstance(record, Frame)).decode()


_SSE_HEAD: Final = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
_FORM_HEAD: Final = "POST /token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
_TOKEN_HEAD: Final = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

_PLACES: Final[dict[str, dict[str, tuple[Any, Callable[[list[Record]], str], Callable[[str], str]]]]] = {
    "header": {"head": (_with_head, _head_of, _request)},
    "url": {"upstream": (_with_url, _url_of, str), "target": (_with_head, _head_of, _target_of)},
    "argv": {"command": (_with_argv, _argv_of, str)},
    "env": {"command": (_with_argv, _argv_of, lambda text: json.dumps(["env", text, "server"]))},
    "endpoint": {"event": (lambda header, text: _with_head(header, _SSE_HEAD, text, "sse"), _body_of, _endpoint)},
    "form": {"body": (lambda header, text: _with_head(header, _FORM_HEAD, text), _body_of, str)},
    "token": {"body": (lambda header, text: _with_head(header, _TOKEN_HEAD, text), _body_of, str)},
}


# --- The other doors: what they print is searched for the secrets, and where rows can be told apart, for what has to stay ---


def parquet(folder: Path, table: str) -> Iterator[Outcome]:
    """Export columns with payloads."""
    instances = _instances(table)
    done = run("export", "parquet", str(_written(folder, instances)), "-o", str(folder / "columns"), "--payloads")
    assert done.returncode == 0, done.stderr
    names: dict[str, str] = {}
    given: dict[str, str] = {}
    for row in rows_of(folder / "columns", "messages"):
        message = json.loads(row["payload"])
        if message.get("method") == "tools/call":
            names[message["id"]] = message["params"]["name"]
            given[message["params"]["name"]] = row["payload"]
        elif message.get("id") in names:
            given[names[message["id"]]] += row["payload"]
    yield from _outcomes(instances, given)


def otlp(folder: Path, table: str) -> Iterator[Outcome]:
    """Send spans with payloads."""
    instances = _instances(table)
    path = _written(folder, instances)
    with receiving() as receiver:
        done = run("otlp", str(path), "--payloads", "--no-metrics", "--endpoint", receiver.url)
        assert done.returncode == 0, done.stderr
    given = {}
    for span in receiver.spans:
        about = attributes(span)
        name = about.get("gen_ai.tool.name")
        if name:
            given[str(name)] = str(about.get("gen_ai.tool.call.arguments")) + str(about.get("gen_ai.tool.call.result"))
    yield from _outcomes(instances, given)


def export_pytest(folder: Path, table: str) -> Iterator[Outcome]:
    """Export a test, which holds the payloads."""
    instances = _instances(table)
    path = _written(folder, instances)
    (folder / "tests").mkdir()
    done = run("export", "pytest", str(path), "-o", str(folder / "tests" / "test_x.py"))
    assert done.returncode == 0, done.stderr
    (copy,) = (folder / "tests" / "captures").iterdir()
    reader = Reader("copy")
    given = _answers([*reader.feed(copy.read_bytes()), *reader.close()])
    test = (folder / "tests" / "test_x.py").read_text()
    for instance, out, pattern in _outcomes(instances, given):
        leaked = [secret for secret in instance.secrets if secret in test]
        yield instance, f"{out} {leaked}" if leaked else out, "never" if leaked else pattern


def markdown(folder: Path, table: str) -> Iterator[Outcome]:
    """Export Markdown."""
    instances = _instances(table)
    path = _written(folder, instances)
    done = run("export", "markdown", f"{path}:1..{3 + len(instances)}")
    assert done.returncode == 0, done.stderr
    yield from _searched(instances, done.stdout)


def mcp(folder: Path, table: str) -> Iterator[Outcome]:
    """Show each call to an agent."""
    instances = _instances(table)
    path = _written(folder, instances)
    texts: list[str] = []

    async def talk(agent: Agent) -> None:
        texts.extend([(await agent.call("row", what=f"@:{row}")).text for row in range(1, 3 + len(instances))])

    play(talk, path, deadline_s=120)
    yield from _searched(instances, "\n".join(texts))


def check(table: str) -> Iterator[Outcome]:
    """Quote each row in the sentence of a finding."""
    search = CredentialSearch()
    for instance in in_payloads("text", table):
        what = f"It wrote “{instance.text}”"
        quoted = Finding(
            rule="x",
            severity=Severity.NOTE,
            capture=0,
            number=1,
            row=1,
            at_ns=1,
            what=what,
            culprit="server",
            blame="",
            advice="",
        )
        (finding,) = search.masked([quoted])
        leaked = [secret for secret in instance.secrets if secret in finding.what]
        is_right = not leaked if instance.secrets else finding.what == quoted.what
        yield instance, f"{leaked} {finding.what}", "" if is_right else "never"


def _searched(instances: Iterable[Instance], text: str) -> Iterator[Outcome]:
    """Say of each instance which of its secrets a text has; and whether a row without any has a pseudonym."""
    parts = re.split(r"(r\d{3}[a-z ]+)", text)
    near: dict[str, str] = {}
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        near[name.strip()] = near.get(name.strip(), "") + part
    for instance in instances:
        out = re.sub(r"/home/redacted-[0-9a-f]{12}", "/home", near.get(instance.name, ""))  # who it is, is masked here too
        leaked = [secret for secret in instance.secrets if secret in text]
        is_right = not leaked and (instance.secrets or "redacted-" not in out)
        yield instance, f"{leaked or ''} {out}", "" if is_right else "never"
