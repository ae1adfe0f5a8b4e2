"""Rules about wrong letters and about text that was escaped twice; `texts` finds suspects, and `misread` looks at them."""

from typing import Final

from ..rule import Severity, protocol_rule

CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"open","arguments":{"path":"Résumé.txt"}}\n'
TEXT: Final = '← result 1 {{"content":[{{"type":"text","text":"{}"}}]{}}}'

MISREAD_TEXT: Final = protocol_rule(
    name="misread-text",
    title="Text decoded with the wrong encoding",
    what=(
        "A text has letters as they look when UTF-8 is decoded with another encoding (é becomes Ã©), or U+FFFD in their place: "
        "an argument that a response repeats, or any text."
    ),
    why="Names with letters beyond ASCII are not found, or are stored wrongly, and the model reads wrong words.",
    blame="The server: the request is valid UTF-8, and the wrong letters are in its response.",
    example=CALL + TEXT.format("no such file: RÃ©sumÃ©.txt", ""),
    clean=CALL + TEXT.format("no such file: Résumé.txt", ""),
    advice="Read stdin as UTF-8 (in Python: PYTHONUTF8=1, or sys.stdin.reconfigure(encoding='utf-8')).",
)

ESCAPED_TWICE: Final = protocol_rule(
    name="escaped-twice",
    title="Text escaped twice",
    severity=Severity.NOTE,
    what="A text or an argument holds JSON, line feeds or letters with backslashes: it was encoded once more than the message needs.",
    why='The model reads {\\"a\\":1} and \\n instead of data and lines, and a program that parses the text gets a string.',
    blame="The server: it encoded the text before it wrote the message, which encodes it too.",
    example=CALL + TEXT.format(r"{\\\"open\\\":true}", ""),
    clean=CALL + TEXT.format(r"{\"open\":true}", ""),
    advice="Encode once: put the text itself into the message, and JSON.stringify(value) only once.",
)
