"""Collectors that cannot be reached, and the reasons that are given."""

import socket

import pytest
import requests

from mcpspy.telemetry.sending import CollectorSession


def test_a_second_attempt_without_time_is_not_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"  # where nobody listens any more
    session = CollectorSession()
    for _ in range(2):
        session.begin()
        with pytest.raises(requests.exceptions.ConnectionError):
            session.get(url, timeout=5)
        with pytest.raises(ValueError, match="timeout"):
            session.get(url, timeout=0)
        assert session.trouble == ""
    session.begin()
    with pytest.raises(ValueError, match="timeout"):
        session.get(url, timeout=0)
    assert "timeout" in session.trouble
