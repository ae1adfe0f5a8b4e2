"""The types of usual messages of the modern era, as `plain_types` has those of the legacy one."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from ...records import CLIENT, SERVER, Side
from .plain_types import (
    Block,
    ClientFeatures,
    Contents,
    FormAnswer,
    Level,
    ListedPrompt,
    ListedResource,
    ListedTemplate,
    ListedTool,
    Object,
    Program,
    PromptMessage,
    RequestMeta,
    ServerFeatures,
    WithMeta,
)

_RESERVED: Final = "io.modelcontextprotocol/"


class _ModernRequestMeta(RequestMeta, kw_only=True):
    revision: str = field(name=f"{_RESERVED}protocolVersion")
    client: Program | None = field(default=None, name=f"{_RESERVED}clientInfo")
    capabilities: ClientFeatures = field(name=f"{_RESERVED}clientCapabilities")
    log_level: Level | None = field(default=None, name=f"{_RESERVED}logLevel")


class _ModernParams(Struct, kw_only=True, rename="camel"):
    meta: _ModernRequestMeta = field(name="_meta")
    input_responses: dict[str, FormAnswer] | None = None
    request_state: str | None = None


class _ModernPageParams(_ModernParams, kw_only=True):
    cursor: str | None = None


class _ModernUriParams(_ModernParams, kw_only=True):
    uri: str


class _ModernCallParams(_ModernParams, kw_only=True):
    name: str
    arguments: Object | None = None


class _ModernPromptParams(_ModernParams, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class _SubscriptionFilter(Struct, rename="camel"):
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    tools_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class _ListenParams(_ModernParams, kw_only=True):
    notifications: _SubscriptionFilter


class _SubscriptionMeta(Struct):
    subscription: str | int | None = field(default=None, name=f"{_RESERVED}subscriptionId")


class _WithSubscription(Struct, kw_only=True, rename="camel"):
    meta: _SubscriptionMeta | None = field(default=None, name="_meta")


class _AcknowledgedParams(_WithSubscription, kw_only=True):
    notifications: _SubscriptionFilter


class _ModernProgressParams(_WithSubscription, kw_only=True):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class _ModernCancelledParams(_WithSubscription, kw_only=True):
    request_id: str | int
    reason: str | None = None


class _ModernLogParams(_WithSubscription, kw_only=True):
    level: Level
    data: Any
    logger: str | None = None


class _ModernUpdatedParams(_WithSubscription, kw_only=True):
    uri: str


class _ModernResult(WithMeta, kw_only=True, rename="camel"):
    result_type: Literal["complete"]


class _CacheableResult(_ModernResult, kw_only=True):
    cache_scope: Literal["private", "public"]
    ttl_ms: Annotated[int, Meta(ge=0)]
    next_cursor: str | None = None


class _DiscoverResult(_CacheableResult, kw_only=True):
    capabilities: ServerFeatures
    instructions: str | None = None
    supported_versions: list[str]


class _ModernTools(_CacheableResult, kw_only=True):
    tools: list[ListedTool]


class _ModernPrompts(_CacheableResult, kw_only=True):
    prompts: list[ListedPrompt]


class _ModernResources(_CacheableResult, kw_only=True):
    resources: list[ListedResource]


class _ModernTemplates(_CacheableResult, kw_only=True):
    resource_templates: list[ListedTemplate]


class _ModernReadResult(_CacheableResult, kw_only=True):
    contents: list[Contents]


class _ModernCallResult(_ModernResult, kw_only=True):
    content: list[Block]
    is_error: bool | None = None
    structured_content: Any = None


class _ModernPromptResult(_ModernResult, kw_only=True):
    messages: list[PromptMessage]
    description: str | None = None


_CLIENT_PARAMS: Final[dict[str, Any]] = {
    "server/discover": _ModernParams,
    "subscriptions/listen": _ListenParams,
    "tools/list": _ModernPageParams,
    "prompts/list": _ModernPageParams,
    "resources/list": _ModernPageParams,
    "resources/templates/list": _ModernPageParams,
    "tools/call": _ModernCallParams,
    "prompts/get": _ModernPromptParams,
    "resources/read": _ModernUriParams,
    "notifications/cancelled": _ModernCancelledParams,
}
_SERVER_PARAMS: Final[dict[str, Any]] = {
    "notifications/subscriptions/acknowledged": _AcknowledgedParams,
    "notifications/progress": _ModernProgressParams,
    "notifications/cancelled": _ModernCancelledParams,
    "notifications/message": _ModernLogParams,
    "notifications/tools/list_changed": _WithSubscription | None,
    "notifications/prompts/list_changed": _WithSubscription | None,
    "notifications/resources/list_changed": _WithSubscription | None,
    "notifications/resources/updated": _ModernUpdatedParams,
}
_SERVER_RESULTS: Final[dict[str, Any]] = {
    "server/discover": _DiscoverResult,
    "tools/list": _ModernTools,
    "prompts/list": _ModernPrompts,
    "resources/list": _ModernResources,
    "resources/templates/list": _ModernTemplates,
    "tools/call": _ModernCallResult,
    "resources/read": _ModernReadResult,
    "prompts/get": _ModernPromptResult,
}

TYPES: Final[dict[tuple[Side, str], dict[str, Any]]] = {
    (CLIENT, "params"): _CLIENT_PARAMS,
    (SERVER, "params"): _SERVER_PARAMS,
    (SERVER, "result"): _SERVER_RESULTS,
}
"""By sender and member of the message: the types, by method."""
