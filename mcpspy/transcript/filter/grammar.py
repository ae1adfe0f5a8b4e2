"""Filter expressions to trees of terms, and back.

    filter   = sequence { "or" sequence }
    sequence = part { ["and"] part }
    part     = "not" part | "(" filter ")" | key operator value | "text"

The caller says which keys there are and what they take. Every text either becomes a tree or raises `FilterError`; the time is
linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NamedTuple, TypeAlias

from ...errors import FilterError
from ...lazy_pattern import lazy_pattern
from .values import BadValue, in_quotes

MAX_DEPTH: Final = 50
"""The deepest nesting of parentheses and `not`: nobody writes more, and Python's stack is finite."""

OPERATORS: Final = (">=", "<=", ">", "<", ":")
MAX_KEY_LETTERS: Final = 40
"""The longest word for which a similar key is suggested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A key, an operator and a value: `dur>2s`. `is_quoted` says that the value was in quotation marks, so it has no wildcards."""

    key: str
    operator: str
    value: str
    is_quoted: bool = False

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{quoted(self.value) if self.is_quoted else self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to look for in the payload."""

    text: str

    def __str__(self) -> str:
        return quoted(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    """A negated part: it matches what the part does not match."""

    part: Node

    def __str__(self) -> str:
        return f"not {f'({self.part})' if isinstance(self.part, AllOf | AnyOf) else self.part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Two parts or more, all of which have to match."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, AllOf | AnyOf) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """Two parts or more, one of which has to match."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


Node: TypeAlias = Term | Text | Not | AllOf | AnyOf


class Filter:
    """A filter that was read from text. `str` returns its shortest spelling."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __str__(self) -> str:
        return str(self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    @property
    def keys(self) -> set[str]:
        """The keys of its terms."""
        return {leaf.key for leaf in terms(self.node) if isinstance(leaf, Term)}


Keys: TypeAlias = Mapping[str, Callable[[Term], object]]
"""For each key a function that raises `BadValue` for a term that it cannot use."""


def quoted(text: str) -> str:
    """Return `text` in quotation marks, as a filter spells it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def terms(node: Node) -> Iterator[Term | Text]:
    """Yield the leaves of a tree, from left to right."""
    match node:
        case Not(part=part):
            yield from terms(part)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from terms(part)
        case Term() | Text():
            yield node


def parse(expression: str, keys: Keys, hints: Mapping[str, str]) -> Node:
    """Return the tree of an expression. `hints` has the key that is meant by a word that is no key.

    Raises: FilterError: if it is no filter.
    """
    return _Parser(expression, keys, hints).whole()


# --- The tokens of an expression ---


class _Token(NamedTuple):
    """A token: `kind` is one of `( ) text word end`, `at` its offset; `glued` says that no blank is in front of it."""

    kind: str
    text: str
    at: int
    glued: bool = False


_BLANKS: Final = lazy_pattern(r"\s*")
_WORD: Final = lazy_pattern(r'[^\s()"]+')
# The groups are possessive: an unfinished text is found out once, not once for each way to cut it.
_QUOTED: Final = lazy_pattern(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_ESCAPED: Final = lazy_pattern(r'\\(["\\])')
_KEY: Final = lazy_pattern(r"([^:<>=!]*)(!=|>=|<=|[:<>=])(.*)", re.DOTALL)


def _tokens(expression: str) -> Iterator[_Token]:
    at, before = 0, -1
    while True:
        blanks = _BLANKS.match(expression, at)
        at = blanks.end() if blanks else at
        glued = at == before
        if at == len(expression):
            yield _Token("end", "", at)
            return
        sign = expression[at]
        if sign in "()":
            yield _Token(sign, sign, at)
            at, before = at + 1, -1
            continue
        match = (_QUOTED if sign == '"' else _WORD).match(expression, at)
        if match is None:
            raise FilterError(expression, at + 1, "this text is not closed", 'Close it with a quotation mark: "…".')
        text = _ESCAPED.sub(r"\1", match[1]) if sign == '"' else match[0]
        yield _Token("text" if sign == '"' else "word", text, at, glued)
        at = before = match.end()


class _Parser:
    """One expression, read from left to right."""

    def __init__(self, expression: str, keys: Keys, hints: Mapping[str, str]) -> None:
        self._expression = expression
        self._keys = keys
        self._hints = hints
        self._tokens = _tokens(expression)
        self._next = next(self._tokens)
        self._depth = 0

    def whole(self) -> Node:
        if self._next.kind == "end":
            raise self._error("the filter is empty", "Write what to show, as in status:error.")
        node = self._any()
        if self._next.kind != "end":
            raise self._error("this closes no parenthesis", "Remove it, or write a ( before it.")
        return node

    def _any(self) -> Node:
        parts = [self._all()]
        while self._word("or"):
            self._take()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(parts=_flat(parts, AnyOf))

    def _all(self) -> Node:
        parts = [self._part()]
        while self._next.kind not in ("end", ")") and not self._word("or"):
            if self._word("and"):
                self._take()
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else AllOf(parts=_flat(parts, AllOf))

    def _part(self) -> Node:
        token = self._next
        if self._word("not") or token.kind == "(":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error(f"more than {MAX_DEPTH} levels are nested here", "Remove parentheses.")
            self._take()
            node = Not(part=self._part()) if token.kind == "word" else self._group(token)
            self._depth -= 1
            return node
        if token.kind == "text":
            self._take()
            self._check_gap(token)
            if not token.text:
                raise self._error("this text is empty", "Write what to look for.", token.at)
            return Text(text=token.text)
        if token.kind == "word" and not (self._word("and") or self._word("or")):
            return self._term(self._take())
        what = "the filter ends" if token.kind == "end" else f"there is {in_quotes(token.text)}"
        raise self._error(f"{what} where a term is expected", 'A term is key:value, as in status:error, or "text".')

    def _group(self, opened: _Token) -> Node:
        node = self._any()
        if self._next.kind != ")":
            raise self._error("this parenthesis is not closed", "Write a ) after what belongs together.", opened.at)
        self._take()
        return node

    def _term(self, token: _Token) -> Node:
        self._check_gap(token)
        match = _KEY.fullmatch(token.text)
        if match is None:
            raise self._error(*_no_term(token.text, self._keys), token.at)
        name, operator, value = match[1], match[2], match[3]
        if name not in self._keys:
            raise self._error(*_unknown(name, operator, self._keys, self._hints), token.at)
        operator_at = token.at + len(name)
        if operator not in OPERATORS:
            write = f"{name}:…" if operator == "=" else f"not {name}:…"
            raise self._error(f"there is no {operator} in filters", f"Write {write}", operator_at)
        value_at = operator_at + len(operator)
        is_quoted = not value and self._next.kind == "text" and self._next.glued
        if is_quoted:
            value = self._take().text
        if not value:
            raise self._error(f"{name} has no value", self._no_value(name), value_at)
        if self._next.glued:
            raise self._error(
                "there is a quotation mark within a value", "Put the whole value in quotation marks.", self._next.at
            )
        term = Term(key=name, operator=operator, value=value, is_quoted=is_quoted)
        try:
            self._keys[name](term)
        except BadValue as bad:
            raise self._error(bad.reason, bad.advice, operator_at if bad.is_operator else value_at) from None
        return term

    def _no_value(self, name: str) -> str:
        if self._next.kind == "(":
            return f"Put parentheses around whole terms: ({name}:… or {name}:…)."
        return f"Write it right after the operator, as in {name}:…; put a value with blanks in quotation marks."

    def _check_gap(self, token: _Token) -> None:
        if token.glued:
            raise self._error("a space is missing here", "Write one between two terms.", token.at)

    def _word(self, word: str) -> bool:
        return self._next.kind == "word" and self._next.text.lower() == word

    def _take(self) -> _Token:
        token = self._next
        self._next = next(self._tokens, token)
        return token

    def _error(self, reason: str, advice: str, at: int | None = None) -> FilterError:
        return FilterError(self._expression, (self._next.at if at is None else at) + 1, reason, advice)


def _flat(parts: list[Node], kind: type[AllOf | AnyOf]) -> tuple[Node, ...]:
    """Return `parts` with nested ones of the same kind spread out: `a (b c)` is `a b c`."""
    return tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))


# --- Reasons and advice for words that are no terms ---


def _no_term(word: str, keys: Keys) -> tuple[str, str]:
    if word in ("&", "&&", "|", "||"):
        return f"there is no {in_quotes(word)} in filters", f"Write {'and' if word[0] == '&' else 'or'}."
    if word.startswith("!"):
        return f"{in_quotes(word)} is no term", "Write not for what should not match."
    if word in keys:
        return f"{word} has no value", f"Write it after a colon: {word}:…"
    advice = "Put it in quotation marks to look for it in payloads"
    key = _key_with(word, keys)
    return f"{in_quotes(word)} is no term", f"{advice}; or write {key}:{word}." if key else f"{advice}."


def _key_with(value: str, keys: Keys) -> str:
    """Return the key with a fixed vocabulary that takes this value; empty if there is none."""
    for name in ("status", "kind", "era"):
        try:
            keys[name](Term(key=name, operator=":", value=value))
        except (BadValue, KeyError):
            continue
        return name
    return ""


def _unknown(name: str, operator: str, keys: Keys, hints: Mapping[str, str]) -> tuple[str, str]:
    if not name:
        return f"there is no key before “{operator}”", "Write one, as in status:error."
    reason = f"there is no key {in_quotes(name)}"
    plain = name.lstrip("-!").lower()
    meant = plain if plain in keys else hints.get(plain, "")
    if name[0] in "-!" and meant:
        return reason, f"Write not {meant}{operator}…"
    if not meant and len(plain) <= MAX_KEY_LETTERS:
        meant = next(iter(get_close_matches(plain, keys, 1)), "")
    return reason, f"Did you mean {meant}?" if meant else f"The keys are {', '.join(keys)}."


_ANY_TASK: Final = Term(key="task", operator=":", value="*")


def possible(node: Node, *, is_wanted: bool = True, keys: frozenset[str]) -> Node:
    """Return a tree that matches all that `node` matches, and more, with terms of these keys alone."""
    match node:
        case Not(part=part):
            return Not(part=possible(part, is_wanted=not is_wanted, keys=keys))
        case AllOf(parts=parts):
            return AllOf(parts=tuple(possible(part, is_wanted=is_wanted, keys=keys) for part in parts))
        case AnyOf(parts=parts):
            return AnyOf(parts=tuple(possible(part, is_wanted=is_wanted, keys=keys) for part in parts))
        case Term(key=key) if key in keys:
            return node
        case Term(key="task") if is_wanted:
            return _ANY_TASK
        case _:
            return AllOf(parts=()) if is_wanted else AnyOf(parts=())  # of which the first always matches, and the second never
