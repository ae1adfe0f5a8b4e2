"""The request that `mcpspy call` sends: a recorded one, or a call of a tool that was never recorded, checked against its schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ...errors import AddressError
from ...records import CLIENT
from ...replay.client.arguments import ArgumentError, arguments_of, call_message, like_of, parameter_words
from ...replay.client.outgoing import Effect, Effects, live_message
from ...replay.client.read_plan import UNKEPT
from ...transcript.definitions import Definition, DefinitionKind, offers
from ...transcript.findings.json_schema import Validators
from ...transcript.model import CaptureInfo, Exchange, Numbered, Transcript
from ...views.text.escape import one_line, safe_text
from ..screen import say
from ..transcripts import row_of, select_captures, transcript_of, transcript_of_file

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSubject:
    """A request to send: `exchange` has it, of the transcript of the one capture at `path` if it `is_recorded`."""

    what: str
    path: str
    transcript: Transcript
    exchange: Exchange
    is_recorded: bool

    @property
    def capture(self) -> CaptureInfo:
        """The capture of the server that it is for."""
        return self.transcript.captures[0]

    @property
    def effect(self) -> Effect:
        """The effect that sending it may have."""
        return Effects(self.transcript).of(self.exchange)

    @property
    def name(self) -> str:
        """Its method and target, safe on a terminal."""
        return one_line(" ".join(filter(None, (self.exchange.method, self.exchange.target))), 80)


def recorded_subject(what: str) -> CallSubject:
    """Find the recorded request that a WHAT names. Raises: AddressError: if it names none."""
    captures = select_captures((what,))
    if not captures.is_one_row:
        raise AddressError(what, "a call is one row, or a tool: mcpspy call @:7, or mcpspy call weather forecast city=Rome")
    transcript, _ = transcript_of(captures)
    assert captures.rows is not None
    row = row_of(transcript, what, captures.rows[0])
    if not isinstance(row, Exchange):
        raise AddressError(what, _why_no_request(row))
    if row.sender != CLIENT:
        raise AddressError(what, f"row {row.row} is a request of the server, and a call is one of the client")
    if row.request.unkept_bytes:
        raise AddressError(what, f"row {row.row} cannot be sent: {UNKEPT}")
    if row.request.method == "initialize":
        raise AddressError(what, f"row {row.row} is the handshake, which each session has once; name another row")
    path = captures.paths[row.capture]
    if len(captures.paths) > 1:  # rows have other numbers in a transcript of one capture
        of_server = [exchange for exchange in transcript.exchanges if exchange.capture == row.capture]
        transcript = transcript_of_file(path)
        row = list(transcript.exchanges)[of_server.index(row)]
    return CallSubject(what=what, path=path, transcript=transcript, exchange=row, is_recorded=True)


def made_subject(what: str, tool: str, words: Sequence[str]) -> CallSubject:
    """Make a call of a tool. Raises: AddressError, click.UsageError: if there is no such tool, or its schema has other arguments."""
    captures = select_captures((what,))
    if captures.rows is not None:
        raise AddressError(what, f"row and tool exclude each other; leave out {tool} to send the row again")
    named = [(path, transcript_of_file(path)) for path in captures.paths]
    known = [(path, transcript, definition) for path, transcript in named if (definition := _tool(transcript, tool))]
    if len(known) > 1 or (not known and len(named) > 1):
        labels = ", ".join(transcript.captures[0].label for _, transcript in named)
        raise AddressError(what, f"{len(known) or 'none'} of its servers has a tool {tool}; name one of them: {labels}")
    path, transcript = known[0][:2] if known else named[0]
    if failure := transcript.captures[0].failed_start:
        raise AddressError(
            what, f"its server could not be started ({failure}); mcpspy check says more, mcpspy list names others"
        )
    schema: Any = None
    if known:
        schema = json.loads(known[0][2].raw).get("inputSchema")
    else:
        _expect_unlisted(transcript, tool)
    arguments = _arguments(tool, words, schema)
    requests = (exchange.request for exchange in transcript.exchanges if exchange.sender == CLIENT)
    message = live_message(call_message(tool, arguments, like_of(requests)))
    last = max((row.row for row in transcript.rows if isinstance(row, Numbered)), default=0)
    return CallSubject(what=what, path=path, transcript=transcript, exchange=Exchange(last + 1, message), is_recorded=False)


def _why_no_request(row: Numbered) -> str:
    return f"row {row.row} is no request, so it has no answer; name the row of a call"


def _tool(transcript: Transcript, name: str) -> Definition | None:
    tools = offers(transcript)[0].definitions(DefinitionKind.TOOL) if transcript.captures else []
    return next((tool for tool in tools if tool.name == name), None)


def _expect_unlisted(transcript: Transcript, name: str) -> None:
    """Refuse a tool that the server does not list. If its list was not recorded, say that nothing is checked."""
    offer = offers(transcript)[0]
    names = [tool.name for tool in offer.definitions(DefinitionKind.TOOL)]
    if DefinitionKind.TOOL in offer.complete:
        from difflib import get_close_matches

        near = get_close_matches(name, names, 1) or names[:8]
        advice = (
            f"Its tools are {', '.join(map(safe_text, near))}." if len(near) != 1 else f"Did you mean {safe_text(near[0])}?"
        )
        raise click.UsageError(f"The server has no tool {safe_text(name)}. {advice if near else ''}".rstrip())
    say(f"mcpspy: the definition of {safe_text(name)} was not recorded, so its arguments are not checked")


def _arguments(tool: str, words: Sequence[str], schema: Any) -> dict[str, bytes]:
    """Read the arguments, and check them. Raises: click.UsageError."""
    takes = safe_text(parameter_words(schema))
    takes = f" {safe_text(tool)} takes {takes}." if takes else ""
    try:
        arguments = arguments_of(words, schema)
    except ArgumentError as error:
        raise click.UsageError(f"{safe_text(str(error))}{takes}") from None
    value = json.loads(b"{%b}" % b",".join(json.dumps(name).encode() + b":" + raw for name, raw in arguments.items()))
    mistake = Validators().mistake(schema, value)
    if mistake:
        raise click.UsageError(
            f"The arguments do not fit the schema of {safe_text(tool)}: {safe_text(mistake)}{takes}\n"
            "To send others nevertheless, change them with --set, which is not checked."
        )
    return arguments
