"""Findings about answers and the requests that they belong to, by their ids."""

from collections.abc import Iterator
from typing import Final

from ...model import Kind
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name

UNPAIRED_RESPONSE: Final = Rule(
    name="unpaired-response",
    title="Response to no request",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A response to a request that was never made.",
    why="Readers drop it; the request it was meant for stays unanswered.",
    blame="Whoever sent it: the capture has every request that the other side made, and none has this id.",
    example='← {"jsonrpc":"2.0","id":7,"result":{}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"ping"}\n← {"jsonrpc":"2.0","id":7,"result":{}}',
    fix="Answer with the id of the request, exactly as it came.",
)

DUPLICATE_RESPONSE: Final = Rule(
    name="duplicate-response",
    title="Request answered more than once",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request that was answered more than once.",
    why="Readers take the first answer and drop the others; JSON-RPC has no partial results.",
    blame="Whoever answered: the request was made once.",
    example=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1"}]}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}]}}'
    ),
    clean=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}\n'
        '← {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1, 2"}]}}'
    ),
    fix="Answer once; report what comes before the result as progress notifications.",
)

ID_TYPE_MISMATCH: Final = Rule(
    name="id-type-mismatch",
    title="Id answered in another spelling",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what='A response whose id is spelled otherwise than the request\'s: "7" for 7, 7.0 for 7.',
    why="Ids are equal only if type and value are. Official SDKs are lenient with some spellings, other clients wait forever.",
    blame="Whoever answered: an id has to come back as it was sent.",
    example='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":"7","result":{"tools":[]}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":7,"result":{"tools":[]}}',
    fix="Send the id back as it came, without converting it.",
)

PARTIAL_RESULT: Final = Rule(
    name="partial-result",
    title="Result sent in parts",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request is answered with several results, of which all but the last say isComplete: false.",
    why="MCP has no partial results: SDKs take the first one for all of it, and drop the rest.",
    blame="Whoever answered: the request was made once, and the answers say themselves that they are parts.",
    example=(
        '→ tools/call 1 {"name":"search"}\n← result 1 {"content":[],"isComplete":false}\n'
        '← result 1 {"content":[],"isComplete":true}'
    ),
    clean='→ tools/call 1 {"name":"search"}\n← result 1 {"content":[]}',
    fix="Answer once; report what comes before the result as progress notifications.",
)

AMBIGUOUS_PAIRING: Final = Rule(
    name="ambiguous-pairing",
    title="Message could belong to several others",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A message names what several others could mean: an answer, progress, a retry with input, a task, a stream to resume.",
    why="Nobody can tell which of them it belongs to: neither mcpspy, which leaves it alone, nor the other side, which has to guess.",
    blame="Unclear: the one side gave the same name twice, or the other spelled it in its own way.",
    example=(
        '→ tools/call 7 {"name":"a"}\n→ tools/call "7" {"name":"b"}\n← {"jsonrpc":"2.0","id":7.0,"result":{"content":[]}}\n'
        '← result 7 {"content":[]}\n← result "7" {"content":[]}'
    ),
    clean=(
        '→ tools/call 7 {"name":"a"}\n→ tools/call "8" {"name":"b"}\n← result 7 {"content":[]}\n← result "8" {"content":[]}'
    ),
    fix="Give every request an id and a token of its own, and send both back as they came.",
)

RULES: Final = (UNPAIRED_RESPONSE, DUPLICATE_RESPONSE, PARTIAL_RESULT, ID_TYPE_MISMATCH, AMBIGUOUS_PAIRING)

_AMBIGUOUS: Final = {
    "ambiguous-id": "An answer has an id that several waiting requests have in another spelling",
    "ambiguous-progress": "Progress has a token that several requests gave out",
    "ambiguous-call": "A retry, or what names a task or an elicitation, could belong to several calls",
}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Answers to nothing, answers too many, and answers with another spelling of the id."""
    for exchange in facts.respelled_ids:
        response = exchange.response
        assert response is not None
        what = f"A response has the id {response.id}, its request {exchange.request.id}."
        yield hit_in(ID_TYPE_MISMATCH, response, exchange.row, what, group="spelling")
    for exchange in facts.repeated_answers:
        count = 1 + len(exchange.more_responses)
        what = f"{call_name(exchange)} was answered {count} times."
        yield hit_in(DUPLICATE_RESPONSE, exchange.more_responses[0], exchange.row, what)
    for exchange in facts.partial_answers:
        what = f"{call_name(exchange)} was answered in {1 + len(exchange.partials)} parts."
        yield hit_in(PARTIAL_RESULT, exchange.partials[0], exchange.row, what, group=exchange.method)
    for row, message in facts.flawed:
        for flaw in message.flaws:
            if flaw in _AMBIGUOUS:
                yield hit_in(AMBIGUOUS_PAIRING, message, row, f"{_AMBIGUOUS[flaw]}.", culprit="unclear", group=flaw)
    for unpaired in facts.unmatched_responses:
        message = unpaired.message
        unseen = facts.first_hole_ns is not None and facts.first_hole_ns <= unpaired.at_ns
        if unseen or facts.capture.header is None or (message.kind is Kind.ERROR and message.id in (None, "null")):
            continue
        said = "without an id" if message.id is None else f"with the id {message.id}, which nobody asked with"
        article = "An" if message.kind is Kind.ERROR else "A"
        yield hit_in(UNPAIRED_RESPONSE, message, unpaired.row, f"{article} {message.kind} {said}.")
