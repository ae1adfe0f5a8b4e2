"""Owner of a recorded message: its client, by capture and, over HTTP, by session or by the client's name."""

from __future__ import annotations

from typing import TypeAlias

from ...transcript.http.transaction import Scope, Transaction

Owner: TypeAlias = "tuple[int, int | str]"
"""One recorded client."""


def owner(capture: int, transaction: Transaction | None) -> Owner:
    """Return the client that sent what this transaction carried; without a transaction, the client on stdio.

    A session that became unknown and the one that replaced it have the same owner.
    """
    if transaction is None:
        return capture, ""
    scope = transaction.scope
    if scope.is_one_transaction:
        return capture, scope.client
    return capture, id(first_scope(scope))


def first_scope(scope: Scope) -> Scope:
    """Return the first of the sessions that replaced each other, up to this one."""
    while scope.replaces is not None:
        scope = scope.replaces
    return scope
