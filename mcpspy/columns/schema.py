"""The tables of columns as data: names, types and meanings. docs/columns.md is generated from it.

A change of a name, a type or a meaning raises `VERSION`; a new column does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

VERSION: Final = 1

STRING: Final = "string"
INTEGER: Final = "int64"
BOOLEAN: Final = "bool"
TIME: Final = "timestamp[ns, UTC]"
STRINGS: Final = "list<string>"
INTEGERS: Final = "list<int64>"


class TableColumn(NamedTuple):
    """A column: its name, its type, and its meaning as a sentence without a full stop.

    `is_text` says that it has captured text, in which credentials are masked; `is_id` that it has ids, of which long ones are;
    `is_payload` that it is there on request only.
    """

    name: str
    type: str
    about: str
    is_text: bool = False
    is_payload: bool = False
    is_id: bool = False


class Table(NamedTuple):
    """A table: what a row of it is, and its columns."""

    about: str
    columns: tuple[TableColumn, ...]

    def kept(self, *, payloads: bool) -> list[tuple[int, TableColumn]]:
        """Return the columns that are written, with their positions in a row."""
        return [(at, column) for at, column in enumerate(self.columns) if payloads or not column.is_payload]


_CAPTURE_ID: Final = TableColumn("capture_id", STRING, "the capture, as its header names it")
_ROW: Final = TableColumn("row", INTEGER, "the number of its row, as in `mcpspy show FILE:7`")
_RECORD: Final = TableColumn("record", INTEGER, "the number of its record in the capture")
_AT: Final = TableColumn("time", TIME, "when its last byte was read")
_DURATION: Final = TableColumn("duration_ns", INTEGER, "how long it took; null while it goes on")
_CLIENT: Final = TableColumn("client", STRING, "the client's name for itself, else the name of its process", is_text=True)

TABLES: Final = {
    "captures": Table(
        "a capture",
        (
            _CAPTURE_ID,
            TableColumn("file", STRING, "the name of its file"),
            TableColumn("label", STRING, "the server's label", is_text=True),
            TableColumn("transport", STRING, "`stdio` or `http`"),
            TableColumn("leg", STRING, "`mcp`, or `model` for the API of a language model"),
            TableColumn("began", TIME, "when recording began"),
            TableColumn("ended", TIME, "when its last record was made"),
            _DURATION._replace(about="from the first to the last record"),
            _CLIENT,
            TableColumn("client_version", STRING, "the client's version, as it says", is_text=True),
            TableColumn("server", STRING, "the server's name for itself, else its label", is_text=True),
            TableColumn("server_version", STRING, "the server's version, as it says", is_text=True),
            TableColumn("revision", STRING, "the revision of MCP that was negotiated first", is_text=True),
            TableColumn("command", STRING, "the server's command or URL, as far as it was recorded", is_text=True),
            TableColumn("bytes", INTEGER, "the size of the file"),
            TableColumn("messages", INTEGER, "how many messages it has"),
            TableColumn("calls", INTEGER, "how many rows of `calls` it has"),
            TableColumn("findings", INTEGER, "how many findings it has"),
            TableColumn("gaps", INTEGER, "how often recording failed"),
            TableColumn("damages", INTEGER, "how many places cannot be read"),
            TableColumn("unkept", INTEGER, "how many payloads were not kept, for their size"),
            TableColumn("exit_code", INTEGER, "the server's exit status"),
            TableColumn("signal", STRING, "the signal that ended the server"),
            TableColumn("is_live", BOOLEAN, "true if it was still being recorded"),
            TableColumn("complete", BOOLEAN, "true if its end was read and no record is missing"),
            TableColumn("problem", STRING, "why it could not be read; null if it could"),
            TableColumn("recorded_by", STRING, "the version of mcpspy that recorded it"),
        ),
    ),
    "messages": Table(
        "a JSON-RPC message, or a payload that is none",
        (
            _CAPTURE_ID,
            _RECORD,
            _ROW,
            _AT,
            TableColumn("sender", STRING, "`client` or `server`"),
            TableColumn("kind", STRING, "`request`, `notification`, `result`, `error` or `malformed`"),
            TableColumn("method", STRING, "its method; of a response that of its request", is_text=True),
            TableColumn("target", STRING, "the tool, resource, prompt or revision that it is about", is_text=True),
            TableColumn("id", STRING, "its id, as it was spelled in JSON", is_id=True),
            TableColumn("revision", STRING, "its revision of MCP", is_text=True),
            TableColumn("bytes", INTEGER, "the size of its payload"),
            TableColumn("is_error", BOOLEAN, "true for an error, and for a result with `isError: true`"),
            TableColumn("is_batched", BOOLEAN, "true if it is a member of a batch"),
            TableColumn("flaws", STRINGS, "what is wrong with it, though it could be read", is_text=True),
            TableColumn("payload", STRING, "the payload without secrets; bytes that are not UTF-8 are `�`", is_payload=True),
        ),
    ),
    "calls": Table(
        "a request and what became of it",
        (
            _CAPTURE_ID,
            _ROW,
            _RECORD,
            _AT._replace(about="when the request's last byte was read"),
            _DURATION._replace(about="until the answer or the cancellation; null if neither came"),
            _CLIENT,
            TableColumn("session", STRING, "the MCP session's pseudonym; null on stdio and without sessions", is_text=True),
            TableColumn("sender", STRING, "the side that sent the request: `client` or `server`"),
            TableColumn("method", STRING, "its method", is_text=True),
            TableColumn("target", STRING, "the tool, resource, prompt or revision that it is about", is_text=True),
            TableColumn("id", STRING, "its id, as it was spelled in JSON", is_id=True),
            TableColumn("revision", STRING, "its revision of MCP", is_text=True),
            TableColumn("outcome", STRING, "how it ended: `ok`, `error`, `tool error`, `cancelled`, … (docs/json.md)"),
            TableColumn("error_code", INTEGER, "the code of a JSON-RPC error"),
            TableColumn("error", STRING, "the message of the error, or the first text of a tool that failed", is_text=True),
            TableColumn("request_bytes", INTEGER, "the size of the request"),
            TableColumn("response_bytes", INTEGER, "the size of the answer; null if there is none"),
            TableColumn("result_tokens", INTEGER, "the estimated tokens of a tool's result; null for others"),
            TableColumn("progress", INTEGER, "how many progress notifications it had"),
            TableColumn("call_row", INTEGER, "the row that began the call it belongs to: its own, or an earlier round's"),
            TableColumn("part", STRING, "its part in a call of several exchanges: `round`, `poll`, …; null for the others"),
            TableColumn("transaction", INTEGER, "the HTTP transaction that carried the request"),
        ),
    ),
    "transactions": Table(
        "an HTTP request and its response",
        (
            _CAPTURE_ID,
            TableColumn("transaction", INTEGER, "its number in the capture"),
            _ROW._replace(about="the number of its own row; null if its messages have the rows"),
            _AT._replace(about="when its first byte was read"),
            _DURATION._replace(about="until the end of the response; null while it goes on"),
            TableColumn("connection", INTEGER, "the number of its connection"),
            _CLIENT,
            TableColumn("session", STRING, "the MCP session's pseudonym", is_text=True),
            TableColumn("method", STRING, "its HTTP method", is_text=True),
            TableColumn("target", STRING, "its path and query", is_text=True),
            TableColumn("status", INTEGER, "the status of the response; null if there is none"),
            TableColumn("request_bytes", INTEGER, "the size of the request's body"),
            TableColumn("response_bytes", INTEGER, "the size of the response's body"),
            TableColumn("events", INTEGER, "how many events its response has"),
            TableColumn("ended_by", STRING, "`client`, `server` or `mcpspy`; null while it goes on"),
        ),
    ),
    "findings": Table(
        "a finding, as `mcpspy check FILE` reports it",
        (
            _CAPTURE_ID,
            TableColumn("finding", INTEGER, "its number in the capture, from 1"),
            TableColumn("rule", STRING, "the name of its rule (docs/findings.md)"),
            TableColumn("severity", STRING, "`error`, `warning` or `note`"),
            TableColumn("culprit", STRING, "who is to blame"),
            TableColumn("row", INTEGER, "the row that it points at; null if it is about none"),
            TableColumn("rows", INTEGERS, "all rows that it is about"),
            _RECORD._replace(about="the record that it points at"),
            _AT._replace(about="when it occurred first"),
            TableColumn("count", INTEGER, "how often it occurred"),
            TableColumn("what", STRING, "what happened, in a sentence", is_text=True),
            TableColumn("blame", STRING, "whose fault it is, and how that is known", is_text=True),
            TableColumn("advice", STRING, "what to do", is_text=True),
        ),
    ),
    "definitions": Table(
        "a definition that a server offered; one that it changed is there before and after",
        (
            _CAPTURE_ID,
            TableColumn("kind", STRING, "`tool`, `prompt`, `resource`, `resource template` or `instructions`"),
            TableColumn("name", STRING, "its name, or its URI", is_text=True),
            _ROW._replace(about="the row that brought it first"),
            _RECORD._replace(about="the record that brought it first"),
            _AT._replace(about="when it was offered first"),
            TableColumn("is_current", BOOLEAN, "true if it was offered at the end"),
            TableColumn("sha256", STRING, "the SHA-256 of its canonical JSON: equal for equal definitions"),
            TableColumn("bytes", INTEGER, "its size"),
            TableColumn("tokens", INTEGER, "its estimated tokens"),
            TableColumn("definition", STRING, "its JSON", is_payload=True),
        ),
    ),
    "model_calls": Table(
        "a request to a model's API, and its answer",
        (
            _CAPTURE_ID,
            _ROW,
            _RECORD._replace(about="the record that opened the request"),
            _AT._replace(about="when the request's last byte was read"),
            _DURATION._replace(about="until the answer's last byte; null while it goes on"),
            TableColumn("until_first_ns", INTEGER, "until the first token; null for an answer that is no stream"),
            _CLIENT,
            TableColumn("api", STRING, "`chat`, `responses` or `messages`"),
            TableColumn("model", STRING, "the model that the request names", is_text=True),
            TableColumn("response_model", STRING, "the model that answered, as the API names it", is_text=True),
            TableColumn("outcome", STRING, "how it ended (docs/json.md)"),
            TableColumn("status", INTEGER, "the HTTP status; null if there is none"),
            TableColumn("finish", STRING, "why the answer ended, in the API's word", is_text=True),
            TableColumn("input_tokens", INTEGER, "as the API counted; null where it did not"),
            TableColumn("output_tokens", INTEGER, "as the API counted; null where it did not"),
            TableColumn("cached_tokens", INTEGER, "input tokens that were read from a cache"),
            TableColumn("reasoning_tokens", INTEGER, "output tokens that were spent on reasoning"),
            TableColumn("turns", INTEGER, "how many turns the prompt has"),
            TableColumn("offers", INTEGER, "how many tools the prompt offers"),
            TableColumn("uses", STRINGS, "the tools that the answer asks for", is_text=True),
            TableColumn("request_bytes", INTEGER, "the size of the prompt"),
            TableColumn("payload", STRING, "the prompt without secrets", is_payload=True),
        ),
    ),
}
"""By name, in the order of docs/columns.md."""


def arrow_schema(table: str, *, payloads: bool) -> pa.Schema:
    """Return the Arrow schema of a table."""
    import pyarrow as pa  # slow, and a query does without it

    types = {
        STRING: pa.string(),
        INTEGER: pa.int64(),
        BOOLEAN: pa.bool_(),
        TIME: pa.timestamp("ns", tz="UTC"),
        STRINGS: pa.list_(pa.string()),
        INTEGERS: pa.list_(pa.int64()),
    }
    return pa.schema([pa.field(column.name, types[column.type]) for _, column in TABLES[table].kept(payloads=payloads)])
