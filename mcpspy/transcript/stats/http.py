"""What HTTP carried, in numbers: transactions by method and status, connections, streams of events, and what kept them alive."""

from collections import Counter
from dataclasses import dataclass

from ..model import CaptureInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpNumbers:
    """The HTTP of one capture.

    `methods` and `statuses` count transactions; those without a response have the status 0. `streams` counts responses that are
    streams of events, `open_streams` those of them that have not ended; `events` are those with data, `keep_alives` comments.
    Bytes are those of bodies.
    """

    transactions: int
    connections: int
    sessions: int
    methods: dict[str, int]
    statuses: dict[int, int]
    streams: int
    open_streams: int
    events: int
    keep_alives: int
    redelivered: int
    request_bytes: int
    response_bytes: int


def http_numbers(source: CaptureInfo) -> HttpNumbers:
    """What the transactions of `source` come to."""
    transactions = list(source.transactions.values())
    streams = [one for one in transactions if one.is_stream]
    responses = [one.response for one in transactions if one.response is not None]
    return HttpNumbers(
        transactions=len(transactions),
        connections=len({one.connection for one in transactions}),
        sessions=len({one.scope.session for one in transactions if one.scope.session}),
        methods=dict(sorted(Counter(one.method for one in transactions).items())),
        statuses=dict(sorted(Counter(one.status for one in transactions).items())),
        streams=len(streams),
        open_streams=sum(1 for one in streams if not one.over),
        events=sum(one.events for one in responses),
        keep_alives=sum(one.comments for one in responses),
        redelivered=sum(len(one.redelivered) for one in transactions),
        request_bytes=sum(one.request.body_bytes for one in transactions if one.request is not None),
        response_bytes=sum(one.body_bytes for one in responses),
    )
