"""The table of secrets, shown to each door: what is a secret is masked, and nothing else changes."""

from collections.abc import Iterable

from tests.sharing.secret_doors import Outcome, is_right, tap
from tests.sharing.secret_rows import rows


def wrong(outcomes: Iterable[Outcome]) -> list[str]:
    """List the rows that did not come out as they should."""
    return [f"{instance} came out as {out!r}" for instance, out, pattern in outcomes if not is_right((instance, out, pattern))]


def test_the_table_is_long_and_has_what_is_no_secret_too() -> None:
    secrets = [row for row in rows() if row.is_secret]
    assert (len(secrets) > 400, len(rows()) - len(secrets) > 250) == (True, True)


def test_a_tap_records_no_secret_where_it_looks() -> None:
    assert wrong(tap()) == []
