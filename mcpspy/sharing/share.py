"""Records in, records without secrets out: payloads, heads, logs, commands and all other texts of a capture.

A share takes two passes of all records: in the first, the finder only learns secrets. Records are neither numbered nor written here.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from ..capture.redaction.redactor import Redactor
from ..capture.redaction.spans import endpoint_spans, head_spans, text_spans
from ..lazy_pattern import lazy_pattern
from ..records import Close, Damage, End, Exit, Frame, Gap, Header, Intercept, Note, Open, Partial, Record, Stall, Unknown
from ..wire.edits import Edit, apply_edits, edited_parts, event_edits, shift, with_kinds
from ..wire.encodings import decode_body
from ..wire.http_body import body_framing
from ..wire.sse import SseEvents
from .deltas import FrameParts, Reassembly, delta_edits, empty, has_pieces, line_edits, may_have_pieces, pieces_of_body
from .finder import Marked
from .named_values import LONGEST_COMMAND, announces_secret, secret_start, value_start

SHARED: Final = "shared"
"""The redaction in the header of a capture that was made to be shared."""

_GZIP: Final = 16 + zlib.MAX_WBITS


class _MarkingRedactor(Redactor):
    """The redaction of commands by a tap, with marks in the place of pseudonyms."""

    def pseudonym(self, value: bytes) -> bytes:
        """Return a value in hex, between characters that no argument has."""
        return f"\ue000{value.hex()}\ue001".encode()


_MARKS: Final = _MarkingRedactor(b"")
_mark: Final = lazy_pattern("\ue000((?:[0-9a-f]{2})+)\ue001")


class _StreamFacts(NamedTuple):
    """Facts of a stream: whether it is cut into events or into lines of JSON over HTTP, and how its body is compressed."""

    is_events: bool
    coding: str
    is_lines: bool = False


_PLAIN: Final = _StreamFacts(is_events=False, coding="")


class TextFinder(Protocol):
    """A finder of secrets in texts: a `SecretFinder`, or a watcher of one."""

    def payload_edits(self, data: bytes) -> list[Edit]:
        """Return edits of the payload of a frame, which may be a message."""

    def text_edits(self, data: bytes) -> list[Edit]:
        """Return edits of any other text."""

    def span_edits(self, spans: Iterable[Marked]) -> list[Edit]:
        """Return edits of values that are secret by their field of a head."""

    def secret_edits(self, data: bytes) -> list[Edit]:
        """Return edits of a text that its name makes a secret."""

    def without_overlaps(self, data: bytes, edits: Iterable[Edit]) -> list[Edit]:
        """Put edits of one text in order, and resolve overlaps."""

    def cut_off(self, data: bytes, edits: list[Edit]) -> list[Edit]:
        """Add an edit of the beginning of a secret at the end of a text."""

    def is_secret(self, name: bytes) -> bool:
        """Return whether a member of this name holds a secret."""

    def is_secret_option(self, name: bytes) -> bool:
        """Return whether an option of this name has a secret for its value."""


class Sharing:
    """A filter of records that removes what `finder` finds. Secrets that it learns late count for later records only: so share twice.

    Records are changed in place, and none overtakes another. `pseudonym` makes the new id of a boot. `on_ready` is called with each
    record, and with each frame and its parts, before it is searched.
    """

    def __init__(
        self,
        finder: TextFinder,
        pseudonym: Callable[[bytes], bytes],
        on_ready: Callable[[FrameParts | Record], None] = lambda ready: None,
    ) -> None:
        self._finder = finder
        self._pseudonym = pseudonym
        self._on_ready = on_ready
        self._reassembly = Reassembly()
        self._streams: dict[int, _StreamFacts] = {}
        self._left_out: set[int] = set()
        self.counts: Counter[str] = Counter()
        """The number of replacements by kind."""
        self.sealed = 0
        """The number of bodies that could not be read, and keep only their length."""

    @property
    def given_up(self) -> int:
        """The number of frames that were too long to be read, and keep only their length."""
        return self._reassembly.given_up

    def feed(self, record: Record) -> list[Record]:
        """Take the next record, and return those that are ready."""
        if isinstance(record, Open):
            self._streams[record.stream] = _stream(record)
        elif isinstance(record, Frame):
            stream = self._streams.get(record.stream, _PLAIN)
            is_apart = not stream.coding and not self._reassembly.is_joined(record.stream)
            has_events = stream.is_events or stream.is_lines
            if is_apart and has_events and has_pieces(record.data, line_edits if stream.is_lines else event_edits):
                self._reassembly.join(record.stream)
        return self._shared(self._reassembly.feed(record))

    def close(self) -> list[Record]:
        """Return the rest: no more records will come."""
        return self._shared(self._reassembly.close())

    def _shared(self, ready: list[FrameParts | Record]) -> list[Record]:
        records: list[Record] = []
        for group_or_record in ready:
            self._on_ready(group_or_record)
            if isinstance(group_or_record, FrameParts):
                self._group(group_or_record)
            elif id(group_or_record) in self._left_out:
                self._left_out.remove(id(group_or_record))
            else:
                records += self._record(group_or_record)
        return records

    # Frames

    def _group(self, group: FrameParts) -> None:
        """Remove secrets from a frame with all its parts."""
        frames = group.frames
        stream = self._streams.get(frames[0].stream, _PLAIN)
        parts = [frame.data for frame in frames]
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if not data:
            for frame in frames:
                frame.rare.pop("sha256", None)  # a guess of what was not kept could be checked with the digest
            return
        is_cut = group.is_cut_off
        edits = self._sealed(data, stream, is_cut=is_cut) if stream.coding else self._payload(data, stream, is_cut=is_cut)
        if edits is None:
            self.sealed += 1
            for frame in frames:
                empty(frame)
            return
        edits = with_kinds(edits, _kinds(frames))
        if group.is_cut_off or not data.rstrip(b" \t\r").endswith((b"\n", b"}", b"]")):
            edits = self._finder.cut_off(data, edits)
        for frame, (part, ranges) in zip(
            frames, edited_parts(parts, edits) if edits else ((part, ()) for part in parts), strict=True
        ):
            self._frame(frame, part, ranges, stream)

    def _frame(self, frame: Frame, data: bytes, ranges: tuple[tuple[int, int, str], ...], stream: _StreamFacts) -> None:
        if frame.data and not data:  # it was part of a secret, whose pseudonym is in the part in which it ends
            self._left_out.add(id(frame))
        frame.data = data
        # an empty range says that the frame was longer on the wire: the pseudonym of its part of a secret is in another part
        ranges = ranges or tuple(span for span in frame.redacted if not span[1])
        frame.rare.pop("redacted", None)
        if ranges:
            frame.rare["redacted"] = ranges
            self._count(ranges)
        if frame.forwarded is not None:
            forwarded = frame.forwarded
            edits = self._sealed(forwarded, stream) if stream.coding else self._payload(forwarded, stream)
            frame.rare["forwarded"] = b"" if edits is None else apply_edits(forwarded, edits)

    def _payload(self, data: bytes, stream: _StreamFacts, *, is_cut: bool = False) -> list[Edit]:
        if not stream.is_events and not stream.is_lines:
            edits = self._finder.payload_edits(data)
            pieces = pieces_of_body(data)
            if not pieces:
                return edits
            joined = delta_edits(pieces, self._finder.payload_edits, self._finder.text_edits, line_edits)
            return self._finder.without_overlaps(data, [*edits, *joined])
        return self._events(data, is_lines=stream.is_lines, is_cut=is_cut)

    def _events(self, data: bytes, *, is_lines: bool, is_cut: bool) -> list[Edit]:
        """Return edits of events: of each, and of the texts that they spell together."""
        pieces = SseEvents()
        events = data.splitlines(keepends=True) if is_lines else [*pieces.feed(data), *pieces.close()]
        split = line_edits if is_lines else event_edits
        finder = self._finder
        payload, text = (self._ending(find, is_cut=is_cut) for find in (finder.payload_edits, finder.text_edits))
        edits = delta_edits(events, payload, text, split)
        begin = 0
        for event in events:
            if b"endpoint" in event:
                edits += shift(finder.span_edits(endpoint_spans(event)), begin)
            edits += shift(split(event, finder.payload_edits, finder.text_edits), begin)
            begin += len(event)
        return finder.without_overlaps(data, edits)

    def _ending(self, find: Callable[[bytes], list[Edit]], *, is_cut: bool) -> Callable[[bytes], list[Edit]]:
        """Have `find` also find, if the end of texts is missing, a secret that begins there."""
        return (lambda data: self._finder.cut_off(data, find(data))) if is_cut else find

    def _sealed(self, data: bytes, stream: _StreamFacts, *, is_cut: bool = False) -> list[Edit] | None:
        """Return the one edit of a compressed body, if it needs any; None if its coding cannot be read or written."""
        try:
            body = decode_body(data, stream.coding.encode())
        except ValueError:
            return None
        edits = self._payload(body, stream, is_cut=is_cut)
        if not edits:
            return []
        again = _compressed(apply_edits(body, edits), stream.coding)
        return None if again is None else [Edit(0, len(data), again, edits[0].kind)]

    # Other records

    def _record(self, record: Record) -> list[Record]:
        match record:
            case Header():
                self._header(record)
            case Open():
                self._open(record)
            case Partial():
                self._partial(record)
            case Close() | Stall() | Unknown() | Gap() | Note() | Exit() | End() | Intercept():
                self._words(record)
                if isinstance(record, Intercept) and record.frame > 0:
                    record.frame = record.number - record.frame  # records get new numbers
                if isinstance(record, Close):
                    self._streams.pop(record.stream, None)
            case Damage():
                return _gap(record)
            case _:
                pass
        for name, value in record.extra.items():
            is_trailers = isinstance(record, Close) and name == "trailers" and isinstance(value, str)
            record.extra[name] = self._trailers(value) if is_trailers else self._json_value(value, name)
        return [record]

    def _header(self, header: Header) -> None:
        header.redaction = SHARED
        tapped = header.tapped
        argv = tapped.get("argv")
        if isinstance(argv, list):
            tapped["argv"] = self._argv(argv)
        for name, value in tapped.items():
            if name != "argv":
                digest = value.pop("sha256", None) if name == "imported" and isinstance(value, dict) else None
                tapped[name] = (
                    self._with_urls(value) if name == "url" and isinstance(value, str) else self._json_value(value, name)
                )
                if digest is not None:  # of the file that was imported: random to look at, and no secret
                    is_digest = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None
                    tapped[name]["sha256"] = digest if is_digest else self._json_value(digest)
        header.parent = self._json_value(header.parent)
        header.label = self._text(header.label)
        header.cwd = self._text(header.cwd)
        if header.boot_id:
            header.boot_id = self._pseudonym(header.boot_id.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def _argv(self, argv: list[Any]) -> list[Any]:
        """Remove secrets from the arguments of a command."""
        shared: list[Any] = []
        before = last = b""
        is_announced = False
        tapped = _MARKS.argv([argument if isinstance(argument, str) else "" for argument in argv])
        for marked, argument in zip(tapped, argv, strict=True):
            if not isinstance(argument, str):
                shared.append(self._json_value(argument))
                continue
            data = argument.encode("utf-8", "surrogatepass")
            is_value = is_announced and not argument.startswith("--")
            begin = 0 if is_value else self._secret_start(data, before, last)
            begin = len(data[:begin].decode("utf-8", "surrogatepass")) if begin > 0 else begin
            if marked != argument:
                shared.append(self._without_marked(marked))
            else:
                shared.append(
                    argument[:begin] + self._whole_text(argument[begin:]) if begin >= 0 else self._with_urls(argument)
                )
            is_announced = begin < 0 and announces_secret(data, self._finder.is_secret_option)
            before, last = before[-LONGEST_COMMAND:] + b" " + data, data
        return shared

    def _without_marked(self, text: str) -> str:
        """Remove the secrets that a tap would have redacted, which are marked, and others around them."""
        pieces = _mark.split(text)
        secrets = (bytes.fromhex(secret).decode("utf-8", "surrogatepass") for secret in pieces[1::2])
        around = map(self._with_urls, pieces[::2])
        return next(around) + "".join(self._whole_text(secret) + next(around) for secret in secrets)

    def _with_urls(self, text: str) -> str:
        """Remove secrets from a text, in the paths of its URLs too."""
        data = text.encode("utf-8", "surrogatepass")
        edits = [*self._finder.span_edits(text_spans(data, 0, len(data))), *self._finder.text_edits(data)]
        return apply_edits(data, self._finder.without_overlaps(data, edits)).decode("utf-8", "surrogatepass")

    def _secret_start(self, argument: bytes, before: bytes, last: bytes) -> int:
        """Return where the secret begins in an argument after `last`, by the option in it or by its looks; -1 if it has none."""
        begin = secret_start(argument, before, self._finder.is_secret_option)
        if begin < 0:
            option, equals, value = argument.partition(b"=")
            option, value = (option, value) if equals and option.startswith(b"-") else (last, argument)
            begin = value_start(option, value, before[1:].partition(b" ")[0])
            begin += len(argument) - len(value) if begin >= 0 else 0
        return begin

    def _open(self, record: Open) -> None:
        if record.head:
            kinds = {(at, at + length): kind for at, length, kind in record.redacted}
            ((record.head, record.redacted),) = edited_parts([record.head], with_kinds(self._head(record.head), kinds))
            self._count(record.redacted)
        if record.forwarded is not None:
            record.forwarded = apply_edits(record.forwarded, self._head(record.forwarded))

    def _head(self, head: bytes) -> list[Edit]:
        return self._finder.without_overlaps(head, [*self._finder.span_edits(head_spans(head)), *self._finder.text_edits(head)])

    def _trailers(self, text: str) -> str:
        fields = b"\n" + text.encode("utf-8", "surrogatepass")  # as in a head, where they follow the request line
        return apply_edits(fields, self._head(fields))[1:].decode("utf-8", "surrogatepass")

    def _partial(self, record: Partial) -> None:
        stream = self._streams.get(record.stream, _PLAIN)
        if stream.coding or ((stream.is_events or stream.is_lines) and may_have_pieces(record.data)):
            record.data = b""
        elif record.data:
            edits = self._finder.cut_off(record.data, self._payload(record.data, stream))
            record.data = apply_edits(record.data, edits)

    def _words(self, record: Any) -> None:
        """Remove secrets from the texts of a record, such as `why` and `text`, and from the names of descendants."""
        for name in ("why", "text", "error", "action"):
            value = getattr(record, name, None)
            if isinstance(value, str) and value:
                setattr(record, name, self._text(value))
        if isinstance(record, Exit):
            record.descendants = tuple(self._json_value(process) for process in record.descendants)

    def _json_value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value of a record without secrets; `name` is that of its member."""
        if isinstance(value, str):
            is_secret = bool(name) and self._finder.is_secret(name.encode("utf-8", "surrogatepass"))
            return self._whole_text(value) if is_secret else self._text(value)
        if isinstance(value, list):
            return [self._json_value(item, name) for item in value]
        if isinstance(value, dict):
            return {member: self._json_value(inner, member) for member, inner in value.items()}
        return value

    def _text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        edits = self._finder.text_edits(data)
        self.counts.update(edit.kind for edit in edits)
        return apply_edits(data, edits).decode("utf-8", "surrogatepass") if edits else text

    def _whole_text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return apply_edits(data, self._finder.secret_edits(data)).decode("utf-8", "surrogatepass")

    def _count(self, ranges: tuple[tuple[int, int, str], ...]) -> None:
        self.counts.update(kind for _, _, kind in ranges)


def _kinds(frames: list[Frame]) -> dict[tuple[int, int], str]:
    """Return the kinds of earlier replacements in a frame of these parts, by their spans."""
    kinds: dict[tuple[int, int], str] = {}
    begin = 0
    for frame in frames:
        kinds |= {(begin + at, begin + at + length): kind for at, length, kind in frame.redacted}
        begin += len(frame.data)
    return kinds


def _stream(record: Open) -> _StreamFacts:
    coding = _field(record.head, b"content-encoding")
    framing = body_framing(_field(record.head, b"content-type").encode()) if coding else record.framing
    return _StreamFacts(
        is_events=framing == "sse",
        is_lines=framing == "lines" and bool(record.head),
        coding="" if coding == "identity" else coding,
    )


def _field(head: bytes, name: bytes) -> str:
    """Return the first value of a header field, in lower case; empty if there is none."""
    at = head.lower().find(b"\n%b:" % name)
    if at < 0:
        return ""
    start = at + len(name) + len(b"\n:")
    return head[start:].partition(b"\n")[0].strip().decode("latin-1").lower()


def _compressed(data: bytes, coding: str) -> bytes | None:
    """Compress `data` in this coding; None if it is none of the standard library's."""
    if coding in ("gzip", "x-gzip"):
        compressor = zlib.compressobj(wbits=_GZIP)
        return compressor.compress(data) + compressor.flush()
    return zlib.compress(data) if coding == "deflate" else None


def _gap(damage: Damage) -> list[Record]:
    """Make a gap of a line that could not be read; none of a line whose record follows."""
    if damage.is_repeated or damage.reason in (
        "edited",
        "torn",
    ):  # nothing follows a torn line, and without an end all is incomplete
        return []
    why = "a line that could not be read was left out" if damage.data else "records were missing"
    return [Gap(at_ns=damage.at_ns, since_ns=damage.at_ns, frames=1, bytes=len(damage.data), why=why)]
