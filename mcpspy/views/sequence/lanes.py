"""The lanes of a diagram: whose they are, what they are called, and which of them a message leaves and reaches.

Over HTTP the stream of a GET may have a lane of its own, beside the POSTs. Refuses to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...records import CLIENT
from ...transcript.http.transaction import Transaction
from ...transcript.model import ChannelEvent, Log, Message, ModelCall, Row, Transcript, UnpairedMessage
from .model import Participant

PROXY_ID: Final = "mcpspy"
PROXY_NAME: Final = "mcpspy"

USER_ID: Final = "user"
USER_NAME: Final = "user"

_Key = tuple[str, str | int, int]
"""A role with the name of its lane, or `stream` with capture and number of its transaction."""


class Lanes:
    """Who is who. `names` are other names for lanes, by those that they have; `splits` gives streams lanes of their own."""

    __slots__ = ("_ids", "_names", "_sources", "_splits")

    def __init__(self, transcript: Transcript, names: Mapping[str, str], *, splits: bool) -> None:
        self._sources = transcript.captures
        self._names = names
        self._splits = splits
        self._ids: dict[_Key, str] = {}
        for role in ("client", "model", "server"):
            found = [lane.name for lane in transcript.lanes if lane.role == role]
            self._ids |= {(role, name, 0): f"{role}{number}" for number, name in enumerate(found, 1)}
        if splits:
            streams = [one for source in self._sources for one in source.transactions.values() if _is_long(one)]
            self._ids |= {("stream", one.capture, one.number): f"stream{number}" for number, one in enumerate(streams, 1)}

    @property
    def user(self) -> str:
        """The id of the user's lane."""
        return USER_ID

    def ends(self, about: Row | Message, sender: str) -> tuple[str, str]:
        """The ids of the sender's lane and of the other side's."""
        client, server = self.client(about), self.server(about)
        if sender == CLIENT:
            return client, server
        return self._carrier(about) or server, client

    def client(self, about: Row | Message) -> str:
        """The id of the client's lane."""
        return self._ids["client", self._sources[about.capture].client_of(about), 0]

    def server(self, about: Row | Message) -> str:
        """The id of the server's lane, or of the model's."""
        source = self._sources[about.capture]
        return self._ids["model" if source.is_model else "server", source.server, 0]

    def stream(self, transaction: Transaction) -> str:
        """The id of the lane of a stream; empty where it has none of its own."""
        return self._ids.get(("stream", transaction.capture, transaction.number), "")

    def participants(self, used: Iterable[str], *, is_proxy_shown: bool) -> list[Participant]:
        """Those that take part: the user, then clients, then mcpspy, then models, streams and servers."""
        wanted = set(used)
        made = [Participant(id=id, name=self._called(key)) for key, id in self._ids.items() if id in wanted]
        if USER_ID in wanted:
            made.append(Participant(id=USER_ID, name=self._names.get(USER_NAME, USER_NAME), is_person=True))
        order = {USER_ID: -1, "client": 0, "model": 2, "stream": 3, "server": 4}
        if is_proxy_shown:
            made.append(Participant(id=PROXY_ID, name=self._names.get(PROXY_NAME, PROXY_NAME)))
        return sorted(made, key=lambda one: order.get(one.id.rstrip("0123456789"), 1))

    def _called(self, key: _Key) -> str:
        role, name, number = key
        if role != "stream":
            return self._names.get(str(name), str(name))
        transaction = self._sources[int(name)].transactions[number]
        said = f"GET {transaction.target}"
        return self._names.get(said, said)

    def _carrier(self, about: Row | Message) -> str:
        """The lane of the stream that carried what a server said, if it has one."""
        if not self._splits or isinstance(about, ChannelEvent | Log | Transaction | ModelCall):
            return ""
        message = (
            about if isinstance(about, Message) else about.message if isinstance(about, UnpairedMessage) else about.request
        )
        carried = self._sources[about.capture].transaction_of(message.stream)
        return "" if carried is None else self.stream(carried)


def _is_long(transaction: Transaction) -> bool:
    """Whether it is a GET that was answered by a stream of events."""
    return transaction.method == "GET" and transaction.is_stream
