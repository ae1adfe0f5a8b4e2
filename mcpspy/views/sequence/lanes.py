"""The lanes of a diagram: their participants, their names, and the lanes at which a message starts and ends.

Over HTTP the stream of a GET can have a lane of its own, beside the POSTs.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ...records import CLIENT
from ...transcript.http.transaction import Transaction
from ...transcript.model import ChannelEvent, Log, Message, ModelCall, Row, Transcript, UnpairedMessage
from .diagram import Participant

PROXY_ID: Final = "mcpspy"
PROXY_NAME: Final = "mcpspy"

USER_ID: Final = "user"
USER_NAME: Final = "user"

_Key = tuple[str, str | int, int]
"""A role with the name of its lane, or `stream` with the capture and number of its transaction."""


class DiagramLanes:
    """Lanes of a transcript, by id. `names` are replacements for lane names; `splits` gives each server stream its own lane."""

    __slots__ = ("_ids", "_names", "_captures", "_gateways", "_splits")

    def __init__(self, transcript: Transcript, names: Mapping[str, str], *, splits: bool) -> None:
        self._captures = transcript.captures
        self._names = names
        self._splits = splits
        self._ids: dict[_Key, str] = {}
        self._gateways = {call.last.capture: call.outer.capture for call in transcript.hops.values()}
        """By the capture between a gateway and a server: the one between the client and the gateway."""
        gateways = {self._captures[index].server for index in self._gateways.values()}
        for role in ("client", "model", "server"):
            names_of_role = [lane.name for lane in transcript.lanes if lane.role == role]
            self._ids |= {
                (role, name, 0): f"{'gateway' if role == 'server' and name in gateways else role}{number}"
                for number, name in enumerate(names_of_role, 1)
            }
        if splits:
            streams = [
                transaction
                for capture in self._captures
                for transaction in capture.transactions.values()
                if _is_long(transaction)
            ]
            self._ids |= {
                ("stream", stream.capture, stream.number): f"stream{number}" for number, stream in enumerate(streams, 1)
            }

    @property
    def user(self) -> str:
        """The id of the user's lane."""
        return USER_ID

    def ends(self, about: Row | Message, sender: str) -> tuple[str, str]:
        """Return the ids of the sender's lane and of the receiver's lane."""
        client, server = self.client(about), self.server(about)
        if sender == CLIENT:
            return client, server
        return self._carrier(about) or server, client

    def client(self, about: Row | Message) -> str:
        """Return the id of the client's lane. The client of a server behind a gateway is the gateway."""
        if about.capture in self._gateways:
            return self._ids["server", self._captures[self._gateways[about.capture]].server, 0]
        capture = self._captures[about.capture]
        # An event of a channel names no client: where all clients have names, it goes with the first.
        return self._ids.get(("client", capture.client_of(about), 0)) or self._ids["client", capture.clients[0], 0]

    def server(self, about: Row | Message) -> str:
        """Return the id of the lane of the server or the model."""
        capture = self._captures[about.capture]
        return self._ids["model" if capture.is_model else "server", capture.server, 0]

    def stream(self, transaction: Transaction) -> str:
        """Return the id of the lane of a stream. Empty if it has none of its own."""
        return self._ids.get(("stream", transaction.capture, transaction.number), "")

    def participants(self, used: Iterable[str], *, with_proxy: bool) -> list[Participant]:
        """List the participants in use: the user, clients, mcpspy, gateways, models, streams, servers."""
        wanted = set(used)
        made = [Participant(id=id, name=self._name(key)) for key, id in self._ids.items() if id in wanted]
        if USER_ID in wanted:
            made.append(Participant(id=USER_ID, name=self._names.get(USER_NAME, USER_NAME), is_person=True))
        order = {USER_ID: -1, "client": 0, "gateway": 2, "model": 2, "stream": 3, "server": 4}
        if with_proxy:
            made.append(Participant(id=PROXY_ID, name=self._names.get(PROXY_NAME, PROXY_NAME)))
        return sorted(made, key=lambda participant: order.get(participant.id.rstrip("0123456789"), 1))

    def _name(self, key: _Key) -> str:
        role, name, number = key
        if role != "stream":
            return self._names.get(str(name), str(name))
        transaction = self._captures[int(name)].transactions[number]
        request = f"GET {transaction.target}"
        return self._names.get(request, request)

    def _carrier(self, about: Row | Message) -> str:
        """Return the lane of the stream that carried a message of the server. Empty if it has none of its own."""
        if not self._splits or isinstance(about, ChannelEvent | Log | Transaction | ModelCall):
            return ""
        message = (
            about if isinstance(about, Message) else about.message if isinstance(about, UnpairedMessage) else about.request
        )
        transaction = self._captures[about.capture].transaction_of(message.stream)
        return "" if transaction is None else self.stream(transaction)


def _is_long(transaction: Transaction) -> bool:
    """Return whether the transaction is a GET that was answered by an event stream."""
    return transaction.method == "GET" and transaction.is_stream
