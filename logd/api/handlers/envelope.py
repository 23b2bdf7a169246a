"""Envelope, 0: a client's request that another broker has sent on to the controller (KIP-590).

It is served as if the client had asked here, with the client's principal and address. A broker that is not
the controller says so (NOT_CONTROLLER), for the other broker to look for it; also one that was the controller
when the request came, and is not any more. Only brokers of a cluster serve and send it: ApiVersions does not
list it.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from kafka_client.errors import ErrorCode, KafkaError, MalformedMessage
from kafka_client.wire import Message, decode, decode_request_header, encode_response
from kafka_client.wire.headers import RequestHeader
from kafka_client.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from logd.api.authorization.guard import guarded
from logd.api.request.context import RequestContext
from logd.api.table import APIS
from logd.broker.cluster.controller_link import client_host_of, principal_of

REQUEST = EnvelopeRequest


async def handle(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
    """Return the response, header and body, or the error of the envelope."""
    link = context.broker.controller_link
    if link is None or not link.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        data = request.request_data
        header = _header(data)
        response = await _served(data, header, _context(request, header, context))
    except KafkaError as error:
        return EnvelopeResponse(error_code=error.code)
    if _says(response, ErrorCode.NOT_CONTROLLER):
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    answer = encode_response(response, header.version, header.correlation_id)
    return EnvelopeResponse(response_data=answer[4:])


def _header(data: bytes) -> RequestHeader:
    try:
        header = decode_request_header(data)
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    api = APIS.get(header.api_key)
    if api is None or not api.by_controller:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not the controller's to serve")
    if not api.serves_from <= header.version <= api.last:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api.module} in version {header.version}")
    return header


def _context(request: EnvelopeRequest, header: RequestHeader, context: RequestContext) -> RequestContext:
    return RequestContext(
        context.broker,
        version=header.version,
        client_id=header.client_id,
        client_host=client_host_of(request),
        endpoint=context.endpoint,
        principal=principal_of(request),
    )


async def _served(data: bytes, header: RequestHeader, context: RequestContext) -> Message:
    module = importlib.import_module(f"logd.api.handlers.{APIS[header.api_key].module}")
    try:
        message = decode(module.REQUEST, header.version, data, header.body)
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    response = guarded(header.api_key, module.handle)(message, context)
    if inspect.isawaitable(response):
        response = await response
    assert isinstance(response, Message)
    return response


def _says(answer: Any, code: ErrorCode) -> bool:
    """Return True if a response has this error code anywhere."""
    if isinstance(answer, list):
        return any(_says(one, code) for one in answer)
    if not isinstance(answer, Message):
        return False
    if getattr(answer, "error_code", None) == code:
        return True
    return any(_says(getattr(answer, field), code) for field in answer.__struct_fields__)
