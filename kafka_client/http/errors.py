"""Errors as JSON, as in Kafka Connect's REST API: ``{"error_code": 404, "message": "..."}``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Handler = Callable[[Request, Exception], Awaitable[Response]]


def error_response(status: int, message: str) -> Response:
    """Return a JSON response with this HTTP status and message."""
    return JSONResponse({"error_code": status, "message": message}, status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = error.detail
    if message == HTTPStatus(error.status_code).phrase:
        message = f"{request.method} {request.url.path}: {message}"
    return error_response(error.status_code, message)


async def _our_error(request: Request, error: Exception) -> Response:
    """Return a response with status 500 after an unexpected error.

    The response does not have the error's text; uvicorn logs it.
    """
    return error_response(500, f"{request.method} {request.url.path} failed: the log says why")


EXCEPTION_HANDLERS: dict[Any, Handler] = {HTTPException: _http_error, Exception: _our_error}
"""Handlers for Starlette's ``exception_handlers``; a view adds handlers for its own errors."""
