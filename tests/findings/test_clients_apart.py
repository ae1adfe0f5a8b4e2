"""Clients that share a server over HTTP: no claim about one of them is made of what several did."""

from collections.abc import Callable

import pytest

from mcpspy.records import CLIENT_PROCESSES, Note
from tests.transcript.dialogue import result
from tests.transcript.traffic import MODERN, Traffic, initialize

GONE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}
NODE, PYTHON = "node", "python-httpx/0.28"


class Scene:
    """Traffic of several clients, and the findings about them."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.processes: dict[int, list[int]] = {}
        self.connection = 100

    def client(self, *, pid: int = 0, agent: str = NODE, name: str = "agent", keeps: bool = True) -> "Client":
        return Client(self, pid, agent, name, keeps=keeps)

    def findings(self) -> list[tuple[str, str]]:
        if self.processes:
            extra = {
                "connections": [[pid, *connections] for pid, connections in self.processes.items()],
                "processes": [{"pid": pid, "name": "c", "start": 1, "first_ns": 0, "last_ns": 1} for pid in self.processes],
            }
            self.traffic.add(Note(at_ns=self.traffic.tick(), topic=CLIENT_PROCESSES, text="…", extra=extra))
        about = ("repeated-call", "session-unknown")
        found = [finding for finding in self.traffic.findings if finding.rule in about]
        return [(finding.rule, finding.what) for finding in found]


class Client:
    """One client. It `keeps` its connection, or opens another for each request."""

    def __init__(self, scene: Scene, pid: int, agent: str, name: str, *, keeps: bool) -> None:
        self.scene, self.pid, self.agent, self.name, self.keeps = scene, pid, agent, name, keeps
        self.session = ""
        self.id = 0
        self.reconnect()

    def reconnect(self) -> "Client":
        self.scene.connection += 1
        self.connection = self.scene.connection
        if self.pid:
            self.scene.processes.setdefault(self.pid, []).append(self.connection)
        return self

    def _next(self) -> int:
        if not self.keeps:
            self.reconnect()
        self.id += 1
        return self.id

    def begin(self, session: str = "") -> "Client":
        """Send initialize, and be given a session if there is one."""
        hello = initialize(self._next())
        hello["params"]["clientInfo"]["name"] = self.name
        call = self.scene.traffic.post(hello, connection=self.connection, fields={"User_Agent": self.agent})
        if session:
            call.answer(200, result(self.id), Mcp_Session_Id=session)
        else:
            call.answer(200, result(self.id))
        self.session = session
        return self

    def call(self, *, modern: bool = False, path: str = "/x", fails: bool = False) -> "Client":
        """Read the same file, which brings the same."""
        params: dict[str, object] = {"name": "read", "arguments": {"path": path}}
        if modern:
            params["_meta"] = {**MODERN, "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"}}
        message = {"jsonrpc": "2.0", "id": self._next(), "method": "tools/call", "params": params}
        call = self.scene.traffic.post(
            message, session=self.session, connection=self.connection, fields={"User_Agent": self.agent}
        )
        call.answer(200, result(self.id, {"content": [{"type": "text", "text": "same"}], "isError": fails}))
        return self

    def refused(self) -> "Client":
        """Make a request in a session that the server has forgotten since."""
        self.scene.traffic.wait(3000)
        message = {"jsonrpc": "2.0", "id": self._next(), "method": "tools/list"}
        fields = {"User_Agent": self.agent}
        self.scene.traffic.post(message, session=self.session, connection=self.connection, fields=fields).answer(404, GONE)
        return self


# Calls of several clients, each of which made one or two: nobody repeated anything.


def _in_turn(*clients: Client, modern: bool = False, turns: int = 2) -> None:
    for _ in range(turns):
        for client in clients:
            client.call(modern=modern)


def two_processes(scene: Scene) -> None:
    _in_turn(scene.client(pid=1).begin(), scene.client(pid=2).begin())


def two_processes_with_pools(scene: Scene) -> None:
    _in_turn(scene.client(pid=1, keeps=False).begin(), scene.client(pid=2, keeps=False).begin())


def two_unknown_processes(scene: Scene) -> None:
    _in_turn(scene.client().begin(), scene.client().begin())


def two_unknown_processes_with_pools(scene: Scene) -> None:
    _in_turn(scene.client(keeps=False).begin(), scene.client(keeps=False).begin())


def two_programs(scene: Scene) -> None:
    _in_turn(scene.client(keeps=False).begin(), scene.client(agent=PYTHON, keeps=False).begin())


def two_names(scene: Scene) -> None:
    _in_turn(scene.client(name="a").begin(), scene.client(name="b").begin())


def six_that_call_once(scene: Scene) -> None:
    for _ in range(6):
        scene.client().begin().call()


def six_failures_of_six(scene: Scene) -> None:
    for _ in range(6):
        scene.client().begin().call(fails=True)


def two_under_the_modern_revision(scene: Scene) -> None:
    _in_turn(scene.client(), scene.client(), modern=True)


def two_processes_under_the_modern_revision(scene: Scene) -> None:
    _in_turn(scene.client(pid=1, keeps=False), scene.client(pid=2, keeps=False), modern=True)


def five_short_processes_under_the_modern_revision(scene: Scene) -> None:
    for pid in range(1, 6):
        scene.client(pid=pid).call(modern=True)


def two_sessions(scene: Scene) -> None:
    _in_turn(scene.client().begin("s1"), scene.client().begin("s2"))


def one_twice(scene: Scene) -> None:
    scene.client().begin().call().call()


def one_with_other_arguments_between(scene: Scene) -> None:
    scene.client().begin().call().call(path="/y").call().call(path="/y")


NO_REPETITION = (
    two_processes, two_processes_with_pools, two_unknown_processes, two_unknown_processes_with_pools, two_programs, two_names,
    six_that_call_once, six_failures_of_six, two_under_the_modern_revision, two_processes_under_the_modern_revision,
    five_short_processes_under_the_modern_revision, two_sessions, one_twice, one_with_other_arguments_between,
)  # fmt: skip


@pytest.mark.parametrize("play", NO_REPETITION, ids=lambda play: play.__name__)
def test_calls_of_several_clients_are_no_repetition(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    assert scene.findings() == []


# Twins: one client that repeats itself, alone or beside others.


def alone(scene: Scene) -> None:
    scene.client().begin().call().call().call()


def alone_with_a_pool(scene: Scene) -> None:
    scene.client(keeps=False).begin().call().call().call()


def alone_under_the_modern_revision(scene: Scene) -> None:
    scene.client().call(modern=True).call(modern=True).call(modern=True)


def one_of_two_processes(scene: Scene) -> None:
    busy, other = scene.client(pid=1, keeps=False).begin(), scene.client(pid=2, keeps=False).begin()
    for _ in range(3):
        busy.call()
        other.call(path="/y" if _ else "/x")


def one_of_two_unknown_processes(scene: Scene) -> None:
    busy, other = scene.client().begin(), scene.client().begin()
    busy.call().call()
    other.call(path="/y")
    busy.call()


def one_of_two_programs(scene: Scene) -> None:
    busy, other = scene.client(keeps=False).begin(), scene.client(agent=PYTHON, keeps=False).begin()
    busy.call().call()
    other.call()
    busy.call()


def one_of_two_sessions(scene: Scene) -> None:
    busy, other = scene.client().begin("s1"), scene.client().begin("s2")
    busy.call().call()
    other.call()
    busy.call()


def one_of_two_names_under_the_modern_revision(scene: Scene) -> None:
    busy, other = scene.client(name="a"), scene.client(name="b")
    busy.call(modern=True).call(modern=True)
    other.call(modern=True)
    busy.call(modern=True)


REPETITION = (
    alone, alone_with_a_pool, alone_under_the_modern_revision, one_of_two_processes, one_of_two_unknown_processes,
    one_of_two_programs, one_of_two_sessions, one_of_two_names_under_the_modern_revision,
)  # fmt: skip


@pytest.mark.parametrize("play", REPETITION, ids=lambda play: play.__name__)
def test_a_client_that_repeats_itself_is_found_beside_others(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    what = "tools/call read was sent 3 times in a row with the same arguments, and got the same answer."
    assert scene.findings() == [("repeated-call", what)]


# A client whose session is unknown, and that does not begin again, while another does.


def alone_that_is_refused(scene: Scene) -> None:
    scene.client().begin("s1").refused().refused()


def beside_a_program_that_begins(scene: Scene) -> None:
    lost = scene.client().begin("s1")
    lost.refused().refused()
    scene.client(agent=PYTHON).begin("s2").call()


def beside_a_client_that_begins(scene: Scene) -> None:
    lost = scene.client(name="a").begin("s1")
    lost.refused().refused()
    scene.client(name="b").begin("s2").call()


def beside_a_process_that_begins(scene: Scene) -> None:
    lost = scene.client(pid=1).begin("s1")
    lost.refused()
    scene.client(pid=2).begin("s2").call()
    lost.refused()


def beside_a_process_that_begins_again(scene: Scene) -> None:
    lost, other = scene.client(pid=1, keeps=False).begin("s1"), scene.client(pid=2, keeps=False).begin("s2")
    lost.refused()
    other.refused()
    other.begin("s3").call()
    lost.refused()


def beside_a_connection_that_begins_again(scene: Scene) -> None:
    lost, other = scene.client().begin("s1"), scene.client().begin("s2")
    lost.refused()
    other.refused()
    other.begin("s3").call()
    lost.refused()


LOST = (
    alone_that_is_refused, beside_a_program_that_begins, beside_a_client_that_begins, beside_a_process_that_begins,
    beside_a_process_that_begins_again, beside_a_connection_that_begins_again,
)  # fmt: skip


@pytest.mark.parametrize("play", LOST, ids=lambda play: play.__name__)
def test_a_client_that_does_not_begin_again_is_found_beside_others(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    what = "The session s1 was answered with 404, and the client did not initialize again, but used it once more."
    assert scene.findings() == [("session-unknown", what)]


# Twins: each client begins again, or nobody can tell which one did.


def alone_and_begins_again(scene: Scene) -> None:
    scene.client().begin("s1").refused().begin("s2").call()


def on_another_connection(scene: Scene) -> None:
    scene.client().begin("s1").refused().reconnect().begin("s2").call()


def of_one_process(scene: Scene) -> None:
    scene.client(pid=1, keeps=False).begin("s1").refused().begin("s2").call()


def of_one_process_whose_transports_differ(scene: Scene) -> None:
    lost = scene.client(pid=1).begin("s1").refused()
    lost.agent = PYTHON
    lost.reconnect().begin("s2").call()


def both_begin_again(scene: Scene) -> None:
    first, second = scene.client().begin("s1"), scene.client().begin("s2")
    first.refused()
    second.refused()
    first.begin("s3").call()
    second.begin("s4").call()


def both_processes_begin_again(scene: Scene) -> None:
    first, second = scene.client(pid=1, keeps=False).begin("s1"), scene.client(pid=2, keeps=False).begin("s2")
    first.refused()
    second.refused()
    second.begin("s3").call()
    first.begin("s4").call()


def both_begin_again_without_connections(scene: Scene) -> None:
    first, second = scene.client(keeps=False).begin("s1"), scene.client(keeps=False).begin("s2")
    first.refused()
    second.refused()
    second.begin("s3").call()
    first.begin("s4").call()


def another_that_may_be_the_same(scene: Scene) -> None:
    scene.client(keeps=False).begin("s1").refused()
    scene.client(keeps=False).begin("s2").call()


def one_whose_stream_has_another_agent(scene: Scene) -> None:
    lost = scene.client(keeps=False).begin("s1")
    lost.agent = PYTHON
    lost.refused()
    lost.agent = NODE
    lost.begin("s2").call()


CONTINUED = (
    alone_and_begins_again, on_another_connection, of_one_process, of_one_process_whose_transports_differ, both_begin_again,
    both_processes_begin_again, both_begin_again_without_connections, another_that_may_be_the_same,
    one_whose_stream_has_another_agent,
)  # fmt: skip


@pytest.mark.parametrize("play", CONTINUED, ids=lambda play: play.__name__)
def test_a_client_that_begins_again_is_not_accused(play: Callable[[Scene], None]) -> None:
    scene = Scene()
    play(scene)
    assert scene.findings() == []


def test_a_session_of_another_client_was_not_changed() -> None:
    scene = Scene()
    lost = scene.client(agent=PYTHON)
    lost.session = "before"
    scene.client().begin("s1").call()
    lost.refused().refused()
    ((_, what),) = scene.findings()
    assert "which the client changed" not in what
