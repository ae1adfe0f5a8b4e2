"""A capture that grows, or that ends anywhere, becomes the same transcript however its bytes come."""

from functools import partial
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from random import Random

import pytest

from mcpspy.capture.file.reader import CaptureRecords, Reader
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.conftest import ROOT
from tests.oracle.told import captures
from tests.tiers import Tier, current_tier
from tests.transcript.dialogue import spelled

CAPTURES = captures()[:: current_tier()(sample=9, more=2, full=1)]


def in_steps(data: bytes, places: list[int]) -> Transcript:
    """Return the transcript of bytes that come in steps which end at these places, each record by itself."""
    reader, transcriber = Reader(), Transcriber()
    steps = pairwise([0, *places, len(data)])
    for record in [*chain.from_iterable(reader.feed(data[begin:end]) for begin, end in steps), *reader.close()]:
        transcriber.feed(record)
    transcriber.close()
    return transcriber.transcript


@pytest.mark.tiered
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_capture_that_grows_or_ends_anywhere_is_read_as_one_that_is_read_at_once(path: Path, tier: Tier) -> None:
    data, random = path.read_bytes(), Random(path.name)
    for _ in range(tier(sample=1, more=2, full=20)):
        part = data[: random.randint(data.find(b"\n") + 1, len(data))]
        places = sorted(random.randint(0, len(part)) for _ in range(random.randint(0, 6)))
        at_once = transcribe(CaptureRecords(partial(BytesIO, part), path.name))
        assert spelled(in_steps(part, places)) == spelled(at_once)
