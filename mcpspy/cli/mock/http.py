"""`mcpspy mock --listen`: mocks over HTTP, of one server or of all servers of a recording and their model API.

They record as `mcpspy proxy` does, and their URLs are printed on stderr.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterable
from functools import partial
from shlex import quote
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from ...capture.file.reader import read
from ...capture.file.writer import Writer
from ...errors import McpspyError, ReplayError
from ...live.mock.http.server import HttpMock
from ...live.mock.http.server import serve as serve_all
from ...platform.loops import run_with_sockets
from ...platform.open_files import allow_many_open_files
from ...platform.signals import listen
from ...records import Header
from ...replay.mock.http.answer import Transport
from ...replay.mock.http.recorded_http import HttpFacts
from ...replay.mock.http.routing import Routing
from ...transcript.http.transaction import ScopeKind
from ...transcript.model import Transcript
from ...transcript.transcribe import transcribe
from ..capture_options import UsageError
from ..proxy.listening import address, begin_capture, redactor_of
from .options import MockOptions
from .session import (
    capture_ids,
    capture_start,
    matcher,
    miss_policy,
    paths_of,
    recorded_server,
    refused,
    report_miss,
    say,
)

if TYPE_CHECKING:
    from ...live.mock.llm import LlmMock, LlmPassThrough

MAX_PORT: Final = 65_535


class CaptureGroup(NamedTuple):
    """The captures of one server, or of one model API. `url` is the live one that continues after a miss; empty: none does.

    Header fields of --header and `MCPSPY_AUTHORIZATION` go only to the one that `shows_login`: a login is for one server.
    """

    label: str
    is_model: bool
    paths: tuple[str, ...]
    url: str = ""
    shows_login: bool = True


class MockSetting(NamedTuple):
    """The settings that all mocks of one command line share. `begin_ns` (monotonic) and `wall_ns` are of the same instant."""

    options: MockOptions
    begin_ns: int
    wall_ns: int
    are_several: bool

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """The host names that clients may use, in lower case."""
        return frozenset(map(str.lower, self.options.allowed_hosts))


class ServedMock(NamedTuple):
    """One mock with its socket, and the captures that it serves."""

    mock: HttpMock | LlmMock
    listener: socket.socket
    transcript: Transcript
    group: CaptureGroup


def serve(options: MockOptions) -> int:
    """Serve captures until a signal comes. Returns the exit status: 2 for bad usage, 3 for no capture, 4 for no address."""
    gc.disable()  # a start-up makes no garbage: an eighth of its time, for 20,000 exchanges
    begin_ns, wall_ns = monotonic_ns(), time_ns()
    try:
        host, port = address(options.listen or "", remote=options.allows_remote, what="what was recorded")
        groups = with_urls(grouped(paths_of(options.whats)), options.urls)
        check(groups, options, port)
        setting = MockSetting(options, begin_ns, wall_ns, are_several=len(groups) > 1)
        served = [_served(group, host, port and port + number, setting) for number, group in enumerate(groups)]
    except (UsageError, McpspyError, OSError) as error:
        return refused(error)
    signals_fd = listen()  # not before: a signal ends a mock that still reads its captures
    writers = [_record(mock, setting) for mock in served]
    allow_many_open_files()
    gc.freeze()
    gc.enable()
    lines = "\n".join(line for mock in served for line in _address_lines(mock, setting))
    run_with_sockets(serve_all([(mock.mock, mock.listener) for mock in served], signals_fd, partial(say, lines)))
    for mock, writer in zip(served, writers, strict=True):
        if writer is not None:
            writer.close(mock.mock.now_ns(), mock.mock.why)
    return 0


def grouped(paths: Iterable[str]) -> list[CaptureGroup]:
    """Group captures by server, those of model APIs first, each kind in the order of the paths. Raises: CaptureError; OSError."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for path in paths:
        first = next(read(path), None)
        header = first if isinstance(first, Header) else None
        is_model = header is not None and header.tapped.get("leg") == "model"
        groups.setdefault((not is_model, header.label if header else ""), []).append(path)
    models_first = sorted(groups.items(), key=lambda item: item[0][0])
    return [CaptureGroup(label, not is_server, tuple(some)) for (is_server, label), some in models_first]


def with_urls(groups: list[CaptureGroup], urls: Iterable[str]) -> list[CaptureGroup]:
    """Give each group its live URL: from `LABEL=URL`, or from a URL alone, which is for the model API, or for the only group.

    With several groups, only the URL without a label gets the fields of a login. Raises: UsageError.
    """
    by_label: dict[str, str] = {}
    labelled: set[str] = set()
    labels = [group.label for group in groups]
    for text in urls:
        label, sign, url = text.partition("=")
        if not sign or label not in labels:
            sign, label, url = "", groups[0].label, text
            if len(groups) > 1 and not groups[0].is_model:
                raise UsageError(f"--url {text}: for which server? Say --url LABEL=URL; the labels are {', '.join(labels)}")
        by_label[label] = url
        labelled.update([label] if sign and len(groups) > 1 else [])
    return [group._replace(url=by_label.get(group.label, ""), shows_login=group.label not in labelled) for group in groups]


def check(groups: list[CaptureGroup], options: MockOptions, port: int) -> None:
    """Reject options that are for one mock when there are several, and a `port` followed by too few others. Raises: UsageError."""
    if port + len(groups) - 1 > MAX_PORT:
        raise UsageError(f"{len(groups)} mocks need a port each, and the last port is {MAX_PORT}; port 0 picks free ones")
    if len(groups) > 1 and options.label:
        labels = ", ".join(group.label for group in groups)
        raise UsageError(f"--label names one mock, and there are {len(groups)}: {labels}; leave it out")
    if options.command and (len(groups) > 1 or groups[0].is_model):
        raise UsageError("a command after -- is for one server; name live servers with --url LABEL=URL")


def _served(group: CaptureGroup, host: str, port: int, setting: MockSetting) -> ServedMock:
    """Make the mock of one group, and its socket. Raises: McpspyError, UsageError; OSError."""
    what = " ".join(setting.options.whats)
    mock: HttpMock | LlmMock
    if group.is_model:
        transcript = transcribe(*map(read, group.paths), keep_frames=True, with_findings=False)
        mock = _model_mock(transcript, what, group, setting)
    else:
        mock, transcript = _server_mock(what, group, setting)
    return ServedMock(mock, mock.listen(host, port), transcript, group)


def _server_mock(what: str, group: CaptureGroup, setting: MockSetting) -> tuple[HttpMock, Transcript]:
    options = setting.options
    transcript, replies = recorded_server(group.paths, what, over_http=True)
    requests = matcher(replies.exchanges, options, paths=group.paths)
    forwards = None
    if group.url or options.command:
        from .pass_through import http_pass_through, live_server

        server = live_server(options, transcript, url=group.url, shows_login=group.shows_login)
        forwards = http_pass_through(server, replies)
    facts = HttpFacts(transcript, _transport(transcript, setting), requests.rules)
    mock = HttpMock(
        replies,
        requests,
        facts,
        Routing(transcript, facts, answers_with_events=options.answers_with_events),
        begin_ns=setting.begin_ns,
        wall_ns=setting.wall_ns,
        speed=options.speed,
        allowed_hosts=setting.allowed_hosts,
        on_miss=miss_policy(replies, options),
        pass_throughs=forwards,
        tell=report_miss,
    )
    return mock, transcript


def _transport(transcript: Transcript, setting: MockSetting) -> Transport:
    """Choose the transport: the one asked for, else Streamable HTTP; of several servers each its recorded one."""
    transport = setting.options.transport
    if transport is None and setting.are_several:
        transactions = (transaction for capture in transcript.captures for transaction in capture.transactions.values())
        is_sse = any(transaction.scope.kind is ScopeKind.STREAM for transaction in transactions)
        transport = "sse" if is_sse else None
    return "sse" if transport == "sse" else "streamable"


def _model_mock(transcript: Transcript, what: str, group: CaptureGroup, setting: MockSetting) -> LlmMock:
    """Make the mock of a model API from captures of it.

    Raises: ReplayError: if there is nothing to serve. PathError: for an ignore rule that cannot be read. UsageError.
    """
    from ...live.mock.llm import LlmMock
    from ...replay.mock.prompt_key import PromptRules
    from ...replay.mock.recorded_prompts import recorded_prompts

    options = setting.options
    prompts = recorded_prompts(transcript)
    if all(prompt.unplayable for prompt in prompts):
        raise ReplayError(
            what, "no answer of the model API was recorded, so there is nothing to serve; mcpspy show says what happened"
        )
    return LlmMock(
        prompts,
        matcher([prompt.exchange for prompt in prompts], options, rules=PromptRules),
        begin_ns=setting.begin_ns,
        speed=options.speed,
        allowed_hosts=setting.allowed_hosts,
        plays_nearest=options.on_miss == "nearest",
        pass_through=_model_pass_through(transcript, group, options) if group.url else None,
        tell=report_miss,
    )


def _model_pass_through(transcript: Transcript, group: CaptureGroup, options: MockOptions) -> LlmPassThrough:
    """Make the client of the live model API. Raises: UsageError."""
    from ...live.mock.llm import LlmPassThrough
    from .pass_through import live_target, tell

    target = live_target(options, transcript, group.url, shows_login=group.shows_login)
    fields = [(name.encode(), value.encode("latin-1", "replace")) for name, value in target.fields]
    return LlmPassThrough(target.url, fields=fields, tls=target.tls, tell=tell)


def _address_lines(served: ServedMock, setting: MockSetting) -> list[str]:
    """Say where a mock is reached: its URL; for a model API the variables to set, as in a shell.

    With several mocks a server's label precedes its URL, and one that was recorded on stdio gets the command that serves it there.
    """
    if isinstance(served.mock, HttpMock):
        if not setting.are_several:
            return [served.mock.url]
        header = served.transcript.captures[0].header
        on_stdio = header is not None and header.tapped.get("transport") == "stdio"
        command = f"  or on stdio: mcpspy mock {' '.join(map(quote, served.group.paths))}" if on_stdio else ""
        return [f"{served.group.label or 'server'}  {served.mock.url}{command}"]
    from ...replay.mock.recorded_prompts import base_url_variables

    return [f"{name}={url}" for name, url in base_url_variables(served.mock.recorded, served.mock.url)] or [served.mock.url]


def _record(served: ServedMock, setting: MockSetting) -> Writer | None:
    """Begin the mock's own capture, if it can be created."""
    start = capture_start(setting.options, served.transcript, setting.wall_ns, setting.begin_ns)
    url = served.mock.url
    tapped = {"transport": "http", "url": url, "listen": url, "mock": capture_ids(served.transcript)}
    if served.group.is_model:
        tapped["leg"] = "model"
    return begin_capture(served.mock, start, redactor_of(start), tapped, is_guarded=False)[0]
