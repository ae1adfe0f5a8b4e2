"""The numbers of several servers to their sums: what an agent did and paid with all of them together."""

from collections.abc import Iterable
from dataclasses import dataclass

from ...records import CLIENT, SERVER
from .statistics import Latency, ServerNumbers, latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over servers. `servers` and `clients` count different names; `latency` is that of all answered calls.

    `calls`, `failed` and `pending` are those of clients, `requests` those of servers. Tokens are estimates. `unused` counts the
    tools that were offered and never called. What came through a gateway whose other side was tapped too counts there, once.
    """

    servers: int
    clients: int
    calls: int
    failed: int
    pending: int
    requests: int
    latency: Latency | None
    messages: int
    client_bytes: int
    server_bytes: int
    definition_bytes: int
    definition_tokens: int
    instructions_tokens: int
    result_tokens: int
    unused: int


def totals(servers: Iterable[ServerNumbers]) -> Totals:
    """Return the sums over the servers; captures of a model API are left out."""
    some = [server for server in servers if not server.capture_info.is_model]
    calls = [call for server in some for call in server.calls]
    near = [server for server in some if server.forwarded is None or any(call.by_target for call in server.calls)]
    costs = [server.cost for server in near]
    durations_ns = (ns for call in calls for ns in call.durations_ns)
    return Totals(
        servers=len({server.capture_info.server for server in some}),
        clients=len({name for server in near for name in server.capture_info.clients}),
        calls=sum(call.count for call in calls),
        failed=sum(call.failed for call in calls),
        pending=sum(call.pending for call in calls),
        requests=sum(call.count for server in near for call in server.requests),
        latency=latency(durations_ns),
        messages=sum(server.messages for server in near),
        client_bytes=sum(server.sent_bytes[CLIENT] for server in near),
        server_bytes=sum(server.sent_bytes[SERVER] for server in near),
        definition_bytes=sum(cost.definition_bytes for cost in costs),
        definition_tokens=sum(cost.definition_tokens for cost in costs),
        instructions_tokens=sum(cost.instructions_tokens for cost in costs),
        result_tokens=sum(cost.result_tokens for cost in costs),
        unused=sum(len(cost.unused) for cost in costs),
    )
