"""Findings about responses and the requests that they answer, by their ids."""

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
    what="A response has an id that no request had.",
    why="The receiver drops it, and the request that it was meant for stays unanswered.",
    blame="The sender: the capture holds every request of the other side, and none has this id.",
    example='← {"jsonrpc":"2.0","id":7,"result":{}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"ping"}\n← {"jsonrpc":"2.0","id":7,"result":{}}',
    fix="Answer with the id of the request, exactly as it was sent.",
)

DUPLICATE_RESPONSE: Final = Rule(
    name="duplicate-response",
    title="Request answered more than once",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request was answered more than once.",
    why="The receiver takes the first answer and drops the others, since JSON-RPC has no partial results.",
    blame="The answering side: the request was sent once.",
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
    fix="Answer once, and report interim results as progress notifications.",
)

ID_TYPE_MISMATCH: Final = Rule(
    name="id-type-mismatch",
    title="Id answered in another spelling",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what='The id of a response differs in type or spelling from that of its request: "7" for 7, 7.0 for 7.',
    why="Ids are equal only if type and value are: some SDKs accept another spelling, other clients wait forever.",
    blame="The answering side: an id has to come back as it was sent.",
    example='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":"7","result":{"tools":[]}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":7,"result":{"tools":[]}}',
    fix="Send the id back unchanged, without converting it.",
)

PARTIAL_RESULT: Final = Rule(
    name="partial-result",
    title="Result sent in parts",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request got several results, and all but the last say isComplete: false.",
    why="MCP has no partial results, so that SDKs take the first for the whole and drop the rest.",
    blame="The answering side: the request was sent once, and the results themselves say that they are parts.",
    example=(
        '→ tools/call 1 {"name":"search"}\n← result 1 {"content":[],"isComplete":false}\n'
        '← result 1 {"content":[],"isComplete":true}'
    ),
    clean='→ tools/call 1 {"name":"search"}\n← result 1 {"content":[]}',
    fix="Answer once, and report interim results as progress notifications.",
)

AMBIGUOUS_PAIRING: Final = Rule(
    name="ambiguous-pairing",
    title="Message could belong to several others",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A message refers to a request, a task or a stream in a way that fits several of them.",
    why="Neither side can tell which one is meant: mcpspy leaves the message unpaired, and the receiver has to guess.",
    blame="Unclear: one side used an id or a token twice, or the other side changed its spelling.",
    example=(
        '→ tools/call 7 {"name":"a"}\n→ tools/call "7" {"name":"b"}\n← {"jsonrpc":"2.0","id":7.0,"result":{"content":[]}}\n'
        '← result 7 {"content":[]}\n← result "7" {"content":[]}'
    ),
    clean=(
        '→ tools/call 7 {"name":"a"}\n→ tools/call "8" {"name":"b"}\n← result 7 {"content":[]}\n← result "8" {"content":[]}'
    ),
    fix="Give every request an id and a progress token of its own, and send both back unchanged.",
)

RULES: Final = (UNPAIRED_RESPONSE, DUPLICATE_RESPONSE, PARTIAL_RESULT, ID_TYPE_MISMATCH, AMBIGUOUS_PAIRING)

_AMBIGUOUS: Final = {
    "ambiguous-id": "The id of a response fits several waiting requests, in another spelling than each",
    "ambiguous-progress": "The token of a progress notification was given by several requests",
    "ambiguous-call": "A retry, or a reference to a task or an elicitation, fits several calls",
}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find responses to no request, second responses, and responses with another spelling of the id."""
    for exchange in facts.respelled_ids:
        response = exchange.response
        assert response is not None
        what = f"A response has the id {response.id}, and its request the id {exchange.request.id}."
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
        id_words = "no id" if message.id is None else f"the id {message.id}, which no request had"
        article = "An" if message.kind is Kind.ERROR else "A"
        yield hit_in(UNPAIRED_RESPONSE, message, unpaired.row, f"{article} {message.kind} has {id_words}.")
