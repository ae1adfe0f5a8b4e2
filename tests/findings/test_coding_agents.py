"""Coding agents as they are: prompts of the forms of Claude Code, Codex and others, beside the session with their server.

A healthy run has no finding, not even a note. Each form has a twin with a fault, which is found. The words are ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcpspy.records import Record
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.llm.agent_runs import agent_runs
from mcpspy.transcript.llm.prompt import ToolUse
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.text.line import plain
from mcpspy.views.timeline.model_call import model_call_lines
from tests.findings.account import Account
from tests.findings.hits import model_findings
from tests.transcript.llm.traffic import CHAT, MESSAGES, RESPONSES, ModelTraffic

Json = dict[str, Any]

WORDS = "What is the weather in Paris?"
SUNNY = "Sunny, 21 degrees."
OBJECT = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = {"forecast": "Tells the weather.", "alerts": "Warns of storms."}
OWN = ("Bash", "Read", "apply_patch", "spawn_agent")
NO_CALL = ""


def server(*calls: str, tools: dict[str, str] = TOOLS, label: str = "weather", at_s: float = 1.0) -> list[Record]:
    """A session with a server: its tools are listed, and these called later."""
    listed = [{"name": name, "description": text, "inputSchema": OBJECT} for name, text in tools.items()]
    lines = ["→ tools/list 1", "← result 1 " + json.dumps({"tools": listed})]
    for id, name in enumerate(calls, 2):
        result = {"content": [{"type": "text", "text": SUNNY}]}
        lines += [f"· {at_s:.1f} s later", f"→ tools/call {id} " + json.dumps({"name": name, "arguments": {"city": "Paris"}})]
        lines.append(f"← result {id} " + json.dumps(result))
    return Account("\n".join(lines), label).records


@dataclass(slots=True)
class Agent:
    """The prompts of an agent, one a second, and their answers."""

    traffic: ModelTraffic = field(default_factory=ModelTraffic)

    def tell(self, path: str, body: Json, answer: Json) -> None:
        self.traffic.wait(400)
        self.traffic.post({"model": "m", **body}, path).answer(200, answer)


def said(path: str, text: str = "Sunny.") -> Json:
    """Make an answer in words."""
    if path == MESSAGES:
        return {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    if path == CHAT:
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    parts = [{"type": "output_text", "text": text}]
    return {"id": "r", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": parts}]}


# Claude Code: messages


def block(text: str) -> Json:
    return {"type": "text", "text": text}


def reminder(*lines: str, tag: str = "system-reminder") -> Json:
    return block("\n".join([f"<{tag}>", *lines, f"</{tag}>"]))


def claude_tool(name: str, description: str = "", **more: Any) -> Json:
    return {"name": name, "description": description, "input_schema": OBJECT, **more}


OWN_TOOLS = [claude_tool(name, f"{name} does something of the agent's.") for name in OWN]
SEARCH = claude_tool("ToolSearch", "Loads the definitions of deferred tools.")
MCP_TOOLS = [claude_tool(f"mcp__weather__{name}", text) for name, text in TOOLS.items()]


def claude(*steps: tuple[str, str, str], tools: list[Json], first: list[Json], more: dict[str, Json] | None = None) -> Agent:
    """Tell a conversation of messages: `steps` are (tool, its arguments as JSON, its result)."""
    agent, offered = Agent(), list(tools)
    turns: list[Json] = [{"role": "user", "content": [*first, block(WORDS)]}]
    for number, (name, arguments, result) in enumerate(steps):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": json.loads(arguments)}
        answer = {"type": "message", "content": [use], "stop_reason": "tool_use"}
        agent.tell(MESSAGES, {"tools": offered, "messages": turns}, answer)
        loaded = (more or {}).get(result)
        content = [{"type": "tool_reference", "tool_name": result}] if loaded else [block(result)]
        offered = [*offered, loaded] if loaded else offered
        returned = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
        turns = [*turns, {"role": "assistant", "content": [use]}, {"role": "user", "content": [returned]}]
        agent.traffic.wait(600)
    agent.tell(MESSAGES, {"tools": offered, "messages": turns}, said(MESSAGES))
    return agent


FORECAST = ("mcp__weather__forecast", '{"city":"Paris"}', SUNNY)
FIND = ("ToolSearch", '{"query":"select:mcp__weather__forecast"}', "mcp__weather__forecast")
LOADED = {"mcp__weather__forecast": {**MCP_TOOLS[0], "defer_loading": True}}
NAMED = reminder("Deferred tools, which ToolSearch loads:", "CronCreate", "mcp__weather__alerts", "mcp__weather__forecast")


# Codex: responses


def part(text: str) -> Json:
    return {"type": "input_text", "text": text}


def message(role: str, *texts: str) -> Json:
    return {"type": "message", "role": role, "content": [part(text) for text in texts]}


def function(name: str, description: str = "", **more: Any) -> Json:
    return {"type": "function", "name": name, "description": description, "parameters": OBJECT, **more}


def namespace(name: str, *names: str, tools: dict[str, str] = TOOLS) -> Json:
    within = [function(tool, tools.get(tool, ""), defer_loading=True) for tool in names or tools]
    return {"type": "namespace", "name": name, "description": "Tools.", "tools": within}


CONTEXT = [
    message("developer", "Work.", "<permissions instructions>\nAsk.\n</permissions instructions>"),
    message("user", "<environment_context>\n  <cwd>/home</cwd>\n</environment_context>"),
    message("user", WORDS),
]
CODEX_OWN = [function(name, "Does something.") for name in ("exec_command", "list_mcp_resources", "read_mcp_resource")]
CODEX_SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": OBJECT}
DEFERRED = message("developer", "<tools>\nDeferred tool namespaces:\n- mcp__weather\n</tools>")
CALLS_FORECAST = {"type": "function_call", "call_id": "c1", "name": "forecast", "arguments": '{"city":"Paris"}'}
IN_SPACE = {**CALLS_FORECAST, "namespace": "mcp__weather"}
SEARCHES = {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": {"query": "weather"}}
EXECUTES = {
    "type": "custom_tool_call",
    "call_id": "e1",
    "name": "exec",
    "input": "text(await tools.mcp__weather__forecast({}))",
}


def output(text: str, id: str = "c1", kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": id, "output": text}


def parts(*texts: str, id: str = "c1", kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": id, "output": [part(text) for text in texts]}


def found(*tools: Json, id: str = "s1") -> Json:
    return {"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": list(tools)}


def codex(*steps: tuple[Json, Json], tools: list[Json], first: list[Json] = CONTEXT) -> Agent:
    """Tell a conversation of responses: `steps` are items of answers and of the next prompts."""
    agent, turns = Agent(), list(first)
    for number, (item, result) in enumerate(steps):
        answer = {"id": f"r{number}", "status": "completed", "output": [item]}
        agent.tell(RESPONSES, {"tools": tools, "input": turns}, answer)
        turns = [*turns, item, result]
        agent.traffic.wait(600)
    agent.tell(RESPONSES, {"tools": tools, "input": turns}, said(RESPONSES))
    return agent


# Others: chat completions


def chat(*tools: tuple[str, str], system: str = "Help.", uses: str = NO_CALL, words: str = WORDS, result: Any = SUNNY) -> Agent:
    """Tell a conversation of chat completions with one use, if any."""
    agent = Agent()
    offered = [
        {"type": "function", "function": {"name": name, "description": text, "parameters": OBJECT}} for name, text in tools
    ]
    turns: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": words}]
    if uses:
        call = {"id": "c1", "type": "function", "function": {"name": uses, "arguments": '{"city":"Paris"}'}}
        turn = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {"choices": [{"index": 0, "message": turn, "finish_reason": "tool_calls"}]}
        agent.tell(CHAT, {"tools": offered, "messages": turns}, answer)
        turns = [*turns, turn, {"role": "tool", "tool_call_id": "c1", "content": result}]
        agent.traffic.wait(600)
    agent.tell(CHAT, {"tools": offered, "messages": turns}, said(CHAT))
    return agent


BOTH = tuple(TOOLS.items())
MANY = {f"tool_{number}": "Does a thing that needs many words to be told. " * 10 for number in range(12)}
MANY_OWN = [claude_tool(f"Own{number}", text) for number, text in enumerate(MANY.values())]

HEALTHY: dict[str, tuple[Callable[[], Agent], list[str]]] = {
    "Claude Code, all tools offered": (lambda: claude(FORECAST, tools=[*OWN_TOOLS, *MCP_TOOLS], first=[]), ["forecast"]),
    "Claude Code, tools of its own that cost much": (
        lambda: claude(FORECAST, tools=[*MANY_OWN, *MCP_TOOLS], first=[reminder("Today is Monday.")]),
        ["forecast"],
    ),
    "Claude Code, deferred, searched and used": (
        lambda: claude(FIND, FORECAST, tools=[*OWN_TOOLS, SEARCH], first=[NAMED], more=LOADED),
        ["forecast"],
    ),
    "Claude Code, deferred and never searched": (lambda: claude(tools=[*OWN_TOOLS, SEARCH], first=[NAMED]), []),
    "Claude Code, deferred in an element of their own": (
        lambda: claude(
            tools=[SEARCH],
            first=[reminder("mcp__weather__alerts", "mcp__weather__forecast", tag="available-deferred-tools")],
        ),
        [],
    ),
    "Claude Code, deferred on one line": (
        lambda: claude(tools=[SEARCH], first=[reminder("Deferred: mcp__weather__alerts, `mcp__weather__forecast`.")]),
        [],
    ),
    "the API searches, and has all definitions": (
        lambda: claude(
            FORECAST,
            tools=[
                {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
                *({**tool, "defer_loading": True} for tool in MCP_TOOLS),
            ],
            first=[],
        ),
        ["forecast"],
    ),
    "Codex, tools of a namespace": (
        lambda: codex(
            (IN_SPACE, parts("Wall time: 0.1 seconds\nOutput:", SUNNY)), tools=[*CODEX_OWN, namespace("mcp__weather")]
        ),
        ["forecast"],
    ),
    "Codex, the output as one text": (
        lambda: codex(
            (IN_SPACE, output(f"Wall time: 0.1 seconds\nOutput:\n{SUNNY}")), tools=[*CODEX_OWN, namespace("mcp__weather")]
        ),
        ["forecast"],
    ),
    "Codex, two namespaces with tools of the same names": (
        lambda: codex((IN_SPACE, output(SUNNY)), tools=[namespace("mcp__weather"), namespace("agents", "forecast")]),
        ["forecast"],
    ),
    "Codex, deferred, searched and used": (
        lambda: codex(
            (SEARCHES, found(namespace("mcp__weather", "forecast"))),
            (IN_SPACE, output(SUNNY)),
            tools=[*CODEX_OWN, CODEX_SEARCH],
            first=[DEFERRED, *CONTEXT],
        ),
        ["forecast"],
    ),
    "Codex, the same found twice": (
        lambda: codex(
            (SEARCHES, found(namespace("mcp__weather"))),
            ({**SEARCHES, "call_id": "s2"}, found(namespace("mcp__weather", "forecast"), id="s2")),
            tools=[*CODEX_OWN, CODEX_SEARCH],
            first=[DEFERRED, *CONTEXT],
        ),
        [],
    ),
    "Codex, deferred and never searched": (
        lambda: codex(tools=[*CODEX_OWN, CODEX_SEARCH], first=[DEFERRED, *CONTEXT]),
        [],
    ),
    "Codex, deferred under a name of its own for the server": (
        lambda: codex(
            tools=[*CODEX_OWN, CODEX_SEARCH],
            first=[message("developer", "<tools>\nDeferred tool namespaces:\n- mcp__sky\n</tools>"), *CONTEXT],
        ),
        [],
    ),
    "Codex, which calls tools by a program": (
        lambda: codex(
            (EXECUTES, parts("Script completed", SUNNY, id="e1", kind="custom_tool_call_output")),
            tools=[],
            first=[
                {
                    "type": "additional_tools",
                    "role": "developer",
                    "tools": [{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}],
                },
                DEFERRED,
                *CONTEXT,
            ],
        ),
        ["forecast"],
    ),
    "Codex, a patch": (
        lambda: codex(
            (
                {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
                output("Done.", kind="custom_tool_call_output"),
            ),
            tools=[{"type": "custom", "name": "apply_patch"}, namespace("mcp__weather")],
        ),
        [],
    ),
    "a framework, plain names and functions of its own": (
        lambda: chat(*BOTH, ("add", "Adds."), ("final_result", "Ends."), uses="forecast"),
        ["forecast"],
    ),
    "a framework that returns results in parts": (
        lambda: chat(*BOTH, uses="forecast", result=[{"type": "text", "text": SUNNY}]),
        ["forecast"],
    ),
    "a framework that repeats the tools in its instructions": (
        lambda: chat(*BOTH, system="You have these tools:\n\n- forecast: Tells.\n- alerts: Warns.", uses="forecast"),
        ["forecast"],
    ),
    "a framework on responses": (
        lambda: codex(
            (CALLS_FORECAST, parts(SUNNY)),
            tools=[*(function(name, text) for name, text in BOTH), function("add", "Adds.")],
            first=[{"role": "user", "content": WORDS}],
        ),
        ["forecast"],
    ),
    "an agent that connects to servers when the model asks": (
        lambda: chat(("list_mcp_servers", "Lists."), ("search_mcp_tools", "Finds."), system="Servers:\n- weather"),
        [],
    ),
    "an agent that names the deferred tools plainly": (
        lambda: chat(("search_tools", "Finds tools."), system="Tools that can be found:\n- forecast\n- alerts"),
        [],
    ),
    "an agent that names the servers with tools": (
        lambda: chat(("find_tools", "Finds tools of these servers:\n- weather")),
        [],
    ),
}


def transcript_of(agent: Agent, *calls: str, **more: Any) -> Transcript:
    """Read a run in which the server is called between the last two prompts."""
    return transcribe(server(*calls, at_s=agent.traffic.calls - 1, **more), agent.traffic.records)


def findings_of(agent: Agent, *calls: str, **more: Any) -> list[Finding]:
    return model_findings(transcript_of(agent, *calls, **more), with_optional=True)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_of_an_agent_has_no_finding(name: str) -> None:
    told, calls = HEALTHY[name]
    assert findings_of(told(), *calls) == []


RAIN = {"rain": "Tells of rain."}

FAULTY: dict[str, tuple[Callable[[], Agent], dict[str, Any], str, str]] = {
    "a deferred tool is named, another is not": (
        lambda: claude(tools=[SEARCH], first=[NAMED]),
        {"tools": TOOLS | RAIN},
        "tool-not-offered",
        "1 of 3 tools that weather lists is missing in the prompt: rain",
    ),
    "no tool is deferred, and one is missing": (
        lambda: claude(tools=[*OWN_TOOLS, MCP_TOOLS[0]], first=[reminder("mcp__weather__alerts")]),
        {},
        "tool-not-offered",
        "alerts",
    ),
    "only the user names the missing tools": (
        lambda: chat(("search_tools", "Finds tools."), words="Use mcp__weather__alerts,\nforecast\nand\nalerts"),
        {},
        "tool-not-offered",
        "forecast, alerts",
    ),
    "only the user speaks of a deferred tool": (
        lambda: chat(("read_file", "Reads."), words="Is\nmcp__weather__alerts\na deferred tool?"),
        {},
        "tool-not-offered",
        "forecast, alerts",
    ),
    "only the model names the missing tools": (
        lambda: codex(
            tools=[CODEX_SEARCH],
            first=[*CONTEXT, {"type": "message", "role": "assistant", "content": [part("- mcp__weather")]}, CONTEXT[-1]],
        ),
        {},
        "tool-not-offered",
        "forecast, alerts",
    ),
    "instructions name a tool that the client has disabled": (
        lambda: chat(BOTH[0], system="Call mcp__weather__alerts before you answer."),
        {},
        "tool-not-offered",
        "alerts",
    ),
    "a word of the text is a tool's name": (
        lambda: chat(("search_tools", "Finds tools."), system="Tell the forecast and the alerts."),
        {},
        "tool-not-offered",
        "forecast, alerts",
    ),
    "a tool of a server that was not recorded": (
        lambda: claude(FORECAST, tools=[*OWN_TOOLS, *MCP_TOOLS, claude_tool("mcp__tides__high")], first=[]),
        {"calls": ["forecast"]},
        "offer-without-server",
        "1 offered tool is of no recorded server: mcp__tides__high",
    ),
    "a tool that the server has no more": (
        lambda: chat(*((f"weather_{name}", text) for name, text in (*BOTH, ("tides", "Tells the tides.")))),
        {},
        "offer-without-server",
        "weather_tides",
    ),
    "a namespace of a server that was not recorded": (
        lambda: codex(tools=[namespace("mcp__weather"), namespace("mcp__tides", "high")]),
        {},
        "offer-without-server",
        "mcp__tides.high",
    ),
    "tools of a server that cost much and are not used": (
        lambda: claude(
            FORECAST, tools=[*MCP_TOOLS, *(claude_tool(f"mcp__weather__{name}", text) for name, text in MANY.items())], first=[]
        ),
        {"calls": ["forecast"], "tools": TOOLS | MANY},
        "unused-offers",
        "13 of 14 offered tools were never used",
    ),
    "a framework's plain offers of such tools": (
        lambda: chat(*BOTH, *MANY.items(), uses="forecast"),
        {"calls": ["forecast"], "tools": TOOLS | MANY},
        "unused-offers",
        "13 of 14 offered tools were never used",
    ),
    "a deferred tool is called before it is searched for": (
        lambda: claude((*FORECAST[:2], "Not loaded."), tools=[*OWN_TOOLS, SEARCH], first=[NAMED]),
        {},
        "use-not-offered",
        "mcp__weather__forecast, which its prompt does not offer: it is deferred, and ToolSearch did not find it before",
    ),
    "a deferred tool of Codex is called before it is searched for": (
        lambda: codex((IN_SPACE, output("unsupported call")), tools=[CODEX_SEARCH], first=[DEFERRED, *CONTEXT]),
        {},
        "use-not-offered",
        "mcp__weather.forecast, which its prompt does not offer: it is deferred, and tool_search did not find it before",
    ),
    "a tool of a namespace is called without it": (
        lambda: codex((CALLS_FORECAST, output("unsupported call")), tools=[namespace("mcp__weather")]),
        {},
        "use-not-offered",
        "forecast, which its prompt does not offer; the prompt offers it as mcp__weather.forecast",
    ),
    "a function's arguments are broken": (
        lambda: codex(({**IN_SPACE, "arguments": '{"city":"Par'}, output("invalid")), tools=[namespace("mcp__weather")]),
        {},
        "arguments-not-json",
        "The arguments of mcp__weather.forecast are not a JSON object",
    ),
    "JSON for a tool that takes any text is broken": (
        lambda: codex(({**EXECUTES, "input": '{"a":'}, output("invalid", "e1")), tools=[{"type": "custom", "name": "exec"}]),
        {},
        "arguments-not-json",
        "The arguments of exec",
    ),
    "a name that no tool has, where others are deferred": (
        lambda: claude(("mcp__weather__rain", "{}", "Unknown."), tools=[*OWN_TOOLS, SEARCH], first=[NAMED]),
        {},
        "use-not-offered",
        "mcp__weather__rain, which its prompt does not offer.",
    ),
    "one tool in two places of the prompt": (
        lambda: codex(tools=[namespace("mcp__weather"), function("mcp__weather__alerts", TOOLS["alerts"])]),
        {},
        "offered-twice",
        "alerts of weather under several names",
    ),
    "the result of a found tool is cut": (
        lambda: codex(
            (SEARCHES, found(namespace("mcp__weather"))),
            (IN_SPACE, output("Sunny")),
            tools=[CODEX_SEARCH],
            first=[DEFERRED, *CONTEXT],
        ),
        {"calls": ["forecast"]},
        "result-cut",
        "forecast",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_run_of_an_agent_is_found(name: str) -> None:
    told, more, rule, words = FAULTY[name]
    findings = findings_of(told(), *more.pop("calls", ()), **more)
    assert [finding.what for finding in findings if finding.rule == rule and words in finding.what], findings


def test_deferred_tools_of_one_server_do_not_speak_for_another() -> None:
    agent = codex(tools=[CODEX_SEARCH], first=[DEFERRED, *CONTEXT])
    transcript = transcribe(server(), server(tools=RAIN, label="rain"), agent.traffic.records)
    findings = model_findings(transcript, with_optional=True)
    assert [(finding.rule, "that rain lists" in finding.what) for finding in findings] == [("tool-not-offered", True)]


@pytest.mark.parametrize("kind", [None, [], {}, 1, "tool_search_output", "additional_tools"])
@pytest.mark.parametrize(
    "tools", [None, 1, "x", {}, [None, 1, [], {}, {"type": "namespace", "name": [], "tools": [1, {"name": []}]}]]
)
def test_items_that_offer_tools_may_have_any_form(kind: Any, tools: Any) -> None:
    item = {"type": kind, "tools": tools, "namespace": 1, "execution": []}
    (call,) = codex(tools=[item], first=[item, {**SEARCHES, "namespace": {}, "arguments": tools}]).traffic.calls_made
    assert not call.prompt.flaw


def test_a_search_of_codex_is_a_use_whose_return_names_what_was_found() -> None:
    agent = codex((SEARCHES, found(namespace("mcp__weather"))), tools=[CODEX_SEARCH], first=[DEFERRED, *CONTEXT])
    first, second = agent.traffic.calls_made
    assert first.answer is not None
    assert first.answer.turn.uses == (
        ToolUse(id="s1", name="tool_search", arguments='{"query":"weather"}', at_ns=first.answer.turn.uses[0].at_ns),
    )
    assert second.prompt.turns[-1].returns[0].text == "mcp__weather.forecast, mcp__weather.alerts"


SHOWN: dict[str, tuple[Callable[[], Agent], list[list[str]]]] = {
    "named, searched and found": (
        lambda: claude(FIND, FORECAST, tools=[SEARCH], first=[NAMED], more=LOADED),
        [
            [
                "2 names of deferred tools  ToolSearch finds them: not searched for yet",
                "mcp__weather__alerts, mcp__weather__forecast",
            ],
            ["1 name of deferred tools  ToolSearch finds them: searched 1 time so far", "mcp__weather__alerts"],
            ["1 name of deferred tools  ToolSearch finds them: searched 1 time so far", "mcp__weather__alerts"],
        ],
    ),
    "a server, searched and found": (
        lambda: codex((SEARCHES, found(namespace("mcp__weather"))), tools=[CODEX_SEARCH], first=[DEFERRED, *CONTEXT]),
        [["1 name of deferred tools  tool_search finds them: not searched for yet", "mcp__weather"], []],
    ),
    "a server, without a search": (
        lambda: codex(tools=[function("exec")], first=[DEFERRED, *CONTEXT]),
        [["1 name of deferred tools", "mcp__weather"]],
    ),
    "patterns of names": (
        lambda: claude(tools=[SEARCH], first=[reminder("Tools are mcp__<server>__<tool>, mcp__*__x.")]),
        [[]],
    ),
    "names without a word of deferral": (lambda: claude(tools=[MCP_TOOLS[0]], first=[reminder("mcp__weather__alerts")]), [[]]),
    "names that only the user has": (lambda: claude(tools=[SEARCH], first=[block("Use mcp__weather__alerts.")]), [[]]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_row_of_a_model_call_has_the_names_of_deferred_tools(name: str) -> None:
    told, expected = SHOWN[name]
    transcript = told().traffic.transcript
    shown = [[plain(line).strip() for line in model_call_lines(transcript, call, [])] for call in transcript.model_calls]
    at = [
        next((at for at, line in enumerate(lines) if "of deferred tools" in line and line[0].isdigit()), len(lines))
        for lines in shown
    ]
    assert [lines[begin : begin + 2] for lines, begin in zip(shown, at, strict=True)] == expected


SPOKEN = [
    ([reminder("Use tools."), block(WORDS)], WORDS),
    ([reminder("Use tools."), reminder("Today is Monday."), block(WORDS)], WORDS),
    ([block(WORDS), reminder("Use tools.")], WORDS),
    (f"<system-reminder>\nUse tools.\n</system-reminder>\n\n{WORDS}", WORDS),
    (f"<task>\n{WORDS}\n</task>\n\n<environment_details>\nnone\n</environment_details>", WORDS),
    (f"<user_info>\nLinux\n</user_info>\n<user_query>\n{WORDS}\n</user_query>", WORDS),
    (f'<ide_selection path="a.py">\nx = 1\n</ide_selection>\n{WORDS}', WORDS),
    (f"<environment_context>\n  <cwd>/home</cwd>\n</environment_context>\n{WORDS}", WORDS),
    (f"<command-message>go</command-message>\n<command-name>/go</command-name>\n{WORDS}", WORDS),
    # What users write stays, whatever it looks like.
    ("<b>Why</b> is this bold?", "<b>Why</b> is this bold?"),
    ("Mend this:\n<my-app>\n  <p>hello</p>\n</my-app>", "Mend this:\n<my-app>\n  <p>hello</p>\n</my-app>"),
    ("<my-app></my-app> is empty. Why?", "<my-app></my-app> is empty. Why?"),
    ("<video-player></video-player> is empty. Why?", "<video-player></video-player> is empty. Why?"),
    ("Why is this empty?\n<side-bar></side-bar>", "Why is this empty?\n<side-bar></side-bar>"),
    ("<info>x</info> is what?", "<info>x</info> is what?"),
    ("What does <system-reminder> mean?", "What does <system-reminder> mean?"),
    ("<context>x</context> is what?", "<context>x</context> is what?"),
    ("Where does </system-reminder> end", "Where does </system-reminder> end"),
    ("<system-reminder> is not closed", "<system-reminder> is not closed"),
    ("a < b and c > d", "a < b and c > d"),
    ([reminder("Only this.")], "<system-reminder>\nOnly this.\n</system-reminder>"),
]


@pytest.mark.parametrize(("content", "words"), SPOKEN)
def test_the_text_of_a_run_is_what_the_user_wrote(content: Any, words: str) -> None:
    agent = Agent()
    agent.tell(MESSAGES, {"messages": [{"role": "user", "content": content}]}, said(MESSAGES))
    (run,) = agent_runs(agent.traffic.transcript, [])
    assert run.user_text == words


def test_the_words_of_a_user_may_precede_what_the_agent_adds_as_a_turn() -> None:
    context = message("user", "<environment_context>\n  <cwd>/tmp</cwd>\n</environment_context>")
    agent = codex(tools=[], first=[*CONTEXT, context])
    (run,) = agent_runs(agent.traffic.transcript, [])
    assert run.user_text == WORDS
