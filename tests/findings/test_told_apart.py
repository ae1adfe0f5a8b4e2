"""Clients that share a server over HTTP: what one of them does is compared with what it was given, not with what another was."""

from collections.abc import Callable

import pytest

from mcpspy.records import CLIENT_PROCESSES, Note
from tests.transcript.dialogue import result
from tests.transcript.traffic import Call, Traffic, initialize

NODE, PYTHON = "node", "python-httpx/0.28"
MISSING = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Bad Request: Missing session ID"}}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
PING = {"jsonrpc": "2.0", "id": 8, "method": "ping"}


class Scene:
    """Traffic of several clients, each on connections of its own. Without `agent`, they name themselves all alike."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.processes: dict[int, list[int]] = {}
        self.connection = 100

    def client(self, session: str, *, pid: int = 0, agent: str = NODE, keeps: bool = True) -> "Client":
        return Client(self, session, pid, agent, keeps=keeps)

    @property
    def rules(self) -> list[tuple[str, str]]:
        if self.processes:
            extra = {
                "connections": [[pid, *connections] for pid, connections in self.processes.items()],
                "processes": [{"pid": pid, "name": "c", "start": 1, "first_ns": 0, "last_ns": 1} for pid in self.processes],
            }
            self.traffic.add(Note(at_ns=self.traffic.tick(), topic=CLIENT_PROCESSES, text="…", extra=extra))
        about = ("session-missing", "http-error", "session-unknown")
        return [(finding.rule, finding.culprit) for finding in self.traffic.findings if finding.rule in about]


class Client:
    """One client. It `keeps` its connection, or opens another for each request."""

    def __init__(self, scene: Scene, session: str, pid: int, agent: str, *, keeps: bool) -> None:
        self.scene, self.session, self.pid, self.agent, self.keeps = scene, session, pid, agent, keeps
        self._connect()

    def _connect(self) -> None:
        self.scene.connection += 1
        self.connection = self.scene.connection
        if self.pid:
            self.scene.processes.setdefault(self.pid, []).append(self.connection)

    def _fields(self) -> dict[str, str]:
        if not self.keeps:
            self._connect()
        return {"User_Agent": self.agent} if self.agent else {}

    def reconnect(self) -> "Client":
        self._connect()
        return self

    def begin(self, session: str = "") -> "Client":
        """Send initialize, and be given a session."""
        self.session = session or self.session
        traffic = self.scene.traffic
        traffic.post(initialize(0), connection=self.connection, fields=self._fields()).answer(
            200, result(0), Mcp_Session_Id=self.session
        )
        notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        traffic.post(notified, session=self.session, connection=self.connection, fields=self._fields()).answer(202)
        return self

    def call(self) -> "Client":
        """Make a request in the session."""
        traffic = self.scene.traffic
        traffic.post(LIST, session=self.session, connection=self.connection, fields=self._fields()).answer(200, result(7))
        return self

    def probe(self) -> "Client":
        """Send GET without a session, and be refused."""
        fields = {"Accept": "text/event-stream", **self._fields()}
        call = self.scene.traffic.call("GET", connection=self.connection, fields=fields)
        self._refuse(call)
        return self

    def bare(self, message: object = None) -> "Client":
        """Send a request without a session, and be refused."""
        traffic = self.scene.traffic
        self._refuse(traffic.post(LIST if message is None else message, connection=self.connection, fields=self._fields()))
        return self

    def _refuse(self, call: Call) -> None:
        call.answer(400, MISSING)


# Clients that have no session yet: nobody is accused of leaving one out.


def second_process(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("s2", pid=12).probe().begin().call()


def second_process_with_pool(scene: Scene) -> None:
    scene.client("s1", pid=11, keeps=False).begin().call()
    scene.client("s2", pid=12, keeps=False).probe().begin().call()


def second_of_one_process(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("s2", pid=11).probe().begin().call()


def unknown_processes(scene: Scene) -> None:
    scene.client("s1").begin().call()
    scene.client("s2").probe().begin().call()


def unknown_processes_of_two_programs(scene: Scene) -> None:
    scene.client("s1", agent=NODE, keeps=False).begin().call()
    scene.client("s2", agent=PYTHON, keeps=False).probe().begin()


def unknown_processes_at_once(scene: Scene) -> None:
    first = scene.client("s1", keeps=False).begin().call()
    second = scene.client("s2", keeps=False).probe().begin()
    first.call()
    second.call()


def without_names(scene: Scene) -> None:
    scene.client("s1", agent="").begin().call()
    scene.client("s2", agent="").probe().probe().begin()


def health_check(scene: Scene) -> None:
    first = scene.client("s1", agent=PYTHON).begin()
    scene.client("", agent="kube-probe/1.30", keeps=False).probe().probe()
    first.call()


def third_client(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("s2", pid=12).probe().begin().call()
    scene.client("s3", pid=13).probe().begin().call()


def before_the_first(scene: Scene) -> None:
    second = scene.client("s2", pid=12).probe()
    scene.client("s1", pid=11).begin().call()
    second.probe().begin()


def after_the_first_ended(scene: Scene) -> None:
    first = scene.client("s1", pid=11).begin().call()
    scene.traffic.call("DELETE", connection=first.connection, fields={"Mcp_Session_Id": "s1"}).answer(200)
    scene.client("s2", pid=12).probe().begin().call()


def probe_that_goes_no_further(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("", pid=12).probe()


INNOCENT = (
    second_process, second_process_with_pool, second_of_one_process, unknown_processes, unknown_processes_of_two_programs,
    unknown_processes_at_once, without_names, health_check, third_client, before_the_first, after_the_first_ended,
    probe_that_goes_no_further,
)  # fmt: skip


@pytest.mark.parametrize("play", INNOCENT, ids=lambda play: play.__name__)
def test_a_client_without_a_session_left_none_out(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    assert scene.rules == []


# Twins: clients that have a session, and leave it out.


def alone(scene: Scene) -> None:
    scene.client("s1").begin().bare()


def alone_on_another_connection(scene: Scene) -> None:
    scene.client("s1", keeps=False).begin().bare()


def alone_for_its_stream(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().probe().call()


def alone_and_begins_again(scene: Scene) -> None:
    scene.client("s1").begin().bare().begin("s2").call()


def alone_without_connections_and_begins_again(scene: Scene) -> None:
    scene.client("s1", keeps=False).begin().bare().begin("s2").call()


def beside_another(scene: Scene) -> None:
    first = scene.client("s1", pid=11).begin()
    scene.client("s2", pid=12).begin().call()
    first.bare()


def the_second_of_two(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("s2", pid=12).begin().bare()


def on_another_connection_of_its_process(scene: Scene) -> None:
    first = scene.client("s1", pid=11).begin()
    scene.client("s2", pid=12).begin().call()
    first.reconnect().bare()


def of_another_program(scene: Scene) -> None:
    scene.client("s1", agent=NODE).begin().call()
    scene.client("s2", agent=PYTHON, keeps=False).begin().bare()


def after_its_probe(scene: Scene) -> None:
    scene.client("s1", pid=11).begin().call()
    scene.client("s2", pid=12).probe().begin().bare()


GUILTY = (
    alone, alone_on_another_connection, alone_for_its_stream, alone_and_begins_again,
    alone_without_connections_and_begins_again, beside_another, the_second_of_two, on_another_connection_of_its_process,
    of_another_program, after_its_probe,
)  # fmt: skip


@pytest.mark.parametrize("play", GUILTY, ids=lambda play: play.__name__)
def test_a_client_that_leaves_its_session_out_is_found(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    assert scene.rules == [("session-missing", "client")]


@pytest.mark.parametrize("message", [LIST, PING])
def test_another_client_that_never_began_a_session_is_told_so(message: object) -> None:
    scene = Scene()
    scene.client("s1", pid=11).begin().call()
    scene.client("", pid=12).bare(message)
    assert scene.rules == [("session-missing", "client")]
    (finding,) = [finding for finding in scene.traffic.findings if finding.rule == "session-missing"]
    assert "it sent no initialize" in finding.blame
