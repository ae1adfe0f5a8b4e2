"""Effects of calls: what a recorded server says of its tools."""

from typing import Any

import pytest

from mcpspy.replay.client.outgoing import Effects
from tests.transcript.dialogue import Dialogue, request, result, tool_call


@pytest.mark.parametrize(
    ("annotations", "effect"),
    [
        ({"readOnlyHint": True}, "reads"),
        ({"readOnlyHint": True, "destructiveHint": True}, "reads"),
        ({"destructiveHint": True}, "destroys"),
        ({"readOnlyHint": False, "destructiveHint": False}, "changes"),
        ({"readOnlyHint": "yes"}, "changes"),
        (None, "changes"),
        ([], "changes"),
    ],
)
def test_a_tool_does_what_its_server_says(annotations: Any, effect: str) -> None:
    tools = {"tools": [{"name": "forecast", "inputSchema": {}, "annotations": annotations}]}
    recorded = Dialogue().client(request(1)).server(result(1, tools)).client(tool_call(2)).server(result(2)).transcript
    effects = Effects(recorded)
    assert [effects.of(exchange).value for exchange in recorded.exchanges] == ["none", effect]


def test_a_tool_that_was_never_listed_may_change_something() -> None:
    recorded = Dialogue().client(tool_call(1)).server(result(1)).transcript
    assert Effects(recorded).of(recorded.exchanges[0]).value == "changes"
