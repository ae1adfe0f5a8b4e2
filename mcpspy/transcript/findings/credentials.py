"""Findings about credentials that a server shows in clear. The caller says what a credential is; no value gets into a finding."""

from collections.abc import Iterator, Sequence
from sys import intern
from typing import Final

from ...records import CLIENT, SERVER
from ..definitions import strings
from ..digests import digest
from ..message import Message
from ..model import Exchange, Kind, Log, Row, UnpairedMessage
from .facts import TranscriptFacts
from .rule import Credential, Family, FindsCredentials, Hit, Rule, Severity, hit, hit_in
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


_LOOK_BYTES: Final = 1 << 14
"""So many bytes are looked at together. Hardly any have a credential, and a look at each message would take five times as long."""


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """Find credentials in the messages of servers and in their logs, if the caller says what a credential is."""
    search = facts.transcript.credentials
    if search is None:
        return
    held: list[tuple[Message | Log, Row]] = []
    held_bytes = 0
    for row in facts.transcript.rows:
        for source in _sources(row):
            held.append((source, row))
            held_bytes += len(source.raw) if isinstance(source, Log) else source.size
        if held_bytes > _LOOK_BYTES:
            yield from _look(search, held)
            held, held_bytes = [], 0
    yield from _look(search, held)


def _look(search: FindsCredentials, held: list[tuple[Message | Log, Row]]) -> Iterator[Hit]:
    """Find what messages and lines of logs show, which is nothing if they show nothing together."""
    if search.may_show([source.raw for source, _ in held]):
        for source, row in held:
            if isinstance(source, Log):
                yield from _logged(search, source)
            elif isinstance(row, Exchange | UnpairedMessage):
                yield from _shown(search, source, row)


def _sources(row: Row) -> Sequence[Message | Log]:
    """Return what a server said in a row."""
    if isinstance(row, Exchange):
        if row.sender == CLIENT and not (row.notifications or row.partials or row.more_responses):
            return () if row.response is None else (row.response,)
        return [message for message in row.messages if message.sender == SERVER]
    if isinstance(row, UnpairedMessage):
        return (row.message,) if row.message.sender == SERVER else ()
    return (row,) if isinstance(row, Log) else ()


def _logged(search: FindsCredentials, row: Log) -> Iterator[Hit]:
    for credential in search(row.raw):
        what = f"A line on stderr shows {_named(credential)}."
        yield hit(
            CREDENTIAL_SHOWN,
            at_ns=row.at_ns,
            capture=row.capture,
            number=row.number,
            row=None,
            what=intern(what),
            culprit=SERVER,
            group=_group(credential),
        )


def _shown(search: FindsCredentials, message: Message, row: Exchange | UnpairedMessage) -> Iterator[Hit]:
    for credential in search(message.raw):
        value = credential[3].decode("latin-1")
        body = None if message.kind is Kind.MALFORMED else message.body
        paths = [path for path, text in strings(body) if value in text]
        clear = [path for path in paths if not path.endswith(_OPAQUE)]
        if clear or not paths:
            where = f" at {clear[0][:200]}" if clear else ""
            subject = {Kind.RESULT: "The result of ", Kind.ERROR: "The error of "}.get(message.kind, "")
            name = f"{subject}{call_name(row)}" if subject or call_name(row) else "A message"
            what = f"{name} shows {_named(credential)}{where}."
            yield hit_in(CREDENTIAL_SHOWN, message, row.row, intern(what), group=_group(credential))


def _group(credential: Credential) -> str:
    return digest(credential[3]).hex()


def _named(credential: Credential) -> str:
    """Name a credential by its first letters, which tell the service, and by its length."""
    start, end, kind, value = credential
    if kind == "key":
        return "a private key in clear"
    return f"a token in clear, {end - start} letters that begin with “{value[:_SHOWN_LETTERS].decode('latin-1')}”"
