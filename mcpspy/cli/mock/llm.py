"""The model's leg of `mcpspy mock --listen`: a mock of its API, from captures of it, as the options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...capture.file.reader import read
from ...errors import ReplayError
from ...live.mock.llm import LlmMock
from ...replay.mock.base_urls import bases
from ...replay.mock.match_key import Strictness
from ...replay.mock.matching import Matcher, Reuse
from ...replay.mock.prompt_key import PromptAsking
from ...replay.mock.recorded_prompts import recorded
from ...transcript.transcribe import transcribe
from ..run.options import SEVERAL
from .command import say, tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...live.mock.llm import LlmPassThrough
    from ...transcript.model import Transcript
    from .groups import Group
    from .http import Asked


def transcript_of(paths: Iterable[str]) -> Transcript:
    """What captures of a model's leg hold. Raises: CaptureError; OSError."""
    return transcribe(*map(read, paths), keeps_frames=True, finds=False)


def model_mock(transcript: Transcript, what: str, group: Group, asked: Asked) -> LlmMock:
    """The mock of the model's API that `transcript`, of the captures of `group`, holds.

    Raises: ReplayError: if there is nothing to serve. PathError: for an ignore rule that cannot be read. UsageError.
    """
    values = asked.values
    found = recorded(transcript)
    if all(one.unknown for one in found):
        raise ReplayError(
            what, "no answer of the model's API was recorded, so there is nothing to serve; mcpspy show says what happened"
        )
    finds = Matcher(
        [one.exchange for one in found],
        strictness=Strictness(values.get("match", "default")),
        ignore=values["ignore"].split(SEVERAL) if "ignore" in values else (),
        reuse=Reuse(values.get("reuse", "last")),
        rules=PromptAsking,
    )
    return LlmMock(
        found,
        finds,
        begin_ns=asked.begin_ns,
        speed=asked.speed,
        allowed_hosts=asked.hosts,
        plays_nearest=values.get("on-miss") == "nearest",
        forward=_forward(transcript, values, group) if group.url else None,
        tell=tell,
    )


def lines(mock: LlmMock) -> list[str]:
    """What to set, as in a shell: `OPENAI_BASE_URL=http://127.0.0.1:40001/v1`; where no known API was asked, the URL."""
    return [f"{name}={url}" for name, url in bases(mock.recorded, mock.url)] or [mock.url]


def _forward(transcript: Transcript, values: dict[str, str], group: Group) -> LlmPassThrough:
    """The way to the live API. Raises: UsageError."""
    from ...live.mock.llm import LlmPassThrough
    from .pass_through import target

    found = target(values | {"url": group.url}, transcript, shows_login=group.gets_fields)
    fields = [(name.encode(), value.encode("latin-1", "replace")) for name, value in found.fields]
    return LlmPassThrough(found.url, fields=fields, tls=found.tls, tell=lambda text: say(f"mcpspy mock: {text}"))
