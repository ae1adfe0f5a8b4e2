"""Rules that do not look at everything, and say so."""

from mcpspy.transcript.findings.rule import Unchecked
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records
from tests.findings.test_near_misses import HANDSHAKE

IMAGE = (
    '→ tools/call %d {"name":"draw"}\n← result %d {"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}\n'
)


def limited(account: str) -> set[str]:
    limits: dict[Unchecked, None] = {}
    all_findings(transcribe(records(account)), limits=limits)
    return {rule for unchecked in limits for rule in unchecked.rules}


def test_images_past_the_first_fifty_of_a_tool_are_said_not_to_be_looked_at() -> None:
    images = [IMAGE % (at, at) for at in range(1, 52)]
    assert "content-mislabelled" not in limited(HANDSHAKE + "".join(images[:-1]))
    assert "content-mislabelled" in limited(HANDSHAKE + "".join(images))


def test_a_call_with_very_many_requests_in_its_time_is_said_not_to_be_looked_at() -> None:
    def waiting(count: int) -> str:
        asked = "".join(f"→ ping {at}\n" for at in range(2, 2 + count))
        answers = "".join(f"← result {at}\n" for at in range(2, 2 + count))
        return f'{HANDSHAKE}→ tools/call 1 {{"name":"slow"}}\n{asked}· 9.0 s later\n← result 1\n{answers}'

    assert "blocked-by-call" not in limited(waiting(3))
    assert "blocked-by-call" in limited(waiting(1_001))
