"""The table of secrets, shown to each door: what is a secret is masked, and nothing else changes."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.wire.edits import apply_edits
from tests.cli.terminal import run
from tests.sharing.hiding import finder, lines
from tests.sharing.secret_doors import (
    Outcome,
    check,
    export_pytest,
    is_right,
    markdown,
    mcp,
    otlp,
    parquet,
    share,
    shared_places,
    tap,
)
from tests.sharing.secret_rows import TABLES, Instance, in_payloads, rows
from tests.transcript.dialogue import Dialogue, request, result, tool_call

REDACTOR = Redactor(b"of the tests")
OWN, ANOTHER = TABLES
DOORS = [share, shared_places, parquet, otlp, export_pytest, markdown, mcp]
INSTANCES = [instance for table in TABLES for kind in ("text", "json") for instance in in_payloads(kind, table)]


def wrong(outcomes: Iterable[Outcome]) -> list[str]:
    """List the rows that did not come out as they should."""
    return [f"{instance} came out as {out!r}" for instance, out, pattern in outcomes if not is_right((instance, out, pattern))]


def rights(outcomes: Iterable[Outcome]) -> tuple[float, float]:
    """Return the share of the rows with secrets that came out right in all forms, and that of the others."""
    right = {True: dict[str, bool](), False: dict[str, bool]()}
    for outcome in outcomes:
        instance = outcome[0]
        row = instance.name.removesuffix(instance.form)[:4]
        rows_of_kind = right[bool(instance.secrets)]
        rows_of_kind[row] = rows_of_kind.get(row, True) and is_right(outcome)
    masked, kept = (sum(rows.values()) / len(rows) for rows in right.values())
    return masked, kept


@pytest.mark.parametrize("table", TABLES)
def test_the_table_is_long_and_has_what_is_no_secret_too(table: str) -> None:
    secrets = [row for row in rows(table) if row.is_secret]
    assert (len(secrets) > 400, len(rows(table)) - len(secrets) > 250) == (True, True)


def test_a_tap_records_no_secret_where_it_looks() -> None:
    assert wrong(tap(OWN)) == []


@pytest.mark.parametrize("door", DOORS)
def test_no_secret_leaves_by_a_door_and_all_else_does(door: Callable[[Path, str], Iterator[Outcome]], tmp_path: Path) -> None:
    assert wrong(door(tmp_path, OWN)) == []


def test_a_finding_quotes_no_secret_and_all_else() -> None:
    assert wrong(check(OWN)) == []


@pytest.mark.parametrize("door", DOORS)
def test_nearly_all_rows_of_another_author_come_out_right(
    door: Callable[[Path, str], Iterator[Outcome]], tmp_path: Path
) -> None:
    masked, kept = rights(door(tmp_path, ANOTHER))
    assert (masked >= 0.95, kept >= 0.97) == (True, True), f"{masked:.1%} masked, {kept:.1%} kept"


@pytest.mark.parametrize("look", [tap, check])
def test_nearly_all_rows_of_another_author_come_out_right_of_a_tap_and_of_a_finding(
    look: Callable[[str], Iterator[Outcome]],
) -> None:
    masked, kept = rights(look(ANOTHER))
    assert (masked >= 0.95, kept >= 0.97) == (True, True), f"{masked:.1%} masked, {kept:.1%} kept"


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_check_prints_no_secret_that_a_server_shows_in_any_of_its_formats(form: str, tmp_path: Path) -> None:
    dialogue = (
        Dialogue().client(request(1)).server(b"print postgres://bob:falcon7712@db/app\n").server(result(1, {"tools": []}))
    )
    dialogue.stderr(b"Error: password = falcon7713\n").exits(1)
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(dialogue.records))
    said = run("check", str(path), "--format", form).stdout
    assert ("falcon" in said, "postgres://bob:…@db/app" in said.replace("\\u2026", "…")) == (False, True)


def test_a_share_that_found_nothing_says_what_was_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(Dialogue().client(tool_call(1, note="swordfish")).server(result(1)).closes().records))
    said = run("export", "share", str(path), "-o", str(tmp_path / "out.mcpspy")).stderr
    assert ("nothing was replaced: no name of a secret, no token of a known form" in said, "no secret" in said) == (True, False)


def masked(data: bytes) -> bytes:
    """Mask a text that nobody has seen before."""
    return apply_edits(data, finder(spares_pseudonyms=True).payload_edits(data))


@given(st.lists(st.sampled_from(INSTANCES), min_size=1, max_size=4))
def test_masking_twice_changes_nothing(instances: list[Instance]) -> None:
    once = masked("\n\n".join(instance.text for instance in instances).encode())
    assert masked(once) == once


@given(st.lists(st.sampled_from(INSTANCES), min_size=1, max_size=4))
def test_what_is_not_masked_keeps_its_bytes(instances: list[Instance]) -> None:
    data = "\n\n".join(instance.text for instance in instances).encode()
    kept = re.split(rb"redacted-[0-9a-f]{12}", masked(data))
    assert re.fullmatch(b"(?s:.)*".join(map(re.escape, kept)), data) is not None


@given(st.sampled_from(INSTANCES), st.binary(max_size=4), st.floats(0, 1), st.booleans())
def test_any_bytes_can_be_masked(instance: Instance, odd: bytes, place: float, is_cut: bool) -> None:  # noqa: FBT001
    data = f'["--user", "é\\ud800:x", {{"\\udc00":{{"value":"{instance.text}"}}}}]'.encode()
    at = int(place * len(data))
    assert masked(data[:at] + odd + (b"" if is_cut else data[at:])) is not None


HOSTILE = [
    "x", "x.", "xY7", "word ", "\\u0041", "$", "1:", ":", "<", "(", '"', "\n", "|", ",", "-", " ", "=", "=>", "a:b", "a_", "«", "['",
    "password" + " " * 50, "| a " * 10, "<a " + "b=c " * 10, "<td><td>", "password=", "'" * 20, '"password" ', "a,b;c\t", "https://mcp/",
    "token: [[", "-e TOKEN ", "secret is ", "(password,", "api key key key ", "x:1:", "$6$", "login x ", "---|", "\n| --- |",
    "identified by ",
    "values (", "<tr><td>", "textbox ", "https://x:", "\n \n\t", "Authorization: Bearer ", "{\"password\":", "\\", "=:", "a.b.c.",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_text_made_to_take_long_takes_little(piece: str) -> None:
    def cost_s(size: int) -> float:
        data = (piece * (size // len(piece)) + " password").encode()
        began = process_time()
        masked(data)
        return process_time() - began

    assert cost_s(200_000) < 10 * max(cost_s(40_000), 0.05)


@given(
    st.text(st.sampled_from("aAsS19_-. tTokKeEyY"), max_size=20)
    | st.sampled_from(["again", "value", "pem", "key", "tokens", "_", ""])
)
def test_any_name_can_be_judged(name: str) -> None:
    text = f"{name}=x1 {name}: x1\n> {name}: x1"
    assert masked(text.encode()) is not None
    assert REDACTOR.argv([f"--{name}", "x", f"{name}=x", name, "-e", name, "x"]) is not None


@pytest.mark.parametrize(
    "text",
    [
        '<h5>AES keys<a class="mark" href="#aes-keys" id="aes-keys">#</a></h5>',
        '<a name="XSLT_TRACE_KEYS" id="XSLT_TRACE_KEYS">XSLT_TRACE_KEYS</a> = 32768',
        "https://insiders.vscode.dev/redirect/mcp/install?name=memory&config=%7B%22command%22%3A%22npx%22%7D",
    ],
)
def test_pages_about_keys_and_servers_stay(text: str) -> None:
    assert masked(text.encode()) == text.encode()
