"""Findings about credentials that a server shows in clear. The caller says what a credential is; no value gets into a finding."""

from collections.abc import Iterator, Sequence
from typing import Final

from ...records import CLIENT, SERVER
from ..message import Message
from ..model import Exchange, Kind, Log, Row, UnpairedMessage
from ..offers.drift import strings
from .facts import Credential, TranscriptFacts
from .rule import Family, Hit, Rule, Severity, hit, hit_in
from .words import call_name

_CALL: Final = '→ tools/call 1 {"name":"config"}\n← result 1 {"content":[{"type":"text","text":"TOKEN='
_SHOWN_LETTERS: Final = 3

CREDENTIAL_SHOWN: Final = Rule(
    name="credential-shown",
    title="Credential shown in clear",
    family=Family.TRUST,
    severity=Severity.WARNING,
    what="A result, or a line on stderr, contains a token of a well-known service or a private key.",
    why="The model reads results, and its provider too; logs are kept and passed around. Whoever sees the credential can use it.",
    blame="The server: it sent the credential, which the client did not need in clear.",
    example=_CALL + 'ghp_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"}]}',
    clean=_CALL + 'redacted-5f1d0c2a9b7e"}]}',
    advice="Revoke the credential, keep it out of results and logs, and pass the capture on only as a copy: mcpspy export share.",
)

RULES: Final = (CREDENTIAL_SHOWN,)


_OPAQUE: Final = ("requestState", "nextCursor", "cursor", "taskId", "progressToken")
"""Members whose values only their server can read, such as a signed state."""


_LOOK_BYTES: Final = 1 << 15
"""So many bytes are looked at together. Hardly any have a credential, and a look at each message would take five times as long."""

_KEY: Final = b"PRIVATE KEY"
"""In every private key. Some are only known by what the message has besides them, so they need a look of their own."""


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find credentials in the messages of servers and in their logs, if the caller says what a credential is."""
    held: list[tuple[Message | Log, Row]] = []
    held_bytes = 0
    for row in facts.transcript.rows if facts.credentials is not None else ():
        for source in _sources(row):
            held.append((source, row))
            held_bytes += len(source.raw)
        if held_bytes > _LOOK_BYTES:
            yield from _look(facts, held)
            held, held_bytes = [], 0
    yield from _look(facts, held)


def _sources(row: Row) -> Sequence[Message | Log]:
    """Return what a server said in a row."""
    if isinstance(row, Exchange):
        if row.sender == CLIENT and not (row.notifications or row.partials or row.more_responses):
            return () if row.response is None else (row.response,)
        return [message for message in row.messages if message.sender == SERVER]
    if isinstance(row, UnpairedMessage):
        return (row.message,) if row.message.sender == SERVER else ()
    return (row,) if isinstance(row, Log) else ()


def _look(facts: TranscriptFacts, held: list[tuple[Message | Log, Row]]) -> Iterator[Hit]:
    """Find what these messages and lines of logs show, which is nothing if they show nothing together."""
    if facts.credentials is None or not held:
        return
    joined = b"\n".join([source.raw for source, _ in held])
    if _KEY not in joined and not facts.credentials(joined):
        return
    for source, row in held:
        if isinstance(source, Log):
            yield from _logged(facts, source)
        elif isinstance(row, Exchange | UnpairedMessage):
            yield from _shown(facts, source, row)


def _logged(facts: TranscriptFacts, row: Log) -> Iterator[Hit]:
    for credential in facts.credentials(row.raw) if facts.credentials else ():
        what = f"A line on stderr shows {_named(credential)}."
        yield hit(
            CREDENTIAL_SHOWN,
            at_ns=row.at_ns,
            capture=row.capture,
            number=row.number,
            row=None,
            what=what,
            culprit=SERVER,
            group=_group(credential),
        )


def _shown(facts: TranscriptFacts, message: Message, row: Exchange | UnpairedMessage) -> Iterator[Hit]:
    for credential in facts.credentials(message.raw) if facts.credentials else ():
        value = credential[3].decode("latin-1")
        body = None if message.kind is Kind.MALFORMED else message.body
        paths = [path for path, text in strings(body) if value in text]
        clear = [path for path in paths if not path.endswith(_OPAQUE)]
        if clear or not paths:
            where = f" at {clear[0][:200]}" if clear else ""
            subject = {Kind.RESULT: "The result of ", Kind.ERROR: "The error of "}.get(message.kind, "")
            name = f"{subject}{call_name(row)}" if subject or call_name(row) else "A message"
            what = f"{name} shows {_named(credential)}{where}."
            yield hit_in(CREDENTIAL_SHOWN, message, row.row, what, group=_group(credential))


def _group(credential: Credential) -> str:
    return str(hash(credential[3]))


def _named(credential: Credential) -> str:
    """Name a credential by its first letters, which tell the service, and by its length."""
    start, end, kind, value = credential
    if kind == "key":
        return "a private key in clear"
    return f"a token in clear, {end - start} letters that begin with “{value[:_SHOWN_LETTERS].decode('latin-1')}”"
