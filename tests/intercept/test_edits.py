"""Edits of messages: what is sent is JSON, differs exactly where it was to, and every spelling of a path means the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import InterceptError
from mcpspy.records import CLIENT, SERVER
from tests.intercept.making import intercepts

CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"edit","arguments":{"city":"Rome"}}}\n'


def sent(action: str, message: bytes = CALL, answers: bytes = b"") -> bytes | None:
    """Return what becomes of a call of the tool `edit`, or of the answer to it."""
    force = intercepts(f"tool:edit => {action}")
    decision = force.decide(CLIENT, message, 0)
    return force.decide(SERVER, answers, 1).payload if answers else decision.payload


# Spellings of one path


@pytest.mark.parametrize(
    "path",
    [
        "params.arguments.city", "$.params.arguments.city", '$.params["arguments"].city', "$['params']['arguments']['city']",
        'params."arguments"."city"', 'params["arguments"]["city"]', "params['arguments'].city", '$."params".arguments.city',
        "$[ 'params' ].arguments.city", r'params.arguments["\u0063ity"]', ".params.arguments.city",
    ],
)  # fmt: skip
def test_every_spelling_of_a_path_means_the_same(path: str) -> None:
    assert sent(f'set {path}="Oslo"') == CALL.replace(b"Rome", b"Oslo")
    assert sent(f'set {path} = "Oslo" max=1') == CALL.replace(b"Rome", b"Oslo")
    assert sent(f"remove {path}") == CALL.replace(b'"city":"Rome"', b"")


@pytest.mark.parametrize(
    "path", ["params.arguments.City", "arguments.town", "params.arguments.city[0]", "result.city", "$.city.x"]
)
def test_another_path_leaves_the_call_as_it_is(path: str) -> None:
    assert sent(f"remove {path}") == CALL


@pytest.mark.parametrize(
    "text",
    [
        "set params.x=NaN", "set params.x=Infinity", "set params.x=[-Infinity]", 'set params.x="\udcff"', "set params.x='a'",
        "set params.x=01", "set params.x=", "set params.x={a:1}", 'set params.x="a\nb"', "set params..x=1", "set params.*=1",
        "set params[*]=1", "set $=1", "set $params.x=1", "set params.x", 'set params."a\\x"=1', "remove params..x", "remove $",
        "remove params[-1]", "remove params.a b",
    ],
)  # fmt: skip
def test_what_would_not_be_json_or_names_no_single_value_is_refused(text: str) -> None:
    with pytest.raises(InterceptError):
        sent(text)


# Where a value goes


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("set extra=5", b'"city":"Rome"}}}', b'"city":"Rome"}},"extra":5}'),
        ("set $.extra=5", b'"city":"Rome"}}}', b'"city":"Rome"}},"extra":5}'),
        ("set params.extra=5", b'"city":"Rome"}}}', b'"city":"Rome"},"extra":5}}'),
        ("set params._meta.a.b=5", b'"Rome"}}}', b'"Rome"},"_meta":{"a":{"b":5}}}}'),
        ('set params._meta["a.b/c"]=[]', b'"Rome"}}}', b'"Rome"},"_meta":{"a.b/c":[]}}}'),
        ("set params.list[0]=1", b'"Rome"}}}', b'"Rome"},"list":[1]}}'),
        ("set params.list[0].a=1", b'"Rome"}}}', b'"Rome"},"list":[{"a":1}]}}'),
        ("set params.list[1]=1", b'"Rome"}}}', b'"Rome"}}}'),
        ("set params.name.x=1", b'"Rome"}}}', b'"Rome"}}}'),
        ("set params.name[0]=1", b'"Rome"}}}', b'"Rome"}}}'),
        ("set params.arguments[0]=1", b'"Rome"}}}', b'"Rome"}}}'),
        ("set params.arguments={\n\t}", b'{"city":"Rome"}', b"{ \t}"),
        ("set params.arguments.city=1e999", b'"Rome"', b"1e999"),
        (f"set params.arguments.city={'9' * 5000}", b'"Rome"', b"9" * 5000),
        ('set params.arguments.city="\\ud800"', b"Rome", b"\\ud800"),
        ('set params.arguments.city="ö✓"', b"Rome", "ö✓".encode()),
        ('set params."ö"=1', b'"Rome"}}}', b'"Rome"},"\\u00f6":1}}'),
        ('set params.""=1', b'"Rome"}}}', b'"Rome"},"":1}}'),
        ("remove params", b',"params":{"name":"edit","arguments":{"city":"Rome"}}', b""),
        ("remove jsonrpc", b'"jsonrpc":"2.0",', b""),
        ("remove params.arguments", b',"arguments":{"city":"Rome"}', b""),
        ("remove params.nothing", b"", b""),
    ],
)
def test_a_value_goes_where_its_path_says(action: str, before: bytes, after: bytes) -> None:
    assert sent(action) == CALL.replace(before, after)
    assert sent(action, CALL.strip()) == CALL.replace(before, after).strip()
    assert sent(action, CALL.replace(b"\n", b" \r\n")) == CALL.replace(before, after).replace(b"\n", b" \r\n")


@pytest.mark.parametrize(
    ("action", "arguments", "expected"),
    [
        ("set params.arguments.a=0", b'{"a":1,"a":2}', b'{"a":1,"a":0}'),
        ("set params.arguments.a.x=0", b'{"a":{"x":1},"a":{"y":2}}', b'{"a":{"x":1},"a":{"y":2,"x":0}}'),
        ("remove params.arguments.a", b'{"a":1,"b":2, "a":3}', b'{"b":2}'),
        ("remove params.arguments.a", b'{"a":1,"a":2 ,"a" :3 }', b"{ }"),
        ("remove params.arguments.a", b'{ "a":1, "a":2, "b":3 }', b'{ "b":3 }'),
        ("remove params.arguments.a", rb'{"\u0061":1,"b":"\ud800"}', rb'{"b":"\ud800"}'),
        ("set params.arguments.a=0", b'{"\\u0061" :\t1e400 }', b'{"\\u0061" :\t0 }'),
        ("set params.arguments.a=0", b"{\t}", b'{"a":0\t}'),
        ("set params.arguments.b=0", b'{"a":"\xff" }', b'{"a":"\xff","b":0 }'),
        ('set params.arguments.a="ö"', b'{"a":"\xff","b":"\xe9"}', b'{"a":"\\u00f6","b":"\xe9"}'),
        ('set params.arguments.c=["😀"]', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xed\xa0\x80","c":["\\ud83d\\ude00"]}'),
        ('set params.arguments.a="ö"', '{"a":"é"}'.encode(), '{"a":"ö"}'.encode()),
        ("remove params.arguments.a", b'{"a":"\xff","b":"\xe9"}', b'{"b":"\xe9"}'),
        ("set params.arguments.l[1]=0", b'{"l":[ 1 , 2 , 3 ]}', b'{"l":[ 1 , 0 , 3 ]}'),
        ("set params.arguments.l[3]=0", b'{"l":[ 1 , 2 , 3 ]}', b'{"l":[ 1 , 2 , 3,0 ]}'),
        ("remove params.arguments.l[2]", b'{"l":[ 1 , 2 , 3 ]}', b'{"l":[ 1 , 2 ]}'),
        ("remove params.arguments.l[0]", b'{"l":[ 1 , 2 , 3 ]}', b'{"l":[ 2 , 3 ]}'),
        ("remove params.arguments.l[3]", b'{"l":[ 1 , 2 , 3 ]}', b'{"l":[ 1 , 2 , 3 ]}'),
    ],
)
def test_a_call_that_is_spelled_oddly_keeps_its_spelling(action: str, arguments: bytes, expected: bytes) -> None:
    call = CALL.replace(b'{"city":"Rome"}', arguments)
    assert sent(action, call) == call.replace(arguments, expected)


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":\n1}', b'\xef\xbb\xbf{"a": 1}', '{"a":"ö"}'.encode("utf-16"), b'{"result":{"a":1},\r\n"x":1}', b"9" * 5000, b"[1e400]",
    ],
)  # fmt: skip
def test_an_answer_from_a_file_is_json_in_one_line(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.intercept.making.ANSWER", content)
    reply = intercepts("tool:edit => respond file").decide(CLIENT, CALL, 0).reply or b""
    assert (reply.count(b"\n") + reply.count(b"\r"), reply.decode().isprintable()) == (0, True)
    assert json.loads(reply, parse_int=str, parse_constant=pytest.fail)["id"] == "3"


@pytest.mark.parametrize("content", [b"{", b"NaN", b'{"a": Infinity}', b"", b"{} {}", b'"a\nb"', b"\xff\xfe\xfd"])
def test_a_file_that_is_no_json_is_refused(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.intercept.making.ANSWER", content)
    with pytest.raises(InterceptError, match="has no JSON"):
        intercepts("tool:edit => respond file")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-32-be"])
def test_an_edit_of_a_message_in_any_encoding_is_that_edit_or_none(encoding: str) -> None:
    message = CALL.decode().replace("Rome", "Orléans").encode(encoding)
    after = sent('set params.arguments.city="Köln"', message) or b""
    expected = message.decode(encoding).replace("Orléans", "Köln")
    assert after == message or json.loads(after.decode(encoding)) == json.loads(expected)


# Any edit of any message


Spelled: TypeAlias = "Leaf | Members | Items"
BLANKS = st.text(" \t\n\r", max_size=2)


@dataclass(frozen=True)
class Leaf:
    """A value without others in it, as it is spelled."""

    text: str


@dataclass(frozen=True)
class Members:
    """An object: of each member white space, name, white space, value and white space."""

    members: tuple[tuple[str, str, str, Any, str], ...]
    blank: str


@dataclass(frozen=True)
class Items:
    """An array: of each item white space, value and white space."""

    items: tuple[tuple[str, Any, str], ...]
    blank: str


def text_of(value: Spelled) -> str:
    match value:
        case Leaf(text=text):
            return text
        case Members(members=members, blank=blank):
            return "{" + (",".join(f"{a}{name}{b}:{a}{text_of(inner)}{c}" for a, name, b, inner, c in members) or blank) + "}"
        case Items(items=items, blank=blank):
            return "[" + (",".join(f"{a}{text_of(inner)}{b}" for a, inner, b in items) or blank) + "]"


def escaped(text: str) -> str:
    return '"' + "".join(f"\\u{ord(letter):04X}" if ord(letter) < 0x10000 else letter for letter in text) + '"'


TEXTS = st.text(max_size=4) | st.sampled_from(["a", "b", "a.b", "[0]", '"', "ö", "\u2028", "😀"])
STRINGS = st.builds(
    lambda text, spell: spell(text), TEXTS, st.sampled_from([json.dumps, escaped, lambda t: json.dumps(t, ensure_ascii=False)])
)
NUMBERS = st.sampled_from(
    ["0", "-0", "1.0", "1E5", "1e999", "9" * 40, "0.1000000000000000055511151231257827", "true", "false", "null"]
)
JSON = st.recursive(
    st.builds(Leaf, STRINGS | NUMBERS | st.just('"\\ud800"')),
    lambda inner: (
        st.builds(Members, st.lists(st.tuples(BLANKS, STRINGS, BLANKS, inner, BLANKS), max_size=4).map(tuple), BLANKS)
        | st.builds(Items, st.lists(st.tuples(BLANKS, inner, BLANKS), max_size=4).map(tuple), BLANKS)
    ),
    max_leaves=12,
)


def pairs(text: str) -> Any:
    """Decode JSON without losing names that occur twice, or digits."""
    return json.loads(text, object_pairs_hook=lambda members: ("object", members), parse_int=str, parse_float=str)


def places(value: Spelled, steps: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List the paths of all values that a reader of JSON sees: of equal names the last."""
    inner: dict[str | int, Spelled] = {}
    match value:
        case Members(members=members):
            inner = {json.loads(name): member for _, name, _, member, _ in members}
        case Items(items=items):
            inner = dict(enumerate(item for _, item, _ in items))
    return [(*steps, step) for step in inner] + [
        place for step, held in inner.items() for place in places(held, (*steps, step))
    ]


def spelled_path(steps: tuple[str | int, ...]) -> str:
    return "params" + "".join(f"[{json.dumps(step)}]" for step in steps)


def changed(decoded: Any, steps: tuple[str | int, ...], new: str | None) -> Any:
    """Do to decoded JSON what an edit does to its bytes: set the last of equal names, or remove all."""
    step, *rest = steps
    if isinstance(step, int):
        items = list(decoded)
        if rest:
            items[step] = changed(items[step], tuple(rest), new)
        else:
            items[step : step + 1] = [] if new is None else [new]
        return items
    _, members = decoded
    if not rest and new is None:
        return "object", [member for member in members if member[0] != step]
    at = max((at for at, (name, _) in enumerate(members) if name == step), default=len(members))
    value = changed(members[at][1], tuple(rest), new) if rest else new
    return "object", [*members[:at], (step, value), *members[at + 1 :]]


def message_of(params: Spelled, end: str) -> tuple[bytes, str]:
    text = f' {{"method" :"x/y","params": {text_of(params)} ,"id":1}}{end}'
    return text.encode(), text


@given(JSON, st.data(), st.sampled_from(["", "\n", " \r\n"]))
def test_a_set_value_is_the_only_difference(params: Spelled, data: st.DataObject, end: str) -> None:
    message, text = message_of(params, end)
    steps = data.draw(st.sampled_from([(), *places(params)]))
    after = (intercepts(f'method:x/y => set {spelled_path(steps)}="new"').decide(CLIENT, message, 0).payload or b"").decode()
    assert pairs(after) == changed(pairs(text), ("params", *steps), "new")
    begin, rest = after.rsplit('"new"', 1) if after.count('"new"') == 1 else (None, None)
    assert begin is None or (text.startswith(begin) and rest is not None and text.endswith(rest))


@given(JSON, st.data(), st.sampled_from(["", "\n", " \r\n"]))
def test_a_removed_value_is_the_only_one_that_is_missing(params: Spelled, data: st.DataObject, end: str) -> None:
    message, text = message_of(params, end)
    steps = data.draw(st.sampled_from([(), *places(params)]))
    after = (intercepts(f"method:x/y => remove {spelled_path(steps)}").decide(CLIENT, message, 0).payload or b"").decode()
    assert pairs(after) == changed(pairs(text), ("params", *steps), None)
    rest = iter(text)
    assert all(letter in rest for letter in after)  # nothing is new, and nothing has moved


@given(JSON, TEXTS, st.data())
def test_an_added_member_is_the_only_difference(params: Spelled, name: str, data: st.DataObject) -> None:
    message, text = message_of(params, "\n")
    paths = [steps for steps in [(), *places(params)] if (*steps, name) not in places(params)]
    steps = data.draw(st.sampled_from(paths)) if paths else ()
    after = (
        intercepts(f'method:x/y => set {spelled_path((*steps, name))}="new"').decide(CLIENT, message, 0).payload or b""
    ).decode()
    decoded = pairs(text)
    for step in ("params", *steps):
        decoded = decoded[step] if isinstance(step, int) else dict(decoded[1])[step]
    if not (isinstance(decoded, tuple) and decoded[0] == "object"):
        assert after == text
        return
    assert pairs(after) == changed(pairs(text), ("params", *steps, name), "new")
    member = json.dumps(name) + ':"new"'
    assert text in (after.replace(f",{member}", "", 1), after.replace(member, "", 1))


@given(JSON)
def test_a_batch_passes_as_it_is(params: Spelled) -> None:
    message, _ = message_of(params, "")
    batch = b"[%b,%b]\n" % (message, message)
    assert intercepts("method:x/y => set params=1").decide(CLIENT, batch, 0).payload == batch


@given(
    JSON,
    st.data(),
    st.lists(st.binary(max_size=3).map(lambda data: data.translate(None, b'"\\\\\n\r')), min_size=1, max_size=3),
)
def test_an_edit_of_a_message_with_any_bytes_leaves_all_others(params: Spelled, data: st.DataObject, odd: list[bytes]) -> None:
    pieces = message_of(params, "\n")[0].split(b'"\\ud800"')
    message = b"".join(
        piece + (b'"%b"' % odd[at % len(odd)] if at < len(pieces) - 1 else b"") for at, piece in enumerate(pieces)
    )
    steps = data.draw(st.sampled_from([(), *places(params)]))
    after = intercepts(f'method:x/y => set {spelled_path(steps)}="new"').decide(CLIENT, message, 0).payload or b""
    begin, rest = after.rsplit(b'"new"', 1) if after.count(b'"new"') == 1 else (message, b"")
    assert message.startswith(begin)
    assert message.endswith(rest)
    assert intercepts("method:x/y => remove params.nothing.at.all").decide(CLIENT, message, 0).payload == message
