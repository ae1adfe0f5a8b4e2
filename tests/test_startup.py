"""Tests of what verbs must not import: `mcpspy run` before its server runs, as editors wait for it; and verbs that read."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S
from tests.imported import assert_absent, bare_interpreter, imports

# Each costs more than the rest of the start-up together, or drags such a module in (docs/performance.md has the figures).
TOO_SLOW = {
    "asyncio",
    "click",
    "collections",
    "dataclasses",
    "inspect",
    "json",
    "msgspec",
    "re",
    "rich",
    "subprocess",
    "typing",
}
NOT_A_TAPS_BUSINESS = {"aiohttp", "jsonschema", "mcpspy.capture.file.reader", "mcpspy.transcript", "mcpspy.views"}

CAPTURES = Path(__file__).parent.parent / "captures"
SPAWNED = "the server runs"

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="on other systems Python, or mcpspy, imports a module more")


def imported_before_the_spawn(arguments: list[str], log: Path) -> set[str]:
    """Return the modules that `mcpspy run` imported before its server ran.

    The server writes its line into the very file that takes the interpreter's import log, so the file has both in their order.
    What the interpreter imports for itself is not counted.
    """
    server = ["sh", "-c", 'echo "$0" >> "$1"', SPAWNED, str(log)]
    entry = "import sys; from mcpspy.__main__ import main; sys.exit(main())"
    log.touch()
    with log.open("ab") as stderr:
        subprocess.run(
            [sys.executable, "-X", "importtime", "-c", entry, "run", *arguments, "--", *server],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            timeout=DEADLINE_S,
            check=True,
        )
    before, separator, _ = log.read_text(encoding="utf-8").partition(SPAWNED)
    assert separator, "the server never ran"
    return imports(before) - imports(bare_interpreter())


def test_run_starts_the_server_before_it_imports_anything_slow(tmp_path: Path) -> None:
    assert_absent(TOO_SLOW, imported_before_the_spawn([], tmp_path / "log"))


def test_run_starts_the_server_without_what_only_readers_need(tmp_path: Path) -> None:
    assert_absent(NOT_A_TAPS_BUSINESS, imported_before_the_spawn([], tmp_path / "log"))


def test_options_do_not_slow_the_start(tmp_path: Path) -> None:
    arguments = ["--label", "weather", "--redact", "none", "--max-size", "1mb", "--capture", str(tmp_path / "x.mcpspy")]
    assert_absent(TOO_SLOW, imported_before_the_spawn(arguments, tmp_path / "log"))


def test_the_import_log_is_read_as_the_interpreter_writes_it() -> None:
    log = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import json"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    ).stderr
    assert {"json", "json.decoder", "re"} <= imports(log)


@pytest.mark.parametrize("name", ["mcpspy.renamed", "mcpspy.renamed.module", "json.renamed"])
def test_a_module_that_does_not_exist_is_not_called_absent(name: str) -> None:
    with pytest.raises(AssertionError, match=f"no such modules: {name}"):
        assert_absent({"json", name}, set())


def test_a_module_that_was_imported_is_not_absent() -> None:
    with pytest.raises(AssertionError, match="imported: json"):
        assert_absent({"json", "re"}, {"json", "os"})


def imported_by_a_look(*arguments: str) -> set[str]:
    """Run a verb on the capture of a file server, and return the modules that it imported."""
    command = [sys.executable, "-X", "importtime", "-m", "mcpspy", *arguments, str(CAPTURES / "filesystem.mcpspy")]
    return imports(subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stderr)


def test_a_timeline_waits_for_nothing_that_filters_follows_or_prints_json() -> None:
    names = {
        "mcpspy.transcript.filter.filter",
        "mcpspy.cli.show.follow",
        "mcpspy.views.timeline.exchange",
        "mcpspy.views.timeline.http_wire",
        "mcpspy.views.json.rows",
    }
    assert_absent(names, imported_by_a_look("show"))


def test_a_timeline_waits_for_no_schemas_and_no_server_of_pages() -> None:
    assert_absent({"aiohttp", "jsonschema", "mcp_types"}, imported_by_a_look("show"))


@pytest.mark.parametrize("name", ["time", "everything", "question", "stateless", "channels"])
def test_a_timeline_of_calls_with_schemas_waits_for_no_library_that_knows_all_of_them(name: str) -> None:
    assert_absent({"jsonschema", "referencing", "mcp_types"}, loaded_by("show", str(CAPTURES / f"{name}.mcpspy")))


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["list", "--all", "--json"], ["show"], ["show", "--detail", "names"]],
    ids=" ".join,
)
def test_what_is_looked_at_most_waits_neither_for_click_nor_for_what_it_imports(arguments: list[str]) -> None:
    captures = [str(CAPTURES / "filesystem.mcpspy")] if arguments[0] == "show" else []
    assert_absent({"click", "inspect", "dataclasses"}, imported_by(*arguments, *captures))


def test_a_check_of_other_rules_waits_for_no_schemas_and_official_types() -> None:
    assert_absent({"jsonschema", "mcp_types"}, imported_by_a_look("check", "--select", "stdout-noise"))


def imported_by(*arguments: str) -> set[str]:
    """Run a command, and return the modules that it imported."""
    command = [sys.executable, "-X", "importtime", "-m", "mcpspy", *arguments]
    return imports(subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stderr)


def test_the_help_of_web_waits_for_no_server_and_no_page() -> None:
    names = {"aiohttp", "mcpspy.cli.web.stored_recordings", "mcpspy.transcript", "msgspec"}
    assert_absent(names, imported_by("web", "--help"))


def test_a_server_for_agents_reads_no_captures_before_it_is_asked_to() -> None:
    names = {
        "mcpspy.agent.reports",
        "mcpspy.cli.web.agent_captures",
        "mcpspy.live.http.tap",
        "mcpspy.transcript.filter.filter",
        "mcpspy.transcript.findings.registry",
    }
    command = [sys.executable, "-X", "importtime", "-m", "mcpspy", "mcp"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "mcp.server.lowlevel" in done.stderr
    assert_absent(names, imports(done.stderr))


@on_linux
def test_the_version_waits_for_nothing() -> None:
    assert_absent({"click", "enum", "re", "typing", "mcpspy.errors"}, imported_by("--version"))


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["list", "--since", "1h"], []], ids=" ".join)
def test_a_list_waits_for_no_transcripts_and_no_findings(arguments: list[str]) -> None:
    assert_absent({"mcpspy.transcript", "mcpspy.wire", "mcpspy.views.timeline"}, imported_by(*arguments))


def test_a_version_that_cannot_be_written_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full:
        failed = subprocess.run([sys.executable, "-m", "mcpspy", "--version"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert failed.returncode == 2
    assert b"No space left on device" in failed.stderr


def loaded_by(*arguments: str) -> set[str]:
    """Return all modules that a command had loaded at its end, also those imported by a name made at run time."""
    entry = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from mcpspy.__main__ import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", entry, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return set(result.stderr.splitlines()[-1].split())


def test_a_timeline_of_stdio_waits_for_no_rules_about_http_models_or_forms() -> None:
    findings = "mcpspy.transcript.findings"
    names = {
        *(f"{findings}.transport.{name}" for name in ("statuses", "redirects", "refusals", "responses", "resumption")),
        f"{findings}.protocol.forms",
        f"{findings}.llm",
        f"{findings}.registry",
        f"{findings}.hop_culprits",
    }
    loaded = loaded_by("show", str(CAPTURES / "filesystem.mcpspy"))
    assert_absent(names | {"hashlib", "rich.cells", "urllib.parse", "mcpspy.replay", "mcpspy.views.timeline.hops"}, loaded)
    assert f"{findings}.protocol.handshake" in loaded


def test_a_timeline_of_a_sound_session_waits_for_no_rules_about_unsound_ones() -> None:
    findings = "mcpspy.transcript.findings"
    names = {
        f"{findings}.capture",
        *(f"{findings}.protocol.{name}" for name in ("answers", "errors", "modern", "pings", "timeouts")),
        *(
            f"{findings}.transport.{name}"
            for name in ("bursts", "headers", "limits", "placeholders", "server_exits", "sessions")
        ),
    }
    assert_absent(names | {"mcpspy.transcript.http.decode"}, loaded_by("show", str(CAPTURES / "filesystem.mcpspy")))
    names = {f"{findings}.transport.{name}" for name in ("bursts", "disconnects", "limits", "refusals", "resumption")}
    assert_absent(names | {"urllib.parse"}, loaded_by("show", str(CAPTURES / "streamable.mcpspy")))
