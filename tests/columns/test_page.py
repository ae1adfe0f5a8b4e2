"""docs/columns.md has the tables as they are written; `MCPSPY_WRITE_DOCS=1 pytest tests/columns/test_page.py` writes them anew."""

import os

import duckdb

from mcpspy.columns.schema import TABLES, VERSION
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "columns.md"
BEGIN, END = "<!-- tables: generated -->\n", "<!-- end of tables -->\n"


def tables() -> str:
    """Return the part of the page that is generated."""
    parts = [f"The version of this schema is {VERSION}.\n"]
    for name, table in TABLES.items():
        rows = [
            f"| `{column.name}` | {column.type} | {column.about}{' (with `--payloads`)' if column.is_payload else ''} |\n"
            for column in table.columns
        ]
        parts.append(
            f"### {name}\n\nA row is {table.about}.\n\n| column | type | meaning |\n| --- | --- | --- |\n{''.join(rows)}"
        )
    return "\n".join(parts) + "\n"


def test_the_page_is_generated_from_the_schema() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n{tables()}{END}{after}"
    if os.environ.get("MCPSPY_WRITE_DOCS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert page == wanted or os.environ.get("MCPSPY_WRITE_DOCS")


def test_no_name_of_a_column_has_to_be_quoted() -> None:
    with duckdb.connect() as connection:
        for table in TABLES.values():
            for column in table.columns:
                connection.execute(f'SELECT {column.name} FROM (SELECT 1 AS "{column.name}") ORDER BY {column.name}')


def test_no_table_has_two_columns_of_one_name() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names))
        assert names[0] == "capture_id"
