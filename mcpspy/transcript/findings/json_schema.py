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
        if not isinstance(schema, dict):
            return ""
        try:
            if fits_plainly(schema, value, [_PLAIN_STEPS]):
                return ""
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
    from urllib.parse import unquote

    if not reference.startswith("#"):
        return False
    value = document
    for step in unquote(reference[2:]).split("/") if reference.startswith("#/") else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return False
    return True


def fits_plainly(schema: Any, value: Any, steps: list[int]) -> bool:
    """Return whether a value fits a schema of usual keywords; False also if that takes more than so many `steps`, or more keywords.

    Most values fit, and importing jsonschema to see it takes 65 ms.
    """
    steps[0] -= 1
    if steps[0] < 0 or not isinstance(schema, dict) or not schema.keys() <= _PLAIN:
        return False
    if "type" in schema and not _is_of_type(schema["type"], value):
        return False
    if "enum" in schema:
        choices = schema["enum"]
        if not isinstance(choices, list) or not any(type(item) is type(value) and item == value for item in choices[:_FEW]):
            return False
    if type(value) in _NUMBERS:
        return _is_between(value, schema.get("minimum"), schema.get("maximum"))
    if isinstance(value, str | list):
        names = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        if not _is_between(len(value), *map(schema.get, names)):
            return False
    if isinstance(value, list):
        items = schema.get("items", _ANYTHING)
        return all(fits_plainly(items, item, steps) for item in value)
    return not isinstance(value, dict) or _fit_members(schema, value, steps)


def _fit_members(schema: dict[str, Any], value: dict[str, Any], steps: list[int]) -> bool:
    required, properties = schema.get("required", []), schema.get("properties", {})
    others = schema.get("additionalProperties", _ANYTHING)
    if not (isinstance(required, list) and isinstance(properties, dict)) or len(required) > _FEW:
        return False
    if not all(isinstance(name, str) and name in value for name in required):
        return False
    if others is True:
        others = _ANYTHING
    return all(fits_plainly(properties.get(name, others), item, steps) for name, item in value.items())


_PLAIN_STEPS: Final = 2_000
_FEW: Final = 200
_ANYTHING: Final[dict[str, Any]] = {}
_NUMBERS: Final = (int, float)
_PLAIN: Final = frozenset(
    {
        "type", "enum", "properties", "required", "additionalProperties", "items", "minimum", "maximum", "minLength", "maxLength",
        "minItems", "maxItems", "$schema", "title", "description", "default", "examples", "format", "pattern", "uniqueItems",
    }
)  # fmt: skip
"""Keywords that `fits_plainly` knows; those of `_NOT_RUN` among them count as fulfilled here too."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),), "integer": (int,),
    "number": _NUMBERS,
}  # fmt: skip


def _is_of_type(wanted: Any, value: Any) -> bool:
    """Return whether a value is of a type; some whole numbers of the type float are taken for no integers."""
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(isinstance(name, str) and type(value) in _TYPES.get(name, ()) for name in names)


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
