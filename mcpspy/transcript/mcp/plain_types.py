"""The types of usual messages of the legacy era: those that a message has if nothing is wrong with it, and nothing is unusual.

What fits them fits the official types too, which a test compares. What does not fit, or has no type here, may be as specified.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

from ...records import CLIENT, SERVER, Side

Object: TypeAlias = dict[str, Any]
_Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Level: TypeAlias = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


class WithMeta(Struct):
    """A params or result object, or an entry of a list, with `_meta`."""

    meta: Object | None = field(default=None, name="_meta")


class RequestMeta(Struct, rename="camel"):
    """The `_meta` of a request."""

    progress_token: str | int | None = None


class _Params(Struct, rename="camel"):
    meta: RequestMeta | None = field(default=None, name="_meta")


class _PageParams(_Params):
    cursor: str | None = None


class _UriParams(_Params, kw_only=True):
    uri: str


class _LevelParams(_Params, kw_only=True):
    level: Level


class _CallParams(_Params, kw_only=True):
    name: str
    arguments: Object | None = None
    task: None = None


class _PromptParams(_Params, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class _Icon(Struct, rename="camel"):
    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["dark", "light"] | None = None


class Program(Struct, rename="camel"):
    """A client or server, by name and version."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[_Icon] | None = None


class _Feature(Struct, rename="camel"):
    list_changed: bool | None = None
    subscribe: bool | None = None


class _TaskFeatures(Struct):
    listing: Object | None = field(default=None, name="list")
    cancel: Object | None = None
    requests: dict[str, dict[str, Object]] | None = None


class ClientFeatures(Struct):
    """Capabilities of a client."""

    elicitation: dict[str, Object] | None = None
    experimental: dict[str, Object] | None = None
    extensions: dict[str, Object] | None = None
    roots: _Feature | None = None
    sampling: dict[str, Object] | None = None
    tasks: _TaskFeatures | None = None


class ServerFeatures(Struct):
    """Capabilities of a server."""

    completions: Object | None = None
    experimental: dict[str, Object] | None = None
    extensions: dict[str, Object] | None = None
    logging: Object | None = None
    prompts: _Feature | None = None
    resources: _Feature | None = None
    tools: _Feature | None = None
    tasks: _TaskFeatures | None = None


class _InitializeParams(_Params, kw_only=True):
    capabilities: ClientFeatures
    client_info: Program
    protocol_version: str


class _InitializeResult(WithMeta, kw_only=True, rename="camel"):
    capabilities: ServerFeatures
    instructions: str | None = None
    protocol_version: str
    server_info: Program


class _Page(WithMeta, rename="camel"):
    next_cursor: str | None = None


class _ObjectSchema(Struct):
    type: Literal["object"]
    properties: dict[str, Object | bool] | None = None
    required: list[str] | None = None
    dialect: str | None = field(default=None, name="$schema")


class _ToolHints(Struct, rename="camel"):
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None
    read_only_hint: bool | None = None
    title: str | None = None


class _ToolExecution(Struct, rename="camel"):
    task_support: Literal["forbidden", "optional", "required"] | None = None


class ListedTool(WithMeta, kw_only=True, rename="camel"):
    """A tool, as listed."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: _ObjectSchema
    output_schema: _ObjectSchema | None = None
    annotations: _ToolHints | None = None
    execution: _ToolExecution | None = None
    icons: list[_Icon] | None = None


class _Tools(_Page, kw_only=True):
    tools: list[ListedTool]


class _PromptArgument(Struct):
    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class ListedPrompt(WithMeta, kw_only=True):
    """A prompt, as listed."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[_PromptArgument] | None = None
    icons: list[_Icon] | None = None


class _Prompts(_Page, kw_only=True):
    prompts: list[ListedPrompt]


class _Annotations(Struct, rename="camel"):
    audience: list[Literal["assistant", "user"]] | None = None
    last_modified: str | None = None
    priority: _Share | None = None


class _AnnotatedNoun(WithMeta, kw_only=True, rename="camel"):
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: _Annotations | None = None
    icons: list[_Icon] | None = None


class ListedResource(_AnnotatedNoun, kw_only=True):
    """A resource, as listed."""

    uri: str
    size: int | None = None


class ListedTemplate(_AnnotatedNoun, kw_only=True):
    """A template of resources, as listed."""

    uri_template: str


class _Resources(_Page, kw_only=True):
    resources: list[ListedResource]


class _Templates(_Page, kw_only=True):
    resource_templates: list[ListedTemplate]


class _TextBlock(WithMeta, kw_only=True, tag_field="type", tag="text"):
    text: str
    annotations: _Annotations | None = None


class _ImageBlock(WithMeta, kw_only=True, tag_field="type", tag="image", rename="camel"):
    data: str
    mime_type: str
    annotations: _Annotations | None = None


class _AudioBlock(WithMeta, kw_only=True, tag_field="type", tag="audio", rename="camel"):
    data: str
    mime_type: str
    annotations: _Annotations | None = None


class _LinkBlock(ListedResource, kw_only=True, tag_field="type", tag="resource_link"):
    pass


class Contents(WithMeta, kw_only=True, rename="camel"):
    """The text of a resource."""

    uri: str
    mime_type: str | None = None
    text: str


class _ResourceBlock(WithMeta, kw_only=True, tag_field="type", tag="resource"):
    resource: Contents
    annotations: _Annotations | None = None


Block: TypeAlias = _TextBlock | _ImageBlock | _AudioBlock | _LinkBlock | _ResourceBlock


class _CallResult(WithMeta, kw_only=True, rename="camel"):
    content: list[Block]
    is_error: bool | None = None
    structured_content: Object | None = None


class _ReadResult(WithMeta, kw_only=True):
    contents: list[Contents]


class PromptMessage(Struct):
    """A message of a prompt."""

    role: Literal["assistant", "user"]
    content: Block


class _PromptResult(WithMeta, kw_only=True):
    messages: list[PromptMessage]
    description: str | None = None


class _Root(WithMeta, kw_only=True):
    uri: str
    name: str | None = None


class _Roots(WithMeta, kw_only=True):
    roots: list[_Root]


class _Prompted(WithMeta, kw_only=True):
    role: Literal["assistant", "user"]
    content: _TextBlock | _ImageBlock | _AudioBlock


class _SamplingParams(_Params, kw_only=True, rename="camel"):
    messages: list[_Prompted]
    max_tokens: int
    system_prompt: str | None = None
    temperature: float | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    stop_sequences: list[str] | None = None
    metadata: Object | None = None
    model_preferences: None = None
    tools: None = None
    tool_choice: None = None
    task: None = None


class _Sampled(WithMeta, kw_only=True, rename="camel"):
    role: Literal["assistant", "user"]
    content: _TextBlock | _ImageBlock | _AudioBlock
    model: str
    stop_reason: str | None = None


class _FormSchema(Struct):
    type: Literal["object"]
    properties: Object
    required: list[str] | None = None
    dialect: str | None = field(default=None, name="$schema")


class _FormParams(_Params, kw_only=True, rename="camel"):
    message: str
    mode: Literal["form"] = "form"
    requested_schema: _FormSchema
    task: None = None


class FormAnswer(WithMeta, kw_only=True):
    """The answer to a form."""

    action: Literal["accept", "cancel", "decline"]
    content: dict[str, list[str] | str | int | float | bool | None] | None = None


class _ProgressParams(WithMeta, kw_only=True, rename="camel"):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class _CancelledParams(WithMeta, kw_only=True, rename="camel"):
    request_id: str | int
    reason: str | None = None


class _LogParams(WithMeta, kw_only=True):
    level: Level
    data: Any
    logger: str | None = None


class _UpdatedParams(WithMeta, kw_only=True):
    uri: str


_CLIENT_PARAMS: Final[dict[str, Any]] = {
    "initialize": _InitializeParams,
    "ping": _Params | None,
    "tools/list": _PageParams | None,
    "prompts/list": _PageParams | None,
    "resources/list": _PageParams | None,
    "resources/templates/list": _PageParams | None,
    "tools/call": _CallParams,
    "prompts/get": _PromptParams,
    "resources/read": _UriParams,
    "resources/subscribe": _UriParams,
    "resources/unsubscribe": _UriParams,
    "logging/setLevel": _LevelParams,
    "notifications/initialized": WithMeta | None,
    "notifications/roots/list_changed": WithMeta | None,
    "notifications/progress": _ProgressParams,
    "notifications/cancelled": _CancelledParams,
}
_SERVER_PARAMS: Final[dict[str, Any]] = {
    "ping": _Params | None,
    "roots/list": _Params | None,
    "sampling/createMessage": _SamplingParams,
    "elicitation/create": _FormParams,
    "notifications/progress": _ProgressParams,
    "notifications/cancelled": _CancelledParams,
    "notifications/message": _LogParams,
    "notifications/tools/list_changed": WithMeta | None,
    "notifications/prompts/list_changed": WithMeta | None,
    "notifications/resources/list_changed": WithMeta | None,
    "notifications/resources/updated": _UpdatedParams,
}
_SERVER_RESULTS: Final[dict[str, Any]] = {
    "initialize": _InitializeResult,
    "ping": WithMeta,
    "logging/setLevel": WithMeta,
    "resources/subscribe": WithMeta,
    "resources/unsubscribe": WithMeta,
    "tools/list": _Tools,
    "prompts/list": _Prompts,
    "resources/list": _Resources,
    "resources/templates/list": _Templates,
    "tools/call": _CallResult,
    "resources/read": _ReadResult,
    "prompts/get": _PromptResult,
}
_CLIENT_RESULTS: Final[dict[str, Any]] = {
    "ping": WithMeta,
    "roots/list": _Roots,
    "sampling/createMessage": _Sampled,
    "elicitation/create": FormAnswer,
}

TYPES: Final[dict[tuple[Side, str], dict[str, Any]]] = {
    (CLIENT, "params"): _CLIENT_PARAMS,
    (CLIENT, "result"): _CLIENT_RESULTS,
    (SERVER, "params"): _SERVER_PARAMS,
    (SERVER, "result"): _SERVER_RESULTS,
}
"""By sender and member of the message: the types, by method."""
