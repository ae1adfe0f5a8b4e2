"""The interface: to looking and searching it adds the keys that act. Each says what it did; those that touch traffic ask first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from textual import work

from ..errors import ControlError, InterceptError
from ..transcript.model import Exchange, Numbered, Row, Transcript
from ..views.text.escape import one_line, safe_text
from ..views.text.line import Line
from ..views.text.units import counted, size
from .browser import Browser
from .drawing import Letters
from .holding import Held, Holding, breakpoint_text, capture_id
from .prompt import previous_like
from .tabs import raw_text
from .verbs import EXPORTS, VerbResult, Verbs, curl_text, replay_text, shown_message

if TYPE_CHECKING:
    from .calling import RepeatedCall
    from .source import Desk, RowSource

ROWS_BEFORE: Final = 10
DIAGRAM_ROWS: Final = 200
"""A diagram begins so many rows before the cursor, and has so many at most."""

HELD_TICKS: Final = 6
"""So many ticks after each other, taps are asked what they hold."""

MAX_BREAKPOINTS: Final = 9

MAX_COPY_LETTERS: Final = 74_000
"""Terminals take no more through OSC 52."""


class Terminal(Browser):
    """The application."""

    def __init__(
        self, source: RowSource, desk: Desk, verbs: Verbs, letters: Letters, *, row: int = 0, follows: bool = False
    ) -> None:
        super().__init__(source, desk, letters, row=row, follows=follows)
        self.verbs = verbs
        self.holding = Holding()
        self.held: list[Held] = []
        self._is_asking = False
        self._export: tuple[str, bool] = ("", False)
        self._hold_for = ""
        self._calling: RepeatedCall | None = None
        """The call that runs."""

    @property
    def numbered(self) -> Numbered | None:
        """The row at the cursor, if it has a number; else the foot says so."""
        row = self.row_list.row
        if isinstance(row, Numbered):
            return row
        self.say("Choose a row with a number first.", "bad")
        return None

    # --- Reading more ---

    def action_compare(self) -> None:
        """Show what changed since the call before of the same tool."""
        from ..replay.compare.compare import ComparedSide, compare  # as all that only a key needs
        from ..views.compare.comparison import comparison_lines

        row = self.numbered
        if row is None:
            return
        transcript = self.source.transcript
        before = previous_like(transcript, row) if isinstance(row, Exchange) else None
        if not isinstance(row, Exchange) or before is None:
            self.say("There is no earlier call like this one.")
            return
        captures = transcript.captures
        old, new = (ComparedSide(transcript=Transcript(captures, [call]), rows=frozenset({call.row})) for call in (before, row))
        heading: Line = [(f"row {before.row} (A) and row {row.row} (B)", "strong")]
        lines = comparison_lines(compare(old, new), width=self.size.width - 4)
        self.show_text([heading, *lines])

    def action_diagram(self) -> None:
        """Draw the rows that match, or those around the cursor."""
        from ..views.sequence.ladder import ladder
        from ..views.sequence.layout import diagram

        at = self.row_list.cursor
        begin = 0 if self.shown.condition is not None else max(at - ROWS_BEFORE, 0)
        some = (self.shown.row(position) for position in range(begin, min(begin + DIAGRAM_ROWS, len(self.shown))))
        rows: list[Row] = [row for row in some if row is not None]
        layout = diagram(self.source.transcript, rows)
        self.show_text(ladder(layout, width=self.size.width - 4))

    def action_page(self) -> None:
        """Open the page of this recording in the browser, at the row at the cursor."""
        row = self.row_list.row
        recording = f"?recording={self.source.name}" if self.source.name else ""
        self.say("Starting mcpspy web …")
        self.open_page(f"{recording}#row={row.row}" if isinstance(row, Numbered) else recording)

    @work(thread=True, group="page")
    def open_page(self, place: str) -> None:
        """Start the page's server, say where it is, and open it."""
        address = self.verbs.page()
        if not address:
            self.call_from_thread(self.say, "mcpspy web did not start.", "bad")
            return
        self.call_from_thread(self.say, f"{address}{place}")
        self.verbs.browse(f"{address}{place}")

    # --- Calling again ---

    def action_again(self, edited: int) -> None:
        """Make the call of the row again; with 1, let the user change it first."""
        from .calling import RepeatedCall, destination, editable, why_not_again

        row = self.numbered
        if row is None:
            return
        why = why_not_again(row)
        if why or not isinstance(row, Exchange):
            self.say(why, "bad")
            return
        to, what = destination(self.source.transcript.captures[row.capture]), self.source.address(row)
        if isinstance(to, str) or not what:
            self.say(to if isinstance(to, str) else "This was read from a pipe, and cannot be read again.", "bad")
            return
        call = RepeatedCall(row, what, to)
        if edited:
            self.edit_call(call, json.dumps(editable(row), indent=2, ensure_ascii=False))
        else:
            self.ask_call(call)

    def edit_call(self, call: RepeatedCall, text: str) -> None:
        """Let the user edit the arguments of a call, and check them."""
        from .calling import changes, editable, mistake, read_json

        changed = self.in_editor(text)
        if changed is None and text == json.dumps(editable(call.exchange), indent=2, ensure_ascii=False):
            self.say("Nothing was changed, and nothing was sent.")
            return
        changed = text if changed is None else changed
        try:
            value = read_json(changed)
            ready = call._replace(changes=changes(call.exchange, value))
        except ValueError as error:
            self.choose(f"{one_line(str(error))}", [("e", "edit it again")], lambda _: self.edit_call(call, changed))
            return
        wrong = mistake(self.source.transcript, call.exchange, value)
        if wrong:
            choices = [("e", "edit them again"), ("s", "send them nevertheless")]
            then = {"e": lambda: self.edit_call(call, changed), "s": lambda: self.ask_call(ready)}
            self.choose(f"they do not fit the input schema: {wrong}", choices, lambda key: then[key]())
        else:
            self.ask_call(ready)

    def ask_call(self, call: RepeatedCall) -> None:
        """Ask before a call that may change something, and before a server is started or reached for it."""
        from .calling import danger

        why = danger(self.source.transcript, call.exchange)
        apart = call.to.apart
        if not why and not call.to.is_fresh and apart is None:
            self.call(call)
            return
        choices = [("c", f"call it{f': {why}' if why else ''}")]
        ways = {"c": call}
        if apart is not None:
            choices.append(("u", f"call it in a session of its own, at {apart.name}"))
            ways["u"] = call._replace(to=apart)
        self.choose(f"{call.name} to {call.to.name}", choices, lambda key: self.call(ways[key]))

    def call(self, call: RepeatedCall) -> None:
        """Call, and show what comes of it."""
        if self._calling is not None:
            self.say("Another call still waits for its answer.", "bad")
            return
        self._calling = call
        self.show_text(
            [[("● ", "wait"), (call.name, "strong"), (" … waiting for the answer of ", ""), (call.to.name, "")]], "cancel"
        )
        self.send(call)

    @work(thread=True, group="verb")
    def send(self, call: RepeatedCall) -> None:
        """Let `mcpspy call` send it."""
        done = self.verbs.run(call.words, call.to.cwd)
        self.call_from_thread(self.called, call, done)

    def called(self, call: RepeatedCall, done: VerbResult) -> None:
        """Show the outcome, unless the user has cancelled the call."""
        from .calling import outcome_lines

        if self._calling is call:
            self._calling = None
            self.show_text(outcome_lines(call, done.output, done.words, self.size.width - 4))

    def close_text(self) -> None:
        """Close what is shown; a call that waits is cancelled."""
        super().close_text()
        if self._calling is not None:
            self.say(f"Cancelled: {self._calling.name}")
            self._calling = None
            self.verbs.stop()

    def enough(self) -> None:
        """Close what was read; a call that waits is cancelled by Esc alone."""
        if self._calling is None:
            super().enough()

    def in_editor(self, text: str) -> str | None:
        """Let the user edit a text; None if it was left as it is."""
        with nullcontext() if self.is_headless else self.suspend():
            return self.verbs.edited(text)

    # --- Restarting ---

    def action_restart(self) -> None:
        """Restart the server of the row."""
        from .calling import is_running

        row = self.row_list.row
        captures = self.source.transcript.captures
        header = captures[0 if row is None else row.capture].header if captures else None
        if header is None or not is_running(header.capture_id):
            self.say("Only a server that runs under mcpspy run can be restarted.", "bad")
            return
        if header.tapped.get("url"):
            self.say("mcpspy proxy did not start this server, so it cannot restart it.", "bad")
            return
        label, id = one_line(header.label), header.capture_id
        choices = [
            ("r", "restart it; its client stays connected, and the old server ends when the new one has answered"),
            ("s", "stop it first, then start the new one"),
        ]
        self.choose(f"restart {label}", choices, lambda key: self.restart(id, label, ["--stop-first"] if key == "s" else []))

    def restart(self, id: str, label: str, options: list[str]) -> None:
        """Restart a server, and say what came of it."""
        self.say(f"Restarting {label} …")
        self.run_verb(["control", id, "--restart", *options], self.restarted)

    def restarted(self, done: VerbResult) -> None:
        """Say what came of a restart; show what a new server wrote that failed."""
        first, *log = [safe_text(line) for line in done.words.splitlines()] or ["It did not restart."]
        self.say(first, "bad" if done.status else "wait")
        if log:
            self.show_text([[(first, "bad" if done.status else "")], [], *([(line, "")] for line in log)])

    # --- Copying and exporting ---

    def action_copy(self) -> None:
        """Copy something about the row."""
        row = self.numbered
        if row is None:
            return
        transcript, words = self.source.transcript, self.source.words(row)
        message = shown_message(row, self.detail.tab)
        texts = {
            "j": "" if message is None else raw_text(message),
            "c": curl_text(transcript, row),
            "r": replay_text(self.source.words(None)),
            "l": " ".join(words),
        }
        names = {"j": "the message as JSON", "c": "curl, which sends it again", "r": "the command for replay", "l": "a link"}
        choices = [
            (key, name if key != "l" else f"{name}: {safe_text(texts[key])}") for key, name in names.items() if texts[key]
        ]
        self.choose(f"copy of row {row.row}", choices, lambda key: self.copy(names[key], texts[key]))

    def copy(self, name: str, text: str) -> None:
        """Copy a text to the clipboard of the terminal."""
        if len(text) > MAX_COPY_LETTERS:
            self.say(f"{size(len(text))} are too much for the clipboard of a terminal; e exports it to a file", "bad")
            return
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.say(
            f"Copied: {name} ({counted(len(text), 'letter')}). If nothing arrives, the terminal takes no OSC 52: e exports"
        )

    def action_export(self) -> None:
        """Export to a file."""
        row = self.row_list.row
        message = shown_message(row, self.detail.tab) if isinstance(row, Numbered) else None
        choices = [(key, words) for key, *_, words, is_one in EXPORTS if not is_one or isinstance(row, Numbered)]
        if message is not None:
            choices.append(("w", "the message that the tab shows, byte for byte"))
        self.choose("export", choices, self.ask_file)

    def ask_file(self, key: str) -> None:
        """Ask for the name of the file."""
        _, format, extension, _, is_one = next((item for item in EXPORTS if item[0] == key), ("w", "", "json", "", True))
        self._export = format, is_one
        row = self.row_list.row
        stem = os.path.basename(self.source.words(None)[0]).removesuffix(".mcpspy")
        number = f"-{row.row}" if is_one and isinstance(row, Numbered) else ""
        self.prompt.ask("file", "file", f"{stem}{number}.{extension}")

    def answered(self, kind: str, text: str) -> None:
        """Do what was typed."""
        if kind == "file" and text:
            self.export(text)
        elif kind == "hold" and text:
            self.hold(text)

    def export(self, path: str) -> None:
        """Write what was chosen to a file that does not exist yet."""
        format, is_one = self._export
        row = self.row_list.row
        if os.path.exists(path):
            self.say(f"{safe_text(path)} exists; choose another name", "bad")
        elif format:
            words = self.source.words(row if is_one and isinstance(row, Numbered) else None)
            is_filtered = not is_one and self.shown.condition is not None
            filters = ["-F", self.filter_text] if is_filtered else []
            self.say(f"Writing {safe_text(path)} …")
            self.run_verb(["export", format, *filters, "-o", path, "--", *words], lambda done: self.exported(path, done))
        elif isinstance(row, Numbered) and (message := shown_message(row, self.detail.tab)) is not None:
            try:
                with open(path, "xb") as file:
                    file.write(message.raw)
            except OSError as error:
                self.say(safe_text(f"{path}: {error.strerror}"), "bad")
            else:
                self.say(f"Written: {safe_text(path)} ({size(len(message.raw))})")

    def exported(self, path: str, done: VerbResult) -> None:
        """Say what became of an export."""
        if done.status:
            self.say(one_line(done.words or "mcpspy export failed"), "bad")
        else:
            self.say(f"Written: {safe_text(path)}")

    @work(thread=True, group="verb")
    def run_verb(self, words: Sequence[str], then: Callable[[VerbResult], None]) -> None:
        """Run another verb, and call `then` with its end."""
        done = self.verbs.run(words)
        self.call_from_thread(then, done)

    # --- Holding ---

    def action_hold(self) -> None:
        """Remove a breakpoint, if one is in force, or ask what to hold."""
        breakpoints = self.holding.breakpoints
        if not breakpoints:
            self.ask_hold()
            return
        choices = [(str(at), f"remove  {one_line(text)}") for at, (_, text) in enumerate(breakpoints[:MAX_BREAKPOINTS], 1)]

        def then(key: str) -> None:
            if key == "a":
                self.ask_hold()
            else:
                self.remove_hold(breakpoints[int(key) - 1])

        self.choose("breakpoints in force", [*choices, ("a", "add another, for messages like this one")], then)

    def ask_hold(self) -> None:
        """Ask what to hold, beginning with messages like the one that the tab shows."""
        row = self.numbered
        if row is None:
            return
        id = capture_id(self.source.transcript, row)
        if not id or not self.source.live:
            self.say("Only what is still recorded can be held.", "bad")
            return
        self._hold_for = id
        self.prompt.ask("hold", "FILTER => hold", breakpoint_text(row, shown_message(row, self.detail.tab)))

    def hold(self, text: str) -> None:
        """Set a breakpoint."""
        try:
            self.holding.hold(self._hold_for, text)
        except (ControlError, InterceptError) as error:
            self.say(one_line(str(error)), "bad")
        else:
            self.say(f"In force until you press b again or quit: {one_line(text)}")

    def remove_hold(self, chosen: tuple[str, str]) -> None:
        """Remove a breakpoint; what it holds goes on."""
        try:
            self.holding.remove(chosen)
        except ControlError as error:
            self.say(one_line(str(error)), "bad")
        else:
            self.say(f"No longer held: {one_line(chosen[1])}")

    def tick(self) -> None:
        """Also ask what is held."""
        if not self.screen_stack:
            return  # the last one is gone, and a timer comes once more
        super().tick()
        if self.holding.is_in_use and self._ticks % HELD_TICKS == 0 and not self._is_asking:
            self._is_asking = True
            self.ask_taps()

    @work(thread=True, group="held")
    def ask_taps(self) -> None:
        """Ask the taps what they hold."""
        held = self.holding.held()
        self.call_from_thread(self.show_held, held)

    def show_held(self, held: list[Held]) -> None:
        """Show what is held in a strip."""
        self._is_asking = False
        self.held = held
        self.strip.display = bool(held)
        if held:
            self.strip.show([*held[0].line(1, len(held)), ("   h: release, edit, drop", "")])

    def action_held(self) -> None:
        """Ask what to do with the message that goes on first."""
        if not self.held:
            self.say("Nothing is held. b holds messages like the one at the cursor.")
            return
        first = self.held[0]
        payload = one_line(first.payload, 200)
        choices = [("r", "release it"), ("e", "edit it in your editor, and let it go on"), ("d", "drop it")]

        def title() -> Line:
            present = next((item for item in self.held if (item.capture_id, item.id) == (first.capture_id, first.id)), None)
            return [("it has gone on", "")] if present is None else [*present.line(1, 1), (f"  {payload}", "")]

        self.choose(title, choices, lambda key: self.let_go(first, key))

    def let_go(self, held: Held, key: str) -> None:
        """Release, edit or drop a held message."""
        what = {"r": "release", "e": "edit", "d": "drop"}[key]
        try:
            changed = self.edited(held) if what == "edit" else ""
            if changed is None:
                self.say("Nothing was changed; it is still held.")
                return
            self.holding.let_go(held, what, changed)
        except ControlError as error:
            self.say(one_line(str(error)), "bad")
        else:
            done = {"release": "Released", "edit": "Sent on, edited", "drop": "Dropped"}[what]
            self.say(f"{done}: {one_line(held.payload, 60)}")
            self.show_held([item for item in self.held if item.id != held.id])

    def edited(self, held: Held) -> str | None:
        """Let the user edit a held message; None if it was left as it is. Raises: ControlError."""
        if len(held.payload.encode("utf-8", "surrogatepass")) < held.bytes - 2:
            raise ControlError(f"it is too long to be edited: {held.bytes} bytes")
        return self.in_editor(held.payload)

    def on_unmount(self) -> None:
        """Let go what is held, and end what was started."""
        self.holding.close()
        self.verbs.close()
