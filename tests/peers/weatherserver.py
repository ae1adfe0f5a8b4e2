"""An HTTP+SSE server on the official Python SDK that knows the weather: `get_weather`, and `suggest_activity` for a kind of weather.

    weatherserver.py PORT

On PORT 0 a free port is taken; either way it is the first line on standard output.
"""

import prepared  # noqa: F401 - saves the imports that follow

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

WEATHER = {"杭州": "晴，25°C", "北京": "小雨，18°C"}  # noqa: RUF001 - as it is written there
ACTIVITIES = {"晴": "西湖边骑行", "小雨": "喝茶"}

server = MCPServer("weather")


@server.tool(description="查询一个城市的天气", structured_output=False)
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}：{WEATHER.get(city, '不知道')}"  # noqa: RUF001 - "


@server.tool(description="按天气推荐活动", structured_output=False)
def suggest_activity(condition: str) -> str:
    """Suggest an activity for a kind of weather."""
    return ACTIVITIES.get(condition, "休息")


def main(port: str = "0") -> None:
    """Serve on the loopback, and print the port first."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
