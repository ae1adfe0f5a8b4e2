"""An answer while it is put together from deltas, in time linear in their bytes, and the parts of a turn's content, for all APIs.

Does not read JSON, and does not know in which order an API sends its deltas. Images and files have a short name and are not
kept: a prompt may repeat megabytes of them with each call.
"""

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any, Final

import msgspec

from .json_values import items, members, string
from .prompt import Answer, ToolUse, Turn, Usage
from .tags import uses_in

MAX_FLAWS: Final = 20
"""Number of different flaws that are kept of one stream."""

_TEXTS: Final = {"text", "input_text", "output_text", "summary_text", "reasoning_text"}
_DATA: Final = "data:"
MAX_URL_LETTERS: Final = 200


class TextDraft:
    """A text that comes in pieces."""

    __slots__ = ("_ends", "_length", "_pieces", "_searched", "_times_ns", "_uses", "at_ns")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ends = array("q")
        self._times_ns = array("q")
        self._length = 0
        self._searched = 0
        self._uses: list[ToolUse] = []
        self.at_ns = 0
        """Time at which its last piece was read."""

    def add(self, piece: str, at_ns: int) -> bool:
        """Append a piece. Returns True if it is not empty."""
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            self._ends.append(self._length)
            self._times_ns.append(at_ns)
            self.at_ns = at_ns
        return bool(piece)

    @property
    def text(self) -> str:
        """All of it so far. Pieces that were joined once are one piece from then on."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def uses(self, *, is_over: bool) -> list[ToolUse]:
        """Return the tool uses in its text. Each is searched for once, when it is complete."""
        for use, end in uses_in(self.text, self._searched, is_over=is_over):
            self._uses.append(msgspec.structs.replace(use, at_ns=self._read_ns(end)))
            self._searched = end
        return self._uses

    def _read_ns(self, length: int) -> int:
        """Return the time at which its first `length` letters had been read."""
        at = bisect_left(self._ends, length)
        return self._times_ns[at] if at < len(self._times_ns) else self.at_ns


class UseDraft:
    """A tool use that comes in pieces."""

    __slots__ = ("_made", "arguments", "at_ns", "id", "is_hosted", "name")

    def __init__(self, at_ns: int, *, id: str = "", name: str = "", is_hosted: bool = False) -> None:
        self.id = id
        self.name = name
        self.arguments = TextDraft()
        self.is_hosted = is_hosted
        self.at_ns = at_ns
        self._made: ToolUse | None = None

    def identify(self, *, id: str, name: str, is_hosted: bool = False) -> None:
        """Set its id and its name; an empty one leaves the value as it was."""
        self.id, self.name, self.is_hosted = id or self.id, name or self.name, is_hosted
        self._made = None

    def add(self, piece: str, at_ns: int) -> None:
        """Append a piece of its arguments."""
        self.arguments.add(piece, at_ns)
        self.at_ns = at_ns
        self._made = None

    @property
    def use(self) -> ToolUse:
        """The tool use, as far as it was received."""
        if self._made is None:
            text = self.arguments.text
            self._made = ToolUse(id=self.id, name=self.name, arguments=text, at_ns=self.at_ns, is_hosted=self.is_hosted)
        return self._made


class TurnDraft:
    """A turn of the model that comes in pieces. Texts and uses are found by their keys, and kept in the order in which they began."""

    __slots__ = ("by_id", "is_over", "last", "refusal", "texts", "thinking", "uses")

    def __init__(self) -> None:
        self.texts: dict[Hashable, TextDraft] = {}
        self.thinking: dict[Hashable, TextDraft] = {}
        self.refusal = TextDraft()
        self.uses: dict[Hashable, UseDraft] = {}
        self.by_id: dict[str, UseDraft] = {}
        self.last: UseDraft | None = None
        """The use that began last."""
        self.is_over = False
        """True once nothing more of it can come."""

    def begin(self, key: Hashable, use: UseDraft) -> UseDraft:
        """Add a use under this key."""
        self.uses[key] = self.last = use
        return use

    @property
    def turn(self) -> Turn:
        """The turn, as far as it was received."""
        in_text = [use for draft in self.texts.values() for use in draft.uses(is_over=self.is_over)]
        return Turn(
            role="assistant",
            text=joined(draft.text for draft in self.texts.values()),
            thinking=joined(draft.text for draft in self.thinking.values()),
            refusal=self.refusal.text,
            uses=(*(draft.use for draft in self.uses.values()), *in_text),
        )


def add_piece(drafts: dict[Hashable, TextDraft], key: Hashable, piece: str, at_ns: int) -> bool:
    """Append a piece to the text of this key. Returns True if it is not empty."""
    draft = drafts.get(key)
    if draft is None:
        if not piece:
            return False
        draft = drafts[key] = TextDraft()
    return draft.add(piece, at_ns)


class AnswerDraft:
    """An answer that comes in pieces, without its turns. The attributes mean the same as those of `Answer`."""

    __slots__ = ("_flaws", "deltas", "error", "finish", "id", "is_whole", "model", "usage")

    def __init__(self) -> None:
        self.id = self.model = self.finish = self.error = ""
        self.usage = Usage()
        self.is_whole = False
        self.deltas = 0
        self._flaws: dict[str, None] = {}

    def add_flaw(self, sentence: str) -> None:
        """Keep a flaw of the stream, each sentence once and at most MAX_FLAWS of them."""
        if len(self._flaws) < MAX_FLAWS:
            self._flaws[sentence] = None

    def refuse(self, reason: str) -> None:
        """End the answer with an error of HTTP."""
        self.error, self.is_whole = reason, True

    def answer(self, turn: Turn, more: tuple[Turn, ...] = ()) -> Answer:
        """Make the answer with these turns, as far as it was received."""
        return Answer(
            id=self.id,
            model=self.model,
            turn=turn,
            more=more,
            finish=self.finish,
            usage=self.usage,
            error=self.error,
            is_whole=self.is_whole,
            deltas=self.deltas,
            flaws=tuple(self._flaws),
        )


def text_of(content: Any) -> str:
    """Return the text of a content, which is a string or a list of parts, joined by line feeds."""
    if isinstance(content, str):
        return content
    return joined(part_text(part) for part in items(content))


def joined(texts: Iterable[str]) -> str:
    """Join those of `texts` that are not empty, each on a line of its own."""
    return "\n".join(text for text in texts if text)


def part_text(part: Any) -> str:
    """Return the text of one part, or its name in brackets if it is not text; empty for a refusal, which is kept elsewhere."""
    if isinstance(part, str):
        return part
    fields = members(part)
    kind = string(fields.get("type"))
    if kind in _TEXTS or (not kind and "text" in fields):
        return string(fields.get("text"))
    if kind == "refusal" or not fields:
        return ""
    return f"[{_named(kind, fields)}]"


def _named(kind: str, part: dict[str, Any]) -> str:
    """Name a part that is not text: chat's `image_url`, `input_audio`, `file`; `input_image`, `input_file`; Anthropic's `image`."""
    source = members(part.get("source"))
    inner = next(
        (members(part[name]) for name in ("image_url", "input_audio", "file") if isinstance(part.get(name), dict)), part
    )
    name = string(inner.get("filename")) or string(part.get("title")) or string(part.get("tool_name"))
    url = _url(part, inner, source)
    if url.startswith(_DATA):
        media_type, _, data = url.removeprefix(_DATA).partition(",")
        return _sized(media_type.partition(";")[0] or kind, data, name)
    data = string(source.get("data")) or string(inner.get("data"))
    if data and string(source.get("type")) == "text":
        return f"{string(source.get('media_type')) or kind}, {len(data):,} letters"
    if data:
        return _sized(string(source.get("media_type")) or string(inner.get("format")) or kind, data, name)
    where = url[:MAX_URL_LETTERS] or name or string(inner.get("file_id")) or string(source.get("file_id"))
    return f"{kind} {where}" if where else kind


def _url(part: dict[str, Any], inner: dict[str, Any], source: dict[str, Any]) -> str:
    urls = (inner.get("url"), part.get("image_url"), inner.get("file_data"), inner.get("file_url"), source.get("url"))
    return next((url for url in urls if isinstance(url, str) and url), "")


def _sized(kind: str, base64: str, name: str) -> str:
    """Name base64 data by its type and its decoded size: `image/png, 1,234 bytes`."""
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return ", ".join(word for word in (kind, name, f"{size:,} bytes") if word)
