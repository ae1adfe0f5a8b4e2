"""Near misses of rules about placeholders, secrets in forms, pages that overlap and texts that were cut."""

import json

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

BEGIN = "· handshake 2025-11-25, client: elicitation, server: tools\n"
FAILED = '← error 1 -32602 "no"\n'
MANY = ",".join(f'{{"number":{number},"name":"item {number}"}}' for number in range(200))


def called(path: str, answer: str = FAILED) -> str:
    return f'→ tools/call 1 {{"name":"read","arguments":{{"where":{{"path":{json.dumps(path)}}}}}}}\n{answer}'


def asked(fields: str, mode: str = "form") -> str:
    schema = f'"requestedSchema":{{"type":"object","properties":{{{fields}}}}}'
    return f'← elicitation/create 1 {{"mode":"{mode}","message":"?",{schema}}}\n→ result 1 {{"action":"decline"}}\n'


def page(id: int, names: str, cursor: str = "", following: str = "") -> str:
    params = f' {{"cursor":"{cursor}"}}' if cursor else ""
    tools = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}' for name in names)
    rest = f',"nextCursor":"{following}"' if following else ""
    return f'→ tools/list {id}{params}\n← result {id} {{"tools":[{tools}]{rest}}}\n'


def text(words: str) -> str:
    block = json.dumps({"content": [{"type": "text", "text": words}]})
    return f'→ tools/call 1 {{"name":"read"}}\n← result 1 {block}\n'


CHANGED = "← notifications/tools/list_changed\n"
DONE = '← result 1 {"content":[]}\n'

FOUND = {
    "a path of an example": (called("/path/to/file.txt"), "placeholder-argument", "agent"),
    "a name in angle brackets": (called("<user_id>"), "placeholder-argument", "agent"),
    "a name in capitals": (called("YOUR_PROJECT_ID"), "placeholder-argument", "agent"),
    "a password": (asked('"userPassword":{"type":"string"}'), "secret-asked", "server"),
    "a field with the title of a key": (asked('"k":{"type":"string","title":"API key"}'), "secret-asked", "server"),
    "a page with an item of the page before": (
        page(1, "ab", following="2") + page(2, "bc", "2"),
        "overlapping-pages",
        "server",
    ),
    "JSON that stops in a text": (text(f'{{"items":[{MANY}'), "text-cut", "server"),
    "JSON that stops within a string": (text(f'[{MANY},{{"name":"it'), "text-cut", "server"),
}


@pytest.mark.parametrize(("account", "rule", "culprit"), FOUND.values(), ids=list(FOUND))
def test_the_fault_is_found(account: str, rule: str, culprit: str) -> None:
    found = all_findings(transcribe(records(BEGIN + account)), rules={rule})
    assert [(finding.rule, finding.culprit) for finding in found] == [(rule, culprit)]


SILENT = {
    "a placeholder that the call could use": called("/path/to/file.txt", DONE),
    "a path in a folder of that name": called("/srv/path/too/file.txt"),
    "a tag of HTML": called("<title>"),
    "a text that speaks of a placeholder": called("Replace <user_id> with yours"),
    "the length of a password": asked('"password_length":{"type":"integer"},"password_hint":{"type":"string"}'),
    "the number of tokens": asked('"tokens":{"type":"string"},"token_count":{"type":"string"}'),
    "a page of the server's own": asked('"password":{"type":"string"}', "url"),
    "pages that do not overlap": page(1, "ab", following="2") + page(2, "cd", "2"),
    "a list that was fetched twice": page(1, "ab", following="2") + page(2, "ab", following="2") + page(3, "cd", "2"),
    "pages of a list that changed meanwhile": page(1, "ab", following="2") + CHANGED + page(2, "bc", "2"),
    "whole JSON": text(f'{{"items":[{MANY}]}}'),
    "lines of JSON": text(f"{{}}\n{{}}\n[{MANY}]"),
    "a log that begins with a bracket": text("[12:00:01] ready\n" * 100),
    "a cut that the text tells of": text(f'{{"items":[{MANY}\n… truncated'),
    "a short text": text('{"items":['),
}
RULES = {"placeholder-argument", "secret-asked", "overlapping-pages", "text-cut"}


@pytest.mark.parametrize("account", SILENT.values(), ids=list(SILENT))
def test_a_near_miss_is_no_finding(account: str) -> None:
    assert all_findings(transcribe(records(BEGIN + account)), rules=RULES) == []
