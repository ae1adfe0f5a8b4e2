"""Large recordings that are over are answered from their indexes: numbers, diagrams and comparisons too."""

from collections.abc import Iterator

import pytest

from mcpspy.cli import diff, transcripts
from mcpspy.cli.indexes import CaptureIndex
from mcpspy.cli.web import agent_captures
from mcpspy.replay.compare import stored
from tests.agent.agents import Agent, Told, play
from tests.cli.recording import Recording

CALLS = 60


def recorded(label: str, answers: dict[int, str]) -> Recording:
    """Record a session of calls with the same answers but for these, and leave its index."""
    made = Recording(label)
    for id in range(1, CALLS + 1):
        made.ask(id, name="search", arguments={"page": id})
        made.answer(id, result={"content": [{"type": "text", "text": answers.get(id, "found")}]})
    made.end()
    index = CaptureIndex(made.path, lambda _: 0)
    transcript, _ = transcripts.transcript_of(transcripts.CaptureSelection(paths=(made.path,)))
    index._write(transcript)
    return made


@pytest.fixture(autouse=True)
def only_indexes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every capture be large, and have none read whole by an answer."""
    monkeypatch.setattr(transcripts, "LARGE_BYTES", 1)
    yield
    monkeypatch.undo()


def unreadable(*_: object, **__: object) -> None:
    raise AssertionError("a capture is read whole")


def ask(monkeypatch: pytest.MonkeyPatch, tool: str, **arguments: object) -> Told:
    """Call a tool that may not read a capture whole."""
    for module in (diff, agent_captures):
        monkeypatch.setattr(module, "transcript_of", unreadable)
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        told.append(await agent.call(tool, **arguments))

    play(scene)
    return told[0]


def test_a_comparison_reads_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("before", {})
    recorded("after", {7: "nothing"})
    told = ask(monkeypatch, "compare", before="before", after="after")
    assert told.content["summary"]["changed"] == 1
    assert told.content["summary"]["same"] == CALLS - 1
    assert told.content["unread"] == 0
    assert "found → nothing" in told.captured or '"nothing"' in told.captured


def test_what_was_not_read_is_reported_and_some_rows_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("before", {})
    recorded("after", dict.fromkeys(range(CALLS + 1), "nothing"))
    monkeypatch.setattr(stored, "MAX_READ", 10)
    told = ask(monkeypatch, "compare", before="before", after="after", max_tokens=20_000)
    assert (told.content["unread"], told.content["different"]) == (CALLS - 10, True)
    assert f"{CALLS - 10} more rows may differ" in told.ours
    some = ask(monkeypatch, "compare", before="before:1..3", after="after:1..3")
    assert some.content["summary"]["changed"] == 3


def test_equal_recordings_do_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded("before", {})
    recorded("after", {})
    told = ask(monkeypatch, "compare", before="before", after="after")
    assert not told.content["different"]
    assert "do not differ" in told.ours


@pytest.mark.parametrize("kind", ["numbers", "diagram"])
def test_resources_are_those_of_the_whole_recording(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recorded("weather", {})
    texts: list[str] = []

    async def scene(agent: Agent) -> None:
        (content,) = (await agent.client.read_resource(f"mcpspy://recording/{made.id}/{kind}")).contents
        texts.append(content.text)  # type: ignore[union-attr]  # a text

    with monkeypatch.context() as patch:
        patch.setattr(transcripts, "LARGE_BYTES", 1 << 40)
        play(scene)
    monkeypatch.setattr(agent_captures, "transcript_of", unreadable)
    play(scene)
    assert texts[0] == texts[1]
    assert "search" in texts[0]
