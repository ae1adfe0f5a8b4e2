"""A real agent: takes its user's question to a model, calls the tools that it wants at MCP servers, and tells it what came of them.

    agent.py OPTIONS QUESTION…

The model's leg is spoken by the `openai` or the `anthropic` package, MCP's by the official Python SDK. Each tool call is a line of
JSON on standard output, and so is each answer; a question begins a conversation of its own. OPTIONS is JSON:

    {"api": "chat",                    or responses, messages
     "base_url": URL, "key": …, "model": …, "max_tokens": N, "stream": true, "retries": N,
     "servers": {NAME: URL or [COMMAND, …]},          a URL that ends in /sse is one of HTTP+SSE
     "names": "{server}-{tool}",       what it calls tools to the model; else as the server does
     "as_text": true,                  tools are told of in the system prompt, and called in the text: <tool_call>{…}</tool_call>
     "offer": "once",                  tools are offered with the question alone; else with every prompt
     "ids": [ID, …],                   it gives these ids to tool calls, in the place of the model's
     "cut": N,                         it tells the model no more than so many letters of a result
     "continues": true,                with responses, it names the last answer and does not repeat the conversation
     "typing_s": N,                    its user takes so long for a question, once it is connected
     "extra": {…}}                     what else each prompt has
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation

Json = dict[str, Any]
ROUNDS = 8
"""So often a question is taken to the model, and no more: a model that always wants a tool is an error of the story."""
SELF = Implementation(name="agent", version="1.0")
TIMEOUT_S = 60.0
CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
INTRODUCTION = """You answer questions, with tools where they help.

# Tools

<tools>
{offers}
</tools>

To call a tool, write a JSON object with its name and arguments within <tool_call></tool_call>:
<tool_call>
{{"name": NAME, "arguments": OBJECT}}
</tool_call>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool that the model wants called; `arguments` is the JSON text that it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Result of a tool use."""

    use: Use
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as the model sees it, and the server that has it."""

    name: str
    client: Client
    known_as: str
    description: str
    schema: Json


class Talk(Protocol):
    """A conversation with a model, in the words of one API."""

    async def ask(self, tools: Sequence[Tool]) -> tuple[str, list[Use]]:
        """Take the conversation to the model. Returns what it says, and the tools that it wants."""

    def tell(self, came: Sequence[Returned]) -> None:
        """Put what came of its tools behind what the model said."""


class Chat:
    """Chat completions, with tools in fields of the API or, as text, in the turns themselves."""

    def __init__(self, options: Json, question: str) -> None:
        self.options = options
        self.turns: list[Any] = [{"role": "user", "content": question}]
        self.is_first = True
        self.ids = list(options.get("ids", ()))
        self.client = openai_client(options)

    async def ask(self, tools: Sequence[Tool]) -> tuple[str, list[Use]]:
        offers = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema}}
            for tool in tools
        ]
        offer: Json = {}
        if self.options.get("as_text"):
            if self.is_first:
                lines = "\n".join(json.dumps(offer, ensure_ascii=False) for offer in offers)
                self.turns.insert(0, {"role": "system", "content": INTRODUCTION.format(offers=lines)})
        elif self.is_first or self.options.get("offer") != "once":
            offer = {"tools": offers} if offers else {}
        self.is_first = False
        text, uses = await self.model_turn({**prompt_settings(self.options, "max_tokens"), "messages": self.turns, **offer})
        if self.options.get("as_text"):
            self.turns.append({"role": "assistant", "content": text})
            return CALL.sub("", text).strip(), [textual(words) for words in CALL.findall(text)]
        uses = [replace(use, id=self.ids.pop(0)) if self.ids else use for use in uses]
        calls = [{"id": use.id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}} for use in uses]
        self.turns.append({"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})})
        return text, uses

    async def model_turn(self, prompt: Json) -> tuple[str, list[Use]]:
        """Send a prompt to the model, and return its text and tool uses."""
        completions = self.client.chat.completions
        if self.options.get("stream"):
            return await assembled(await completions.create(**prompt, stream=True))
        turn: Any = (await completions.create(**prompt)).choices[0].message
        calls = turn.tool_calls or []
        return turn.content or "", [
            Use(id=call.id, name=call.function.name, arguments=call.function.arguments) for call in calls
        ]

    def tell(self, came: Sequence[Returned]) -> None:
        if self.options.get("as_text"):
            text = "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in came)
            self.turns.append({"role": "user", "content": text})
        else:
            self.turns += [{"role": "tool", "tool_call_id": result.use.id, "content": result.text} for result in came]


async def assembled(deltas: AsyncIterator[Any]) -> tuple[str, list[Use]]:
    """Join the deltas of a chat completion."""
    text, uses = "", dict[int, Use]()
    async for event in deltas:
        for choice in event.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                known = uses.get(call.index, Use(id="", name="", arguments=""))
                uses[call.index] = Use(
                    id=known.id or call.id or "",
                    name=known.name or call.function.name or "",
                    arguments=known.arguments + (call.function.arguments or ""),
                )
    return text, [uses[index] for index in sorted(uses)]


def textual(words: str) -> Use:
    """Read a tool call from the text."""
    call = json.loads(words)
    return Use(id="", name=call["name"], arguments=json.dumps(call["arguments"], ensure_ascii=False))


class Responses:
    """Responses: a list of items, or what came since the answer before."""

    def __init__(self, options: Json, question: str) -> None:
        self.options = options
        self.items: list[Any] = [{"role": "user", "content": question}]
        self.last = ""
        self.client = openai_client(options)

    async def ask(self, tools: Sequence[Tool]) -> tuple[str, list[Use]]:
        offers = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": False}
            for tool in tools
        ]
        prompt: Json = {**prompt_settings(self.options, "max_output_tokens"), "input": self.items, "tools": offers}
        if self.last:
            prompt["previous_response_id"] = self.last
        if self.options.get("stream"):
            async with self.client.responses.stream(**prompt) as stream:
                answer: Any = await stream.get_final_response()
        else:
            answer = await self.client.responses.create(**prompt)
        if self.options.get("continues"):
            self.items, self.last = [], answer.id
        else:
            self.items += [item.to_dict() for item in answer.output]
        calls = [item for item in answer.output if item.type == "function_call"]
        return answer.output_text, [Use(id=call.call_id, name=call.name, arguments=call.arguments) for call in calls]

    def tell(self, came: Sequence[Returned]) -> None:
        self.items += [{"type": "function_call_output", "call_id": result.use.id, "output": result.text} for result in came]


class Messages:
    """Messages: turns of blocks."""

    def __init__(self, options: Json, question: str) -> None:
        self.options = options
        self.turns: list[Any] = [{"role": "user", "content": question}]
        import anthropic  # a second, which who talks to another model need not wait for

        url, key = options["base_url"], options.get("key", "no-key")
        self.client = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=options.get("retries", 2))

    async def ask(self, tools: Sequence[Tool]) -> tuple[str, list[Use]]:
        offers = [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools]
        prompt: Json = {
            "max_tokens": 1000,
            **prompt_settings(self.options, "max_tokens"),
            "messages": self.turns,
            "tools": offers,
        }
        if self.options.get("stream"):
            async with self.client.messages.stream(**prompt) as stream:
                answer: Any = await stream.get_final_message()
        else:
            answer = await self.client.messages.create(**prompt)
        self.turns.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
        text = "".join(block.text for block in answer.content if block.type == "text")
        calls = [block for block in answer.content if block.type == "tool_use"]
        return text, [Use(id=call.id, name=call.name, arguments=json.dumps(call.input, ensure_ascii=False)) for call in calls]

    def tell(self, came: Sequence[Returned]) -> None:
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": result.use.id,
                "content": result.text,
                **({"is_error": True} if result.is_error else {}),
            }
            for result in came
        ]
        self.turns.append({"role": "user", "content": blocks})


TALKS: dict[str, Any] = {"chat": Chat, "responses": Responses, "messages": Messages}


def prompt_settings(options: Json, limit: str) -> Json:
    """Return the settings that every prompt has."""
    size = {limit: options["max_tokens"]} if "max_tokens" in options else {}
    return {"model": options.get("model", "no-model"), **size, **options.get("extra", {})}


def openai_client(options: Json) -> Any:
    """Make a client of the `openai` package."""
    import openai

    key = options.get("key", "no-key")
    return openai.AsyncOpenAI(base_url=options["base_url"], api_key=key, max_retries=options.get("retries", 2))


def server(place: str | list[str]) -> Any:
    """Turn a command or a URL into the SDK's kind of server."""
    if isinstance(place, list):
        return StdioServerParameters(command=place[0], args=place[1:], env=dict(os.environ))
    return sse_client(place, timeout=TIMEOUT_S) if place.endswith("/sse") else place


async def listed(clients: dict[str, Client], names: str) -> list[Tool]:
    """List the tools of all servers, under the names that the model sees."""
    return [
        Tool(
            name=tool.name,
            client=client,
            known_as=names.format(server=label, tool=tool.name),
            description=tool.description or "",
            schema=tool.input_schema,
        )
        for label, client in clients.items()
        for tool in (await client.list_tools()).tools
    ]


async def called(tools: Sequence[Tool], use: Use, most: int) -> Returned:
    """Call the tool that the model wants. If no server has it, the model gets an error."""
    wanted = next((tool for tool in tools if tool.known_as == use.name), None)
    if wanted is None:
        return Returned(use=use, text=f"no such tool: {use.name}", is_error=True)
    result = await wanted.client.call_tool(wanted.name, json.loads(use.arguments or "{}"))
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return Returned(use=use, text=text[:most], is_error=bool(result.is_error))


def say(fact: Json) -> None:
    """Print one line."""
    print(json.dumps(fact, ensure_ascii=False), flush=True)


async def answered(talk: Talk, clients: dict[str, Client], options: Json) -> str:
    """Go from model to tools and back until the model wants none."""
    tools = await listed(clients, options.get("names", "{tool}"))
    offered = [replace(tool, name=tool.known_as) for tool in tools]
    for _ in range(ROUNDS):
        text, uses = await talk.ask(offered)
        if not uses:
            return text
        came = [await called(tools, use, options.get("cut", sys.maxsize)) for use in uses]
        for result in came:
            say({"tool": result.use.name, "arguments": result.use.arguments, "text": result.text, "is_error": result.is_error})
        talk.tell(came)
    raise RuntimeError(f"the model wanted tools {ROUNDS} times")


async def main(words: str, *questions: str) -> None:
    """Connect to the servers, answer the questions, disconnect."""
    options = json.loads(words)
    async with AsyncExitStack() as stack:
        clients = {
            label: await stack.enter_async_context(Client(server(place), mode=options.get("mode", "legacy"), client_info=SELF))
            for label, place in options.get("servers", {}).items()
        }
        for question in questions:
            talk = TALKS[options.get("api", "chat")](options, question)
            await asyncio.sleep(options.get("typing_s", 0))
            try:
                say({"answer": await answered(talk, clients, options)})
            except Exception as error:  # noqa: BLE001 - whatever the packages raise is what is printed
                say({"error": type(error).__name__, "text": str(error)})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
