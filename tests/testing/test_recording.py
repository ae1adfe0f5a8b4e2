"""Recording: once from the real server, kept only if the test passed, and never in CI."""

from pathlib import Path

import pytest

from mcpspy.capture.file.verify import Status, verify
from mcpspy.testing.servers import is_ci

pytest_plugins = ["pytester"]

TEST = """
import sys
from client import weather

def test_weather(mcpspy):
    server = mcpspy.serve({name}record=[sys.executable, "server.py", "0"])
    assert "小雨" in weather(server, {city!r})
    {more}
"""


def write(project: pytest.Pytester, *, city: str = "上海", name: str = "", more: str = "") -> None:
    project.makepyfile(test_city=TEST.format(city=city, name=name, more=more))


def files(folder: Path) -> list[str]:
    """List all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def stop_server(project: pytest.Pytester) -> None:
    """Remove the real server, so that nobody can start it."""
    (project.path / "server.py").unlink()


def test_a_server_is_recorded_once_and_played_from_then_on(project: pytest.Pytester, captures: Path) -> None:
    write(project)
    project.runpytest().assert_outcomes(passed=1)
    assert files(captures) == ["test_city/test_weather.mcpspy", "weather.mcpspy"]
    stop_server(project)
    project.runpytest().assert_outcomes(passed=1)


def test_a_recorded_capture_is_intact(project: pytest.Pytester, captures: Path) -> None:
    write(project)
    project.runpytest()
    assert verify(str(captures / "test_city" / "test_weather.mcpspy")).status is Status.INTACT


def test_a_recorded_capture_is_as_readable_as_the_test(project: pytest.Pytester, captures: Path) -> None:
    write(project)
    project.runpytest()
    modes = {path.stat().st_mode for path in (project.path / "test_city.py", captures / "test_city" / "test_weather.mcpspy")}
    assert len(modes) == 1


def test_a_recorded_capture_has_the_name_that_the_test_gives_it(project: pytest.Pytester, captures: Path) -> None:
    write(project, name='"shanghai", ')
    project.runpytest()
    assert files(captures) == ["shanghai.mcpspy", "weather.mcpspy"]


def test_nothing_is_kept_of_a_test_that_fails(project: pytest.Pytester, captures: Path) -> None:
    write(project, more="assert False")
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    assert files(captures) == ["weather.mcpspy"]
    ran.stdout.fnmatch_lines(
        ["This is not kept in captures/test_city/test_weather.mcpspy: the test failed.", "mcpspy show /*.mcpspy"]
    )


def test_a_test_that_is_expected_to_fail_records_nothing(project: pytest.Pytester, captures: Path) -> None:
    write(project, more="import pytest; pytest.xfail('not yet')")
    project.runpytest().assert_outcomes(xfailed=1)
    assert files(captures) == ["weather.mcpspy"]


def test_everything_is_recorded_again_on_request(project: pytest.Pytester, captures: Path) -> None:
    write(project, name='"weather", ')
    before = (captures / "weather.mcpspy").read_bytes()
    project.runpytest("--mcpspy-record=all").assert_outcomes(passed=1)
    assert (captures / "weather.mcpspy").read_bytes() != before


def test_a_server_without_a_record_argument_is_played_even_then(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import weather

        def test_weather(mcpspy):
            weather(mcpspy.serve("weather"), "北京")
        """
    )
    project.runpytest("--mcpspy-record=all").assert_outcomes(passed=1)


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_the_variable_ci_says_that_this_is_ci(value: str) -> None:
    assert is_ci({"CI": value})


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"CI": "false"}, {"CI": "0"}])
def test_without_it_this_is_no_ci(environment: dict[str, str]) -> None:
    assert not is_ci(environment)


def test_ci_records_nothing(project: pytest.Pytester, captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    write(project)
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        ["E *captures/test_city/test_weather.mcpspy: there is no such capture, and none is recorded here (--mcpspy-*"]
    )
    assert files(captures) == ["weather.mcpspy"]


def test_a_miss_says_how_to_record_the_test_again(project: pytest.Pytester) -> None:
    write(project, name='"weather", ')
    project.runpytest().stdout.fnmatch_lines(["To record it again: pytest test_city.py::test_weather --mcpspy-record=all"])


def test_a_server_that_is_started_several_times_has_a_capture_for_each_server_run(
    project: pytest.Pytester, captures: Path
) -> None:
    write(project, more='weather(server, "広島")')
    project.runpytest().assert_outcomes(passed=1)
    assert files(captures / "test_city") == ["test_weather.mcpspy", "test_weather.run2.mcpspy"]
    stop_server(project)
    project.runpytest().assert_outcomes(passed=1)


def test_captures_of_earlier_server_runs_are_removed_when_it_is_recorded_again(
    project: pytest.Pytester, captures: Path
) -> None:
    write(project, more='weather(server, "広島")')
    project.runpytest()
    write(project)
    project.runpytest("--mcpspy-record=all").assert_outcomes(passed=1)
    assert files(captures / "test_city") == ["test_weather.mcpspy"]


FAILURES = [
    ('["no-such-command", "x"]', "no-such-command x could not be started: command not found"),
    ('[sys.executable, "-c", "raise SystemExit(\'no such folder\')"]', "*ended with code 1 while*“no such folder”"),
    ("[sys.executable]", "nothing was recorded: nobody connected to *"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "sentence"), FAILURES, ids=["not there", "ends at once", "nobody connects"])
def test_a_recording_that_failed_fails_a_test_that_hides_it(
    project: pytest.Pytester, captures: Path, record: str, sentence: str
) -> None:
    connects = "pass" if record == "[sys.executable]" else "ask(server)"
    project.makepyfile(
        test_city=f"""
        import sys
        from client import ask

        def test_weather(mcpspy):
            server = mcpspy.serve(record={record})
            try:
                {connects}
            except ValueError:  # no answer to read
                pass
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(passed=1, errors=1)
    ran.stdout.fnmatch_lines([f"captures/test_city/test_weather.mcpspy: {sentence}"])
    assert files(captures) == ["weather.mcpspy"]


def test_the_capture_of_a_server_that_outlives_its_test_is_not_kept(
    project: pytest.Pytester, captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.testing.servers.RECORDED_ENDS_S", 0.1)
    project.makepyfile(
        test_city="""
        import subprocess, sys
        import pytest

        @pytest.fixture
        def running():
            processes = []
            yield processes
            for process in processes:
                process.communicate(b"")

        def test_weather(running, mcpspy):
            server = mcpspy.serve(record=[sys.executable, "server.py", "0"])
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            running.append(subprocess.Popen([server.command, *server.args], **pipes))
            running[0].stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\\n')
            running[0].stdin.flush()
            running[0].stdout.readline()
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(passed=1, errors=1)
    ran.stdout.fnmatch_lines(["captures/test_city/test_weather.mcpspy: * still runs, 0.1 s after the test, and is not kept: *"])
    assert files(captures) == ["weather.mcpspy"]


def test_a_folder_that_takes_no_capture_is_reported(project: pytest.Pytester, captures: Path) -> None:
    (captures / "test_city").write_text("in the way")
    write(project)
    ran = project.runpytest()
    ran.assert_outcomes(passed=1, errors=1)
    ran.stdout.fnmatch_lines(["captures/test_city/test_weather.mcpspy: it cannot be kept there: *"])


def test_one_capture_is_recorded_once_in_a_test(project: pytest.Pytester) -> None:
    write(project, name='"new", ', more='mcpspy.serve("new", record=["x"])')
    project.runpytest().stdout.fnmatch_lines(["E *captures/new.mcpspy: it is being recorded in this test already*"])


def test_each_test_and_each_of_its_parameters_has_a_capture_of_its_own(project: pytest.Pytester, captures: Path) -> None:
    project.makepyfile(
        test_city="""
        import sys
        import pytest
        from client import weather

        class TestCities:
            @pytest.mark.parametrize("city", ["a", "b/c"])
            def test_one(self, mcpspy, city):
                weather(mcpspy.serve(record=[sys.executable, "server.py", "0"]), city)
        """
    )
    project.runpytest().assert_outcomes(passed=2)
    [first, second] = files(captures / "test_city")
    assert first == "TestCities.test_one-a.mcpspy"
    assert second.startswith("TestCities.test_one-b-c-")
