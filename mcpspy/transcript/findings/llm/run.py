"""Findings for which a model's leg was recorded: what it was offered, wanted done, and was told, next to what servers said.

They are made of all captures together. Refuses to look where there is no such leg: then nothing is imported for it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...model import Transcript
    from ..build import Found


def model_findings(transcript: "Transcript") -> Iterator["Found"]:
    """What stands below every timeline."""
    if transcript.model_calls:
        from ..registry import MODEL_FINDERS
        from .facts import ModelStory

        story = ModelStory(transcript)
        for finder in MODEL_FINDERS:
            yield from finder.find(story)


def asked_model_findings(transcript: "Transcript") -> Iterator["Found"]:
    """What only those want who ask: arguments held against schemas, and what offers cost."""
    if transcript.model_calls:
        from .costs import offer_findings
        from .facts import ModelStory
        from .schemas import use_findings

        story = ModelStory(transcript)
        yield from use_findings(story)
        yield from offer_findings(story)
