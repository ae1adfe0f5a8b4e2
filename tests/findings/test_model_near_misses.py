"""Traffic between a model and its tools that looks like a fault and is none, and findings that need both captures."""

import json
from typing import Any

import pytest

from mcpspy.records import Frame, Gap, Header, Record
from mcpspy.transcript.findings.rule import Finding, Severity
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import Account
from tests.findings.hits import model_findings
from tests.transcript.llm.traffic import ModelTraffic, completion, delta, sse

LISTED = '→ tools/list 1\n← result 1 {"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}\n'
OFFERED = '⇒ asks x\n  offers forecast {"type":"object"}\n'
USES = OFFERED + '⇐ uses c1 forecast {"city":"Paris"}\n'
SAYS = "\n⇐ says y"


def captures_of(account: str, *others: str) -> list[list[Record]]:
    first = Account(account)
    captures = [first.records] if "→" in account else []
    captures += [first.model.records] if first.model is not None else []
    return captures + [Account(other, f"server {at}").records for at, other in enumerate(others, 2)]


def findings_of(account: str, *others: str) -> list[Finding]:
    return model_findings(transcribe(*captures_of(account, *others)), with_optional=True)


def rules(account: str, *others: str) -> set[str]:
    return {finding.rule for finding in findings_of(account, *others)}


def called_and_returned(result: dict[str, Any], returned: str) -> str:
    """Tell of a use that is called, with this result and this tool return."""
    called = '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n← result 2 ' + json.dumps(result)
    return f"{LISTED}{USES}{called}\n⇒ returns c1 {returned}{SAYS}"


def text(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": part} for part in texts], **more}


def test_without_the_servers_leg_nobody_knows_what_they_were_asked() -> None:
    assert rules(USES + "⇒ returns c1 sunny" + SAYS) == set()


def test_without_the_model_s_leg_nothing_is_found() -> None:
    assert rules(LISTED + '→ tools/call 2 {"name":"forecast"}\n← result 2 {"content":[]}') == set()


def test_a_tool_of_the_client_s_own_need_not_reach_a_server() -> None:
    account = LISTED + OFFERED + '  offers bash {"type":"object"}\n⇐ uses c1 bash {"command":"ls"}\n⇒ returns c1 a.txt' + SAYS
    assert findings_of(account) == []


def test_a_tool_whose_name_happens_to_end_in_that_of_another_is_not_taken_for_it() -> None:
    account = (
        LISTED
        + OFFERED
        + '  offers sales_forecast {"type":"object"} Sells.\n⇐ uses c1 sales_forecast {}\n⇒ returns c1 1'
        + SAYS
    )
    assert "use-not-called" not in rules(account)


def test_a_server_that_was_recorded_only_later_is_not_missed() -> None:
    transcript = transcribe(*captures_of(USES + "⇒ returns c1 sunny" + SAYS, "· 0.1 s later\n" + LISTED))
    late = transcript.captures[1]
    late.shift_ns += 10**9
    assert [finding.rule for finding in model_findings(transcript) if finding.rule == "use-not-called"] == []


def test_where_the_recording_has_a_gap_no_call_is_missed() -> None:
    server, model = captures_of(LISTED + USES + "⇒ returns c1 sunny" + SAYS)
    server.insert(-1, Gap(at_ns=server[-1].at_ns, since_ns=0, frames=3, bytes=600, why="disk full"))
    assert [finding.rule for finding in model_findings(transcribe(server, model))] == []


def test_that_a_call_is_missing_where_the_recording_ends_may_mean_nothing() -> None:
    (finding,) = [finding for finding in findings_of(LISTED + USES) if finding.rule == "use-not-called"]
    assert finding.severity is Severity.NOTE


def test_a_server_that_others_call_may_be_another_client_s() -> None:
    other = LISTED + '· 0.1 s later\n→ tools/call 2 {"name":"other"}\n← result 2 {"content":[]}'
    (finding,) = [
        finding for finding in findings_of(USES + "⇒ returns c1 no" + SAYS, other) if finding.rule == "use-not-called"
    ]
    assert finding.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("result", "returned"),
    [
        (text("sunny"), "<tool_response>sunny</tool_response>"),
        (text("sunny"), "Result of forecast: sunny (1 ms)"),
        (text("sunny", "and warm"), "sunny and warm"),
        (text("sunny “now”"), json.dumps([{"type": "text", "text": "sunny “now”"}])),
        (text('{"sky": "sunny", "degrees": 25.0}'), '{"degrees":25,"sky":"sunny"}'),
        (text("25", structuredContent={"degrees": 25}), '{"degrees": 25}'),
        ({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}, "[image]"),
        (text(), "(nothing)"),
        (text("no such city", isError=True), "Error: no such city"),
        (text("no such city", isError=True), "The tool failed."),
    ],
)
def test_a_client_may_wrap_and_write_anew_what_a_tool_returns(result: dict[str, Any], returned: str) -> None:
    assert rules(called_and_returned(result, returned)) == set()


SKY = {"sky": "sunny <or so>", "degrees": 25.0, "days": ["Mon", "Tue", "Wed"]}
OTHER_SKY = {**SKY, "days": ["Mon", "Tue"]}
PRETTY, COMPACT, SORTED = json.dumps(SKY, indent=2), json.dumps(SKY, separators=(",", ":")), json.dumps(SKY, sort_keys=True)
FORECAST = "Sunny in the morning, and rain in the afternoon."
WALL = "Wall time: 0.0213 seconds\nOutput:\n"


def escaped(value: Any) -> str:
    """Write JSON as encoders do that have web pages in mind."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("/", "\\/")


WRAPPED = [
    (text(FORECAST), WALL + FORECAST),
    (text(PRETTY), WALL + COMPACT),
    (text(PRETTY), WALL + SORTED + "\n"),
    (text(PRETTY), f"```json\n{COMPACT}\n```"),
    (text(COMPACT), f"Here is the result:\n\n```\n{PRETTY}\n```\n(1 result)"),
    (text(PRETTY), f"<result>{SORTED}</result>"),
    (text("25 and sunny", structuredContent=SKY), WALL + COMPACT),
    (text(PRETTY, structuredContent=SKY), f"[forecast] took 3 ms\n{SORTED}\nend of output"),
    (text("sunny <or so>"), WALL + escaped([{"type": "text", "text": "sunny <or so>"}])),
    (text("a/b", "<c>"), WALL + escaped([{"type": "text", "text": "a/b"}, {"type": "text", "text": "<c>"}])),
    (text("<b>sunny</b>"), "output: " + escaped({"ok": True, "stdout": "<b>sunny</b>"})),
    (text(PRETTY), f'{WALL}{{"result": {COMPACT}, "ms": 3}}'),
    (text("25", structuredContent={"degrees": 25}), WALL + '{"degrees": 25.0}'),
]
"""Returns that hold the whole result, in other words or other JSON."""

REPLACED = [
    (text(FORECAST), WALL + "It will be nice.", "result-changed"),
    (text(FORECAST), WALL + FORECAST[:30] + "\n[… truncated]", "result-cut"),
    (text(FORECAST), f"```\n{FORECAST[:20]}\n```", "result-cut"),
    (text(PRETTY), WALL + json.dumps(OTHER_SKY), "result-changed"),
    (text(PRETTY), WALL + json.dumps({**SKY, "degrees": 26}), "result-changed"),
    (text(PRETTY), f"```json\n{json.dumps({'sky': SKY['sky']})}\n```", "result-changed"),
    (text("25 and sunny", structuredContent=SKY), WALL + json.dumps(OTHER_SKY), "result-changed"),
    (text("sunny <or so>"), WALL + escaped([{"type": "text", "text": "rainy <or so>"}]), "result-changed"),
    (text("a/b <and so on>", "<c>"), WALL + escaped([{"type": "text", "text": "a/b <and so on>"}]), "result-changed"),
    (text(PRETTY), f'{WALL}{{"result": {json.dumps(OTHER_SKY)}, "ms": 3}}', "result-changed"),
    (text(PRETTY), WALL, "result-changed"),
    (text(json.dumps([1, 2, 3, 4])), WALL + "[1, 2, 3]", "result-changed"),
]
"""Twins, in which something is missing or other than it was."""


def model_rules(result: dict[str, Any], returned: str) -> set[str]:
    """Return the rules that a tool return of several lines breaks."""
    captures = captures_of(called_and_returned(result, returned.replace("\n", "¶")))
    for record in captures[1]:
        if isinstance(record, Frame):
            record.data = record.data.replace("¶".encode(), b"\\n")
    return {finding.rule for finding in model_findings(transcribe(*captures), with_optional=True)}


@pytest.mark.parametrize(("result", "returned"), WRAPPED)
def test_lines_around_a_result_do_not_change_it(result: dict[str, Any], returned: str) -> None:
    assert model_rules(result, returned) == set()


@pytest.mark.parametrize(("result", "returned", "rule"), REPLACED)
def test_lines_around_a_result_do_not_hide_that_it_was_changed(result: dict[str, Any], returned: str, rule: str) -> None:
    assert model_rules(result, returned) == {rule}


def test_an_error_of_the_protocol_that_is_told_in_words_is_not_hidden() -> None:
    called = '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n← error 2 -32602 no such city\n'
    assert rules(LISTED + USES + called + "⇒ returns c1 MCP error -32602: no such city" + SAYS) == set()
    assert rules(LISTED + USES + called + "⇒ returns c1 null" + SAYS) == {"error-hidden"}


def test_a_result_that_came_after_the_model_was_told_is_said_to_be_late() -> None:
    account = LISTED + USES + '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n⇒ returns c1 timed out' + SAYS
    late = findings_of(account + '\n· 2.0 s later\n← result 2 {"content":[{"type":"text","text":"sunny"}]}')
    assert [(finding.rule, "before the server's response" in finding.what) for finding in late] == [("result-dropped", True)]


def test_arguments_that_were_merely_left_out_or_added_are_no_more_than_a_note() -> None:
    uses = OFFERED + '⇐ uses c1 forecast {"city":"Paris","days":null}\n'
    called = '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris","unit":"C"}}\n← result 2 {"content":[]}\n'
    (finding,) = findings_of(LISTED + uses + called + "⇒ returns c1 sunny" + SAYS)
    assert (finding.rule, finding.severity) == ("arguments-changed", Severity.NOTE)


def test_two_servers_may_have_a_tool_of_the_same_name() -> None:
    offers = '⇒ asks x\n  offers example__forecast {"type":"object"}\n  offers two__forecast {"type":"object"}\n⇐ says y'
    assert rules(LISTED + offers, LISTED) == set()


def test_one_offer_for_two_servers_leaves_neither_out() -> None:
    assert rules(LISTED + OFFERED + "⇐ says y", LISTED) == set()


def test_tools_that_are_none_of_the_prompts_may_be_another_client_s() -> None:
    (finding,) = [
        finding
        for finding in findings_of(LISTED + '⇒ asks x\n  offers bash {"type":"object"}\n⇐ says y')
        if finding.rule == "tool-not-offered"
    ]
    assert finding.severity is Severity.NOTE


def test_where_no_prompt_offers_anything_that_is_worth_a_warning() -> None:
    (finding,) = findings_of(LISTED + "⇒ asks x\n⇐ says y")
    assert (finding.rule, finding.severity) == ("tool-not-offered", Severity.WARNING)


def test_a_model_that_looks_for_tools_is_offered_them_later() -> None:
    account = LISTED.replace("}]}", '},{"name":"alerts","inputSchema":{"type":"object"}}]}') + OFFERED
    (finding,) = [
        finding
        for finding in findings_of(account + '  offers ToolSearch {"type":"object"}\n⇐ says y')
        if finding.rule == "tool-not-offered"
    ]
    assert finding.severity is Severity.NOTE


def test_tools_are_offered_once_by_some_clients() -> None:
    called = '→ tools/call 2 {"name":"forecast","arguments":{"city":"Paris"}}\n← result 2 {"content":[{"type":"text","text":"ok"}]}\n'
    assert rules(LISTED + USES + called + "⇒ returns c1 ok" + SAYS) == set()


def test_what_a_broken_answer_wanted_done_is_asked_again_and_not_missed() -> None:
    use = {"index": 0, "id": "c1", "type": "function", "function": {"name": "forecast", "arguments": '{"ci'}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [use]}, "finish_reason": None}]}
    model = ModelTraffic()
    model.wait(10)
    model.ask("user: x", stream=True).stream().raw(sse(chunk)).close(how="reset")
    model.ask("user: x").answer(200, completion("y"))
    transcript = transcribe(model.records, Account(LISTED).records)
    assert {finding.rule for finding in model_findings(transcript)} == {"tool-not-offered", "answer-broken"}


def test_a_client_that_stops_an_answer_may_have_been_told_to() -> None:
    account = Account("⇒ asks x\n⇐ streams y\n  breaks off")
    assert account.model is not None
    for record in account.model.records:
        if getattr(record, "how", "") == "reset":
            record.by = "client"  # type: ignore[union-attr]  # a Close
    (finding,) = model_findings(transcribe(account.model.records))
    assert (finding.rule, finding.severity, finding.culprit) == ("answer-broken", Severity.NOTE, "client")


def test_a_tool_that_is_called_in_broken_json_has_no_name_that_could_be_made_up() -> None:
    account = OFFERED + '⇐ says <tool_call>{"name": "forecast", "arguments": {"ci</tool_call>'
    assert rules(account) == {"arguments-not-json"}


def test_a_server_that_was_not_recorded_may_have_a_tool_of_the_same_name_and_words() -> None:
    listed = LISTED.replace('"forecast",', '"forecast","description":"Tells.",')
    offers = '⇒ asks x\n  offers example-forecast {"type":"object"} Tells.\n  offers two-forecast {"type":"object"} Tells.\n'
    account = listed + offers + '⇐ uses c1 two-forecast {"city":"Paris"}\n⇒ returns c1 sunny' + SAYS
    assert rules(account) == set()


def test_a_tool_that_goes_by_a_name_that_nobody_knows_is_known_by_its_words() -> None:
    listed = LISTED.replace('"forecast",', '"forecast","description":"Tells.",')
    account = listed + '⇒ asks x\n  offers two-forecast {"type":"object"} Tells.\n⇐ uses c1 two-forecast {"city":"Paris"}\n'
    assert rules(account + "⇒ returns c1 sunny" + SAYS) == {"use-not-called"}


def answer_rules(body: Any, **more: Any) -> list[str]:
    traffic = ModelTraffic()
    traffic.ask("user: x", **more).answer(200, body)
    return [finding.rule for finding in model_findings(traffic.transcript)]


def test_a_body_that_is_no_answer_is_said_to_be_flawed_and_not_to_be_broken_off() -> None:
    assert answer_rules({"model": "m", "reply": "hello"}) == ["answer-flawed"]


def test_a_limit_of_one_token_is_meant() -> None:
    body = completion("#")
    body["choices"][0]["finish_reason"] = "length"
    assert (answer_rules(body, max_tokens=2), answer_rules(body, max_tokens=1)) == (["answer-cut"], [])


def test_what_was_not_recorded_of_an_answer_is_not_blamed_on_the_api() -> None:
    traffic = ModelTraffic()
    for last in ("[DONE]", delta("lo")):
        call = traffic.ask("user: x").stream()
        traffic.add(Frame(call.response, traffic.tick(), traffic.at_ns, b"", length=50, sha256="00"))
        call.event(last).close()
    assert model_findings(traffic.transcript) == []


def test_an_answer_whose_coding_cannot_be_read_here_is_not_blamed_on_the_api() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: x").answer(200, b"?", content_encoding="zstd-of-1999")
    assert model_findings(traffic.transcript) == []


def test_a_tool_of_the_client_s_own_that_is_called_alike_does_not_make_the_model_that_client_s() -> None:
    listed = LISTED.replace('"forecast"', '"search"').replace(
        "}]}", '},{"name":"fetch_page","inputSchema":{"type":"object"}}]}'
    )
    offers = '⇒ asks x\n  offers web_search {"type":"object"} Looks.\n⇐ says y'
    assert {finding.rule: finding.severity for finding in findings_of(listed + offers)}["tool-not-offered"] is Severity.NOTE


def test_the_server_s_own_words_for_an_error_hide_it_no_more_than_the_server_does() -> None:
    (finding,) = findings_of(called_and_returned(text("Paris lies elsewhere", isError=True), "Paris lies elsewhere"))
    assert (finding.rule, finding.severity) == ("error-hidden", Severity.NOTE)


@pytest.mark.parametrize("later_s", [-3600, 3600])
def test_a_model_that_was_recorded_at_another_time_is_of_another_agent_than_the_server(later_s: int) -> None:
    server, model = captures_of(LISTED + '⇒ asks x\n  offers bash {"type":"object"}' + SAYS)
    assert "tool-not-offered" in {finding.rule for finding in model_findings(transcribe(server, model))}
    header = model[0]
    assert isinstance(header, Header)
    header.wall_ns += later_s * 10**9
    header.monotonic_ns += later_s * 10**9
    assert "tool-not-offered" not in {finding.rule for finding in model_findings(transcribe(server, model))}


def test_prompts_of_another_agent_need_not_offer_a_server_s_tools() -> None:
    server, model = captures_of(LISTED.replace("}]}", '},{"name":"alerts","inputSchema":{}}]}') + OFFERED + SAYS.lstrip())
    _, another = captures_of(LISTED + '⇒ asks x\n  offers bash {"type":"object"}' + SAYS + "\n⇒ asks y" + SAYS)
    (finding,) = [
        finding for finding in model_findings(transcribe(server, model, another)) if finding.rule == "tool-not-offered"
    ]
    assert "alerts" in finding.what
    assert "in the prompt" in finding.what


@pytest.mark.parametrize(
    ("refusal", "culprit"),
    [
        ("401 Incorrect API key", "configuration"),
        ("404 No such model", "configuration"),
        ("400 No messages", "client"),
        ("503 Busy", "api"),
    ],
)
def test_a_refused_prompt_is_the_configurations_if_key_or_model_are_wrong(refusal: str, culprit: str) -> None:
    found = findings_of(f"⇒ asks x\n⇐ {refusal}")
    assert [finding.culprit for finding in found if finding.rule == "model-refused"] == [culprit]
