"""How the official SDK for Python is spoken to: its line 2, and its line 1, whose results are named as on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What differs from line to line. `spelled` are names of attributes, by those of line 2."""

    client: str
    """What is imported to connect with."""
    error: str
    """The exception that brings a JSON-RPC error."""
    error_at: str = ""
    """Where in the exception the error is."""
    resource: str = "{}"
    """What a URI is for `read_resource`, with a place for its literal."""
    call: str
    """What calls a tool without checking its result: a function for the test's module."""
    spelled: Mapping[str, str] = field(default_factory=dict)

    def name(self, attribute: str) -> str:
        """An attribute of a result, as this line names it."""
        return self.spelled.get(attribute, attribute)


_CALL: Final = '''

async def call(client, name, arguments=None):
    """Call a tool as `client.call_tool` does, but without the list of tools to check the result with: it was not recorded."""
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
'''

LINE_2: Final = Dialect(
    client="Client",
    error="MCPError",
    call=f"{_CALL}    return await client.session.send_request(request, types.CallToolResult)",
)

LINE_1: Final = Dialect(
    client="ClientSession",
    error="McpError",
    error_at="error.",
    resource="AnyUrl({})",
    call=f"{_CALL}    return await client.send_request(types.ClientRequest(request), types.CallToolResult)",
    spelled={
        "is_error": "isError",
        "structured_content": "structuredContent",
        "mime_type": "mimeType",
        "uri_template": "uriTemplate",
        "resource_templates": "resourceTemplates",
    },
)

DIALECTS: Final = {"1": LINE_1, "2": LINE_2}
