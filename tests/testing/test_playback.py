"""Captures played to code under test: what may be requested, what a miss says, and what a test can look at."""

import pytest

pytest_plugins = ["pytester"]


def test_a_capture_is_played_to_the_code_under_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import weather

        def test_weather(mcpspy):
            assert "小雨" in weather(mcpspy.serve("weather"), "北京")
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_a_miss_fails_the_test_even_if_its_code_hides_the_error(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import ask

        def test_weather(mcpspy):
            ask(mcpspy.serve("weather.mcpspy"), ("weather", {"city": "上海"}), ("weather", {"city": "北京"}))
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        [
            "captures/weather.mcpspy: 1 of 3 requests was never recorded",
            "  tools/call weather was never recorded with these params",
            "    nearest  row 5",
            '    differs  $.arguments.city: "北京" ≠ "上海"',
            "    accept   with ignore=['$.arguments.city']",
            '               or match="loose"',
            "To record it again, give serve() a record=[[]COMMAND…[]] or record=URL.",
            "*- mcpspy: captures/weather.mcpspy -*",
            "* → tools/call weather *error",
            "mcpspy show */weather.mcpspy",
        ]
    )


def test_the_official_sdk_connects_as_to_any_server_and_its_probe_of_another_era_is_no_miss(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import asyncio
        from mcp import Client

        async def weather(server):
            async with Client(server.stdio_parameters(), mode="auto") as client:
                return await client.call_tool("weather", {"city": "北京"})

        def test_weather(mcpspy):
            server = mcpspy.serve("weather")
            asyncio.run(weather(server))
            assert (server.calls[0].method, server.misses) == ("server/discover", [])
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_a_miss_of_a_failed_test_is_in_its_report_and_is_no_second_failure(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import weather

        def test_weather(mcpspy):
            weather(mcpspy.serve("weather"), "上海")
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        ["E *KeyError: 'result'", "*- mcpspy: never recorded -*", "*weather was never recorded with these params"]
    )


def test_a_miss_after_the_test_fails_its_teardown(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from client import ask

        @pytest.fixture
        def server(mcpspy):
            server = mcpspy.serve("weather")
            yield server
            ask(server, ("weather", {"city": "上海"}))

        def test_weather(server): pass
        """
    )
    project.runpytest().assert_outcomes(passed=1, errors=1)


@pytest.mark.parametrize("how", ['match="loose"', 'ignore=["$.arguments.city"]', "allow_misses=True", 'on_miss="nearest"'])
def test_requests_that_were_never_recorded_can_be_allowed(project: pytest.Pytester, how: str) -> None:
    project.makepyfile(
        f"""
        from client import ask

        def test_weather(mcpspy):
            ask(mcpspy.serve("weather", {how}), ("weather", {{"city": "上海"}}))
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_the_command_line_says_how_alike_requests_have_to_be(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import weather

        def test_weather(mcpspy):
            assert "小雨" in weather(mcpspy.serve("weather"), "上海")
        """
    )
    project.runpytest("--mcpspy-match=loose").assert_outcomes(passed=1)


def test_a_test_can_look_at_the_requests(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import ask

        def test_weather(mcpspy):
            server = mcpspy.serve("weather", allow_misses=True)
            assert server.tool_calls == []
            ask(server, ("weather", {"city": "北京"}), ("weather", {"city": "上海"}))
            assert server.tool_calls == [("weather", {"city": "北京"}), ("weather", {"city": "上海"})]
            assert [call.method for call in server.calls] == ["initialize", "tools/call", "tools/call"]
            assert server.calls[1].outcome == "ok"
            [miss] = server.misses
            assert miss.startswith("tools/call weather was never recorded with these params")
            assert len(server.transcript().messages) == 7
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_assert_all_played_names_the_requests_that_were_not_made(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import ask

        def test_weather(mcpspy):
            server = mcpspy.serve("weather")
            ask(server, ("weather", {"city": "北京"}), ("calculator", {"operation": "divide", "a": 1, "b": 0}))
            server.assert_all_played()
        """
    )
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        [
            ">*server.assert_all_played()",
            "E *captures/weather.mcpspy: 2 recorded requests were not made",
            "E *row 3  tools/list",
            "E *row 4  tools/call calculator",
        ]
    )


def test_an_exchange_that_was_played_as_the_nearest_counts_as_played(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import ask

        def test_weather(mcpspy):
            server = mcpspy.serve("weather", on_miss="nearest")
            ask(server, ("weather", {"city": "上海"}))
            server.assert_all_played()
        """
    )
    ran = project.runpytest()
    ran.stdout.fnmatch_lines(["E *captures/weather.mcpspy: 3 recorded requests were not made"])
    ran.stdout.no_fnmatch_line("E *row 5 *")


def test_a_test_may_have_several_servers(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from client import weather

        def test_weather(mcpspy):
            first, second = mcpspy.serve("weather"), mcpspy.serve("weather")
            weather(first, "北京")
            assert (len(first.tool_calls), len(second.tool_calls)) == (1, 0)
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_async_tests_are_failed_by_misses_too(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import anyio, pytest
        from client import ask

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_weather(mcpspy):
            await anyio.to_thread.run_sync(ask, mcpspy.serve("weather"), ("weather", {"city": "上海"}))
        """
    )
    ran = project.runpytest("-p", "anyio")
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["captures/weather.mcpspy: 1 of 2 requests was never recorded"])


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        ('"nothing"', "captures/nothing.mcpspy: there is no such capture, and serve() is given nothing to record: add record=*"),
        ('"weather", ignore=["$.[x"]', "the path $.[[]x, column 3: this is not a step of a path.*"),
        ('"weather", match="exact"', "captures/weather.mcpspy: match='exact' is none of 'strict', 'default', 'loose'."),
        ('"weather", speed=-1', "captures/weather.mcpspy: speed=-1 is no speed: 0, 1 or another number above 0."),
        ('"weather", record="python server.py"', "*is neither a URL nor a command: write a command as a list, [[]'python',*"),
        ('__file__', "*.py:1: this is not an mcpspy capture*"),
        ('"two"', "captures/two.mcpspy: these are captures of 2 servers (time, logs), and a mock plays one; name those of one.*"),
        ('"refused"', "captures/refused.mcpspy: it holds no messages from a server, so there is nothing to serve; *"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_played_is_reported_at_the_call_of_serve(
    project: pytest.Pytester, serve: str, sentence: str
) -> None:
    from shutil import copy

    from tests.conftest import ROOT

    for name, capture in (("two", "logs"), ("two.run2", "time"), ("refused", "refused")):
        copy(ROOT / "captures" / f"{capture}.mcpspy", project.path / "captures" / f"{name}.mcpspy")
    project.makepyfile(f"def test_weather(mcpspy):\n    mcpspy.serve({serve})\n")
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines([">*mcpspy.serve(*", f"E *{sentence}", "test_*.py:2: *Error"])
