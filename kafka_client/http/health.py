"""``GET /livez`` and ``GET /readyz``: the answers to the probes of a supervisor such as Kubernetes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kafka_client.http.errors import error_response

Check: TypeAlias = Callable[[], str | None]
"""Returns None if all is well, otherwise the reason in one sentence. It must not block."""


def no_problem() -> None:
    """Return None: a process that answers at all is alive."""


def health_endpoint(check: Check) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a Starlette route: status 200 if all is well, otherwise 503 and the reason."""

    async def endpoint(request: Request) -> Response:
        reason = check()
        return JSONResponse({"status": "ok"}) if reason is None else error_response(503, reason)

    return endpoint
