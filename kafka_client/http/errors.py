"""Errors as JSON, in the form of Kafka Connect's REST: ``{"error_code": 404, "message": "..."}``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Handler = Callable[[Request, Exception], Awaitable[Response]]


def error_response(status: int, message: str) -> Response:
    """Return the response to a failed request."""
    return JSONResponse({"error_code": status, "message": message}, status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = error.detail
    if message == HTTPStatus(error.status_code).phrase:
        message = f"{request.method} {request.url.path}: {message}"
    return error_response(error.status_code, message)


async def _our_error(request: Request, error: Exception) -> Response:
    """Answer after a defect; uvicorn logs the error, so that the client does not see its text."""
    return error_response(500, f"{request.method} {request.url.path} failed: the log says why")


EXCEPTION_HANDLERS: dict[Any, Handler] = {HTTPException: _http_error, Exception: _our_error}
"""Handlers for Starlette's ``exception_handlers``; a view adds those of its own errors."""
