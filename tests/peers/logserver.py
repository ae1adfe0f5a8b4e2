"""An MCP server that tells its log, in Chinese, every message that it reads and writes; it stands on no SDK.

    logserver.py [START_SECONDS]

It takes so long to start (0.2 s if none is named), says so line by line, and has three tools: `calculator`, `weather` and
`text_processor`. A request is logged after it was read, a response before it is written.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

START_S = 0.2
REVISION = "2025-06-18"


def schema(**members: str) -> dict[str, Any]:
    """Return the schema of an object whose members are all required: their names and types."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in members.items()}, "required": list(members)}


def calculate(operation: str, a: float, b: float) -> str:
    """Do one of the four basic operations."""
    operations: dict[str, Callable[[], float]] = {
        "add": lambda: a + b, "subtract": lambda: a - b, "multiply": lambda: a * b, "divide": lambda: a / b,
    }  # fmt: skip
    return f"计算结果: {operations[operation]()}"


def weather(city: str) -> str:
    """Always the same."""
    return f"城市: {city}\n天气: 小雨\n温度: 33°C\n湿度: 53%"


def process(text: str, action: str) -> str:
    """Upper case, lower case, backwards, or how long."""
    actions: dict[str, Callable[[], str]] = {
        "uppercase": text.upper, "lowercase": text.lower, "reverse": lambda: text[::-1], "count": lambda: f"{len(text)} 个字符",
    }  # fmt: skip
    return actions[action]()


TOOLS: dict[str, tuple[str, dict[str, Any], Callable[..., str]]] = {
    "calculator": ("执行基本的数学运算,支持加减乘除", schema(operation="string", a="number", b="number"), calculate),
    "weather": ("查询指定城市的天气信息", schema(city="string"), weather),
    "text_processor": ("处理文本,支持转换大小写、反转字符串、统计字数等操作", schema(text="string", action="string"), process),
}


def log(level: str, words: str) -> None:
    """Write a line of the log, with the time of day and the name of a class, as Java's loggers do."""
    now = time.time()
    clock = f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now * 1000) % 1000:03d}"
    sys.stderr.buffer.write(f"{clock} [main] {level:5} c.e.mcp.server.McpServer - {words}\n".encode())
    sys.stderr.buffer.flush()


def call(params: dict[str, Any]) -> dict[str, Any]:
    """Make the result of a call; if a tool fails, its result says so."""
    name = params.get("name", "")
    if name not in TOOLS:
        return {"content": [{"type": "text", "text": f"未知工具: {name}"}], "isError": True}
    try:
        text = TOOLS[name][2](**params.get("arguments", {}))
    except (TypeError, KeyError, ZeroDivisionError) as error:
        return {"content": [{"type": "text", "text": f"工具执行失败: {error}"}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Make the result of a method; None for unknown methods."""
    if method == "initialize":
        info = {"name": "mcp-demo-server", "version": "1.0.0"}
        return {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        made = TOOLS.items()
        return {"tools": [{"name": name, "description": text, "inputSchema": shape} for name, (text, shape, _) in made]}
    if method == "ping":
        return {}
    return call(params) if method == "tools/call" else None


def answered(line: bytes) -> None:
    """Read one message, and answer it if it is a request."""
    message = json.loads(line)
    log("DEBUG", f"收到请求: {line.decode().strip()}")
    if "id" not in message:
        return
    answer = result(message.get("method", ""), message.get("params") or {})
    outcome = {"error": {"code": -32601, "message": "方法不存在"}} if answer is None else {"result": answer}
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}, ensure_ascii=False, separators=(",", ":"))
    log("DEBUG", f"发送响应: {text}")
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def main(start_s: float = START_S) -> None:
    """Start, slowly; then answer until the input ends."""
    time.sleep(start_s)
    log("INFO", "=== MCP Demo Server 启动 ===")
    for name in TOOLS:
        log("INFO", f"已注册工具: {name}")
    for line in sys.stdin.buffer:
        answered(line)
    log("INFO", "标准输入已关闭,服务器停止")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
