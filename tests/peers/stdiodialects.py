"""A server on stdio that speaks every dialect seen in the field, byte for byte the same each time.

    stdiodialects.py [late]

It begins with a banner and an empty line, with `late` after the first request. Each method has its bytes in `SAYS`; `%d` is the
request's id. After its input has ended it says goodbye, without a line end.
"""

import json
import re
import sys
from typing import Final

BANNER: Final = "演示服务器 v1.0 ready\n\n".encode()
GOODBYE: Final = b"bye"

SAYS: Final[dict[str, bytes]] = {
    "initialize": (
        b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2024.11.05","capabilities":{"tools":{}},'
        b'"serverInfo":{"name":"dialects","version":"1"}}}\n'
    ),
    "notifications/initialized": b"INFO client ready\n",
    # the id as a string, with spaces and an escape
    "tools/list": b'{"jsonrpc" : "2.0", "id" : "%d", "result" : {"tools": [{"name":"get_weather","description":"\\u5929"}]}}\r\n',
    # parts, an end mark, results without an id, progress without anything
    "tools/call": (
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a"}],"isComplete":false}}\n'
        b"DEBUG half\n"
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"b"}],"isComplete":true}}\n'
        b"[DONE]\n"
        b'{"result":{"content":[{"type":"text","text":"function"}],"isComplete":false}}\n'
        b'{"result":{"content":[{"type":"text","text":"}"}],"isComplete":true}}\n'
        b'{"result":{"progress":30,"status":"processing"}}\n'
        b'{"jsonrpc":"2.0","result":{"progress":100,"status":"completed"}}\n'
    ),
    "ping": b'{"jsonrpc":"2.0","method":"pong"}\n',
    # answers to nothing, an answer twice, no UTF-8, a CR alone, an id with a fraction
    "resources/list": (
        b'{"jsonrpc":"2.0","id":99,"result":{}}\n'
        b'{"jsonrpc":"2.0","id":"none","error":{"code":-32000,"message":"who?"}}\n'
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n'
        b'{"jsonrpc":"2.0","id":%d.0,"result":{"resources":[]}}\n'
        b'{"jsonrpc":"2.0","id":%d,"result":{"resources":[]}}\n'
        b"\xff\xfe half\rline\n"
        b"\n"
    ),
    # an id with an exponent
    "completion/complete": b'{"jsonrpc":"2.0","id":%de0,"result":{}}\n',
    # over several lines
    "prompts/list": (
        b'{\n  "jsonrpc": "2.0",\n  "id": 0,\n  "result": {"prompts": []}\n}\n'
        b'{"jsonrpc":"2.0","id":%d,"result":{"prompts":[]}}\n'
    ),
    # a byte order mark, a batch with a number in it, an empty batch
    "resources/templates/list": (
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"result":{"resourceTemplates":[]}}\n'
        b'[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},7]\n[]\n'
    ),
}


def said(method: str, id: int) -> bytes:
    """Return the bytes that follow a message."""
    return re.sub(rb"%d", b"%d" % id, SAYS[method])


def main() -> None:
    """Answer each line until the input ends."""
    begins = BANNER
    if "late" not in sys.argv:
        sys.stdout.buffer.write(begins)
        begins = b""
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        sys.stdout.buffer.write(begins + said(message["method"], message.get("id", 0)))
        sys.stdout.buffer.flush()
        begins = b""
    sys.stdout.buffer.write(GOODBYE)


if __name__ == "__main__":
    main()
