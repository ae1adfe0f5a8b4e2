"""Shapes of a server with a login, for peers/loginserver.py: where its challenge points, what its documents say, who the issuer is.

Each is what some server does, or nearly does. Some cannot work for some clients: then they fail through mcpspy as without it.
"""

from typing import Any, Final

PRM: Final = "/.well-known/oauth-protected-resource"
AS: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"


def issuer(url: str, **more: Any) -> dict[str, Any]:
    """Return the metadata of an authorization server with this issuer."""
    return {
        "issuer": url,
        "authorization_endpoint": f"{url.rstrip('/')}/authorize",
        "token_endpoint": f"{url.rstrip('/')}/token",
        "registration_endpoint": f"{url.rstrip('/')}/register",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        **more,
    }


def resource(url: str, *servers: str, **more: Any) -> dict[str, Any]:
    return {"resource": url, "authorization_servers": list(servers), **more}


AT_MCP: Final = f"{PRM}/mcp"
IDP: Final = {AS: issuer("ELSEWHERE")}
ISS: Final = {"authorization_response_iss_parameter_supported": True}
_METADATA: Final = f'resource_metadata="SERVER{PRM}/mcp"'

SHAPES: Final[dict[str, dict[str, Any]]] = {
    "elsewhere": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")}, "elsewhere": IDP,
    },
    "elsewhere, with a slash": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE/")},
        "elsewhere": {AS: issuer("ELSEWHERE/")},
    },
    "elsewhere, with a path": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE/tenant")},
        "elsewhere": {f"{AS}/tenant": issuer("ELSEWHERE/tenant")},
    },
    "elsewhere, by OpenID": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
        "elsewhere": {OPENID: issuer("ELSEWHERE", subject_types_supported=["public"], jwks_uri="ELSEWHERE/jwks",
                                     id_token_signing_alg_values_supported=["RS256"])},
    },
    "elsewhere, and names itself at the end": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
        "elsewhere": {AS: issuer("ELSEWHERE", **ISS)}, "iss": "ELSEWHERE",
    },
    "itself": {"challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "SERVER"), AS: issuer("SERVER")}},
    "itself, all of it": {
        "challenge": f'Bearer resource_metadata="SERVER{PRM}"',
        "documents": {PRM: resource("SERVER", "SERVER"), AS: issuer("SERVER")},
    },
    "itself, all with a slash": {
        "challenge": f'Bearer resource_metadata="SERVER{PRM}"',
        "documents": {PRM: resource("SERVER/", "SERVER/"), AS: issuer("SERVER/")},
    },
    "itself, with a path": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER/auth"), f"{AS}/auth": issuer("SERVER/auth")},
    },
    "itself, the same path": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER/mcp"), f"{AS}/mcp": issuer("SERVER/mcp")},
    },
    "itself, and names itself at the end": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER"), AS: issuer("SERVER", **ISS)}, "iss": "SERVER",
    },
    "itself, twice in the document": {
        "challenge": f"Bearer resource_metadata=SERVER{PRM}", "documents": {PRM: resource("SERVER", "SERVER"), AS: issuer("SERVER")},
    },
    "itself, by OpenID": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER/tenant"),
                      f"/tenant{OPENID}": issuer("SERVER/tenant", subject_types_supported=["public"], jwks_uri="SERVER/jwks",
                                                 id_token_signing_alg_values_supported=["RS256"])},
    },
    "itself, after a redirect": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER"), AS: "/meta", "/meta": issuer("SERVER")},
    },
    "itself, and another first": {
        "challenge": f"Bearer {_METADATA}", "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE", "SERVER"), AS: issuer("SERVER")},
    },
    "itself, and another next": {
        "challenge": f"Bearer {_METADATA}", "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER", "ELSEWHERE"), AS: issuer("SERVER")},
    },
    "itself, by another issuer": {
        "challenge": f"Bearer {_METADATA}",
        "documents": {AT_MCP: resource("SERVER/mcp", "SERVER"), AS: {**issuer("SERVER"), "issuer": "https://login.example.com"}},
    },
    "without documents of its own": {"challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER/mcp", "SERVER")}},
    "its value in other members": {
        "challenge": f"Bearer {_METADATA}", "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE", resource_name="SERVER/mcp", resource_documentation="SERVER/mcp")},
    },
    "without quotes": {
        "challenge": f"Bearer resource_metadata=SERVER{PRM}/mcp", "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
        "elsewhere": IDP,
    },
    "without quotes, and more": {
        "challenge": f"Bearer error=invalid_token, resource_metadata=SERVER{PRM}/mcp, scope=user", "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "several challenges": {
        "challenge": f'Bearer realm="a", {_METADATA}, Basic realm="b"', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "another challenge first": {
        "challenge": f'Basic realm="a", Bearer {_METADATA}', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "blanks": {
        "challenge": f'Bearer  error="x" ,  resource_metadata = "SERVER{PRM}/mcp"', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "quoted pairs": {
        "challenge": f'Bearer error_description="say \\"please\\", then", {_METADATA}', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "a realm that is an address": {
        "challenge": f'Bearer realm="SERVER/mcp", {_METADATA}', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")},
    },
    "a scope that is an address": {
        "challenge": f'Bearer scope="SERVER/read", {_METADATA}', "elsewhere": IDP,
        "documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE", scopes_supported=["SERVER/read"])},
    },
    "at a path of its own": {
        "challenge": 'Bearer resource_metadata="SERVER/meta/mcp.json?v=1"', "elsewhere": IDP,
        "documents": {"/meta/mcp.json": resource("SERVER/mcp", "ELSEWHERE")},
    },
    "at another server": {
        "challenge": 'Bearer resource_metadata="ELSEWHERE/meta"', "documents": {},
        "elsewhere": {**IDP, "/meta": resource("https://mcp.example.com/mcp", "ELSEWHERE")},
    },
    "after a redirect": {
        "challenge": f"Bearer {_METADATA}", "elsewhere": IDP,
        "documents": {AT_MCP: "SERVER/meta", "/meta": resource("SERVER/mcp", "ELSEWHERE")},
    },
    "after a redirect without a host": {
        "challenge": f"Bearer {_METADATA}", "elsewhere": IDP,
        "documents": {AT_MCP: "/meta", "/meta": resource("SERVER/mcp", "ELSEWHERE")},
    },
    "without a challenge, by the path": {"documents": {AT_MCP: resource("SERVER/mcp", "ELSEWHERE")}, "elsewhere": IDP},
    "without a challenge, at the root": {"documents": {PRM: resource("SERVER/mcp", "ELSEWHERE")}, "elsewhere": IDP},
    "a challenge without an address": {
        "challenge": 'Bearer realm="a"', "documents": {PRM: resource("SERVER", "ELSEWHERE")}, "elsewhere": IDP,
    },
    "a wider resource": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("SERVER", "ELSEWHERE")}, "elsewhere": IDP,
    },
    "another resource": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("https://mcp.example.com/mcp", "ELSEWHERE")},
        "elsewhere": IDP,
    },
    "a resource by another name": {
        "challenge": f"Bearer {_METADATA}", "documents": {AT_MCP: resource("http://localhost:1/mcp", "ELSEWHERE")}, "elsewhere": IDP,
    },
    "as in 2025-03-26": {"documents": {AS: issuer("SERVER")}},
    "as in 2025-03-26, with a slash": {"documents": {AS: issuer("SERVER/")}},
    "as in 2025-03-26, and names itself at the end": {"documents": {AS: issuer("SERVER", **ISS)}, "iss": "SERVER"},
    "as in 2025-03-26, and names itself with a slash": {"documents": {AS: issuer("SERVER/", **ISS)}, "iss": "SERVER/"},
    "as in 2025-03-26, after a redirect": {"documents": {AS: "SERVER/meta", "/meta": issuer("SERVER")}},
    "as in 2025-03-26, another issuer": {"documents": {AS: issuer("https://login.example.com")}},
    "as in 2025-03-26, by OpenID": {
        "documents": {OPENID: issuer("SERVER", subject_types_supported=["public"], jwks_uri="SERVER/jwks",
                                     id_token_signing_alg_values_supported=["RS256"])},
    },
    "no document at all": {"documents": {}},
    "no document, and names itself at the end": {"documents": {}, "iss": "SERVER"},
}  # fmt: skip

OWN: Final = (
    "itself", "itself, with a path", "itself, the same path", "itself, and names itself at the end", "itself, by OpenID",
    "itself, after a redirect", "itself, and another first", "itself, and another next", "itself, by another issuer",
    "as in 2025-03-26", "as in 2025-03-26, and names itself at the end", "without documents of its own",
)  # fmt: skip
OWN_ROOT: Final = ("itself, all of it", "itself, all with a slash", "itself, twice in the document")
CHECKED: Final = {**dict.fromkeys(OWN, "SERVER/mcp"), **dict.fromkeys(OWN_ROOT, "SERVER")}
"""Servers that give tokens only for their own address (RFC 8707), where they are the authorization server too."""

for _name, _accepted in CHECKED.items():
    SHAPES[f"{_name}, and checks the resource"] = {**SHAPES[_name], "accepts": _accepted}
