"""A server's offer, from the lists that a client fetched: pages are joined, and a list that is fetched again counts once."""

from typing import Any

from mcpspy.transcript.definitions import DefinitionKind, Offer, offers
from tests.transcript.dialogue import Dialogue, request, result


def tool(name: str, description: str = "Does it.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def fetched(dialogue: Dialogue, id: int, names: list[str], *, cursor: str | None = None, next_cursor: Any = None) -> Dialogue:
    """Fetch a page of the tools."""
    params = None if cursor is None else {"cursor": cursor}
    page = {"tools": [tool(name) for name in names], **({} if next_cursor is None else {"nextCursor": next_cursor})}
    return dialogue.client(request(id, "tools/list", params)).server(result(id, page))


def offer(dialogue: Dialogue) -> Offer:
    (offered,) = offers(dialogue.transcript)
    return offered


def names(dialogue: Dialogue) -> list[str]:
    return [definition.name for definition in offer(dialogue).definitions(DefinitionKind.TOOL)]


def test_pages_of_a_list_are_joined_in_order() -> None:
    dialogue = fetched(Dialogue(), 1, ["b"], next_cursor="x")
    assert names(fetched(dialogue, 2, ["a"], cursor="x")) == ["b", "a"]


def test_the_list_that_was_fetched_last_counts() -> None:
    assert names(fetched(fetched(Dialogue(), 1, ["a", "b"]), 2, ["b", "c"])) == ["b", "c"]


def test_a_list_that_is_being_fetched_again_does_not_count_before_its_last_page() -> None:
    dialogue = fetched(fetched(Dialogue(), 1, ["a", "b"]), 2, ["b"], next_cursor="x")
    assert names(dialogue) == ["a", "b"]


def test_a_list_without_its_last_page_is_not_complete_and_yet_there() -> None:
    dialogue = fetched(Dialogue(), 1, ["a"], next_cursor="x")
    assert (names(dialogue), DefinitionKind.TOOL in offer(dialogue).complete) == (["a"], False)


def test_a_list_without_its_first_page_is_not_complete() -> None:
    assert DefinitionKind.TOOL not in offer(fetched(Dialogue(), 1, ["a"], cursor="x")).complete


def test_two_clients_may_go_through_the_pages_side_by_side() -> None:
    dialogue = fetched(fetched(Dialogue(), 1, ["a"], next_cursor="x"), 2, ["a"], next_cursor="x")
    assert names(fetched(fetched(dialogue, 3, ["b"], cursor="x"), 4, ["b"], cursor="x")) == ["a", "b"]


def test_an_empty_cursor_ends_a_list() -> None:
    assert DefinitionKind.TOOL in offer(fetched(Dialogue(), 1, ["a"], next_cursor="")).complete


def test_a_definition_that_came_twice_is_one_and_one_that_changed_is_two() -> None:
    dialogue = fetched(fetched(Dialogue(), 1, ["a", "b"]), 2, ["a", "b"])
    dialogue.client(request(3)).server(result(3, {"tools": [tool("a", "Does more.")]}))
    assert [definition.name for definition in offer(dialogue).ever.values()] == ["a", "b", "a"]


def test_a_definition_is_the_bytes_that_came() -> None:
    raw = b'{"name" : "a", "n": 1.0e5}'
    dialogue = Dialogue().client(request(1)).server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[' + raw + b"]}}\n")
    assert [definition.raw for definition in offer(dialogue).definitions(DefinitionKind.TOOL)] == [raw]


def test_instructions_come_with_the_greeting_of_either_era() -> None:
    for method in ("initialize", "server/discover"):
        dialogue = Dialogue().client(request(1, method)).server(result(1, {"instructions": "Be quick."}))
        assert [definition.raw for definition in offer(dialogue).definitions(DefinitionKind.INSTRUCTIONS)] == [b'"Be quick."']


def test_prompts_resources_and_templates_are_known_by_their_names() -> None:
    dialogue = Dialogue().client(request(1, "prompts/list")).server(result(1, {"prompts": [{"name": "p"}]}))
    dialogue.client(request(2, "resources/list")).server(result(2, {"resources": [{"uri": "file:///r"}]}))
    dialogue.client(request(3, "resources/templates/list")).server(result(3, {"resourceTemplates": [{"uriTemplate": "t"}]}))
    offered = offer(dialogue)
    assert [
        name
        for part in (DefinitionKind.PROMPT, DefinitionKind.RESOURCE, DefinitionKind.TEMPLATE)
        for name in offered.current[part]
    ] == [
        "p",
        "file:///r",
        "t",
    ]


def test_what_is_not_shaped_as_it_should_be_defines_nothing() -> None:
    shapes: list[Any] = [{"tools": 7}, {"tools": {"a": 1}}, {}, [], {"tools": [], "nextCursor": 7}]
    for odd in shapes:
        assert names(Dialogue().client(request(1)).server(result(1, odd))) == []
    assert names(Dialogue().client(request(1)).server(result(1, {"tools": [7, None, {"name": 3}]}))) == [""]
