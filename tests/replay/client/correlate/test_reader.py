"""Correlated values: which recorded values came from the server, and the live values in their place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import PathError
from mcpspy.replay.client.correlate.reader import read_correlations
from tests.replay.client.correlated_client import CorrelatedClient
from tests.transcript.dialogue import Dialogue, error, notification, request, result

OLD, NEW = "8f3a9c01", "77de0123"
UUID, OTHER_UUID = "0191f0c2-7a1b-7e55-9d3c-aa10bc20ef30", "0191f0c3-1111-7e55-8d3c-bb10bc20ef31"


def call(id: int, /, **arguments: Any) -> Any:
    return request(id, "tools/call", {"name": "note", "arguments": arguments})


def text(id: int, *texts: str) -> Any:
    return result(id, {"content": [{"type": "text", "text": text} for text in texts]})


def structured(id: int, /, **content: Any) -> Any:
    return result(id, {"content": [], "structuredContent": content})


def asked_twice(first: Any, answer: Any, second: Any) -> Dialogue:
    """Return a transcript in which row 2 uses the answer of row 1."""
    return Dialogue().client(first).server(answer).client(second).server(result(2))


# By the specification


def test_a_cursor_is_the_live_one_however_short_it_is() -> None:
    recorded = asked_twice(request(1), result(1, {"tools": [], "nextCursor": "1"}), request(2, params={"cursor": "1"}))
    client = CorrelatedClient(recorded).hears(1, result(1, {"tools": [], "nextCursor": "2"}))
    assert client.says(2)["params"] == {"cursor": "2"}


def test_a_cursor_is_that_of_its_own_list() -> None:
    recorded = (
        Dialogue()
        .client(request(1, "tools/list")).server(result(1, {"nextCursor": "p2"}))
        .client(request(2, "prompts/list")).server(result(2, {"nextCursor": "p2"}))
        .client(request(3, "tools/list", {"cursor": "p2"}))
    )  # fmt: skip
    client = (
        CorrelatedClient(recorded).hears(1, result(1, {"nextCursor": "tools"})).hears(2, result(2, {"nextCursor": "prompts"}))
    )
    assert client.says(3)["params"] == {"cursor": "tools"}


def test_a_cursor_that_was_given_out_twice_is_that_of_the_last_time() -> None:
    recorded = (
        Dialogue()
        .client(request(1)).server(result(1, {"nextCursor": "p2"})).client(request(2, params={"cursor": "p2"})).server(result(2))
        .client(request(3)).server(result(3, {"nextCursor": "p2"})).client(request(4, params={"cursor": "p2"})).server(result(4))
    )  # fmt: skip
    client = CorrelatedClient(recorded).hears(1, result(1, {"nextCursor": "a"})).hears(3, result(3, {"nextCursor": "b"}))
    assert [client.says(2)["params"]["cursor"], client.says(4)["params"]["cursor"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("issued", "live"),
    [
        ({"task": {"taskId": "t1", "status": "working"}}, {"task": {"taskId": "live", "status": "working"}}),
        ({"resultType": "task", "taskId": "t1"}, {"resultType": "task", "taskId": "live"}),
    ],
    ids=["2025-11-25", "SEP-2663"],
)
def test_a_task_is_asked_for_by_its_live_id(issued: Any, live: Any) -> None:
    recorded = (
        Dialogue()
        .client(call(1)).server(result(1, issued))
        .client(request(2, "tasks/get", {"taskId": "t1"})).server(result(2, {"taskId": "t1", "status": "completed"}))
        .client(request(3, "tasks/result", {"taskId": "t1"}))
    )  # fmt: skip
    client = CorrelatedClient(recorded).hears(1, result(1, live))
    assert [client.says(2)["params"]["taskId"], client.says(3)["params"]["taskId"]] == ["live", "live"]


def test_a_task_comes_from_the_call_that_made_it_and_not_from_its_polls() -> None:
    recorded = (
        Dialogue()
        .client(call(1)).server(result(1, {"task": {"taskId": "t1"}}))
        .client(request(2, "tasks/get", {"taskId": "t1"})).server(result(2, {"taskId": "t1", "status": "completed"}))
        .client(request(3, "tasks/result", {"taskId": "t1"}))
    )  # fmt: skip
    assert read_correlations(recorded.transcript).needs(3) == {1}


def test_a_task_that_was_told_of_before_its_answer_comes_from_the_answer() -> None:
    recorded = (
        Dialogue()
        .client(call(1))
        .server(notification("notifications/tasks/status", {"taskId": "t1", "status": "working"}))
        .server(result(1, {"task": {"taskId": "t1"}}))
        .client(request(2, "tasks/get", {"taskId": "t1"}))
    )
    transcript = recorded.transcript
    assert read_correlations(transcript).needs(transcript.exchanges[1].row) == {transcript.exchanges[0].row}


def test_a_state_is_handed_back_as_it_is_live() -> None:
    need = {"resultType": "input_required", "requestState": "s", "inputRequests": {"who": {"method": "elicitation/create"}}}
    retry = request(2, "tools/call", {"name": "note", "requestState": "s", "inputResponses": {"who": {"action": "accept"}}})
    client = CorrelatedClient(asked_twice(call(1), result(1, need), retry)).hears(1, result(1, {**need, "requestState": "S2"}))
    assert client.says(2)["params"]["requestState"] == "S2"


def test_input_is_answered_under_the_names_that_the_live_server_gave_it() -> None:
    need = {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "roots/list"}, "b": {"method": "elicitation/create"}},
    }
    live = {
        "resultType": "input_required",
        "inputRequests": {"x": {"method": "roots/list"}, "y": {"method": "elicitation/create"}},
    }
    retry = request(2, "tools/call", {"name": "note", "inputResponses": {"a": {"roots": []}, "b": {"action": "decline"}}})
    client = CorrelatedClient(asked_twice(call(1), result(1, need), retry)).hears(1, result(1, live))
    assert client.says(2)["params"]["inputResponses"] == {"x": {"roots": []}, "y": {"action": "decline"}}


def test_an_answer_to_a_server_names_the_live_task() -> None:
    related = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
    recorded = (
        Dialogue()
        .client(call(1)).server(result(1, {"task": {"taskId": "t1"}}))
        .server(request(9, "elicitation/create", {"_meta": related}))
        .client(result(9, {"action": "accept", "_meta": related}))
    )  # fmt: skip
    client = CorrelatedClient(recorded).hears(1, result(1, {"task": {"taskId": "live"}}))
    assert client.says(2)["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"] == "live"


def test_a_task_that_the_client_runs_is_its_own() -> None:
    recorded = (
        Dialogue()
        .server(request(9, "sampling/createMessage", {"task": {}})).client(result(9, {"task": {"taskId": "t1"}}))
        .server(request(10, "tasks/get", {"taskId": "t1"})).client(result(10, {"taskId": "t1", "status": "completed"}))
        .client(notification("notifications/tasks/status", {"taskId": "t1"}))
    )  # fmt: skip
    assert not any(CorrelatedClient(recorded).correlations.values(message) for message in recorded.transcript.messages)


def test_an_elicitation_is_named_as_the_live_server_names_it() -> None:
    elicits = request(9, "elicitation/create", {"mode": "url", "elicitationId": "e1"})
    recorded = Dialogue().client(call(1)).server(elicits).client(result(9)).server(result(1))
    recorded.client(request(2, "vendor/done", {"elicitationId": "e1"}))
    row = recorded.exchanges[-1].row
    client = CorrelatedClient(recorded).hears(2, request(9, "elicitation/create", {"mode": "url", "elicitationId": "live"}))
    assert client.says(row)["params"]["elicitationId"] == "live"


# What looks made up


@pytest.mark.parametrize(
    ("issued", "live", "used", "expected"),
    [
        (structured(1, id=OLD), structured(1, id=NEW), {"id": OLD}, {"id": NEW}),
        (structured(1, id=UUID), structured(1, id=OTHER_UUID), {"in": [{"id": UUID}]}, {"in": [{"id": OTHER_UUID}]}),
        (structured(1, id=OLD), structured(1, id=NEW), {"uri": f"lab://n/{OLD}/body"}, {"uri": f"lab://n/{NEW}/body"}),
        (structured(1, id=OLD), structured(1, id=NEW), {"name": f"run-{OLD}"}, {"name": f"run-{NEW}"}),
        (structured(1, uri=f"lab://n/{OLD}"), structured(1, uri=f"lab://n/{NEW}"), {"id": OLD}, {"id": NEW}),
        (text(1, f"Opened note {OLD}."), text(1, f"Opened note {NEW}."), {"id": OLD}, {"id": NEW}),
        (text(1, f'{{"note": {{"id": "{OLD}"}}}}'), text(1, f'{{"note": {{"id": "{NEW}"}}}}'), {"id": OLD}, {"id": NEW}),
        (text(1, f"a: {UUID}\nb: {OLD}"), text(1, f"a: {OTHER_UUID}\nb: {NEW}"), {"id": OLD}, {"id": NEW}),
        (text(1, f"{OLD} {UUID}"), text(1, f"{NEW} {OTHER_UUID}"), {"q": f"{UUID}, {OLD}"}, {"q": f"{OTHER_UUID}, {NEW}"}),
        (structured(1, id="redacted-0123456789ab"), structured(1, id="x"), {"id": "redacted-0123456789ab"}, {"id": "x"}),
        (error(1) | {"error": {"code": 1, "data": {"id": OLD}}}, error(1) | {"error": {"code": 1, "data": {"id": NEW}}},
         {"id": OLD}, {"id": NEW}),
    ],
    ids=["member", "nested", "in a uri", "in a name", "from a uri", "from a text", "from json in a text", "second line",
         "two in a text", "pseudonym", "from an error"],
)  # fmt: skip
def test_opaque_values_are_correlated(issued: Any, live: Any, used: Any, expected: Any) -> None:
    client = CorrelatedClient(asked_twice(call(1), issued, call(2, **used))).hears(1, live)
    assert (client.says(2)["params"]["arguments"], client.missing) == (expected, [])


def test_a_long_number_is_correlated_with_every_digit() -> None:
    old, new = 1234567890123456789, 98765432109876543210987
    recorded = asked_twice(call(1), structured(1, id=old), call(2, id=old, uri=f"lab://{old}/x"))
    client = CorrelatedClient(recorded).hears(1, structured(1, id=new))
    assert client.says(2)["params"]["arguments"] == {"id": new, "uri": f"lab://{new}/x"}


@pytest.mark.parametrize("number", [7, 1763700000, 0.123456789012345, -123456789012345])
def test_a_number_that_could_be_anything_is_not(number: float) -> None:
    client = CorrelatedClient(asked_twice(call(1), structured(1, id=number), call(2, id=number))).hears(1, structured(1, id=8))
    assert client.says(2)["params"]["arguments"] == {"id": number}


@pytest.mark.parametrize("value", ["1", "true", "diary.txt", "get_user_v2", "2026-11-21", "1.2.3-beta4", "report2026", "note"])
def test_values_that_could_be_anything_are_not_correlated(value: str) -> None:
    client = CorrelatedClient(asked_twice(call(1), structured(1, id=value), call(2, id=value))).hears(
        1, structured(1, id="other")
    )
    assert client.says(2)["params"]["arguments"] == {"id": value}


def test_what_the_client_said_first_is_its_own() -> None:
    recorded = asked_twice(call(1, session=UUID), structured(1, session=UUID), call(2, session=UUID))
    assert CorrelatedClient(recorded).hears(1, structured(1, session=OTHER_UUID)).says(2)["params"]["arguments"] == {
        "session": UUID
    }


def test_the_folders_of_a_client_are_its_own_even_where_the_server_named_them_first() -> None:
    recorded = Dialogue().client(call(1)).server(text(1, f"you may use /tmp/{OLD}")).server(request(9, "roots/list"))
    recorded.client(result(9, {"roots": [{"uri": f"file:///tmp/{OLD}"}]}))
    client = CorrelatedClient(recorded).hears(1, text(1, f"you may use /tmp/{NEW}"))
    assert client.says(2)["result"] == {"roots": [{"uri": f"file:///tmp/{OLD}"}]}


def test_the_name_of_a_tool_is_never_correlated() -> None:
    tools = {"tools": [{"name": f"note-{OLD}"}]}
    recorded = asked_twice(request(1), result(1, tools), request(2, "tools/call", {"name": f"note-{OLD}"}))
    client = CorrelatedClient(recorded).hears(1, result(1, {"tools": [{"name": f"note-{NEW}"}]}))
    assert client.says(2)["params"]["name"] == f"note-{OLD}"


def test_what_the_live_server_still_says_somewhere_stays() -> None:
    recorded = asked_twice(call(1), structured(1, ids=[OLD, "x"]), call(2, id=OLD))
    client = CorrelatedClient(recorded).hears(1, structured(1, ids=[NEW, OLD]))
    assert client.says(2)["params"]["arguments"] == {"id": OLD}


def test_nothing_else_of_a_message_changes_its_spelling() -> None:
    odd = (
        b'{ "params" : {"arguments":{"a": 1.0,"id" :"'
        + OLD.encode()
        + b'","\\u0062":"\xc3\xbc"},"name":"note"},"id":2,"jsonrpc":"2.0",'
    )
    odd += b'"method":"tools/call"}\r\n'
    client = CorrelatedClient(asked_twice(call(1), structured(1, id=OLD), odd)).hears(1, structured(1, id=NEW))
    assert client.says_bytes(2) == odd.replace(OLD.encode(), NEW.encode())


def test_a_notification_gives_a_value_too() -> None:
    recorded = Dialogue().server(notification("vendor/opened", {"id": OLD})).client(call(1, id=OLD))
    client = CorrelatedClient(recorded).hears(0, notification("vendor/opened", {"id": NEW}))
    assert client.says(2)["params"]["arguments"] == {"id": NEW}


def test_what_a_later_answer_repeats_comes_from_the_first_that_gave_it() -> None:
    recorded = (
        Dialogue()
        .client(call(1)).server(structured(1, id=OLD))
        .client(request(2, "resources/list")).server(result(2, {"resources": [{"uri": f"lab://{OLD}"}]}))
        .client(call(3, id=OLD)).server(result(3))
    )  # fmt: skip
    assert read_correlations(recorded.transcript).needs(3) == {1}


def test_it_comes_from_the_later_answer_where_the_first_is_not_there() -> None:
    recorded = (
        Dialogue()
        .client(call(1)).server(structured(1, id=OLD))
        .client(request(2, "resources/list")).server(result(2, {"resources": [{"uri": f"lab://{OLD}"}]}))
        .client(call(3, id=OLD)).server(result(3))
    )  # fmt: skip
    client = CorrelatedClient(recorded).hears(2, result(2, {"resources": [{"uri": f"lab://{NEW}"}]}))
    assert client.says(3)["params"]["arguments"] == {"id": NEW}


def both(id: int, text: str, made: str) -> Any:
    return result(id, {"content": [{"type": "text", "text": text}], "structuredContent": {"note": made}})


def test_a_value_that_stands_by_itself_is_surer_than_the_same_in_a_text() -> None:
    recorded = asked_twice(call(1), both(1, f"Done: {OLD}", OLD), call(2, id=OLD))
    client = CorrelatedClient(recorded).hears(1, both(1, "Everything went well today", NEW))
    assert client.says(2)["params"]["arguments"] == {"id": NEW}


def test_the_same_in_a_text_does_where_nothing_else_is_there() -> None:
    recorded = asked_twice(call(1), both(1, f"Done: {OLD}", OLD), call(2, id=OLD))
    client = CorrelatedClient(recorded).hears(1, text(1, f"Done: {NEW}"))
    assert client.says(2)["params"]["arguments"] == {"id": NEW}


# Lists


def notes(*pairs: tuple[str, str]) -> Any:
    return structured(1, notes=[{"id": id, "title": title} for title, id in pairs])


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (notes(("shopping", "aaaa1111"), ("diary", NEW)), NEW),
        (notes(("diary", NEW), ("shopping", "aaaa1111")), NEW),
        (notes(("letters", "cccc2222"), ("shopping", "aaaa1111"), ("diary", NEW)), NEW),
        (notes(("diary", NEW)), NEW),
    ],
    ids=["same order", "other order", "one more", "one less"],
)
def test_an_item_of_a_list_is_found_by_what_it_has_besides(live: Any, expected: str) -> None:
    recorded = asked_twice(call(1), notes(("shopping", "bbbb1111"), ("diary", OLD)), call(2, id=OLD))
    assert CorrelatedClient(recorded).hears(1, live).says(2)["params"]["arguments"] == {"id": expected}


@pytest.mark.parametrize(
    "live",
    [notes(("shopping", NEW)), notes(("shopping", "aaaa1111"), ("letters", NEW)), notes(("diary", NEW), ("diary", "aaaa1111"))],
    ids=["it is gone", "another came", "there are two"],
)
def test_no_other_item_takes_the_place_of_one_that_is_not_there(live: Any) -> None:
    recorded = asked_twice(call(1), notes(("shopping", "bbbb1111"), ("diary", OLD)), call(2, id=OLD))
    client = CorrelatedClient(recorded).hears(1, live)
    assert client.says(2)["params"]["arguments"] == {"id": OLD}
    assert client.missing == [f"the value {OLD} of row 2 came from row 1, which brought nothing in its place"]


# Handles


@pytest.mark.parametrize(
    "handle", ["$.structuredContent.handle", "$.result.structuredContent.handle", "handle", '"h1"', "$..handle"]
)
def test_a_named_variable_is_correlated_however_short_its_value_is(handle: str) -> None:
    recorded = asked_twice(call(1), structured(1, handle="h1", n=1), call(2, handle="h1", uri="lab://h1/x", other="h10"))
    client = CorrelatedClient(recorded, handle).hears(1, structured(1, handle="h2", n=1))
    assert client.says(2)["params"]["arguments"] == {"handle": "h2", "uri": "lab://h2/x", "other": "h10"}


def test_a_number_may_be_named_too_and_stays_a_number() -> None:
    recorded = asked_twice(call(1), structured(1, id=17), call(2, id=17, path="/notes/17"))
    digits = "123456789012345678901234567890"
    client = CorrelatedClient(recorded, "id").hears(1, structured(1, id=int(digits)))
    assert client.says(2)["params"]["arguments"] == {"id": int(digits), "path": f"/notes/{digits}"}


def test_a_value_named_as_it_is_is_found_within_a_text() -> None:
    recorded = asked_twice(call(1), text(1, "Opened h1 for you"), call(2, handle="h1"))
    assert CorrelatedClient(recorded, '"h1"').hears(1, text(1, "Opened h7 for you")).says(2)["params"]["arguments"] == {
        "handle": "h7"
    }


def test_a_named_variable_has_the_value_that_was_issued_last() -> None:
    recorded = (
        Dialogue()
        .client(call(1, do="open")).server(structured(1, handle=1)).client(call(2, close=1)).server(result(2))
        .client(call(3, do="open")).server(structured(3, handle=1)).client(call(4, close=1)).server(result(4))
    )  # fmt: skip
    client = CorrelatedClient(recorded, "handle").hears(1, structured(1, handle=5)).hears(3, structured(3, handle=6))
    assert [client.says(row)["params"]["arguments"]["close"] for row in (2, 4)] == [5, 6]


@pytest.mark.parametrize("handle", ["", "a b", "$.a[", "$", '""', "7"])
def test_a_name_that_is_no_path_no_name_and_no_value_is_refused(handle: str) -> None:
    with pytest.raises(PathError):
        read_correlations(Dialogue().transcript, (handle,))


# What is missing


def test_it_is_said_which_answer_is_missing() -> None:
    recorded = asked_twice(request(1), result(1, {"nextCursor": "p2"}), request(2, params={"cursor": "p2"}))
    client = CorrelatedClient(recorded)
    assert client.says(2)["params"] == {"cursor": "p2"}
    assert client.missing == ["the cursor of row 2 came from row 1, which was not answered"]


def test_it_is_said_that_the_call_failed() -> None:
    client = CorrelatedClient(asked_twice(call(1), structured(1, id=OLD), call(2, id=OLD))).hears(1, error(1))
    client.says(2)
    assert client.missing == [f"the value {OLD} of row 2 came from row 1, which failed"]


def test_a_pseudonym_without_a_live_value_is_told_apart() -> None:
    pseudonym = "redacted-0123456789ab"
    client = CorrelatedClient(asked_twice(call(1), structured(1, id=pseudonym), call(2, id=pseudonym)))
    client.says(2)
    assert [missing.redacted for missing in client.run.missing] == [True]


# Needs


def test_a_row_needs_what_its_sources_need() -> None:
    recorded = (
        Dialogue()
        .client(call(1)).server(structured(1, id=OLD))
        .client(call(2, of=OLD)).server(structured(2, id=UUID))
        .client(call(3)).server(result(3))
        .client(call(4, id=UUID)).server(result(4))
    )  # fmt: skip
    correlations = read_correlations(recorded.transcript)
    assert [correlations.needs(row) for row in (1, 2, 3, 4)] == [set(), {1}, set(), {1, 2}]


# Compared with the recording


def test_recorded_values_are_restored_in_a_live_answer() -> None:
    recorded = asked_twice(call(1), text(1, f"Opened {OLD}"), call(2, id=OLD))
    client = CorrelatedClient(recorded).hears(1, text(1, f"Opened {NEW}"))
    client.says(2)
    live = json.dumps(text(2, f"{NEW} closed")).encode()
    assert json.loads(client.run.as_recorded(2, live)) == text(2, f"{OLD} closed")


def test_a_short_value_is_restored_only_where_it_was_correlated() -> None:
    recorded = asked_twice(call(1), structured(1, handle=1, count=5), call(2, handle=1))
    client = CorrelatedClient(recorded, "handle").hears(1, structured(1, handle=5, count=5))
    client.says(2)
    assert json.loads(client.run.as_recorded(1, json.dumps(structured(1, handle=5, count=5)).encode())) == structured(
        1, handle=1, count=5
    )


# Properties


class Notebook:
    """A server that generates ids, and knows no others."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ids: list[str] = []

    def answer(self, request: Any) -> Any:
        arguments = request["params"]["arguments"]
        if "new" in arguments:
            made = f"{(self.seed + 1) * 7919 + len(self.ids) * 104729:06x}b{len(self.ids)}c{self.seed % 10}"
            self.ids.append(made)
            return text(request["id"], f"made {made} for {arguments['new']}")
        if "all" in arguments:
            return structured(request["id"], notes=[{"title": f"the {at}", "id": id} for at, id in enumerate(self.ids)])
        known = arguments["id"].rpartition("/")[2] in self.ids
        return text(request["id"], "there it is" if known else "no such note")


OPERATIONS = st.lists(st.sampled_from(["new", "all", "use", "use uri"]), min_size=1, max_size=12)


@given(OPERATIONS, st.data())
def test_every_id_that_a_live_server_makes_up_reaches_the_requests_that_use_it(
    operations: list[str], data: st.DataObject
) -> None:
    recorded, notebook = Dialogue(), Notebook(1)
    for id, operation in enumerate(operations, 1):
        if operation in ("new", "all"):
            asks = call(id, **{operation: "you"})
        elif notebook.ids:
            used = notebook.ids[data.draw(st.integers(0, len(notebook.ids) - 1))]
            asks = call(id, id=used if operation == "use" else f"lab://notes/{used}")
        else:
            continue
        recorded.client(asks).server(notebook.answer(asks))
    client, live = CorrelatedClient(recorded), Notebook(5)
    for exchange in client.transcript.exchanges:
        answer = live.answer(client.says(exchange.row))
        client.hears(exchange.row, answer)
        assert answer["result"].get("content") != text(0, "no such note")["result"]["content"]
    assert client.missing == []


NAMES = st.text(max_size=4) | st.sampled_from(["id", "text", "taskId"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([OLD, NEW, UUID, f"lab://{OLD}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(VALUES, VALUES, VALUES)
def test_whatever_is_said_a_request_stays_json_and_what_has_no_other_value_stays(issued: Any, live: Any, used: Any) -> None:
    recorded = asked_twice(call(1), result(1, {"x": issued}), request(2, "tools/call", {"arguments": used}))
    client = CorrelatedClient(recorded, "id").hears(1, result(1, {"x": live}))
    data = client.says_bytes(2)
    client.run.as_recorded(2, data)
    client.run.as_recorded(1, json.dumps(result(1, {"x": live})).encode())
    json.loads(data)
    same = CorrelatedClient(recorded, "id").hears(1, result(1, {"x": issued}))
    assert same.says_bytes(2) == same.client_message(2).raw
    assert same.missing == []


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_of_a_server_or_a_client_raise(server: bytes, client: bytes) -> None:
    recorded = Dialogue().client(call(1)).server(server + b"\n").client(client + b"\n").client(call(2, id=OLD))
    correlated = CorrelatedClient(recorded, "id", '"x"')
    for row in range(1, 4):
        if correlated.transcript.row(row) is not None:
            correlated.correlations.needs(row)
