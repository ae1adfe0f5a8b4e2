"""A client that starts its server twice, first to ask for its era: a mock by the label serves both starts."""

import subprocess

import pytest

from tests.cli.terminal import MCPSPY
from tests.conftest import BuiltProgram
from tests.deadlines import SCENE_S
from tests.interop.test_generations import CLIENTS, SCENE, SERVERS


@pytest.mark.parametrize("server", ["Python 1", "Python 2", "TypeScript 2"])
@pytest.mark.parametrize("what", ["lab", "@"])
def test_a_label_takes_the_probe_of_an_official_client_with_it(server: str, what: str, built: BuiltProgram) -> None:
    client = CLIENTS["TypeScript 2, auto"]
    for needs in (client.needs, SERVERS[server].needs):
        if needs:
            built(needs)
    for words in (["run", "--label", "lab", "--", *SERVERS[server].words, "stdio"], ["mock", what]):
        done = subprocess.run([*client.words, *MCPSPY, *words], capture_output=True, text=True, timeout=SCENE_S, check=False)
        assert (done.stdout, done.returncode) == (SCENE, 0), done.stderr
