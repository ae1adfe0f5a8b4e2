"""Pass-through to a live server, with real processes."""

import asyncio
import sys
from time import monotonic_ns

from mcpspy.live.upstream.pass_through import Courier, News
from mcpspy.live.upstream.protocol import ServerListener, UpstreamClient
from mcpspy.live.upstream.stdio import StdioClient
from tests.deadlines import DEADLINE_S

DEAF = (sys.executable, "-c", "import sys; sys.stdin.read()")


class Waiting:
    """A listener that has a server left when it is late."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.courier = Courier(self.make, self.take, handshake_s=0.01)

    def make(self, listener: ServerListener) -> UpstreamClient:
        return StdioClient(
            DEAF,
            sink=lambda records: None,
            now_ns=monotonic_ns,
            listener=listener,
        )

    def take(self, news: News) -> None:
        news(self)  # type: ignore[arg-type]  # of a listener it has what this server gives occasion to

    def on_reached(self) -> None:
        self.told.append("reached")

    def on_late(self, patience_s: float) -> None:
        self.told.append(patience_s)
        self.courier.put(None)

    def on_left(self, status: int | None) -> None:
        self.told.append(status)


def test_that_a_server_has_had_its_time_for_the_handshake_is_told() -> None:
    waiting = Waiting()
    asyncio.run(asyncio.wait_for(waiting.courier.run(), DEADLINE_S))
    assert waiting.told == ["reached", 0.01, 0]
