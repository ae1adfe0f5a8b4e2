"""Messages that are not what they claim: content, forms, state that a client sends back, and the members of results."""

import sys
from base64 import b64encode

import pytest

from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

CALL = '· handshake 2025-11-25, client: elicitation, server: tools resources\n→ tools/call 1 {"name":"shot"}\n'
PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
RULES = {"content-mislabelled", "form-answer-invalid", "changed-cursor", "changed-request-state", "not-as-specified"}
READ = '→ resources/read 2 {"uri":"file:///a"}\n'
SIZE = '· handshake 2025-11-25, server: resources\n→ resources/list 1\n← result 1 {"resources":[{"uri":"file:///a","name":"a","size":%d}]}\n'
FORM = '{"type":"object","properties":{"age":{"type":"integer"},"key":{"type":"string","maxLength":8}},"required":["age"]}'
ASKED = f'{CALL}← elicitation/create 1 {{"message":"How old?","requestedSchema":{FORM}}}\n'
CONTENTS = (
    f'{CALL}← result 1 {{"content":[]}}\n{READ}← result 2 {{"contents":[{{"uri":"file:///a","mimeType":"%s","text":"%s"}}]}}'
)
FORMATS = ASKED.replace(
    FORM,
    '{"type":"object","properties":{"mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},'
    '"at":{"type":"string","format":"date-time"},"page":{"type":"string","format":"uri"}}}',
)
FILL = f'{FORMATS}→ result 1 {{"action":"accept","content":%s}}\n← result 1 {{"content":[]}}'
FILLED = '{"mail":"a@b.org","day":"2026-01-31","at":"2026-01-31T12:00:00Z","page":"https://a.org/b"}'
ROUND = (
    '· revision 2026-07-28, client: elicitation\n→ tools/call 1 {"name":"a"}\n'
    f'← result 1 {{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create",'
    f'"params":{{"message":"How old?","requestedSchema":{FORM}}}}}}},"requestState":"s1"}}\n'
)
RETRY = '→ tools/call 2 {{"name":"a","inputResponses":{{"q":{{"action":"accept","content":{}}}}},"requestState":"{}"}}\n'
AGE = '{"age":40}'
DONE = '← result 2 {"resultType":"complete","content":[]}'
PAGES = '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[],"nextCursor":"p2"}\n'
MORE = (
    '→ tools/list 2 {"cursor":"p2"}\n← result 2 {"tools":[],"nextCursor":"p3"}\n'
    '→ tools/list 3 {"cursor":"p3"}\n← result 3 {"tools":[]}\n'
)


def found(account: str) -> list[Finding]:
    return all_findings(transcribe(records(account)), rules=RULES)


def image(data: str, media_type: str = "image/png") -> str:
    return f'{CALL}← result 1 {{"content":[{{"type":"image","mimeType":"{media_type}","data":"{data}"}}]}}'


WELL = {
    "an image of its type": image(PNG),
    "an image of a type that nobody knows": image(PNG, "application/x-screenshot"),
    "base64 in lines": image(f"{PNG[:8]}\\n{PNG[8:]}"),
    "data that were redacted": image("redacted-0123456789ab"),
    "a resource of its size in bytes": f'{SIZE % 3}{READ}← result 2 {{"contents":[{{"uri":"file:///a","text":"€"}}]}}',
    "a form that is answered well": f'{ASKED}→ result 1 {{"action":"accept","content":{{"age":40}}}}\n← result 1 {{"content":[]}}',
    "a form that its user declined": f'{ASKED}→ result 1 {{"action":"decline"}}\n← result 1 {{"content":[]}}',
    "a form with a secret that was redacted": (
        f'{ASKED}→ result 1 {{"action":"accept","content":{{"age":40,"key":"redacted-0123456789ab"}}}}\n← result 1 {{"content":[]}}'
    ),
    "an answer in a retry": ROUND + RETRY.format(AGE, "s1") + DONE,
    "pages in their order": f"{PAGES}{MORE}",
    "a page that is asked for again": f"{PAGES}{MORE}".replace('3 {"cursor":"p3"}', '3 {"cursor":"p2"}'),
    "a cursor from before the capture": '→ tools/list 1 {"cursor":"p7"}\n← result 1 {"tools":[]}',
    "base64 of a JPEG": image("/9j/4AAQSkZJRgABAQEASABIAAA=", "image/jpg"),
    "a resource that is JSON": CONTENTS % ("application/json", '{\\"a\\": [1]}'),
    "a resource with JSON on each line": CONTENTS % ("application/json", '{\\"a\\": 1}\\n{\\"a\\": 2}'),
    "a picture that is a text": CONTENTS % ("image/svg+xml", "<svg></svg>"),
    "fields of the formats of their form": FILL % FILLED,
    "a field with a format that was left blank": (FILL % '{"mail":""}'),
    "a tool that fails": f'{CALL}← result 1 {{"content":[],"isError":true}}',
}


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_nothing_is_found_where_a_message_is_what_it_claims(account: str) -> None:
    assert [finding.what for finding in found(account)] == []


FAULTS = {
    "a data URL": (image(f"data:image/png;base64,{PNG}"), "server", "a data URL instead of base64"),
    "bytes as Python prints them": (image("b'iVBORw0KGgo='"), "server", "not base64"),
    "an empty image": (image(""), "server", "are empty"),
    "a page in the place of an image": (image(b64encode(b"<!DOCTYPE html><p>404").decode()), "server", "are text/html"),
    "base64 of base64": (image(b64encode(PNG.encode()).decode()), "server", "do not begin like that: “iVBORw0KGgo"),
    "bytes in hexadecimal": (image("89504e470d0a1a0a0000"), "server", "do not begin like that"),
    "an image in the place of a text": (CONTENTS % ("image/png", PNG), "server", "they belong into blob"),
    "a text that is not JSON": (CONTENTS % ("application/json", "{a: 1,}"), "server", "is not JSON"),
    "an address without its @": (
        FILL % FILLED.replace("@", ""),
        "client",
        "“ab.org” is not of the format email (at mail)",
    ),
    "a date in the order of a country": (
        FILL % FILLED.replace("2026-01-31", "31.1.2026"),
        "client",
        "is not of the format date (at day)",
    ),
    "a text that is an image": (image(PNG, "text/plain"), "server", "are image/png"),
    "a size in characters": (
        f'{SIZE % 1}{READ}← result 2 {{"contents":[{{"uri":"file:///a","text":"€"}}]}}',
        "server",
        "the size counts characters",
    ),
    "a form without content": (
        f'{ASKED}→ result 1 {{"action":"accept"}}\n← result 1 {{"content":[]}}',
        "client",
        "has no content",
    ),
    "an answer in a retry that does not fit": (
        f"{ROUND}{RETRY.format('{}', 's1')}{DONE}",
        "client",
        "'age' is a required property",
    ),
    "a state that no result gave": (f"{ROUND}{RETRY.format(AGE, 's2')}{DONE}", "client", "that no result gave"),
    "a cursor that was trimmed": (f"{PAGES}{MORE}".replace('"cursor":"p2"', '"cursor":"p"'), "client", "the server gave “p2”"),
    "the sixtieth result without content": (
        CALL
        + '← result 1 {"content":[]}\n'
        + "".join(f'→ tools/call {at} {{"name":"a"}}\n← result {at} {{"content":[]}}\n' for at in range(2, 60))
        + '→ tools/call 60 {"name":"a"}\n← result 60 {"text":"hi"}',
        "server",
        "content: Field required",
    ),
}


@pytest.mark.parametrize(("account", "culprit", "words"), FAULTS.values(), ids=list(FAULTS))
def test_the_side_that_wrote_it_is_to_blame(account: str, culprit: str, words: str) -> None:
    (finding,) = found(account)
    assert (finding.culprit, words in finding.what) == (culprit, True)


LONG = "eyJwYWdlIjoyfQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (LONG.replace(".c", ".C"), "; the client's differs from character 16 on: “C2lnbmF0” instead of “c2lnbmF0”."),
        (LONG[:-1], "; the client's differs from character 27 on: nothing more instead of “l”."),
        (f"{LONG}=", "; the client's differs from character 28 on: “=” instead of nothing more."),
    ],
)
def test_long_texts_that_have_to_be_equal_are_told_apart_where_they_differ(sent: str, words: str) -> None:
    (cursor,) = found(f"{PAGES}{MORE}".replace("p2", LONG).replace(f'"cursor":"{LONG}"', f'"cursor":"{sent}"'))
    (state,) = found(ROUND.replace("s1", LONG) + RETRY.format(AGE, sent) + DONE)
    assert cursor.what.endswith(words)
    assert state.what == f"tools/call a has a requestState that no result gave: “{sent}”{words}"


@pytest.mark.parametrize(("result", "words"), [('{"items":[]}', "tools: Field required"), ('{"tools":{}}', "valid list")])
def test_main_members_are_checked_without_the_official_types(result: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    (finding,) = found(f"· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {result}")
    assert (finding.rule, words in finding.what) == ("not-as-specified", True)


@pytest.mark.parametrize(
    ("value", "expected"), [('"true"', ["not-as-specified"]), ("1", ["not-as-specified"]), ("true", []), ("false", [])]
)
def test_an_error_that_is_not_marked_with_a_boolean_is_found(value: str, expected: list[str]) -> None:
    account = (
        f'· handshake 2025-11-25, server: tools\n→ tools/call 1 {{"name":"a"}}\n← result 1 {{"content":[],"isError":{value}}}'
    )
    findings = found(account)
    assert [finding.rule for finding in findings] == expected
    assert all("isError: Input should be true or false" in finding.what for finding in findings)


TYPED = {
    "an image without its type": ('[{"type":"image","data":"aa"}]', "content.0.mimeType: Field required"),
    "an image without anything": ('[{"type":"text","text":""},{"type":"image"}]', "content.1.data: Field required"),
    "a resource without content": (
        '[{"type":"resource","resource":{"uri":"a:b"}}]',
        "content.0.resource.text or blob: Field required",
    ),
    "a resource with a text and no address": (
        '[{"type":"resource","resource":{"text":"a"}}]',
        "content.0.resource.uri: Field required",
    ),
    "a link without a name": ('[{"type":"resource_link","uri":"a:b"}]', "content.0.name: Field required"),
    "a type that there is not": ('[{"type":"video","data":"aa"}]', "content.0.type: unknown type “video”"),
    "a block without a type": ('[{"data":"aa"}]', "content.0.type: Field required"),
    "a text in the place of a block": ('["a"]', "content.0: Input should be an object"),
    "a text in the place of blocks": ('"a"', "content: Input should be a valid list"),
}


@pytest.mark.parametrize(("content", "words"), TYPED.values(), ids=list(TYPED))
def test_the_mistake_is_that_of_the_kind_of_content_which_the_block_says_it_is(content: str, words: str) -> None:
    findings = found(f'{CALL}← result 1 {{"content":{content}}}')
    told = [finding.what for finding in findings if finding.rule == "not-as-specified"]
    assert told == [f"The result of tools/call does not fit the specification: {words}."]


def test_a_result_that_is_no_object_is_said_to_be_none_and_not_by_a_name_of_a_library() -> None:
    (finding,) = found("· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 [1]")
    assert finding.what == "The result of tools/list does not fit the specification: Input should be an object."


def test_blocks_of_all_kinds_are_as_specified() -> None:
    blocks = (
        '{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"a:b","blob":"YWE="}},'
        '{"type":"resource_link","uri":"a:b","name":"c"}'
    )
    assert found(f'{CALL}← result 1 {{"content":[{blocks}]}}') == []
