"""`mcpspy control`: lists the taps that run, and adds intercepts to them and removes them."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Final

import click

from ..capture.store.folder import live_folder
from ..control.client import EXTENSION, Controller, RunningTap, running_taps
from ..errors import AddressError, CaptureError, ControlError, InterceptError
from ..records import CLIENT, SERVER
from ..views.text.escape import safe_text
from ..views.text.json_text import SCHEMA
from .click_types import WhatCommand
from .screen import say

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONG_S: Final = 3600.0
_LOOK_S: Final = 0.05
"""Time between two looks whether a restart is done."""


@click.command("control", cls=WhatCommand)
@click.argument("what", required=False)
@click.option(
    "--intercept", "intercepts", multiple=True, metavar="TEXT", help="Add an intercept, until Ctrl-C. Can be repeated."
)
@click.option("--keep", is_flag=True, help="Leave the intercepts in force, and end at once.")
@click.option("--remove", "removed", multiple=True, type=int, metavar="ID", help="Remove the intercept with this id.")
@click.option("--release", "released", multiple=True, type=int, metavar="ID", help="Send a held message on.")
@click.option("--drop", "dropped", multiple=True, type=int, metavar="ID", help="Drop a held message.")
@click.option("--edit", "edited", type=int, metavar="ID", help="Change a held message in $EDITOR, and send it on.")
@click.option("--restart", "restarts", is_flag=True, help="Restart the server, and keep its client; on stdio only.")
@click.option("--stop-first", "stops_first", is_flag=True, help="With --restart: end the old server before the new one starts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs (docs/json.md).")
def command(
    what: str | None,
    intercepts: tuple[str, ...],
    keep: bool,
    removed: tuple[int, ...],
    released: tuple[int, ...],
    dropped: tuple[int, ...],
    edited: int | None,
    restarts: bool,
    stops_first: bool,
    as_json: bool,
) -> int:
    """Change the traffic of a server that runs under `mcpspy run` or `mcpspy proxy`; its client keeps its connection.

    Without WHAT, list the running servers. WHAT is a label, the id or pid in that list, or a capture as in `mcpspy show`.

    \b
    Examples:
      mcpspy control
      mcpspy control weather --intercept 'tool:search => delay 3s'
      mcpspy control weather --intercept 'tool:search => error -32000 "try later"' --keep
      mcpspy control weather --remove 1
      mcpspy control weather --intercept 'tool:search => hold'
      mcpspy control weather --edit 1
      mcpspy control weather --restart
    """
    if stops_first and not restarts:
        raise click.UsageError("--stop-first needs --restart.")
    taps = running_taps(live_folder())
    if what is None:
        if intercepts or removed or keep or restarts or released or dropped or edited is not None:
            raise click.UsageError("Name the server: mcpspy control lists what runs.")
        _list(taps, as_json=as_json)
        return 0
    tap = _chosen(taps, what)
    acts = [*(("remove", id) for id in removed), *(("release", id) for id in released), *(("drop", id) for id in dropped)]
    if not intercepts and not acts and not restarts and edited is None:
        _list([tap], as_json=as_json)
        return 0
    requests = [_request(text, tap.status.get("transport", "stdio")) for text in intercepts]
    try:
        controller = Controller(live_folder(), tap.id + EXTENSION)
    except OSError as error:
        raise ControlError(f"{what} cannot be reached: {error.strerror}") from None
    if restarts:
        return _restart(controller, tap, stops_first=stops_first)
    for do, id in acts:
        controller.ask(do, id=id)
    if edited is not None:
        controller.ask("edit", id=edited, payload=_in_editor(tap, edited))
    _put_in_force(controller, requests, keep=keep)
    controller.close()
    return 0


def _put_in_force(controller: Controller, requests: Sequence[dict[str, Any]], *, keep: bool) -> None:
    """Add intercepts to a tap, and stay with them unless they are kept."""
    for request in requests:
        answer = controller.ask("intercept", **request)
        say(f"Intercept {safe_text(str(answer['id']))} is in force: {safe_text(request['text'])}")
    if requests and keep:
        controller.ask("keep")
    elif requests:
        _stay(controller)


def _restart(controller: Controller, tap: RunningTap, *, stops_first: bool) -> int:
    """Restart a server, and wait for what becomes of it. Return our exit status."""
    known = controller.ask("follow")["knows"]
    messages = [] if known else _session_messages(tap.status["capture"])
    begun = controller.ask("restart", stop_first=stops_first, messages=messages)["restart"]
    state = begun
    while state["number"] == begun["number"] and state["state"] == "starting":
        time.sleep(_LOOK_S)
        state = controller.ask("status")["restart"]
    controller.close()
    say(safe_text(str(state["text"])).capitalize() + ".")
    for line in str(state.get("log", "")).splitlines():
        say(f"  {safe_text(line)}")
    return 1 if state["state"] == "failed" else 0


def _session_messages(path: str) -> list[tuple[str, str]]:
    """Read from a capture what a new server has to know, up to the last note that the tap remembers it."""
    from ..capture.file.reader import read
    from ..live.stdio.session_memory import SessionMemory
    from ..records import RESTART, Frame, Note

    memory, parts = SessionMemory(), {0: b"", 1: b""}
    for record in read(path):
        match record:
            case Frame(stream=0 | 1 as stream, part=True, data=data):
                parts[stream] += data
            case Frame(stream=0 | 1 as stream, data=data):
                memory.feed(CLIENT if stream == 0 else SERVER, parts[stream] + data)
                parts[stream] = b""
            case Note(topic=topic, extra=extra) if topic == RESTART and extra.get("phase") == "follow":
                break
    return [(sender, payload.decode("utf-8", "surrogateescape")) for sender, payload in memory.messages()]


def _in_editor(tap: RunningTap, id: int) -> str:
    """Let the user edit a held message."""
    held = next((message for message in tap.status["held"] if message["id"] == id), None)
    if held is None:
        raise ControlError(f"Message {id} is not held.")
    payload: str = held["payload"]
    if len(payload.encode("utf-8", "surrogatepass")) < held["bytes"] - 2:
        raise ControlError(f"Message {id} is too long to be edited: {held['bytes']} bytes.")
    changed = click.edit(payload, extension=".json")
    if changed is None:
        raise ControlError(f"Nothing was changed; message {id} is still held.")
    return changed


def _stay(controller: Controller) -> None:
    """Stay until Ctrl-C, or until the tap ends."""
    say("They stay until this command ends (Ctrl-C)")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            event = controller.event(_LONG_S)
            if event is not None and event["event"] == "note":
                say(f"mcpspy: {safe_text(event['text'])}")
    except ControlError:
        say("The server has ended.")
    except KeyboardInterrupt:
        pass


def _request(text: str, transport: str) -> dict[str, Any]:
    """Read an intercept, and the files that it names, here: a tap opens no file for a controller."""
    from ..intercept.syntax import parse_intercept
    from .intercepting import answer_of

    answers: dict[str, str] = {}

    def answer(name: str) -> bytes:
        content = answer_of(name)
        answers[name] = content.decode("utf-8", "surrogateescape")
        return content

    try:
        parse_intercept(text, answer, transport)
    except InterceptError as error:
        raise click.UsageError(str(error)) from None
    return {"text": text, "answers": answers}


def _chosen(taps: Sequence[RunningTap], what: str) -> RunningTap:
    """Return the one tap that was named. Raises: ControlError: if it is none, or several."""
    named = [tap for tap in taps if what in (tap.status["label"], str(tap.status["pid"])) or tap.id.startswith(what)]
    if not named:
        from .transcripts import select_captures

        try:
            paths = {os.path.realpath(path) for path in select_captures((what,)).paths}
        except (AddressError, CaptureError):
            paths = set()
        named = [tap for tap in taps if os.path.realpath(tap.status["capture"]) in paths]
    if len(named) == 1:
        return named[0]
    if named:
        raise ControlError(f"{what} runs {len(named)} times; name the id of one: {', '.join(tap.id[:8] for tap in named)}")
    raise ControlError(f"nothing that runs is called {what}; mcpspy control lists what runs.")


def _list(taps: Sequence[RunningTap], *, as_json: bool) -> None:
    if as_json:
        statuses = [{key: value for key, value in tap.status.items() if key != "ok"} for tap in taps]
        click.echo(json.dumps({"schema": SCHEMA, "taps": statuses}, indent=2))
        return
    if not taps:
        say("No server runs under mcpspy run or mcpspy proxy that can be controlled.")
    for tap in taps:
        click.echo(f"{tap.id[:8]}  {safe_text(tap.status['label'])}  pid {tap.status['pid']}")
        for intercept in tap.status["intercepts"]:
            id = intercept["id"] or "-"
            click.echo(f"  {id}  {safe_text(intercept['text'])}  by {safe_text(intercept['by'])}")
        for held in tap.status["held"]:
            click.echo(
                f"  held {held['id']}, {held['held_ns'] / 1e9:.1f} s, "
                f"of the {safe_text(held['sender'])}: {safe_text(held['payload'][:200])}"
            )
