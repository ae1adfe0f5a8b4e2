"""The service of the user that serves wrapped HTTP servers, with a stand-in for systemctl that notes what it is asked to do."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from mcpspy.errors import SetupError
from mcpspy.setup.service import set_up, wanted_service
from tests.cli.systemctl import Systemctl
from tests.cli.terminal import on_terminal, run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S

UNIT_FOLDER = ".config/systemd/user"
TWO = json.dumps(
    {"mcpServers": {"docs": {"url": "http://localhost:3001/mcp"}, "mail": {"url": "http://localhost:3002/mcp?token=hush"}}}
)
ENABLE = [["daemon-reload"], ["enable", "--now", "mcpspy.socket"]]
REMOVE = [["disable", "--now", "mcpspy.socket"], ["stop", "mcpspy.service"], ["daemon-reload"]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, where Cursor has two HTTP servers."""
    folder = tmp_path / "home"
    (folder / ".cursor").mkdir(parents=True)
    (folder / ".cursor" / "mcp.json").write_text(TWO)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    return Systemctl(tmp_path / "systemctl", monkeypatch)


def servers(home: Path) -> str:
    """Write the client's file."""
    return (home / ".cursor" / "mcp.json").read_text()


def unit(home: Path, name: str = "mcpspy.socket") -> Path:
    return home / UNIT_FOLDER / name


def ports(home: Path) -> list[str]:
    """Return the ports at which the socket listens."""
    return re.findall(r"(?m)^ListenStream=127\.0\.0\.1:(\d+)$", unit(home).read_text())


def wrapped_ports(home: Path) -> list[str]:
    """Return the ports in the client's file."""
    return re.findall(r"http://127\.0\.0\.1:(28\d+)/", servers(home))


def test_the_service_listens_at_the_ports_of_the_wrapped_servers(home: Path, systemctl: Systemctl) -> None:
    done = run("wrap", "--yes")
    assert done.returncode == 0
    assert ports(home) == wrapped_ports(home) != []
    assert systemctl.changes() == ENABLE
    assert "`docs` and `mail` work through the service mcpspy.socket." in done.stderr


def test_the_units_hold_ports_and_paths_but_no_server(home: Path, store: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    text = unit(home).read_text() + unit(home, "mcpspy.service").read_text()
    assert [word for word in ("localhost", "hush", "docs", "mail") if word in text] == []
    assert f'Environment="MCPSPY_HOME={store}"\n' in text
    assert re.search(r'(?m)^ExecStart="/.*" "proxy" "--all" "--quiet"$', text)


def test_what_systemd_would_expand_in_a_path_is_escaped(home: Path, systemctl: Systemctl) -> None:
    odd = str(home / 'a "b" $c %h')
    run("wrap", "--yes", MCPSPY_HOME=odd)
    escaped = odd.replace('"', '\\"').replace("%", "%%")
    assert f'Environment="MCPSPY_HOME={escaped}"\n' in unit(home, "mcpspy.service").read_text()


def test_a_server_wrapped_later_is_added(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes", "--server", "docs")
    systemctl.calls()
    run("wrap", "--yes")
    assert len(ports(home)) == 2
    assert systemctl.changes() == [*ENABLE, ["restart", "mcpspy.socket"]]


def test_where_the_service_is_as_it_should_be_nothing_is_asked(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    systemctl.calls()
    assert run("wrap").returncode == 0
    assert systemctl.changes() == []


def test_a_service_that_was_stopped_is_started_again(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    systemctl.calls()
    (systemctl.folder / "active").unlink()
    assert "mcpspy.socket  inactive: nothing listens at 28" in run("wrap", "--status").stdout
    with on_terminal("wrap", columns=200) as running:
        running.wait_for("Set up the service mcpspy.socket? [Y/n]")
        running.type(b"y\n")
        assert running.rest() == 0
    assert systemctl.changes() == ENABLE


def test_the_last_server_takes_the_service_with_it(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    run("unwrap", "--yes", "--server", "docs")
    assert ports(home) == wrapped_ports(home)
    systemctl.calls()
    done = run("unwrap", "--yes")
    assert (servers(home), list((home / UNIT_FOLDER).iterdir())) == (TWO, [])
    assert systemctl.changes() == REMOVE
    assert "Removed the service mcpspy.socket." in done.stderr


def test_servers_that_were_wrapped_without_the_service_get_it(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes", "--without-service")
    assert systemctl.changes() == []
    assert run("wrap").returncode == 2
    run("wrap", "--yes")
    assert ports(home) == wrapped_ports(home)


@pytest.mark.parametrize("name", ["mcpspy.socket", "mcpspy.service"])
def test_a_unit_of_somebody_else_is_refused(name: str, home: Path, systemctl: Systemctl) -> None:
    unit(home, name).parent.mkdir(parents=True)
    unit(home, name).write_text("[Unit]\n")
    done = run("wrap", "--yes")
    assert (done.returncode, servers(home), unit(home, name).read_text()) == (2, TWO, "[Unit]\n")
    assert (
        f"{name}: was not written by mcpspy, and stays as it is; rename that unit, or use mcpspy wrap --without" in done.stderr
    )
    assert "was not written by mcpspy" in run("wrap", "--status").stdout
    assert systemctl.changes() == []
    run("wrap", "--yes", "--without-service")
    assert run("unwrap", "--yes").returncode == 0
    assert unit(home, name).read_text() == "[Unit]\n"


def test_a_unit_that_was_edited_is_not_removed(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    edited = unit(home, "mcpspy.service").read_text() + "Nice=5\n"
    unit(home, "mcpspy.service").write_text(edited)
    done = run("unwrap", "--yes")
    assert (done.returncode, servers(home), unit(home, "mcpspy.service").read_text()) == (2, TWO, edited)
    assert "was edited since mcpspy wrote it, and stays as it is; remove it by hand: systemctl --user disable" in done.stderr


def test_a_service_for_another_folder_of_mcpspy_is_left_alone(home: Path, tmp_path: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes", "--server", "docs")
    before = servers(home), unit(home, "mcpspy.service").read_text()
    done = run("wrap", "--yes", MCPSPY_HOME=str(tmp_path / "other"))
    assert (done.returncode, (servers(home), unit(home, "mcpspy.service").read_text())) == (2, before)
    assert "serves another MCPSPY_HOME" in done.stderr


def test_unwrapping_leaves_the_service_of_another_folder_of_mcpspy(home: Path, tmp_path: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes", "--server", "docs")
    before = unit(home).read_text()
    run("wrap", "--yes", "--without-service", "--server", "mail", MCPSPY_HOME=str(tmp_path / "other"))
    systemctl.calls()
    done = run("unwrap", "--yes", "--server", "mail", MCPSPY_HOME=str(tmp_path / "other"))
    assert (done.returncode, unit(home).read_text(), systemctl.changes()) == (0, before, [])


def test_a_service_keeps_its_mcpspy_as_long_as_that_exists(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes", "--server", "docs")
    service = wanted_service(home / UNIT_FOLDER, map(int, ports(home)), ["/bin/true"], os.environ["MCPSPY_HOME"])
    set_up(service)
    assert run("wrap", "--server", "docs").returncode == 0
    run("wrap", "--yes")
    assert len(ports(home)) == 2
    assert unit(home, "mcpspy.service").read_text() == service.service


@pytest.mark.parametrize("verb", ["daemon-reload", "enable"])
def test_if_the_service_cannot_be_set_up_http_servers_stay_as_they_are(verb: str, home: Path, systemctl: Systemctl) -> None:
    systemctl.fail_at(verb)
    done = run("wrap", "--yes")
    assert (done.returncode, servers(home), list((home / UNIT_FOLDER).iterdir())) == (2, TWO, [])
    assert f"systemctl --user {verb}" in done.stderr
    assert "it was asked to fail; systemctl --user status mcpspy.socket says more.\n" in done.stderr


def test_without_a_manager_http_servers_are_left_alone_unless_that_is_meant(home: Path, systemctl: Systemctl) -> None:
    systemctl.fail_at("show")
    done = run("wrap", "--yes")
    assert (done.returncode, servers(home)) == (0, TWO)
    assert "left alone: no user service can be set up here (systemctl --user: Failed to show unit" in done.stdout
    assert "--without-service wraps it, and `docs` works only while `mcpspy proxy --all` is running" in done.stdout
    done = run("wrap", "--yes", "--without-service")
    assert wrapped_ports(home) != []
    assert "      `docs` works only while `mcpspy proxy --all` is running\n" in done.stdout
    assert "`docs` and `mail` work only while `mcpspy proxy --all` is running." in done.stderr
    assert re.search(
        r"docs  wrapped, at port 28\d+, where nothing listens: `docs` works only while `mcpspy proxy --all` is running\n",
        run("wrap", "--status").stdout,
    )


def test_without_systemctl_http_servers_are_left_alone(home: Path, tmp_path: Path) -> None:
    done = run("wrap", "--dry-run", PATH=str(tmp_path))
    assert "left alone: there is no systemctl here" in done.stdout
    listed = json.loads(run("wrap", "--dry-run", "--json", PATH=str(tmp_path)).stdout)["servers"]
    assert [server["reason"].partition(" here ")[0] for server in listed] == ["there is no systemctl"] * 2


def test_the_status_shows_the_service(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    text = run("wrap", "--status").stdout
    assert re.search(r"docs  wrapped, at port 28\d+, served by mcpspy.socket\n", text)
    assert f"service  mcpspy.socket  listens at {', '.join(ports(home))}, and starts `mcpspy proxy --all`" in text
    service = json.loads(run("wrap", "--status", "--json").stdout)["service"]
    assert service == {"unit": "mcpspy.socket", "owner": "mcpspy", "state": "active", "ports": list(map(int, ports(home)))}


def test_a_service_whose_mcpspy_is_gone_is_reported_and_repaired(home: Path, systemctl: Systemctl) -> None:
    run("wrap", "--yes")
    good = unit(home, "mcpspy.service").read_text()
    folder = home / UNIT_FOLDER
    set_up(wanted_service(folder, map(int, ports(home)), ["/gone/mcpspy"], os.environ["MCPSPY_HOME"]))
    assert "cannot start: /gone/mcpspy does not exist any more; mcpspy wrap repairs this" in run("wrap", "--status").stdout
    run("wrap", "--yes")
    assert unit(home, "mcpspy.service").read_text() == good


@pytest.mark.parametrize("sign", ["'", '"', "\\"])
def test_a_mcpspy_that_systemd_cannot_start_is_refused(sign: str, tmp_path: Path) -> None:
    wanted = wanted_service(tmp_path / "units", [28_700], [f"/home/o{sign}brien/mcpspy"], "")
    with pytest.raises(SetupError, match="systemd starts no program with a quote or backslash in its path; install mcpspy"):
        set_up(wanted)
    assert not (tmp_path / "units").exists()


def test_a_pipe_changes_neither_files_nor_service(home: Path, systemctl: Systemctl) -> None:
    done = run("wrap")
    assert (done.returncode, servers(home), unit(home).exists(), systemctl.changes()) == (2, TWO, False, [])
    assert "mcpspy.socket\n    + is new; it starts `mcpspy proxy --all` when a client connects" in done.stdout


def test_the_service_is_part_of_the_one_question(home: Path, systemctl: Systemctl) -> None:
    with on_terminal("wrap", columns=200) as running:
        running.wait_for("Change these 2 servers in 1 file, and set up the service mcpspy.socket? [all, some, none]")
        running.type(b"none\n")
        assert running.rest() == 0
    assert (servers(home), unit(home).exists(), systemctl.changes()) == (TWO, False, [])


def test_some_servers_get_a_service_for_those_alone(home: Path, systemctl: Systemctl) -> None:
    with on_terminal("wrap", columns=200) as running:
        running.wait_for("[all, some, none]")
        running.type(b"some\n")
        running.wait_for("Change docs in ")
        running.type(b"n\n")
        running.wait_for("Change mail in ")
        running.type(b"y\n")
        assert running.rest() == 0
    assert ports(home) == wrapped_ports(home)
    assert len(ports(home)) == 1


@pytest.mark.parametrize("name", ["mcpspy", "a b $c ${d} %h $$ %%"])
def test_systemd_reads_the_units_whatever_the_path_of_mcpspy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debian_program: DebianProgram
) -> None:
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    units = wanted_service(tmp_path, [28_700], [str(program)], str(tmp_path / name))
    assert units.program == str(program)
    for unit_name, text in (("mcpspy.socket", units.socket), ("mcpspy.service", units.service)):
        (tmp_path / unit_name).write_text(text)
    done = subprocess.run(
        [debian_program("systemd-analyze"), "verify", "--user", tmp_path / "mcpspy.socket", tmp_path / "mcpspy.service"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
