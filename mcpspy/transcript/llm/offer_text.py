"""A tool offer as a model is told of it, to be weighed. Refuses to say how an API puts it into words: each has its own way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import ToolOffer


def offer_text(offer: ToolOffer) -> bytes:
    """What a model is told of a tool, as JSON."""
    said = {"name": offer.name, "description": offer.description, "parameters": offer.schema}
    try:
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return offer.description.encode("utf-8", "replace")
