"""Placeholders in the place of credentials, and values that only look like them."""

import pytest

from tests.findings.test_near_misses import INITIALIZE
from tests.findings.test_silences import findings_of


def asked(field: str, status: str = "401 Unauthorized") -> str:
    return f"· HTTP\n→ POST /mcp\n  {field}\n  {INITIALIZE[2:]}← {status}\n"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("Authorization: Bearer ${API_KEY}", "holds the placeholder “${API_KEY}” itself"),
        ("Authorization: Bearer undefined", "holds the placeholder “undefined” itself"),
        ("Authorization: Bearer {{TOKEN}}", "holds the placeholder “{{TOKEN}}” itself"),
        ("Authorization: Bearer Bearer redacted-0123456789ab", "names its scheme twice, “Bearer Bearer …”"),
        ("Authorization: Bearer ", "has a scheme and no credential, “Bearer”"),
        ("X-Api-Key: YOUR_API_KEY", "holds the placeholder “YOUR_API_KEY” itself"),
    ],
)
def test_a_placeholder_in_a_credential_field_is_a_fault_of_the_configuration(field: str, words: str) -> None:
    (finding,) = findings_of(asked(field) * 2)
    assert (finding.rule, finding.culprit, finding.count) == ("placeholder-sent", "configuration", 2)
    assert f"The field {field.partition(':')[0]} of POST /mcp {words}, and the server answered with 401." == finding.what


@pytest.mark.parametrize(
    "field",
    [
        "Authorization: Bearer redacted-0123456789ab",
        "X-Api-Key: redacted-0123456789ab",
        "Mcp-Param-Token: undefined",
        "X-Request-Id: null",
        "Authorization: Basic redacted-0123456789ab",
    ],
)
def test_other_values_are_no_placeholders(field: str) -> None:
    assert "placeholder-sent" not in {finding.rule for finding in findings_of(asked(field))}
