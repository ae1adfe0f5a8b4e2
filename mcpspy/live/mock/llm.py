"""A mock of a model's API: answers prompts that were recorded with the answers that were, streamed as they were.

It hears requests, has the question found, and has the reply played. Refuses to understand prompts: `replay` does. All clients walk
through one recording, since nothing in a prompt says whose it is but what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ...replay.mock.miss import Miss
from ...replay.mock.prompt_miss import api_error
from ...replay.mock.recorded_prompts import question
from ...transcript.http.head import read_head
from ...transcript.model import Exchange
from ...wire.encodings import decoded
from ..http.recorder import note
from .http.connection import Connection
from .http.door import Door
from .http.listening import ListeningMock
from .llm_playback import Playing

if TYPE_CHECKING:
    import socket

    from ...replay.mock.matching import Matcher
    from ...replay.mock.recorded_prompts import Recorded
    from .http.response import Request, Response
    from .llm_pass_through import ModelForward

MISSING = "capture"
"""By what a question is refused whose answer is not in the recording."""


class ModelMock(ListeningMock):
    """Plays `recorded` to whoever asks. Its clock began at `begin_ns` of the monotonic one.

    `finds` knows the questions of it. `plays_nearest` says that a miss is answered with what comes nearest; `forward` is the way to
    a live API, which then answers instead.
    """

    def __init__(
        self,
        recorded: Sequence[Recorded],
        finds: Matcher,
        *,
        begin_ns: int,
        speed: float = 0.0,
        allowed_hosts: frozenset[str] = frozenset(),
        plays_nearest: bool = False,
        forward: ModelForward | None = None,
        tell: Callable[[Miss], None],
    ) -> None:
        super().__init__(begin_ns=begin_ns, allowed_hosts=allowed_hosts)
        self._recorded: Mapping[int, Recorded] = {one.exchange.row: one for one in recorded}
        self._walk = finds.walk()
        self._speed = speed
        self._plays_nearest = plays_nearest
        self._forward = forward
        self._tell = tell

    @property
    def recorded(self) -> list[Recorded]:
        """What it plays."""
        return list(self._recorded.values())

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self.own}"

    def open(self, listener: socket.socket) -> None:
        """Let clients in."""
        self._door = Door(listener, partial(Connection, self))

    async def close(self) -> None:
        """Let nobody in any more, and leave who is there."""
        self._shut()
        if self._forward is not None:
            await self._forward.close()
        self._leave()

    # Requests

    def asked(self, request: Request, response: Response) -> None:
        """A request came, whole."""
        live = question(read_head(request.head.raw), _plain(request), at_ns=self.now_ns()).request
        found = self._walk.match(live)
        if not isinstance(found, Exchange):
            self._missed(found, request, response)
        elif why := self._recorded[found.row].unknown:
            self._missed(Miss(request=live, reason=why, refused_by=MISSING, nearest=found), request, response)
        else:
            self._play(found, response)

    def _play(self, found: Exchange, response: Response) -> None:
        Playing(self._recorded[found.row].reply, response, self._speed).begin()

    def _missed(self, miss: Miss, request: Request, response: Response) -> None:
        if self._forward is not None:
            self._told(miss, response)
            self._forward.ask(self, request, response)
            return
        nearest = miss.nearest if self._plays_nearest else None
        if nearest is None or self._recorded[nearest.row].unknown:
            self._told(miss, response)
            refuse(request, response, miss)
            return
        again = self._walk.match(nearest.request)  # so that it is the next of several answers
        played = again if isinstance(again, Exchange) and not self._recorded[again.row].unknown else nearest
        self._told(replace(miss, played=played), response)
        self._play(played, response)

    def _told(self, miss: Miss, response: Response) -> None:
        self.sink((note(self.now_ns(), "miss", miss.sentence, 0, response.number),))
        self._tell(miss)


def refuse(request: Request, response: Response, miss: Miss) -> None:
    """Answer a miss with an error in the words of the API."""
    error = api_error(miss, is_anthropic=is_anthropic(request))
    response.whole(error.status, [("Content-Type", "application/json")], error.body)


def is_anthropic(request: Request) -> bool:
    """Whether it is Anthropic's API that is asked."""
    return bool(request.value(b"anthropic-version")) or request.path.endswith("/messages")


def _plain(request: Request) -> bytes:
    """The body, its content encoding taken off where that can be done."""
    encoding = request.head.value(b"content-encoding")
    if not encoding:
        return request.body
    try:
        return decoded(request.body, encoding)
    except ValueError:
        return request.body
