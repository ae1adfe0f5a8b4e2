"""Stories for tests/peers/modelserver.py, and the server, started as a program."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from captures.serving import PEERS, port, started

CLIENT_STORY: dict[str, Any] = {
    "models": ["gpt", "claude"],
    "answers": [
        {"to": "limit", "times": 1, "error": {"status": 429, "message": "Rate limit reached", "retry_after": 0.01}},
        {"to": "limit", "text": "after all"},
        {"to": "refused", "error": {"status": 400, "message": "That cannot be answered."}},
        {"to": "midway", "text": "Half of this is", "error": {"after": 4, "type": "overloaded_error", "message": "Overloaded"}},
        {"to": "pieces", "text": "杭州的天气是晴 🌦 气温25°C", "bytes": 5, "pieces": 3},
        {"to": "halves", "text": "🌦🌧", "utf16": True, "pieces": 1},
        {"to": "zipped", "text": "杭州的天气是晴", "gzip": True},
        {"to": "dies", "text": "The connection ends in the middle of this", "cut": 4},
        {"to": "garbled", "text": "One event is no JSON", "garble": 3},
        {"to": "misplaced", "tools": [{"name": "get_weather", "arguments": {"city": "杭州"}}], "misplace": 2},
        {"to": "unended", "text": "Nobody says that this is all", "unended": True},
        {
            "to": "tools",
            "text": "Let me see.",
            "thinking": "They want the weather.",
            "tools": [
                {"name": "get_weather", "arguments": {"city": "杭州"}},
                {"name": "get_weather", "arguments": {"city": "北京"}},
            ],
            "usage": {"input": 88, "output": 15, "cached": 8, "reasoning": 3},
        },
    ],
}
"""Story of a model server for the calls of tests/peers/modelclient.py."""


@contextmanager
def model(story: dict[str, Any], folder: Path) -> Iterator[str]:
    """A model server that tells `story`. Yields its origin; what it prints is in FOLDER/model.log."""
    words = [sys.executable, str(PEERS / "modelserver.py"), json.dumps(story)]
    with started(words, folder, folder / "model.log", {}) as output:
        yield f"http://127.0.0.1:{port(output)}"
