"""Validation of values against the JSON schemas of a peer, which may be hostile.

Nothing is fetched for a schema, its expressions are not run, and all steps are counted.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final

MAX_SCHEMA_BYTES: Final = 64 << 10
MAX_STEPS: Final = 50_000
"""So many keywords of schemas are applied in one capture; later values are not checked."""

MAX_MISTAKES: Final = 3
"""So many mistakes of one value are named."""

_ITEMS_A_STEP: Final = 16
"""A keyword with a list, such as enum, takes one more step for each so many items."""

_NOT_RUN: Final = frozenset(
    {
        "pattern", "patternProperties", "format", "uniqueItems", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
        "$recursiveRef",
    }
)  # fmt: skip
"""Keywords that a hostile schema can make expensive, or that need more than the schema itself. They count as fulfilled."""


_NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members are schemas under names of their own, which may be those of keywords."""

_VALUES: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords that hold values, in which `$ref` means nothing."""


class Validators:
    """Validators for the schemas of one peer, each made once, with one count of steps for all."""

    __slots__ = ("_makers", "_steps", "_validators")

    def __init__(self) -> None:
        self._steps = [0]
        self._validators: dict[int, tuple[dict[str, Any], Any]] = {}
        self._makers: dict[str, Callable[..., Any]] = {}
        """Makers of validators, by draft: to build one takes 1.7 ms, a hundred times as long as to check a call."""

    @property
    def are_exhausted(self) -> bool:
        """True once all steps are used up: later values are not checked."""
        return self._steps[0] >= MAX_STEPS

    def mistake(self, schema: Any, value: Any) -> str:
        """Say in a sentence why `value` does not fit `schema`; empty if it fits, or if that cannot be told."""
        if not isinstance(schema, dict) or fits_plainly(schema, value, [_PLAIN_STEPS]):
            return ""
        return self.mistake_by_jsonschema(schema, value)

    def mistake_by_jsonschema(self, schema: dict[str, Any], value: Any) -> str:
        """Say the same, and ask jsonschema in any case."""
        try:
            validator = self._validator(schema)
            errors = list(islice(validator.iter_errors(value), MAX_MISTAKES + 1)) if validator is not None else []
        except Exception:  # noqa: BLE001 - a schema of a peer: whatever the validator raises about it proves nothing
            return ""
        if not errors:
            return ""
        return f"{'; '.join(map(_words, errors[:MAX_MISTAKES]))}{'; and more' if len(errors) > MAX_MISTAKES else ''}."

    def _validator(self, schema: dict[str, Any]) -> Any:
        """Give the validator of a schema, made once; None for a schema that is too large."""
        made = self._validators.get(id(schema))
        if made is None:
            is_small = len(repr(schema)) <= MAX_SCHEMA_BYTES
            validator = _maker(schema, self._steps, self._makers)(schema) if is_small else None
            made = self._validators[id(schema)] = schema, validator
        return made[1]


def dangling_reference(schema: Any) -> str:
    """Return the first `$ref` in a schema to a place that it does not have; empty if there is none in its first parts.

    Only pointers within the schema (`#/$defs/Name`) are followed: a name or another document may be known to the reader.
    """
    waiting: list[tuple[Any, Any]] = [(schema, schema)]
    for _ in range(MAX_STEPS):
        if not waiting:
            break
        part, document = waiting.pop()
        if isinstance(part, list):
            waiting += [(item, document) for item in reversed(part)]
            continue
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("$id"), str) and not part["$id"].startswith("#"):
            document = part
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") and not leads_somewhere(document, reference):
            return reference
        for name, value in reversed(part.items()):
            if name in _NAMED_SCHEMAS and isinstance(value, dict):
                waiting += [(named, document) for named in reversed(value.values())]
            elif name not in _VALUES:
                waiting.append((value, document))
    return ""


def leads_somewhere(document: Any, reference: str) -> bool:
    """Return whether a reference names a part of its own document (RFC 6901); anchors and ids are believed."""
    if not reference.startswith("#"):
        return False
    if "%" in reference:
        from urllib.parse import unquote  # slow to import

        reference = unquote(reference)
    value = document
    for step in reference[2:].split("/") if reference.startswith("#/") else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return False
    return True


def fits_plainly(schema: Any, value: Any, steps: list[int]) -> bool:
    """Return whether a value fits a schema of usual keywords for sure; False also if that takes more than so many `steps`.

    Most values fit, and importing jsonschema to see it takes 65 ms.
    A schema with a keyword that is not in `_PLAIN` is left to jsonschema.
    """
    try:
        return _fits(schema, value, _Document(schema, steps), is_root=True)
    except RecursionError:
        return False


class _Document:
    """The schema that `$ref` leads through, and the steps that are left."""

    __slots__ = ("_root", "_steps")

    def __init__(self, root: Any, steps: list[int]) -> None:
        self._root = root
        self._steps = steps

    def step(self) -> bool:
        """Take a step; False if none is left."""
        self._steps[0] -= 1
        return self._steps[0] >= 0

    def definition(self, reference: Any) -> Any:
        """Return what `#/$defs/Name` names; an impossible schema if it is spelled in another way, or names nothing."""
        parts = reference.split("/") if isinstance(reference, str) else ()
        if len(parts) != 3 or parts[0] != "#" or parts[1] not in _DEFINITIONS or not _NAME_LETTERS.issuperset(parts[2]):
            return _UNKNOWN
        definitions = self._root.get(parts[1])
        return definitions.get(parts[2], _UNKNOWN) if isinstance(definitions, dict) else _UNKNOWN


def _fits(schema: Any, value: Any, document: _Document, *, is_root: bool = False) -> bool:
    """Do the same for a part of a schema. What has `$id` or another `$schema` is not plain: references mean something else there."""
    if not document.step() or schema is True:
        return schema is True
    if not isinstance(schema, dict) or not schema.keys() <= _PLAIN or ("$schema" in schema and not is_root):
        return False
    if "type" in schema and not _is_of_type(schema["type"], value):
        return False
    if not _is_chosen(schema, value) or not (schema.keys().isdisjoint(_OTHERS) or _fits_others(schema, value, document)):
        return False
    if type(value) in _NUMBERS:
        return _is_number_between(schema, value)
    if isinstance(value, str):
        return _is_between(len(value), schema.get("minLength"), schema.get("maxLength"))
    if isinstance(value, list):
        items = schema.get("items", True)
        is_between = _is_between(len(value), schema.get("minItems"), schema.get("maxItems"))
        return is_between and all(_fits(items, item, document) for item in value)
    return not isinstance(value, dict) or _fit_members(schema, value, document)


def _fit_members(schema: dict[str, Any], value: dict[str, Any], document: _Document) -> bool:
    required, properties = schema.get("required", []), schema.get("properties", {})
    others, names = schema.get("additionalProperties", True), schema.get("propertyNames", True)
    if not (isinstance(required, list) and isinstance(properties, dict)) or len(required) > _FEW:
        return False
    if not all(isinstance(name, str) and name in value for name in required):
        return False
    if not _is_between(len(value), schema.get("minProperties"), schema.get("maxProperties")):
        return False
    if names is not True and not all(_fits(names, name, document) for name in value):
        return False
    return all(_fits(properties.get(name, others), item, document) for name, item in value.items())


def _fits_others(schema: dict[str, Any], value: Any, document: _Document) -> bool:
    """Return whether a value fits the schemas that a schema refers to or has as parts."""
    if "$ref" in schema and not _fits(document.definition(schema["$ref"]), value, document):
        return False
    all_of, any_of, one_of = (schema.get(name, [True]) for name in ("allOf", "anyOf", "oneOf"))
    if not (isinstance(all_of, list) and isinstance(any_of, list) and isinstance(one_of, list)):
        return False
    if not all(_fits(part, value, document) for part in all_of) or not any(_fits(part, value, document) for part in any_of):
        return False
    fitting = [part for part in one_of if not _is_of_other_type(part, value)]
    return len(fitting) == 1 and _fits(fitting[0], value, document)


def _is_of_other_type(schema: Any, value: Any) -> bool:
    """Return whether a value is of none of the types that a schema names. Where there is `$ref`, draft 7 reads nothing else."""
    if not isinstance(schema, dict) or "$ref" in schema or "$schema" in schema or "type" not in schema:
        return False
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not all(isinstance(name, str) and name in _TYPES for name in wanted) or ("integer" in wanted and type(value) is float):
        return False
    return not _is_of_type(wanted, value)


def _is_chosen(schema: dict[str, Any], value: Any) -> bool:
    """Return whether a value is one of those that `enum` and `const` allow. Only plain values are compared: 1 is 1.0 and not true."""
    choices = schema.get("enum")
    if "enum" in schema and not (isinstance(choices, list) and any(_is_same(item, value) for item in choices[:_FEW])):
        return False
    return "const" not in schema or _is_same(schema["const"], value)


def _is_same(wanted: Any, value: Any) -> bool:
    return type(wanted) is type(value) and not isinstance(value, list | dict) and wanted == value


_PLAIN_STEPS: Final = 2_000
_FEW: Final = 200
_UNKNOWN: Final[dict[str, Any]] = {"$id": ""}
_NUMBERS: Final = (int, float)
_DEFINITIONS: Final = ("$defs", "definitions")
_NAME_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
"""Letters that mean themselves in a reference."""

_OTHERS: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""Keywords for values of all types that have schemas."""

_PLAIN: Final = _OTHERS | {
    "type", "enum", "const", "properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties",
    "items", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "$schema", "$defs", "definitions", "$comment", "title", "description", "default", "examples", "example",
    "deprecated", "readOnly", "writeOnly", "nullable", "contentEncoding", "contentMediaType", "format", "pattern", "uniqueItems",
}  # fmt: skip
"""Keywords that `fits_plainly` knows, or that mean nothing for a value; those of `_NOT_RUN` count as fulfilled here too."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),), "integer": (int,),
    "number": _NUMBERS,
}  # fmt: skip


def _is_of_type(wanted: Any, value: Any) -> bool:
    """Return whether a value is of a type; some whole numbers of the type float are taken for no integers."""
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(isinstance(name, str) and type(value) in _TYPES.get(name, ()) for name in names)


def _is_number_between(schema: dict[str, Any], value: float) -> bool:
    """Return whether a number is within all limits of a schema; whether a fraction is a multiple is left to jsonschema."""
    least, most, step = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum"), schema.get("multipleOf")
    is_above = least is None or (type(least) in _NUMBERS and value > least)
    is_below = most is None or (type(most) in _NUMBERS and value < most)
    is_multiple = step is None or (type(step) is int and step > 0 and type(value) is int and value % step == 0)
    return is_above and is_below and is_multiple and _is_between(value, schema.get("minimum"), schema.get("maximum"))


def _is_between(number: float, least: Any, most: Any) -> bool:
    return (least is None or (type(least) in _NUMBERS and number >= least)) and (
        most is None or (type(most) in _NUMBERS and number <= most)
    )


def _words(error: Any) -> str:
    where = "/".join(str(part) for part in error.absolute_path)[:80]
    return f"{error.message[:160]}{f' (at {where})' if where else ''}"


class _Exhausted(Exception):  # noqa: N818 - not an error: no steps are left
    """The schemas of a capture have used up their steps."""


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict | str) else 0


def _maker(schema: dict[str, Any], steps: list[int], makers: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Give the maker of validators for the draft of `schema`; they count their steps."""
    from jsonschema import Draft7Validator, Draft202012Validator  # importing it takes 65 ms; only `check` needs it
    from jsonschema.validators import extend
    from referencing import Registry

    dialect = schema.get("$schema")
    is_old = isinstance(dialect, str) and "draft-07" in dialect
    draft = "7" if is_old else "2020-12"
    if draft not in makers:
        chosen = Draft7Validator if is_old else Draft202012Validator
        keywords = {
            name: _passed if name in _NOT_RUN else _counted(name, follow, steps) for name, follow in chosen.VALIDATORS.items()
        }
        makers[draft] = partial(extend(chosen, keywords), registry=Registry())
    return makers[draft]


def _counted(name: str, follow: Callable[..., Any], steps: list[int]) -> Callable[..., Any]:
    """Make the keyword `name` add its steps to `steps`. Raises: _Exhausted: if there were too many."""

    def step(validator: Any, wanted: Any, value: Any, within: Any) -> Any:
        steps[0] += 1 + (_size(wanted) + _size(value)) // _ITEMS_A_STEP
        if steps[0] > MAX_STEPS:
            raise _Exhausted
        if name == "$ref" and not (isinstance(wanted, str) and wanted.startswith("#/")):
            return ()  # to find a name takes a walk through the whole schema, each time
        if name == "additionalProperties" and "patternProperties" in within:
            return ()
        return follow(validator, wanted, value, within)

    return step


def _passed(*_: Any) -> tuple[()]:
    return ()
