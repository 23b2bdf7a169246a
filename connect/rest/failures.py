"""Answers to requests that failed, with Kafka Connect's status codes."""

from __future__ import annotations

import asyncio
import logging

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.errors import (
    AlreadyExists,
    BadRequest,
    ConfigError,
    ConnectError,
    DataError,
    Forbidden,
    MillstreamError,
    NotFound,
    Rebalancing,
)
from connect.rest.bodies import json_response
from kafka_client.http.errors import Handler

_log = logging.getLogger(__name__)
STALE = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config "
    "change)"
)
_STATUS: dict[type[Exception], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    Rebalancing: 409,
    Forbidden: 403,
    BadRequest: 400,
    DataError: 400,
    ConfigError: 400,
    ConnectError: 500,
    MillstreamError: 500,
}


def error_answer(status: int, message: str) -> Response:
    """Return Kafka Connect's error document."""
    return json_response({"error_code": status, "message": message}, status)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = error_answer(error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def _own(request: Request, error: Exception) -> Response:
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    return error_answer(status, str(error) or (STALE if status == 409 else type(error).__name__))


async def _timed_out(request: Request, error: Exception) -> Response:
    stage = str(error)
    return error_answer(500, f"Request timed out. {stage}" if stage else "Request timed out")


async def _defect(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_answer(500, f"{request.method} {request.url.path} failed: the worker's log says why")


FAILURES: dict[type[Exception], Handler] = {
    HTTPException: _http,
    **dict.fromkeys(_STATUS, _own),
    TimeoutError: _timed_out,
    asyncio.TimeoutError: _timed_out,
}
"""Handlers for Starlette's `exception_handlers`."""


async def answer_failure(request: Request, error: Exception) -> Response:
    """Return the answer to a request that raised an error."""
    for kind in type(error).__mro__:
        if kind in FAILURES:
            return await FAILURES[kind](request, error)
    return await _defect(request, error)
