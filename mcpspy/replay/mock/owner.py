"""Whose a recorded message is: by capture, and over HTTP by session, or by the client's name where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ...transcript.http.transaction import Transaction

Owner: TypeAlias = "tuple[int, int | str]"
"""One recorded client."""


def owner(capture: int, transaction: Transaction | None) -> Owner:
    """The client that sent what this transaction carried; without one it is that of stdio.

    A session that was lost, and the one that took its place, are of one client.
    """
    if transaction is None:
        return capture, ""
    scope = transaction.scope
    if scope.is_one_transaction:
        return capture, scope.client
    while scope.replaces is not None:
        scope = scope.replaces
    return capture, id(scope)
