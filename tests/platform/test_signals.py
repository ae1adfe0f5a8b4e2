"""No signal is lost, whenever it comes."""

import subprocess
import sys

import pytest

from tests.deadlines import DEADLINE_S

LISTENS = """
import os, _signal as signal  # as the module does
from mcpspy.platform import signals

install = signal.signal
sent = []

def installed(number, handler):
    install(number, handler)
    sent.append(number)
    os.kill(os.getpid(), number)

signal.signal = installed
read = signals.listen()
print(*sorted(os.read(read, 100)))
print(*sorted(sent))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nobody can send a signal there")
def test_a_signal_that_comes_as_soon_as_it_is_listened_for_is_reported() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENS], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    reported, sent = done.stdout.splitlines()
    assert reported == sent != ""
