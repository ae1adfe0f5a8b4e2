"""A server that is played from its captures: held to be playable before anybody connects, and asked what it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..capture.file.reader import read
from ..errors import ReplayError
from ..replay.mock.match_key import Strictness
from ..replay.mock.matching import RequestMatcher, Reuse
from ..replay.mock.served import served_replies
from ..transcript.transcribe import transcribe
from . import requests as asked
from .process import LISTEN, Process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..replay.mock.miss import Miss
    from ..replay.mock.replies import RecordedReplies
    from ..transcript.model import Exchange, Transcript

HOW: Final = ("match", "ignore", "reuse", "on_miss", "speed", "transport")
"""What of `serve` are options of `mcpspy mock`."""


class Playing:
    """The captures at `paths`, which together are called `name`, played with `how`: options of `mcpspy mock` by their names.

    `capture` is where a mock records what it is asked. Raises: AddressError, CaptureError, PathError, ReplayError: if they cannot be.
    """

    is_recording = False

    __slots__ = ("_how", "_matcher", "_paths", "_scenes", "capture", "name")

    def __init__(self, paths: Sequence[Path], name: str, how: dict[str, str | Sequence[str]], capture: Path) -> None:
        self.name = name
        self.capture = capture
        self._paths = paths
        self._how = how
        self._scenes = _served(paths, name)
        ignore = how.get("ignore", ())
        self._matcher = RequestMatcher(
            self._scenes.exchanges,
            strictness=Strictness(str(how.get("match", "default"))),
            ignore=[ignore] if isinstance(ignore, str) else ignore,
            reuse=Reuse(str(how.get("reuse", "last"))),
        )

    def stdio_arguments(self) -> list[str]:
        """The command line of mcpspy that plays it on stdio. Raises: ReplayError: if there are but refusals of HTTP."""
        __tracebackhide__ = True
        if not self._scenes.has_answers:
            raise ReplayError(
                self.name, "its server refused everything over HTTP, for which stdio has no words: connect to `url`"
            )
        how = {name: value for name, value in self._how.items() if name != "transport"}
        return ["mock", *map(str, self._paths), "--quiet", f"--capture={self.capture}", *_options(how)]

    def listen(self) -> Process:
        """Play it over HTTP. Raises: ReplayError."""
        __tracebackhide__ = True
        arguments = [*map(str, self._paths), f"--listen={LISTEN}", "--quiet", f"--capture={self.capture}", *_options(self._how)]
        return Process(["mock", *arguments], what=self.name, output=self.capture.with_suffix(".output"))

    def misses(self, transcript: Transcript) -> list[Miss]:
        """What of `transcript`, all that was asked, was never recorded."""
        return asked.misses(transcript, self._matcher)

    def left_over(self, transcript: Transcript) -> list[Exchange]:
        """What was recorded and is not asked in `transcript`."""
        plays_nearest = self._how.get("on_miss") == "nearest"
        return asked.left_over(transcript, self._scenes.exchanges, self._matcher, plays_nearest=plays_nearest)


def _served(paths: Sequence[Path], name: str) -> RecordedReplies:
    """What can be played. Raises: AddressError, CaptureError, ReplayError: as the mock itself would say."""
    try:
        transcript = transcribe(*map(read, paths), finds=False)
    except OSError as error:
        raise ReplayError(name, error.strerror or str(error)) from error
    return served_replies(transcript, name, over_http=True)


def _options(how: dict[str, str | Sequence[str]]) -> list[str]:
    return [
        f"--{name.replace('_', '-')}={value}"
        for name, values in how.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
