"""A small model server: OpenAI's chat completions and responses, and Anthropic's messages, plain and streamed, told what to say.

    modelserver.py STORY [PORT]

On PORT 0, or with none, a free port is taken; either way it is the first line on standard output. The base URL for `openai` ends
in /v1, for `anthropic` it does not. STORY is JSON, or the path of a file of JSON:

    {"answers": [ANSWER, …], "models": [NAME, …], "model": NAME, "key": KEY}

`models` are what GET /v1/models lists; `model` is what calls itself the model that answers, else the one that was asked for; with
a `key`, whoever does not show it gets 401. The first ANSWER that fits is given, and the tools that it wants are in `tools`:

    {"to": TEXT, "times": N,              fits if the prompt's last turn holds TEXT; only so often per connection, where it says so
     "text": …, "thinking": …, "tools": [{"name": …, "arguments": {…} or TEXT, "id": …, "item": {…}}], "finish": …,
     "id": …, "created": SECONDS,
     "usage": {"input": N, "output": N, "cached": N, "reasoning": N},      else counted as a token for four bytes
     "pieces": N, "utf16": true,          letters per delta; cut between the halves of a surrogate pair
     "bytes": N,                          bytes per chunk of HTTP, wherever that cuts; else an event is a chunk
     "first_ms": N, "pause_ms": N,        before the first event, and after each
     "gzip": true,                        for who accepts it
     "error": {"status": N, "type": …, "message": …, "code": …, "retry_after": SECONDS, "after": N},
     "cut": N, "misplace": N, "garble": N, "unended": true}

An `item` has more members for the item of responses, or other values: {"type": "tool_search_call", …} makes another kind of it.
An `error` is the answer, unless it says `after` how many events of a stream it comes. Broken streams: `cut` ends the connection
after so many events, `misplace` gives deltas from there on an index that nothing opened, `garble` makes that event no JSON, and
`unended` leaves out what says that the answer is whole.
"""

import gzip
import json
import socket
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that it runs wherever it is started

from tests.peers.modelspelling import (
    DONE,
    Event,
    Json,
    ModelAnswer,
    chat_body,
    chat_events,
    message_body,
    message_events,
    response_body,
    response_events,
)

RESET = struct.pack("ii", 1, 0)
CREATED = 1_747_119_926
LAST = (DONE, "message_stop", "response.completed")
"""Of each API, what says that an answer is whole."""

APIS: dict[str, tuple[str, Callable[[ModelAnswer], Json], Callable[[ModelAnswer], Iterator[Event]]]] = {
    "/chat/completions": ("chatcmpl-", chat_body, chat_events),
    "/responses": ("resp_", response_body, response_events),
    "/messages": ("msg_", message_body, message_events),
}
"""By the end of its path: what its ids begin with, and how it is spelled."""

KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error",
    500: "api_error", 529: "overloaded_error",
}  # fmt: skip


def compact(value: Any) -> str:
    """JSON as the APIs write it. A lone surrogate, which UTF-8 cannot hold, is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def texts(value: Any) -> Iterator[str]:
    """Return all text in a turn of any API: contents, parts, blocks, outputs and results of tools, and tools that were found."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for name in ("content", "output", "text", "tools", "description", "tool_name"):
            yield from texts(value.get(name))


def last_turn(ask: Json) -> str:
    """Return the text of the prompt's last turn."""
    turns = ask.get("messages", ask.get("input", ""))
    return "\n".join(texts(turns[-1:] if isinstance(turns, list) else turns))


def halves(text: str) -> str:
    """Return the text with a surrogate pair for each character beyond 16 bits."""
    units = text.encode("utf-16-le")
    return "".join(chr(unit) for (unit,) in struct.iter_unpack("<H", units))


def misplaced(data: Json) -> Json:
    """Move a delta to an index that nothing opened."""
    wrong: Json = json.loads(json.dumps(data))
    for choice in wrong.get("choices", ()):
        for use in choice["delta"].get("tool_calls", [choice]):
            use["index"] += 7
    for name in ("index", "output_index"):
        if name in wrong and str(wrong.get("type", "")).endswith("delta"):
            wrong[name] += 7
    return wrong


class Server(ThreadingHTTPServer):
    """State that all connections share: the story, and how many of its answers were given."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, story: Json) -> None:
        super().__init__(("127.0.0.1", port), Connection)
        self.story = story

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Connection(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one write
    server: Server
    number = 0
    """Of the request, by its body: the same prompt has the same ids in its answer, whenever it is asked."""

    def setup(self) -> None:
        """It begins, and nothing was answered on it yet."""
        super().setup()
        self.given: Counter[int] = Counter()

    def answer(self, ask: Json) -> Json | None:
        """Find the answer to a prompt; None if none fits."""
        turn = last_turn(ask)
        answers: list[Json] = self.server.story.get("answers", [])
        for index, answer in enumerate(answers):
            if answer.get("to", "") in turn and self.given[index] < answer.get("times", sys.maxsize):
                self.given[index] += 1
                return answer
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, value: Any, **fields: str) -> None:
        """Answer with JSON."""
        body = compact(value).encode()
        if "Content_Encoding" in fields:
            body = gzip.compress(body, mtime=0)
        self.head(status, Content_Type="application/json", **fields, Content_Length=str(len(body)))
        self.wfile.write(body)
        self.wfile.flush()

    def head(self, status: int, **fields: str) -> None:
        """Send the head of a response: the same each time, so without a date."""
        self.send_response_only(status)
        number = f"req_{self.number:04}"
        for name, value in {**fields, "X_Request_Id": number, "Request_Id": number}.items():
            self.send_header(name.replace("_", "-").lower(), value)
        self.end_headers()

    def refuse(self, status: int, message: str, kind: str = "", code: str | None = None, retry_after: float = 0) -> None:
        """Answer that something is wrong, in the API's words."""
        fields = {"Retry_After": f"{retry_after:g}"} if retry_after else {}
        self.reply(status, self.wrong(message, kind or KINDS.get(status, "api_error"), code), **fields)

    def wrong(self, message: str, kind: str, code: str | None = None) -> Json:
        """Write an error, as the body of a response and as an event of a stream."""
        if self.is_anthropic:
            return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{self.number:04}"}
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    @property
    def is_anthropic(self) -> bool:
        """Check that the request is for Anthropic's API."""
        return "anthropic-version" in self.headers

    def is_known(self) -> bool:
        """Check the client's key, if the story has one; refuse the request if it is wrong."""
        key = self.server.story.get("key")
        if key is None or key in (self.headers["X-Api-Key"], (self.headers["Authorization"] or "").removeprefix("Bearer ")):
            return True
        if self.is_anthropic:
            self.refuse(401, "invalid x-api-key")
        else:
            self.refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
        return False

    def do_GET(self) -> None:
        """List the models."""
        names = self.server.story.get("models", [])
        if not self.is_known():
            return
        if self.path.partition("?")[0].endswith("/models"):
            pages: Json = {"has_more": False, "first_id": None, "last_id": None}
            self.reply(
                200, {"data": [self.model(name) for name in names], **(pages if self.is_anthropic else {"object": "list"})}
            )
        elif (name := self.path.rpartition("/")[2]) in names:
            self.reply(200, self.model(name))
        else:
            self.refuse(404, f"no such place: {self.path}")

    def model(self, name: str) -> Json:
        """Describe a model in the format of the API."""
        if self.is_anthropic:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(CREATED))
            return {"type": "model", "id": name, "display_name": name, "created_at": when, "lifecycle": "active"}
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "system"}

    def do_POST(self) -> None:
        """Answer a prompt."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.number = zlib.crc32(body) % 10_000
        if not self.is_known():
            return
        api = next((path for path in APIS if self.path.partition("?")[0].endswith(path)), "")
        try:
            ask = json.loads(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
        except ValueError as error:
            self.refuse(400, f"We could not parse the JSON body of your request: {error}")
            return
        answer = self.answer(ask)
        if not api:
            self.refuse(404, f"no such place: {self.path}")
        elif answer is None:
            self.refuse(400, f"the story has no answer to: {last_turn(ask)[:100]}")
        elif "error" in answer and "after" not in answer["error"]:
            refusal = {"status": 500, "message": "", **answer["error"]}
            kind = refusal.pop("type", "")
            self.refuse(**refusal, kind=kind)
        else:
            self.give(api, answer, self.answer_of(api, answer, ask, len(body)))

    def answer_of(self, api: str, answer: Json, ask: Json, asked_bytes: int) -> ModelAnswer:
        """Make the model's answer from the story."""
        written: Callable[[str], str] = halves if answer.get("utf16") else str
        uses = [
            {
                "id": use.get("id", f"call_{self.number:04}{index}"),
                "name": use["name"],
                "item": use.get("item", {}),
                "arguments": written(use["arguments"] if isinstance(use["arguments"], str) else compact(use["arguments"])),
            }
            for index, use in enumerate(answer.get("tools", ()))
        ]
        said_bytes = len(compact([answer.get("text", ""), answer.get("thinking", ""), uses]).encode())
        return ModelAnswer(
            number=self.number,
            id=answer.get("id", f"{APIS[api][0]}{self.number:04}"),
            model=str(self.server.story.get("model", ask.get("model"))),
            created=answer.get("created", CREATED),
            text=written(answer.get("text", "")),
            thinking=written(answer.get("thinking", "")),
            uses=uses,
            pieces=answer.get("pieces", 8),
            finish=answer.get("finish", ""),
            usage={"input": asked_bytes // 4, "output": said_bytes // 4, **answer.get("usage", {})},
            ask=ask,
        )

    def give(self, api: str, answer: Json, reply: ModelAnswer) -> None:
        """Answer in one piece or as a stream, as was asked."""
        zips = bool(answer.get("gzip")) and "gzip" in (self.headers["Accept-Encoding"] or "")
        coded = {"Content_Encoding": "gzip"} if zips else {}
        if not reply.ask.get("stream"):
            time.sleep(answer.get("first_ms", 0) / 1000)
            self.reply(200, APIS[api][1](reply), **coded)
            return
        self.head(200, Content_Type="text/event-stream; charset=utf-8", **coded, Transfer_Encoding="chunked")
        self.wfile.flush()
        time.sleep(answer.get("first_ms", 0) / 1000)
        if self.tell(answer, self.events(answer, APIS[api][2](reply)), zips=zips):
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

    def tell(self, answer: Json, events: Iterator[Event], *, zips: bool) -> bool:
        """Send events as they are made. Returns whether the connection is still whole."""
        squeeze = zlib.compressobj(wbits=31) if zips else None
        for number, (name, data) in enumerate(events):
            if number == answer.get("cut"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.close_connection = True
                return False
            text = data if isinstance(data, str) else compact(data)
            sent = (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
            if squeeze is not None:
                sent = squeeze.compress(sent) + squeeze.flush(zlib.Z_SYNC_FLUSH)
            self.chunks(sent, answer.get("bytes", len(sent)))
            time.sleep(answer.get("pause_ms", 0) / 1000)
        if squeeze is not None:
            rest = squeeze.flush()
            self.chunks(rest, len(rest))
        return True

    def events(self, answer: Json, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events, with the faults of the story."""
        error = answer.get("error", {})
        for number, (name, data) in enumerate(events):
            if number == error.get("after"):
                yield self.wrong_event(error.get("message", ""), error.get("type", "api_error"), number)
                return
            if answer.get("unended") and ((name, data) == DONE or name in LAST):
                continue
            is_wrong = number >= answer.get("misplace", sys.maxsize) and isinstance(data, dict)
            sent = misplaced(data) if is_wrong else data
            yield name, compact(sent)[:-1] if number == answer.get("garble") else sent

    def wrong_event(self, message: str, kind: str, number: int) -> Event:
        """Make the event with which a stream reports an error."""
        if self.path.partition("?")[0].endswith("/responses"):
            return "error", {"type": "error", "sequence_number": number, "code": kind, "message": message, "param": None}
        return ("error" if self.is_anthropic else ""), self.wrong(message, kind)

    def chunks(self, data: bytes, size: int) -> None:
        """Send chunks of HTTP, each by a write of its own."""
        for at in range(0, len(data), max(size, 1)):
            part = data[at : at + size]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()


def main(story: str, port: str = "0") -> None:
    """Serve on the loopback, and print the port first."""
    text = story if story.lstrip().startswith("{") else Path(story).read_text(encoding="utf-8")
    server = Server(int(port), json.loads(text))
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
