"""The guard before a handler: without an authorizer it costs one look at the broker."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_client.wire import Message

if TYPE_CHECKING:
    from logd.api.authorization.rule import Verdict
    from logd.api.request.context import RequestContext

Handle = Callable[[Any, "RequestContext"], Any]


def guarded(key: int, handle: Handle) -> Handle:
    """Return a handler of the same form, which serves what the peer may do and refuses the rest."""
    if inspect.iscoroutinefunction(handle):

        async def handle_allowed(request: Any, context: RequestContext) -> Any:
            if context.broker.authorizer is None:
                return await handle(request, context)
            verdict = verdict_on(key, request, context)
            if verdict.request is None:
                return verdict.response
            return _amended(await handle(verdict.request, context), verdict)

        return handle_allowed
    return partial(_handle, key, handle)


def _handle(key: int, handle: Handle, request: Any, context: RequestContext) -> Any:
    if context.broker.authorizer is None:
        return handle(request, context)
    verdict = verdict_on(key, request, context)
    if verdict.request is None:
        return verdict.response
    response = handle(verdict.request, context)
    if isinstance(response, Message):
        return _amended(response, verdict)
    return partial(_amended_later, response, verdict)


async def _amended_later(response: Callable[[], Awaitable[Message]], verdict: Verdict) -> Message:
    return _amended(await response(), verdict)


def _amended(response: Message, verdict: Verdict) -> Message:
    if verdict.amend is not None:
        verdict.amend(response)
    return response


def verdict_on(key: int, request: Any, context: RequestContext) -> Verdict:
    """Return what the peer is served of a request."""
    from logd.api.authorization.access import access_of
    from logd.api.authorization.rule import Verdict
    from logd.api.authorization.rules import RULES

    access = access_of(context, type(request).__name__.removesuffix("Request"))
    if access is None:
        return Verdict(request)
    # An API without a rule is an error of ours, and closes the connection: it must not be open to everybody.
    return RULES[key](request, access)
