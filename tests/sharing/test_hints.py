"""The fast look at texts lets none pass in which a finder finds something."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read
from mcpspy.records import Frame
from mcpspy.sharing.finder import FinderOptions, SecretFinder
from mcpspy.sharing.hints import may_have, may_tell, that_may_have
from mcpspy.sharing.known import KnownValues

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = (
    "password",
    "apiKey",
    "client_secret",
    "session_id",
    "Authorization",
    "requestState",
    "userCode",
    "code_verifier",
    "pwd",
)
TOLD = (
    '{{"{name}":"s3cret-value"}}',
    '{{"{name}" : "s3cret-value"}}',
    '{{"text":"{{\\"{name}\\": \\"s3cret-value\\"}}"}}',
    "{name}=s3cret-value",
    "run --{name} s3cret-value",
    "https://user:s3cret-value@example.org/",
    "mysql -ps3cret-value",
    '{{"env":[{{"name":"{name}","value":"s3cret-value"}}]}}',
)


def finder() -> SecretFinder:
    options = FinderOptions(pseudonym=lambda value: b"redacted-000000000000")
    known = KnownValues(options.pseudonym)
    known.close()
    return SecretFinder(options, known)


@pytest.mark.parametrize("template", TOLD)
@pytest.mark.parametrize("name", NAMES)
def test_what_tells_a_secret_is_looked_at(template: str, name: str) -> None:
    data = template.format(name=name).encode()
    if finder().payload_edits(data):
        assert may_tell(b"\n".join([b'{"a":1}', data, b'{"b":2}']))
        assert that_may_have([b"plain", data]) == [data]


@given(
    st.lists(
        st.sampled_from(
            [*NAMES, "a", " ", "=", ":", '"', "--", "-p", "Bearer ", "ghp_" + "a1B2" * 9, "s3cret1", "@", "://", "?", "%41"]
        )
    )
)
def test_a_text_that_may_have_none_has_none(pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    if not may_have(data):
        assert finder().payload_edits(data) == []


def test_payloads_of_captures_that_tell_none_have_none_by_name() -> None:
    passed = 0
    for path in CAPTURES.glob("*.mcpspy"):
        for record in read(path):
            if isinstance(record, Frame) and not may_tell(record.data):
                passed += 1
                edits = finder().payload_edits(record.data)
                assert [edit for edit in edits if edit.kind not in ("token", "value", "session")] == [], json.dumps(edits)
    assert passed > 300
