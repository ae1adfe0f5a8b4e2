"""What a driver would send, without a server: values that are carried stand in it as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...wire.edits import with_values
from .outgoing import outgoing, pseudonym

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...wire.edits import ValueEdit
    from .correlate.model import Carried, Carrying
    from .effects import Effect, Effects
    from .plan import Plan, Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """One message of the how many-th client, from 0. `effect` is that of a request; `refused` says why it would be held back."""

    client: int
    send: Send
    data: bytes
    effect: Effect | None = None
    carried: tuple[Carried, ...] = ()
    refused: str = ""


def rehearsed(
    plans: Iterable[Plan], effects: Effects, carrying: Carrying, edits: Mapping[int, Sequence[ValueEdit]]
) -> list[Rehearsed]:
    """All that would be sent, in order."""
    found: list[Rehearsed] = []
    for client, plan in enumerate(plans):
        for send in plan.sends:
            data = with_values(outgoing(send.message), edits.get(send.row, ()))
            carried = carrying.values(send.message)
            name = pseudonym(data)
            is_given = any(name in str(one.value) for one in carried)
            found.append(
                Rehearsed(
                    client=client,
                    send=send,
                    data=data,
                    effect=None if send.exchange is None else effects.of(send.exchange),
                    carried=carried,
                    refused=f"it holds a value that was redacted: {name}" if name and not is_given else "",
                )
            )
    return found
