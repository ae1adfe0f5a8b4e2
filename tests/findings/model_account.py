r"""The language of the rules' examples, for model API traffic: `⇒` goes to a model API, `⇐` comes from it (chat completions).

⇒ asks How is the weather?         a prompt with one more turn, of the user; tools that it offers from here on follow, indented:
  offers forecast {"type":"object"} Tells the weather.
⇐ uses c1 forecast {"city":"Paris"}        an answer that wants tools called; more tools follow, indented
⇒ returns c1 sunny                 a prompt with the answer and the result; more results follow, indented. An id that the answer does
                                   not have replaces one that it has
⇐ says It is sunny.                an answer in words
  finish length                    why it ended; `usage 88 15` is what the API counted
⇐ streams It is                    the same in deltas, followed by `breaks off` or `ends`; `data: …` is an event as it stands
⇐ 429 Too many requests            an error of the API
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import Close, Frame

from .account import Account

if TYPE_CHECKING:
    from mcpspy.records import Header

API = "http://127.0.0.1:8000"


class ModelAccount(Account):
    """Records of a capture of a model API, at the times of the account that it is a part of."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.messages: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        super().__init__("· HTTP", "model")

    def _header(self) -> Header:
        header = super()._header()
        header.tapped = {"transport": "http", "url": API, "listen": "http://127.0.0.1:7788", "leg": "model"}
        return header

    def tick(self) -> int:
        self.at_ns = self.account.tick()
        return self.at_ns

    def _end(self) -> None:
        """Do nothing: the capture ends with the account, by `end`."""

    def end(self) -> None:
        """End the capture."""
        super()._end()

    def model_line(self, sign: str, text: str, more: list[str]) -> None:
        """Play a line of the account, with the lines that are indented below it."""
        if sign == "⇒":
            self._prompt(text, more)
        else:
            self._model_answer(text, more)

    def _prompt(self, text: str, more: list[str]) -> None:
        word, _, rest = text.partition(" ")
        if word == "asks":
            self.messages.append({"role": "user", "content": rest})
            self.tools += [_offer(line) for line in more]
        else:
            for line in [rest, *more]:
                self._return(*line.partition(" ")[::2])
        body: dict[str, Any] = {"model": "gpt", "messages": self.messages}
        if self.tools:
            body["tools"] = self.tools
        self._request("POST /v1/chat/completions", [_json(body)])

    def _return(self, id: str, text: str) -> None:
        uses = [use for message in self.messages for use in message.get("tool_calls", ())]
        if id not in {use["id"] for use in uses}:
            returned = {message.get("tool_call_id") for message in self.messages}
            next(use for use in uses if use["id"] not in returned)["id"] = id
        self.messages.append({"role": "tool", "tool_call_id": id, "content": text})

    def _model_answer(self, text: str, more: list[str]) -> None:
        word, _, rest = text.partition(" ")
        if word.isdigit():
            self._answer(word, [_json({"error": {"type": "error", "message": rest}})])
            return
        if word == "streams":
            self._streamed(rest, more)
            return
        message: dict[str, Any] = {"role": "assistant", "content": rest if word == "says" else None}
        finish, usage = "stop", None
        lines = [rest, *more] if word == "uses" else []
        for line in more:
            name, _, value = line.partition(" ")
            if name == "finish":
                finish, lines = value, [other for other in lines if other is not line]
            elif name == "usage":
                prompt, completion = map(int, value.split())
                usage, lines = (
                    {"prompt_tokens": prompt, "completion_tokens": completion},
                    [other for other in lines if other is not line],
                )
        if lines:
            message["tool_calls"] = [_use(line) for line in lines]
            finish = "tool_calls" if finish == "stop" else finish
        self.messages.append(json.loads(_json(message)))
        body = {
            "id": "a",
            "object": "chat.completion",
            "model": "gpt",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        self._answer("200 OK", [_json(body if usage is None else {**body, "usage": usage})])

    def _streamed(self, text: str, more: list[str]) -> None:
        call = self.calls[-1]
        call.response = self.streams
        self._open(call, "response", "HTTP/1.1 200 OK", ["Content-Type: text/event-stream"], "sse")
        chunk = {"object": "chat.completion.chunk", "model": "gpt", "choices": [{"index": 0, "delta": {"content": text}}]}
        for line in [f"data: {_json(chunk)}", *more]:
            if line.startswith("data: "):
                self.add(Frame(call.response, self.tick(), self.at_ns, f"{line}\n\n".encode()))
        if "ends" in more:
            self.add(Frame(call.response, self.tick(), self.at_ns, b"data: [DONE]\n\n"))
        self.add(Close(at_ns=self.tick(), stream=call.response, by="server", how="eof" if "ends" in more else "reset"))


def _offer(line: str) -> dict[str, Any]:
    """Make a tool of chat completions of `offers NAME {schema} description`."""
    _, name, rest = [*line.split(" ", 2), ""][:3]
    schema, end = json.JSONDecoder().raw_decode(rest) if rest.startswith("{") else (None, 0)
    function = {"name": name, "description": rest[end:].strip(), "parameters": schema}
    return {"type": "function", "function": {key: value for key, value in function.items() if value}}


def _use(line: str) -> dict[str, Any]:
    id, name, arguments = [*line.split(" ", 2), "{}"][:3]
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
