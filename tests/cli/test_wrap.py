"""`mcpspy wrap` and `mcpspy unwrap`, as a user calls them. Real clients read what they wrote in tests/interop/test_wrapped.py."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from mcpspy.setup.clients import CLIENTS
from tests.cli.systemctl import Systemctl
from tests.cli.terminal import on_terminal, run
from tests.deadlines import DEADLINE_S, SCENE_S
from tests.setup.test_homes import HOMES


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, in which no client has a file yet; one works in a project in it."""
    folder = tmp_path / "home"
    (folder / "project" / ".git").mkdir(parents=True)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.chdir(folder / "project")
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "CLINE_MCP_SETTINGS_PATH"):
        monkeypatch.delenv(name, raising=False)
    Systemctl(tmp_path / "systemctl", monkeypatch)
    return folder


def write(home: Path, name: str, text: str) -> Path:
    """Write a client's file."""
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


CURSOR = """{
  // mine
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"], },
    "docs": {"url": "http://localhost:3001/mcp"},
    "mail": {"url": "https://mail.example/mcp"},
    "odd": {"url": "https://${HOST}/mcp"}
  }
}"""
CODEX = '[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n'
LOCAL = '{"projects": {"/p": {"mcpServers": {"memory": {"command": "npx"}}}}, "mcpServers": {}}'


def states(*arguments: str) -> dict[str, str]:
    """Return each server and its state."""
    return {
        server["server"]: server["state"]
        for server in json.loads(run("wrap", "--status", "--json", *arguments).stdout)["servers"]
    }


def test_all_servers_of_all_clients_are_wrapped_and_unwrapped(home: Path) -> None:
    files = {
        name: write(home, name, text)
        for name, text in ((".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX), (".claude.json", LOCAL))
    }
    before = {name: file.read_bytes() for name, file in files.items()}
    assert run("wrap", "--yes").returncode == 0
    wrapped = dict.fromkeys(("memory", "time", "docs", "git"), "wrapped")
    assert states() == {**wrapped, "mail": "login", "odd": "unusable"}
    assert run("unwrap", "--yes").returncode == 0
    assert {name: file.read_bytes() for name, file in files.items()} == before


def test_a_file_of_every_client_is_wrapped_shown_and_unwrapped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(HOMES / "linux", home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.wrapped"))
    monkeypatch.setenv("HOME", str(home / "home"))
    monkeypatch.chdir(home / "project")
    files = {file: file.read_bytes() for file in home.rglob("*.*") if file.is_file()}
    assert run("wrap", "--yes", "--oauth").returncode == 0
    servers = json.loads(run("wrap", "--status", "--json").stdout)["servers"]
    assert {server["client"] for server in servers if server["state"] == "wrapped"} == set(CLIENTS)
    assert {server["state"] for server in servers} == {"wrapped", "unusable"}
    assert run("unwrap", "--yes").returncode == 0
    assert {file: file.read_bytes() for file in files} == files


def test_what_is_wrapped_starts_without_a_path(home: Path, store: Path) -> None:
    file = write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"x": {"command": "/bin/echo", "args": ["hello"]}}}))
    run("wrap", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["x"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        env={"HOME": str(home)},
        capture_output=True,
        cwd="/",
        timeout=DEADLINE_S,
        check=False,
    )
    assert (os.path.isabs(entry["command"]), done.stdout) == (True, b"hello\n")


def test_in_a_folder_that_is_gone_the_files_of_the_user_are_changed(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    (home / "project" / ".git").rmdir()
    (home / "project").rmdir()
    assert states() == {"git": "plain"}


def test_a_dry_run_changes_nothing_and_says_what_would_change(home: Path, store: Path) -> None:
    files = {write(home, ".codex/config.toml", CODEX): CODEX, write(home, ".cursor/mcp.json", CURSOR): CURSOR}
    done = run("wrap", "--dry-run", "--quota", "2gb")
    assert [file.read_text() for file in files] == list(files.values())
    assert not any(store.glob("*.json"))
    assert "    - uvx mcp-server-git\n" in done.stdout
    assert "mcpspy run --label git -- uvx mcp-server-git\n" in done.stdout
    assert "    - http://localhost:3001/mcp\n    + http://127.0.0.1:28" in done.stdout
    assert "The store would be kept below 2.0 GB." in done.stderr
    assert "no quota" in run("wrap", "--status").stdout


def test_reserved_ports_that_cannot_be_understood_hide_no_change(home: Path, store: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    run("wrap", "--yes", "--server", "docs")
    (store / "reserved_ports.json").write_text("{")
    assert re.search(r"- http://127.0.0.1:28\d+/mcp\n    \+ http://localhost:3001/mcp", run("unwrap", "--dry-run").stdout)


def test_the_reason_why_a_server_is_not_wrapped_is_shown(home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    words = run("wrap", "--dry-run").stdout
    assert "  mail\n    not wrapped: the client may be logged in to it (OAuth), and a login is for one URL" in words
    assert "  odd\n    cannot be wrapped: the host of its URL is a variable" in words


def test_a_server_that_is_logged_in_to_is_wrapped_if_that_is_meant(home: Path) -> None:
    file = write(home, ".cursor/mcp.json", CURSOR)
    run("wrap", "--yes", "--oauth", "--server", "mail")
    assert states() == {"time": "plain", "docs": "plain", "mail": "wrapped", "odd": "unusable"}
    run("unwrap", "--yes")
    assert file.read_text() == CURSOR


def test_a_login_whose_original_url_is_unknown_is_an_error(home: Path) -> None:
    text = '{"mcpServers": {"mail": {"url": "http://127.0.0.1:28777/mcp"}}}'
    file = write(home, ".cursor/mcp.json", text)
    done = run("unwrap", "--yes")
    assert (done.returncode, file.read_text()) == (2, text)
    assert "its server 'mail' cannot be unwrapped: its URL is at 127.0.0.1:28777" in done.stderr


def test_only_the_server_that_was_named_is_wrapped(home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    run("wrap", "--yes", "--server", "gi*")
    assert states() == {"time": "plain", "docs": "plain", "mail": "login", "odd": "unusable", "git": "wrapped"}


def test_only_the_client_that_was_named_is_looked_at(home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    assert states("--client", "codex") == {"git": "plain"}


def test_a_server_that_is_nowhere_is_an_error() -> None:
    done = run("wrap", "--server", "nobody")
    assert (done.returncode, "nobody" in done.stderr) == (2, True)


def test_a_copy_is_kept_and_the_client_to_restart_is_named(home: Path, store: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    done = run("wrap", "--yes")
    assert [file.read_text() for file in (store / "backups").iterdir()] == [CODEX]
    assert "Codex: begin a new session." in done.stderr
    assert "MCPSPY_HOME is set in this shell, but a client passes it on only if" in done.stderr


def test_the_ports_that_are_shown_are_those_that_the_servers_get(home: Path) -> None:
    names = [".cursor/mcp.json", ".claude.json", "project/.mcp.json"]
    files = [
        write(home, name, '{"mcpServers": {"x": {"url": "http://h/mcp"}, "y": {"url": "http://h/mcp"}}}') for name in names
    ]
    shown = [re.findall(r"\+ (http://127.0.0.1:28\d+)", run("wrap", *words).stdout) for words in (("--dry-run",), ("--yes",))]
    got = [port for file in files for port in re.findall(r"http://127.0.0.1:28\d+", file.read_text())]
    assert shown == [shown[0], shown[0]]
    assert sorted(got) == sorted(set(shown[0]))
    assert len(got) == 6


def test_secrets_in_arguments_and_urls_are_not_printed(home: Path) -> None:
    servers = {
        "x": {"command": "npx", "args": ["--api-key", "sk-very-secret-1234"]},
        "y": {"url": "https://h.example/mcp?api_key=sk-very-secret-1234"},
    }
    write(home, ".claude.json", json.dumps({"mcpServers": servers}))
    done = run("wrap", "--dry-run")
    assert "h.example" in done.stdout
    assert "sk-very-secret" not in done.stdout + done.stderr


def test_the_reserved_ports_are_private(home: Path, store: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    run("wrap", "--yes")
    assert stat.S_IMODE((store / "reserved_ports.json").stat().st_mode) == 0o600


def test_reserved_ports_of_a_newer_mcpspy_are_left_alone(home: Path, store: Path) -> None:
    file = write(home, ".cursor/mcp.json", CURSOR)
    store.mkdir()
    (store / "reserved_ports.json").write_text('{"version": 2}')
    done = run("wrap", "--yes")
    assert (done.returncode, file.read_text(), (store / "reserved_ports.json").read_text()) == (2, CURSOR, '{"version": 2}')
    assert "reserved_ports.json: is of another mcpspy (version 2)" in done.stderr


# What a file may be that can not be changed, or only with care


def read_only(file: Path) -> None:
    file.chmod(0o444)


def broken(file: Path) -> None:
    file.write_text('{"mcpServers": {')


def not_text(file: Path) -> None:
    file.write_bytes(CURSOR.encode("utf-16"))


def doubled(file: Path) -> None:
    os.link(file, file.with_name("other"))


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


UNCHANGEABLE = [
    (read_only, "was not changed: it is read-only; make it writable first, or change it by hand"),
    (broken, "cannot be read: a key or } is missing (line 1, column 17); correct it first"),
    (not_text, "is not UTF-8 (byte 0); save it as UTF-8"),
    (doubled, "was not changed: it has a second name (a hard link), which would keep the old content; change it by hand"),
    (a_folder, "is not a regular file; move it away"),
    (a_fifo, "is not a regular file; move it away"),
]


@pytest.mark.parametrize(("make", "words"), UNCHANGEABLE)
def test_a_file_that_cannot_be_changed_is_reported_and_the_others_are_changed(
    make: Callable[[Path], None], words: str, home: Path
) -> None:
    odd = write(home, ".cursor/mcp.json", CURSOR)
    make(odd)
    before = odd.read_bytes() if odd.is_file() else b""
    write(home, ".codex/config.toml", CODEX)
    done = run("wrap", "--yes")
    assert (done.returncode, odd.read_bytes() if odd.is_file() else b"") == (2, before)
    assert done.stderr.endswith(f"mcpspy: {odd}: {words}.\n")
    assert states("--client", "codex") == {"git": "wrapped"}


def test_a_file_that_is_a_link_into_a_repository_stays_one(home: Path) -> None:
    real = write(home, "dotfiles/cursor.json", CURSOR)
    link = home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/cursor.json")
    run("wrap", "--yes")
    assert (link.is_symlink(), os.readlink(link)) == (True, "../dotfiles/cursor.json")
    assert states()["time"] == "wrapped"
    run("unwrap", "--yes")
    assert real.read_text() == CURSOR


def test_a_server_whose_mcpspy_is_gone_is_reported_and_repaired(home: Path) -> None:
    text = '{"mcpServers": {"x": {"command": "/gone/bin/mcpspy", "args": ["run", "--label", "x", "--", "npx", "-y"]}}}'
    file = write(home, ".cursor/mcp.json", text)
    assert "does not exist any more" in run("wrap", "--status").stdout
    run("wrap", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["x"]
    assert (entry["command"] != "/gone/bin/mcpspy", entry["args"][-4:]) == (True, ["x", "--", "npx", "-y"])


def test_what_an_mcpspy_wrapped_that_has_moved_since_is_unwrapped_all_the_same(home: Path) -> None:
    file = write(home, ".cursor/mcp.json", CURSOR)
    run("wrap", "--yes")
    file.write_text(file.read_text().replace(str(Path(sys.executable).parent), "/elsewhere/bin"))
    run("unwrap", "--yes")
    assert file.read_text() == CURSOR


def test_several_that_wrap_at_once_wrap_everything_once(home: Path) -> None:
    files = {
        home / f".{name}": write(home, f".{name}", text) for name, text in (("cursor/mcp.json", CURSOR), ("claude.json", LOCAL))
    }
    names = ("time", "docs", "memory", "*", "time")
    codes: list[int] = []
    threads = [
        Thread(target=lambda name=name: codes.append(run("wrap", "--yes", "--server", name).returncode)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SCENE_S)
    assert codes == [0] * len(names)
    assert [states()[name] for name in ("time", "docs", "memory")] == ["wrapped"] * 3
    run("unwrap", "--yes")
    assert [file.read_text() for file in files] == [CURSOR, LOCAL]


def test_a_virtual_environment_without_a_script_is_started_by_its_python(tmp_path: Path) -> None:
    script = "import sys; sys.executable = sys.argv[1]; from mcpspy.setup.service import program; print(program())"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "bin" / "python")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout == f"['{tmp_path / 'bin' / 'python'}', '-P', '-m', 'mcpspy']\n"


def test_an_mcpspy_in_a_cache_warns_that_wrapped_servers_stop_working(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    python = str(home / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "python")
    script = "import sys; _, sys.executable, *sys.argv[1:] = sys.argv; from mcpspy.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, python, "wrap", "--dry-run"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert f"mcpspy: {python} is in a cache; wrapped servers stop working once the cache is emptied" in done.stderr


# On a terminal it asks


@pytest.mark.parametrize(("answer", "state"), [(b"y", "wrapped"), (b"", "wrapped"), (b"n", "plain")])
def test_a_terminal_is_shown_the_change_and_asked(answer: bytes, state: str, home: Path) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    with on_terminal("wrap") as running:
        words = running.wait_for("[Y/n]")
        assert "- uvx mcp-server-git" in words
        assert f"Change {file}?" in words.replace("\n", "")
        running.type(answer + b"\n")
        assert running.rest() == 0
    assert states() == {"git": state}


ALL = "Change these 3 servers in 2 files, and set up the service mcpspy.socket? [all, some, none]:"


@pytest.mark.parametrize(
    ("answer", "wrapped"),
    [(b"", {"time", "docs", "git"}), (b"y", {"time", "docs", "git"}), (b"none", set()), (b"?\nNo", set())],
)
def test_several_files_are_one_list_and_one_question(answer: bytes, wrapped: set[str], home: Path) -> None:
    write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    with on_terminal("wrap", columns=200) as running:
        words = running.wait_for(ALL)
        assert words.index("- uvx mcp-server-git") < words.index("? [")
        running.type(answer + b"\n")
        assert running.rest() == 0
    assert {name for name, state in states().items() if state == "wrapped"} == wrapped


def test_some_servers_are_chosen_one_by_one(home: Path) -> None:
    cursor = write(home, ".cursor/mcp.json", CURSOR)
    write(home, ".codex/config.toml", CODEX)
    with on_terminal("wrap", columns=200) as running:
        running.wait_for(ALL)
        running.type(b"some\n")
        for name, answer in (("time", b"n"), ("docs", b"y"), ("git", b"n")):
            running.wait_for(f"Change {name} in ")
            running.type(answer + b"\n")
        assert running.rest() == 0
        assert running.words.count("Changed ") == 1
    assert states() == {"time": "plain", "docs": "wrapped", "mail": "login", "odd": "unusable", "git": "plain"}
    assert '"command": "uvx"' in cursor.read_text()


def test_ended_at_a_question_nothing_is_changed(home: Path) -> None:
    files = write(home, ".cursor/mcp.json", CURSOR), write(home, ".codex/config.toml", CODEX)
    with on_terminal("wrap", columns=200) as running:
        running.wait_for(ALL)
        running.type(b"some\n")
        running.wait_for("Change time in ")
        running.type(b"y\n")
        running.wait_for("Change docs in ")
        running.type(b"\x04")
        assert running.rest() == 130
    assert [file.read_text() for file in files] == [CURSOR, CODEX]


@pytest.mark.parametrize("words", [("wrap",), ("wrap", "--json"), ("wrap", "--quota", "2gb")])
def test_without_a_terminal_nothing_is_changed_unless_somebody_said_yes(
    words: tuple[str, ...], home: Path, store: Path
) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    done = run(*words)
    assert (done.returncode, file.read_text()) == (2, CODEX)
    assert "nothing was changed" in done.stderr
    assert done.stderr.endswith(f"mcpspy {' '.join(words)} --yes\n")
    assert not any(store.glob("*.json"))


def test_what_is_shown_on_a_pipe_is_the_change_that_yes_would_make(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    shown, made = run("wrap").stdout, run("wrap", "--yes").stdout
    assert "    - uvx mcp-server-git\n" in shown
    assert shown == made


def test_where_everything_is_wrapped_no_yes_is_needed(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    run("wrap", "--yes")
    assert run("wrap").returncode == 0


def test_what_a_client_wrote_while_the_user_was_asked_stays(home: Path) -> None:
    file = write(home, ".claude.json", LOCAL)
    with on_terminal("wrap") as running:
        running.wait_for("[Y/n]")
        file.write_text(LOCAL.replace('"mcpServers": {}', '"mcpServers": {}, "history": [1]'))
        running.type(b"y\n")
        assert running.rest() == 0
    assert '"history": [1]' in file.read_text()
    assert states() == {"memory": "wrapped"}


def test_a_server_that_changed_while_the_user_was_asked_is_not_wrapped(home: Path) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    other = CODEX.replace("mcp-server-git", "mcp-server-evil")
    with on_terminal("wrap") as running:
        running.wait_for("[Y/n]")
        file.write_text(other)
        running.type(b"y\n")
        assert running.rest() == 2
        assert "another program changed its server 'git' meanwhile" in running.words.replace("\n", " ")
    assert file.read_text() == other


def test_with_yes_a_terminal_is_not_asked(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    with on_terminal("wrap", "--yes") as running:
        assert running.rest() == 0
    assert "[Y/n]" not in running.words


# The status, and the quota


def test_the_quota_is_set_shown_and_lifted(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    assert "no quota: nothing is deleted until you run mcpspy prune" in run("wrap", "--yes").stderr
    assert "of at most 2.0 GB" in run("wrap", "--yes", "--quota", "2gb").stderr
    assert json.loads(run("wrap", "--status", "--json").stdout)["captures"]["max_bytes"] == 2_000_000_000
    assert "no quota" in run("wrap", "--yes", "--quota", "none").stderr


def test_the_status_says_what_failed_last(home: Path) -> None:
    file = write(home, ".cursor/mcp.json", '{"mcpServers": {"gone": {"command": "/no/such/server"}}}')
    run("wrap", "--yes")
    entry = json.loads(file.read_text())["mcpServers"]["gone"]
    subprocess.run([entry["command"], *entry["args"]], capture_output=True, timeout=DEADLINE_S, check=False)
    (error,) = json.loads(run("wrap", "--status", "--json").stdout)["errors"]
    assert error["label"] == "gone"
    assert "/no/such/server" in error["text"] or "command not found" in error["text"]
    assert "  gone  " in run("wrap", "--status").stdout.partition("last errors")[2]


def test_the_status_says_which_taps_run(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    argv = [sys.executable, "-m", "mcpspy", "run", "--label", "live one", "--", "cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        assert tap.stdout is not None
        tap.stdin.write(b"{}\n")
        tap.stdin.flush()
        tap.stdout.readline()
        (running,) = json.loads(run("wrap", "--status", "--json").stdout)["taps"]
        assert (running["label"], running["pid"]) == ("live one", tap.pid)
        assert "  live one  for " in run("wrap", "--status").stdout
        tap.stdin.close()
        tap.wait(DEADLINE_S)


def test_a_status_that_would_change_something_is_a_usage_error() -> None:
    assert run("wrap", "--status", "--quota", "2gb").returncode == 2


# mcpspy's own entry

OWN_FILES = {
    ".cursor/mcp.json": CURSOR,
    ".codex/config.toml": CODEX,
    ".claude.json": '{"history": [1]}',
    "project/.mcp.json": "{}",
    "project/.ai/mcp/mcp.json": "{}",
}


def add(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `mcpspy wrap --self`, with the official SDK that it looks for."""
    return run("wrap", "--self", *words, PYTHONPATH="")


def own_files(home: Path) -> dict[Path, bytes]:
    """Write the files of some clients, one of them without servers and two of a project, and return what they hold."""
    return {file: file.read_bytes() for file in (write(home, name, text) for name, text in OWN_FILES.items())}


def test_the_own_server_is_added_to_the_users_files_and_taken_out_again(home: Path) -> None:
    before = own_files(home)
    assert add("--yes").returncode == 0
    document = json.loads(run("wrap", "--status", "--json").stdout)
    own = {server["client"]: server for server in document["servers"] if server["state"] == "own"}
    assert set(own) == {"cursor", "codex", "claude-code", "jetbrains"}
    assert {server["scope"] for server in own.values()} == {"user", "project"}, "of AI Assistant, which has no other file"
    assert own["codex"]["program"] == document["program"][0]
    assert run("unwrap", "--self", "--yes").returncode == 0
    assert {file: file.read_bytes() for file in before} == before


def test_the_own_server_is_never_wrapped_and_stays_when_others_are_unwrapped(home: Path) -> None:
    before = own_files(home)
    add("--yes")
    with_own = {file: file.read_bytes() for file in before}
    assert "mcpspy's own server, which is never wrapped" in run("wrap", "--yes").stdout
    assert states()["mcpspy"] == "own"
    assert states()["git"] == "wrapped"
    assert "mcpspy's own server, which is never wrapped" in run("unwrap", "--yes").stdout
    assert {file: file.read_bytes() for file in before} == with_own
    run("unwrap", "--self", "--yes")
    assert {file: file.read_bytes() for file in before} == before


def test_the_own_server_is_shown_before_it_is_added_and_before_it_is_taken_out(home: Path) -> None:
    before = own_files(home)
    done = add("--dry-run")
    assert re.search(r"  mcpspy\n    \+ .* mcp\n", done.stdout)
    assert "git" not in done.stdout
    assert {file: file.read_bytes() for file in before} == before
    refused = add()
    assert refused.returncode == 2
    assert refused.stderr.endswith("mcpspy wrap --self --yes\n")
    shown = add("--yes", "--client", "codex")
    assert "To undo this: mcpspy unwrap --self." in shown.stderr
    assert "Codex: begin a new session." in shown.stderr
    again = add("--yes", "--client", "codex")
    assert (again.returncode, "already there" in again.stdout, "Changed" in again.stderr) == (0, True, False)
    assert re.search(r"  mcpspy\n    - .* mcp\n", run("unwrap", "--self", "--dry-run").stdout)


def test_programs_get_the_change_of_the_own_server_as_json(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    document = json.loads(add("--json", "--yes").stdout)
    assert document["aim"] == "add"
    assert [(server["server"], server["state"]) for server in document["servers"]] == [("mcpspy", "absent")]
    assert document["changed"][0]["servers"] == ["mcpspy"]
    document = json.loads(run("unwrap", "--self", "--json", "--yes").stdout)
    assert (document["aim"], document["changed"][0]["servers"]) == ("remove", ["mcpspy"])


def test_a_terminal_is_asked_about_the_own_server(home: Path) -> None:
    before = own_files(home)
    with on_terminal("wrap", "--self", columns=200) as running:
        running.wait_for("Add mcpspy to these 4 files? [all, some, none]")
        running.type(b"some\n")
        for answer in (b"n", b"y", b"n", b"n"):
            running.wait_for("Change mcpspy in ")
            running.type(answer + b"\n")
        assert running.rest() == 0
    assert sum(file.read_bytes() != text for file, text in before.items()) == 1
    assert list(states().values()).count("own") == 1


def test_the_own_server_whose_mcpspy_is_gone_is_repaired(home: Path) -> None:
    file = write(home, ".codex/config.toml", CODEX)
    add("--yes")
    text = file.read_text()
    program = json.loads(run("wrap", "--status", "--json").stdout)["program"][0]
    file.write_text(text.replace(program, "/gone/mcpspy"))
    assert "mcpspy wrap --self repairs this" in run("wrap", "--status").stdout
    add("--yes")
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"mcpServers": {"mcpspy": {"command": "mine"}}}', "has another server of the name 'mcpspy'"),
        ("", "it is empty; write {} into it first"),
        ('{"mcpServers": []}', "this is not an object"),
        ("{", "correct it first"),
    ],
)
def test_a_file_that_cannot_take_the_own_server_is_reported_and_the_others_are_changed(
    text: str, reason: str, home: Path
) -> None:
    file = write(home, ".cursor/mcp.json", text)
    write(home, ".codex/config.toml", CODEX)
    done = add("--yes")
    assert (done.returncode, file.read_text()) == (2, text)
    assert reason in done.stderr
    assert "Changed" in done.stderr


def test_without_a_file_nothing_can_be_added(home: Path) -> None:
    write(home, ".codex/config.toml", CODEX)
    done = add("--yes", "--client", "zed")
    assert done.returncode == 2
    assert "There is none to add mcpspy to of the files of zed." in done.stderr
    assert "mcpspy's own server is in none of the files of codex." in run("unwrap", "--self", "--client", "codex").stderr


@pytest.mark.parametrize("words", [("--status",), ("--server", "x"), ("--oauth",), ("--quota", "2gb")])
def test_the_own_server_alone_is_changed_by_self(words: tuple[str, ...]) -> None:
    assert add(*words).returncode == 2


@pytest.mark.parametrize("verb", ["wrap", "unwrap"])
def test_what_a_killed_one_left_is_removed_by_the_next_though_it_changes_nothing(home: Path, verb: str) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(DEADLINE_S)
    file = write(home, ".cursor/mcp.json", "{}")
    backups = Path(os.environ["MCPSPY_HOME"]) / "backups"
    backups.mkdir(parents=True)
    end = f"mcpspy-{gone.pid}-0a1b2c3d"
    left = [file.parent / f".mcp.json.{end}", backups / f".mcp.json-1-2.{end}", backups.parent / f".reserved_ports.json.{end}"]
    stays = [
        file.parent / f".other.json.{end}",
        file.parent / f".mcp.json.mcpspy-{os.getpid()}-0a1b2c3d",
        file.parent / ".mcp.json.mcpspy-notes",
        backups / "mcp.json-1-2",
    ]
    for path in (*left, *stays):
        path.write_text("secret")
    for words in (("wrap", "--status"), (verb, "--dry-run")):
        run(*words)
        assert all(path.exists() for path in (*left, *stays))
    run(verb, "--yes")
    assert [path for path in left if path.exists()] == []
    assert all(path.exists() for path in stays)
