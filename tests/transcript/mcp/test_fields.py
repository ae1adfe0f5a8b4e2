"""The tables of MCP compared with the official types, and the rules for revisions that were never released."""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import CLIENT, SERVER
from mcpspy.transcript.mcp.codes import ERROR_CODES, HTTP_STATUSES, IMPLEMENTATION_CODES, MODERN_CODES
from mcpspy.transcript.mcp.methods import (
    INPUT_REQUESTS,
    MAY_NEED_INPUT,
    METHODS,
    TARGETS,
    Method,
    MethodKind,
    MethodStanding,
    method_row,
    method_rows,
    method_standing,
)
from mcpspy.transcript.mcp.revisions import LATEST, REVISIONS, Era, era, is_known, nearest, position

if TYPE_CHECKING:
    from mcpspy.records import Side

OFFICIAL = REVISIONS[1:]

TASKS_OF_2025 = {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "notifications/tasks/status"}
"""Methods of 2025-11-25 that the official types leave out on purpose."""


def ours(kind: MethodKind, sender: "Side", revision: str) -> set[str]:
    """Return the methods that `sender` may send in `revision`, without extensions and tasks of 2025."""
    methods = {
        method.name
        for method in METHODS
        if method.kind == kind
        and method.sender == sender
        and method.is_in(revision)
        and not method.extension
        and not method.inside
    }
    return methods - TASKS_OF_2025


@pytest.mark.parametrize("revision", OFFICIAL)
@pytest.mark.parametrize(
    ("kind", "sender", "table"),
    [
        ("request", CLIENT, "CLIENT_REQUESTS"),
        ("request", SERVER, "SERVER_REQUESTS"),
        ("notification", CLIENT, "CLIENT_NOTIFICATIONS"),
        ("notification", SERVER, "SERVER_NOTIFICATIONS"),
    ],
)
def test_each_side_may_send_what_the_official_types_have(revision: str, kind: MethodKind, sender: "Side", table: str) -> None:
    from mcp_types import methods

    assert ours(kind, sender, revision) == {name for name, of in getattr(methods, table) if of == revision}


def test_the_revisions_are_the_official_ones_and_the_one_before_them() -> None:
    from mcp_types import version

    assert ("2024-10-07", *version.KNOWN_PROTOCOL_VERSIONS) == REVISIONS


@pytest.mark.parametrize("revision", OFFICIAL)
def test_the_era_of_a_revision_is_the_official_one(revision: str) -> None:
    from mcp_types import version

    assert era(revision) is (Era.MODERN if revision in version.MODERN_PROTOCOL_VERSIONS else Era.LEGACY)


def test_results_that_may_need_input_are_the_official_ones() -> None:
    from mcp_types import methods

    assert MAY_NEED_INPUT == methods.INPUT_REQUIRED_METHODS


def test_input_requests_are_the_former_requests_of_servers() -> None:
    from mcp_types import methods

    before = {name for name, of in methods.SERVER_REQUESTS if of == "2025-11-25"}
    assert before - {"ping"} == INPUT_REQUESTS


@pytest.mark.parametrize(
    "name",
    [
        "PARSE_ERROR",
        "INVALID_REQUEST",
        "METHOD_NOT_FOUND",
        "INVALID_PARAMS",
        "INTERNAL_ERROR",
        "HEADER_MISMATCH",
        "MISSING_REQUIRED_CLIENT_CAPABILITY",
        "UNSUPPORTED_PROTOCOL_VERSION",
        "URL_ELICITATION_REQUIRED",
    ],
)
def test_every_official_error_code_is_known_by_its_name(name: str) -> None:
    from mcp_types import jsonrpc

    assert ERROR_CODES[getattr(jsonrpc, name)].name.lower() == name.replace("_", "").lower()


@pytest.mark.parametrize("name", ["CONNECTION_CLOSED", "REQUEST_TIMEOUT"])
def test_codes_of_the_sdk_alone_have_no_meaning(name: str) -> None:
    from mcp_types import jsonrpc

    code = getattr(jsonrpc, name)
    assert code in IMPLEMENTATION_CODES
    assert code not in ERROR_CODES


def test_codes_reserved_by_the_specification_are_no_implementation_s() -> None:
    assert not [code for code in MODERN_CODES if code in IMPLEMENTATION_CODES]
    assert set(HTTP_STATUSES) < set(ERROR_CODES)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.sender} {method.name} {method.first}")
def test_a_row_names_revisions_in_their_order_and_a_capability_of_a_side(method: Method) -> None:
    assert position(method.first) <= position(method.last)
    assert not method.needs or (method.needs[0] in (CLIENT, SERVER) and len(method.needs) > 1)
    assert (method.kind == "notification") == method.name.startswith("notifications/")


@pytest.mark.parametrize("revision", REVISIONS)
def test_no_two_rows_hold_for_the_same_message(revision: str) -> None:
    methods = [(method.name, method.sender) for method in METHODS if method.is_in(revision)]
    assert sorted(methods) == sorted(set(methods))


def _fields(model: Any) -> set[str]:
    params = model.model_fields["params"].annotation
    models = [params] if hasattr(params, "model_fields") else list(params.__args__)
    return {
        field.alias or name for model in models if hasattr(model, "model_fields") for name, field in model.model_fields.items()
    }


@pytest.mark.parametrize("table", ["MONOLITH_REQUESTS", "MONOLITH_NOTIFICATIONS"])
def test_what_a_message_is_about_is_a_member_of_its_official_params(table: str) -> None:
    from mcp_types import methods

    models = getattr(methods, table)
    names = [name for name in TARGETS if name in models]
    assert names
    assert not [name for name in names if TARGETS[name] not in _fields(models[name])]


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        ("2024.11.05", Era.LEGACY),
        ("2025-12-31", Era.LEGACY),
        ("1.0", Era.LEGACY),
        ("", Era.LEGACY),
        ("2026-07-28", Era.MODERN),
        ("2027-01-01", Era.MODERN),
        ("DRAFT-2026-v1", Era.MODERN),
        ("draft", Era.MODERN),
    ],
)
def test_an_unreleased_revision_has_an_era(revision: str, expected: Era) -> None:
    assert era(revision) is expected


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        ("2024.11.05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-07-01", "2025-06-18"),
        ("2023-01-01", "2024-10-07"),
        ("1.0", "2025-11-25"),
        ("2031-01-01", LATEST),
        ("2026-01-01", "2026-07-28"),
        ("draft", LATEST),
    ],
)
def test_an_unreleased_revision_follows_the_rules_of_its_neighbour(revision: str, expected: str) -> None:
    assert nearest(revision) == expected


@given(st.text(max_size=40))
def test_any_text_has_an_era_and_a_neighbour_of_the_same_era(text: str) -> None:
    assert is_known(nearest(text))
    assert era(nearest(text)) is era(text)


@pytest.mark.parametrize(
    ("name", "kind", "sender", "revision", "expected"),
    [
        ("tools/call", "request", CLIENT, "2024-11-05", MethodStanding.KNOWN),
        ("tools/call", "request", SERVER, "2024-11-05", MethodStanding.OTHER_SIDE),
        ("ping", "notification", CLIENT, "2024-11-05", MethodStanding.OTHER_KIND),
        ("ping", "request", CLIENT, "2026-07-28", MethodStanding.OTHER_REVISION),
        ("elicitation/create", "request", SERVER, "2025-03-26", MethodStanding.OTHER_REVISION),
        ("elicitation/create", "request", SERVER, "2025-06-18", MethodStanding.KNOWN),
        ("elicitation/create", "request", SERVER, "2026-07-28", MethodStanding.INSIDE_ONLY),
        ("notifications/progress", "notification", CLIENT, "2026-07-28", MethodStanding.OTHER_SIDE),
        ("server/discover", "request", CLIENT, "2025-11-25", MethodStanding.OTHER_REVISION),
        ("tasks/list", "request", SERVER, "2025-11-25", MethodStanding.KNOWN),
        ("tasks/list", "request", CLIENT, "2026-07-28", MethodStanding.OTHER_REVISION),
        ("acme/anything", "request", CLIENT, "2026-07-28", MethodStanding.UNKNOWN),
    ],
)
def test_a_revision_says_whether_a_message_may_be_sent(
    name: str, kind: MethodKind, sender: "Side", revision: str, expected: Any
) -> None:
    assert method_standing(name, kind, sender, revision) is expected


def test_a_method_of_2025_needs_other_capabilities_than_its_namesake_of_the_extension() -> None:
    of_2025, of_extension = method_row("tasks/get", CLIENT, "2025-11-25"), method_row("tasks/get", CLIENT, "2026-07-28")
    assert of_2025 is not None
    assert of_extension is not None
    assert of_2025.needs == ("server", "tasks")
    assert of_extension.needs == ("server", "extensions", "io.modelcontextprotocol/tasks")


def test_an_unknown_method_has_no_rows() -> None:
    assert method_rows("acme/anything") == ()
    assert method_row("acme/anything", CLIENT, LATEST) is None
