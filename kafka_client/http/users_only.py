"""An ASGI application in front of another one, which serves users alone."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kafka_client.http.access import HttpAccess
from kafka_client.http.errors import error_response


class UsersOnly:
    """An application that answers 401 to requests without a user's name and password.

    It serves everybody if the access has no users.
    """

    def __init__(self, app: ASGIApp, access: HttpAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        passwords = self._access.passwords
        if scope["type"] == "http" and passwords is not None:
            header = Headers(scope=scope).get("authorization", "")
            if not passwords.accept(header):
                answer: Any = error_response(401, "User cannot access the resource.")
                answer.headers["www-authenticate"] = 'Basic realm="millstream"'
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
