"""Answers that a server gave to the wrong calls, and answers that only speak of the same things."""

import pytest

from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

BEGIN = "· handshake 2025-11-25, server: tools\n"


def asked(*arguments: str, tool: str = "weather") -> str:
    return "".join(f'→ tools/call {at} {{"name":"{tool}","arguments":{given}}}\n' for at, given in enumerate(arguments, 1))


def texts(*answers: str) -> str:
    return "".join(f'← result {at} {{"content":[{{"type":"text","text":"{text}"}}]}}\n' for at, text in enumerate(answers, 1))


def structures(*answers: str) -> str:
    return "".join(f'← result {at} {{"content":[],"structuredContent":{value}}}\n' for at, value in enumerate(answers, 1))


ROME, PARIS, OSLO = '{"city":"Rome"}', '{"city":"Paris"}', '{"city":"Oslo"}'

SWAPPED = {
    "texts with one beginning": (asked(ROME, PARIS) + texts("Weather in Paris: rain", "Weather in Rome: sun"), (3, 4)),
    "texts that begin with the argument": (asked(ROME, PARIS) + texts("Paris has rain", "Rome has rain"), (3, 4)),
    "structured content": (
        asked(ROME, PARIS) + structures('{"city":"Paris","c":3}', '{"city":"Rome","c":9}'),
        (3, 4),
    ),
    "JSON in texts, with numbers": (
        asked('{"id":1001}', '{"id":1002}') + texts(r"{\"id\":1002,\"name\":\"b\"}", r"{\"id\":1001,\"name\":\"a\"}"),
        (3, 4),
    ),
    "three answers, each shifted by one": (
        asked(ROME, PARIS, OSLO) + texts("Weather in Paris: 3", "Weather in Oslo: 4", "Weather in Rome: 5"),
        (3, 4, 5),
    ),
    "two of three answers": (
        asked(ROME, OSLO, PARIS) + texts("Weather in Paris: 3", "Weather in Oslo: 4", "Weather in Rome: 5"),
        (3, 5),
    ),
}


@pytest.mark.parametrize(("account", "rows"), SWAPPED.values(), ids=list(SWAPPED))
def test_answers_that_show_each_others_arguments_were_exchanged(account: str, rows: tuple[int, ...]) -> None:
    (finding,) = transcribe(records(BEGIN + account)).findings
    assert (finding.rule, finding.culprit, finding.rows) == ("swapped-answers", "server", rows)


RIGHT = {
    "answers out of order": asked(ROME, PARIS) + texts("Weather in Rome: sun", "Weather in Paris: rain"),
    "answers that show both": asked(ROME, PARIS) + texts("Paris is colder than Rome", "Rome is warmer than Paris"),
    "one answer that shows the other's argument": asked(ROME, PARIS) + texts("Weather in Paris: rain", "Weather: rain"),
    "two files that link to each other": asked('{"path":"a.md"}', '{"path":"b.md"}', tool="read")
    + texts("# First\\n\\nSee b.md.", "# The second\\n\\nBack to a.md."),
    "words that are the opposites of each other": asked('{"word":"cold"}', '{"word":"warm"}') + texts("warm", "cold"),
    "routes there and back": asked('{"from":"Rome","to":"Oslo"}', '{"from":"Oslo","to":"Rome"}')
    + texts("Oslo is 2000 km away", "Rome is 2000 km away"),
    "a value that is part of another word": asked('{"id":"ann"}', '{"id":"bob"}') + texts("Name: bobby", "Name: anna"),
    "values too short to tell": asked('{"n":1}', '{"n":2}') + texts("Page 2", "Page 1"),
    "calls one after the other": (
        asked(ROME) + texts("Weather in Paris: rain") + asked(ROME, PARIS).split("\n", 1)[1] + "← result 2 "
        '{"content":[{"type":"text","text":"Weather in Rome: sun"}]}'
    ),
    "calls of two tools": asked('{"q":"foobar"}', tool="search")
    + '→ tools/call 2 {"name":"read","arguments":{"q":"b.py"}}\n'
    + texts("Found: b.py", "Found: foobar"),
    "equal calls": asked(ROME, ROME) + texts("Weather in Rome: 1", "Weather in Rome: 2"),
}


@pytest.mark.parametrize("account", RIGHT.values(), ids=list(RIGHT))
def test_answers_that_speak_of_the_same_are_no_finding(account: str) -> None:
    assert transcribe(records(BEGIN + account)).findings == []
