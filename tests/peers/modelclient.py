"""A client of a model's API, on the package `openai` or `anthropic`: sends the same requests to each URL, and prints every event.

    modelclient.py PACKAGE MODE URL…

MODE is `sync` or `async`. At each URL it asks every API of the package everything in QUESTIONS, in one piece and streamed, and prints
one line of JSON: a list of what came of each, as the package has it, event for event. `CLIENT_STORY` of tests/models.py is what
a server has to say to it.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

QUESTIONS = ("tools", "limit", "refused", "midway", "pieces", "halves", "zipped", "dies", "garbled", "misplaced", "unended")
KEY = "sk-a-key-that-is-told-to-nobody"


def apis(package: str, *, is_async: bool, url: str) -> list[tuple[str, Any, Callable[[str], dict[str, Any]]]]:
    """Return the calls of a package: the API's name, the method of a client, and its arguments for a question."""
    if package == "openai":
        import openai

        client = (openai.AsyncOpenAI if is_async else openai.OpenAI)(base_url=f"{url}/v1", api_key=KEY)
        return [
            ("models", client.models.list, lambda _: {}),
            (
                "chat",
                client.chat.completions.create,
                lambda text: {
                    "model": "gpt",
                    "messages": [{"role": "user", "content": text}],
                    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
                },
            ),
            ("responses", client.responses.create, lambda text: {"model": "gpt", "input": text}),
        ]
    import anthropic

    other = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(base_url=url, api_key=KEY)
    return [
        ("models", other.models.list, lambda _: {}),
        (
            "messages",
            other.messages.create,
            lambda text: {"model": "claude", "max_tokens": 99, "messages": [{"role": "user", "content": text}]},
        ),
    ]


def plain(value: Any) -> Any:
    """Turn an object of a package into JSON."""
    return value.model_dump(mode="json", exclude_unset=True)


def failed(error: Exception) -> dict[str, Any]:
    """Describe an exception of a package, without the text of network errors, which does not come from the server."""
    status = getattr(error, "status_code", None)
    return {"raised": type(error).__name__, "status": status, "text": str(error) if status else ""}


def call_events(ask: Any, arguments: dict[str, Any], *, streams: bool) -> list[Any]:
    """Make one call, and list its events."""
    events: list[Any] = []
    try:
        if streams:
            events += map(plain, ask(**arguments, stream=True))
        else:
            events.append(plain(ask(**arguments)))
    except Exception as error:  # noqa: BLE001 - whatever the package raises is what is printed
        events.append(failed(error))
    return events


async def call_events_async(ask: Any, arguments: dict[str, Any], *, streams: bool) -> list[Any]:
    """Make one call with the client that does not block, and list its events."""
    events: list[Any] = []
    try:
        if streams:
            async for event in await ask(**arguments, stream=True):
                events.append(plain(event))  # noqa: PERF401 - what came before an error counts
        else:
            events.append(plain(await ask(**arguments)))
    except Exception as error:  # noqa: BLE001 - as above
        events.append(failed(error))
    return events


async def everything(package: str, url: str, *, is_async: bool) -> list[Any]:
    """Make all calls at one URL, and list their events."""
    events = []
    for name, ask, arguments in apis(package, is_async=is_async, url=url):
        for question in QUESTIONS if name != "models" else ("",):
            for streams in (False, True) if name != "models" else (False,):
                if is_async:
                    came = await call_events_async(ask, arguments(question), streams=streams)
                else:
                    came = call_events(ask, arguments(question), streams=streams)
                events.append([name, question, streams, came])
    return events


def main(package: str, mode: str, *urls: str) -> None:
    """Ask at each URL, one after the other."""
    for url in urls:
        events = asyncio.run(everything(package, url, is_async=mode == "async"))
        print(json.dumps(events), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
