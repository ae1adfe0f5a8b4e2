"""HTTP transactions of a capture to numbers: methods, statuses, connections, sessions, streams of events."""

from collections import Counter
from dataclasses import dataclass

from ..model import CaptureInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpNumbers:
    """The HTTP of one capture in numbers.

    `methods` and `statuses` count transactions; those without a response have the status 0. `streams` counts responses that are
    streams of events, `open_streams` those that have not ended. `events` counts events with data, `keep_alives` comments. Bytes
    are those of bodies.
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


def http_numbers(info: CaptureInfo) -> HttpNumbers:
    """Return the numbers of a capture's transactions."""
    transactions = list(info.transactions.values())
    streams = [transaction for transaction in transactions if transaction.is_stream]
    requests = [transaction.request for transaction in transactions if transaction.request is not None]
    responses = [transaction.response for transaction in transactions if transaction.response is not None]
    return HttpNumbers(
        transactions=len(transactions),
        connections=len({transaction.connection for transaction in transactions}),
        sessions=len({transaction.scope.session for transaction in transactions if transaction.scope.session}),
        methods=dict(sorted(Counter(transaction.method for transaction in transactions).items())),
        statuses=dict(sorted(Counter(transaction.status for transaction in transactions).items())),
        streams=len(streams),
        open_streams=sum(1 for transaction in streams if not transaction.over),
        events=sum(response.events for response in responses),
        keep_alives=sum(response.comments for response in responses),
        redelivered=sum(len(transaction.redelivered) for transaction in transactions),
        request_bytes=sum(request.body_bytes for request in requests),
        response_bytes=sum(response.body_bytes for response in responses),
    )
