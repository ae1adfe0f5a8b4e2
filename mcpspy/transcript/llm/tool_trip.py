"""What a model wanted done, on its whole way: a tool use, the call that it became, the result, and what the model was told of it.

Refuses to find any of this: `tool_trips` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from ..model import Exchange
    from .call import ModelCall
    from .model import ToolReturn, ToolUse

JoinedBy: TypeAlias = Literal["name and arguments", "name", "arguments", ""]
ReturnedBy: TypeAlias = Literal["id", "name and arguments", "content", "order", ""]


class ToolTrip(msgspec.Struct, eq=False, kw_only=True):
    """A tool use and what became of it. Outside `transcript/` nobody assigns to it."""

    use: ToolUse
    by: ModelCall
    """The model call whose answer holds the use."""
    call: Exchange | None = None
    """The `tools/call` that it became, the first of them where it took several rounds; None if none was seen."""
    joined_by: JoinedBy = ""
    """What the two have in common; `name` alone says that the arguments differ, `arguments` that the name does."""
    candidates: int = 0
    """How many calls it could be, none of them surer than the others: 2 or more say that nobody knows."""
    returned: ToolReturn | None = None
    """What the model was told that came of it."""
    returned_in: ModelCall | None = None
    """The model call whose prompt tells it first."""
    returned_by: ReturnedBy = ""
    """How that was found; by anything but the id, where ids are missing or do not match."""
    next: ModelCall | None = None
    """The model call that goes on with the conversation, whether it tells of this or not; None if none does."""
    repeated_id: str = ""
    """The id under which that one repeats the use, where it is another one."""

    @property
    def until_ns(self) -> int | None:
        """When the client must have been done with it: as the conversation went on; None while it does not."""
        model_call = self.returned_in or self.next
        return None if model_call is None else model_call.at_ns
