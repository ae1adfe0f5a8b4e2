"""Events go out as they come: the kernel does not hold a small write back until the one before it is acknowledged."""

import asyncio
import socket

from mcpspy.live.authority import Authority, Origin
from mcpspy.live.http import HttpTap
from tests.deadlines import DEADLINE_S


async def accepted_socket(tap: HttpTap) -> int:
    """TCP_NODELAY of the tap's end of a connection."""
    listener = tap.listen("127.0.0.1", 0)
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    entered = tap.entered

    def watched(client: asyncio.Transport) -> object:
        found.set_result(client.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return entered(client)

    tap.entered = watched  # type: ignore[method-assign, assignment]  # the one place that sees the connection
    stop, listening = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(tap.serve(listener, stop, listening.set))
    await asyncio.wait_for(listening.wait(), DEADLINE_S)
    with socket.create_connection(listener.getsockname(), timeout=DEADLINE_S):
        value = await asyncio.wait_for(found, DEADLINE_S)
    stop.set()
    await serving
    return value


def test_small_writes_to_a_client_do_not_wait_for_each_other() -> None:
    tap = HttpTap(Origin("http", Authority("127.0.0.1", 1)), 0)
    assert asyncio.run(accepted_socket(tap)) != 0
