"""The two major versions of the official SDK for Python, as data. In version 1, results are named as on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names that differ between the versions. `spelled` maps the attributes of version 2 to those of this version."""

    client: str
    """The class to connect with."""
    error: str
    """The exception for a JSON-RPC error."""
    error_at: str = ""
    """The path to the error within the exception."""
    resource: str = "{}"
    """A template for the argument of `read_resource`, with a placeholder for the URI's literal."""
    call: str
    """The source of a function that calls a tool without checking its result."""
    spelled: Mapping[str, str] = field(default_factory=dict)

    def name(self, attribute: str) -> str:
        """Return the name of a result's attribute in this version."""
        return self.spelled.get(attribute, attribute)


_CALL: Final = '''

async def call(client, name, arguments=None):
    """Call a tool as `client.call_tool` does, but without the list of tools to check the result with: it was not recorded."""
    request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
'''

SDK_2: Final = Dialect(
    client="Client",
    error="MCPError",
    call=f"{_CALL}    return await client.session.send_request(request, types.CallToolResult)",
)

SDK_1: Final = Dialect(
    client="ClientSession",
    error="McpError",
    error_at="error.",
    resource="AnyUrl({})",
    call=f"{_CALL}    return await client.send_request(types.ClientRequest(request), types.CallToolResult)",
    spelled={
        "is_error": "isError",
        "structured_content": "structuredContent",
        "mime_type": "mimeType",
        "next_cursor": "nextCursor",
        "uri_template": "uriTemplate",
        "resource_templates": "resourceTemplates",
    },
)

DIALECTS: Final = {"1": SDK_1, "2": SDK_2}
