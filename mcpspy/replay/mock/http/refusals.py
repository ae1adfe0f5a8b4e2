"""What of a recording HTTP said alone: challenges to who did not say who asks, refusals, documents. Sorted by what was asked.

Refuses to tell of sessions that were over: whatever was asked there was refused for that.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from ....transcript.model import HTTP_REDIRECTS
from .exchanges import question_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..match_key import Rules
    from .answer import Answer
    from .exchanges import Recorded

Key: TypeAlias = tuple[str, str, str]
"""HTTP method, path as it was recorded, and what is asked in JSON-RPC; of a document its query, or nothing for any."""

MCP_METHODS: Final = ("POST", "GET", "DELETE")


def challenges(asked: Sequence[Recorded], asking: Rules) -> dict[Key, Answer | None]:
    """What was said to the first request of each kind that did not say who asks; None if it was let through."""
    found: dict[Key, Answer | None] = {}
    if not any(one.is_challenged for one in asked):  # reading the params of all would take half of the time
        return found
    for one in asked:
        if not one.is_authorized and one.status:
            found.setdefault(_key(one, asking), one.answer if one.is_challenged else None)
    return found


def refusals(asked: Sequence[Recorded], asking: Rules) -> dict[Key, list[Answer | None]]:
    """What was said to equal POSTs, one after the other; None where they were let through. Those that always were are left out."""
    found: defaultdict[Key, list[Answer | None]] = defaultdict(list)
    refused = {_method(one) for one in asked if one.is_refused_alone}
    for one in asked:
        if one.method == "POST" and one.messages and not one.is_challenged and _method(one) in refused:
            said = one.answer if one.is_refused_alone else None
            if said is not None and one.is_lost:
                said = said._replace(ends_session=True)
            found[_key(one, asking)].append(said)
    return {key: some for key, some in found.items() if any(some)}


def documents(others: Iterable[Recorded]) -> dict[Key, list[Answer]]:
    """What was said to all that is no MCP, by its path with and without its query."""
    found: defaultdict[Key, list[Answer]] = defaultdict(list)
    for one in others:
        if one.status and one.is_kept:
            _, _, query = one.target.partition("?")
            for told in {query, ""}:
                found[one.method, one.path, told].append(one.answer)
    return dict(found)


def among_the_living(every: Iterable[Recorded]) -> tuple[list[Recorded], list[Recorded]]:
    """Transactions, and apart from them those in sessions that were deleted or lost before."""
    living: list[Recorded] = []
    gone: list[Recorded] = []
    over: set[int] = set()
    for one in every:
        scope = one.transaction.scope
        (gone if id(scope) in over else living).append(one)
        if one.session and (one.is_lost or (one.method == "DELETE" and 0 < one.status < HTTP_REDIRECTS)):
            over.add(id(scope))
    return living, gone


def _method(one: Recorded) -> str | None:
    return one.messages[0].method if one.messages else None


def _key(one: Recorded, asking: Rules) -> Key:
    return one.method, one.path, question_of(one.messages[0] if one.messages else None, asking)
