# ruff: noqa: RUF001 - people in 杭州 write so
"""Stories of more than one capture: runs of an agent, with its model's leg and each of its servers, by mcpspy before each.

The agent is tests/peers/agent.py, on the packages `openai` and `mcp`; the model is tests/peers/modelserver.py, which says what the
story has it say.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from captures.serving import PEERS, play, port, started, tapped

PORTS = {"server": 8000, "model": 8001, "taps": 8765}
"""In the captures that are kept: of the server, of the model, and of mcpspy before the model; the next one is before the server."""

MODEL = "model"
"""The label of each model's leg."""

KEY = "sk-proj-the-key-that-nobody-pays-for"
"""In the captures stands a pseudonym."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Agent run to record: the user's question, the model's answers (format: modelserver.py) and the agent's options.

    `server` is the command of an MCP server over HTTP+SSE, PORT being where it listens; `label` is its name.
    """

    question: str
    answers: Sequence[dict[str, Any]]
    model: str
    answers_as: str = ""
    """Name that the model gives in its answers; empty: the name in the request."""
    options: dict[str, Any]
    server: Sequence[str]
    label: str

    @property
    def labels(self) -> tuple[str, str]:
        """Of its captures: the model's leg, and the server."""
        return MODEL, self.label


RUNS = {
    "agent": Run(
        question="杭州的天气",
        model="gpt-4o-mini",
        answers_as="gpt-4o-mini-2024-07-18",
        answers=[
            {
                "to": "杭州：晴",
                "text": "杭州的天气是晴，气温25°C。",
                "id": "chatcmpl-BWe2yvHUm17yPRxTRuUS1FCYezPn2",
                "created": 1_747_120_136,
                "usage": {"input": 38, "output": 12},
            },
            {
                "to": "杭州的天气",
                "tools": [{"name": "get_weather", "arguments": {"city": "杭州"}, "id": "call_OaxrnCKcBANGqm4mheSd9RSD"}],
                "id": "chatcmpl-BWdzaegB1h3XJMc4ZcgL4TWR3wmcr",
                "created": 1_747_119_926,
                "usage": {"input": 88, "output": 15},
            },
        ],
        options={"max_tokens": 1000, "typing_s": 0.5, "offer": "once", "ids": ["call_4Sbmkb2kNltmzVMkJJDDgGKd"]},
        server=["python", str(PEERS / "weatherserver.py"), "PORT"],
        label="weather",
    ),
    "tags": Run(
        question="http://example.org/ 是什么网站？",
        model="Qwen/Qwen2.5-32B-Instruct",
        answers=[
            {"to": "<tool_response>", "text": "这个网站讲的是：两方说的话，站在中间的第三方能读到。", "pieces": 9},
            {
                "to": "是什么网站",
                "text": '<tool_call>\n{"name": "example-server-fetch", "arguments": {"url": "http://example.org/"}}\n</tool_call>',
                "pieces": 11,
            },
        ],
        options={"stream": True, "typing_s": 0.5, "as_text": True, "names": "{server}-{tool}", "extra": {"seed": 44_742_000}},
        server=["python", str(PEERS / "pageserver.py"), "PORT", "800"],
        label="example-server",
    ),
}


def captures_of(name: str) -> list[str]:
    """Return the names of a run's captures."""
    return [f"{name}-{label}" for label in RUNS[name].labels]


def record_run(name: str, folder: Path, *, keeps_ports: bool = False) -> list[Path]:
    """Play a run in `folder`, which is there and empty. Returns the captures, files in it: the model's leg, and the server."""
    run, home = RUNS[name], folder / "home"
    home.mkdir()
    ports = PORTS if keeps_ports else dict.fromkeys(PORTS, 0)
    model, server = paths = [home / f"{capture}.mcpspy" for capture in captures_of(name)]
    told = {"answers": run.answers, "model": run.answers_as or run.model}
    words = ["python", str(PEERS / "modelserver.py"), json.dumps(told, ensure_ascii=False), str(ports["model"])]
    serving = [str(ports["server"]) if word == "PORT" else word for word in run.server]
    with ExitStack() as running:
        model_port = port(running.enter_context(started(words, folder, home / "model.log", {})))
        server_port = port(running.enter_context(started(serving, folder, home / "server.log", {})))
        tap = partial(_tapped, running, folder)
        api = tap(f"http://127.0.0.1:{model_port}", MODEL, model, ports["taps"], "--model")
        place = tap(f"http://127.0.0.1:{server_port}/sse", run.label, server, ports["taps"] and ports["taps"] + 1)
        play(agent(run, f"{api}/v1", place), folder, {})
    return paths


def agent(run: Run, base_url: str, server: str) -> list[str]:
    """Return the words that start a run's agent."""
    options = {"base_url": base_url, "model": run.model, "servers": {run.label: server}, "key": KEY, **run.options}
    return ["python", str(PEERS / "agent.py"), json.dumps(options, ensure_ascii=False), run.question]


def _tapped(running: ExitStack, folder: Path, url: str, label: str, capture: Path, listen: int, *options: str) -> str:
    tap = tapped(url, folder, "--label", label, "--capture", str(capture), *options, listen=listen)
    return running.enter_context(tap)
