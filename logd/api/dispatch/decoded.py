"""Requests that are messages: decoded, handled by their API's module and encoded again.

A module of ``logd.api.handlers`` has REQUEST and ``handle``, or a ``serve`` that does all of that. It is
imported at the API's first request.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_client.wire import Message, decode, decode_request_header, encode_response
from logd.api.authorization.guard import guarded
from logd.api.dispatch.forwarding import Serve, Served, forwarding

if TYPE_CHECKING:
    from kafka_client.wire.headers import RequestHeader
    from logd.api.request.answer import Answer
    from logd.api.request.context import RequestContext
    from logd.api.table import Api

_served: dict[int, Serve] = {}


def serve(api: Api, request: bytes, context: RequestContext) -> Served:
    """Serve a request of an API and a version that are served."""
    serve_request = _served.get(api.key) or _load(api)
    header = decode_request_header(request)
    context.version = header.version
    context.client_id = header.client_id
    return serve_request(request, header, context)


def _decoding(
    request_class: type[Message],
    handle: Callable[[Any, RequestContext], Message | Callable[[], Awaitable[Message]]],
) -> Serve:
    """Serve by a handler that returns the response, or a function that returns an awaitable of it."""

    def serve_request(request: bytes, header: RequestHeader, context: RequestContext) -> Served:
        message = decode(request_class, header.version, request, header.body)
        result = handle(message, context)
        if isinstance(result, Message):
            return encode_response(result, header.version, header.correlation_id)
        return _encode_later(result, header)

    return serve_request


def _waiting(
    request_class: type[Message], handle: Callable[[Any, RequestContext], Awaitable[Message]]
) -> Serve:
    """Serve by a handler that is a coroutine function."""
    return _decoding(request_class, lambda message, context: partial(handle, message, context))


async def _encode_later(handle: Callable[[], Awaitable[Message]], header: RequestHeader) -> Answer:
    """Call the handler only now: a client that has disconnected by then has started nothing."""
    return encode_response(await handle(), header.version, header.correlation_id)


def _load(api: Api) -> Serve:
    module = importlib.import_module(f"logd.api.handlers.{api.module}")
    if hasattr(module, "serve"):
        serve: Serve = module.serve
    else:
        wrap = _waiting if inspect.iscoroutinefunction(module.handle) else _decoding
        serve = wrap(module.REQUEST, guarded(api.key, module.handle))
    if api.by_controller:
        serve = forwarding(serve, module, getattr(module, "is_local", None))
    _served[api.key] = serve
    return serve
