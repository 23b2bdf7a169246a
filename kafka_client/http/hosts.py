"""The check of a request's Host header, against DNS rebinding.

A page of a web site may send requests to a server on this machine, under a name of the site's that resolves
to 127.0.0.1. Browsers let the page read the answers, since they go by the name. So a server on a loopback
address answers only to names of this machine. On other addresses, a server may have any name.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from kafka_client.http.errors import error_response


class CheckedHosts:
    """An ASGI application that refuses requests to unknown names with the status 421.

    `names` are further names of the server, in lower case.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", socket.gethostname().lower(), *names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "http" and not self._knows(host := _host_of(scope)):
            answer: Any = error_response(
                421, f"{host!r} is no name of this server: send an address, or localhost, in the Host header"
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        return not host or host in self._names or host.endswith(".localhost") or _is_address(host)


def _host_of(scope: Scope) -> str:
    """Return the name in the Host header without its port, in lower case."""
    for key, value in scope["headers"]:
        if key == b"host":
            host = value.decode("latin-1").strip().lower()
            if host.startswith("["):
                return str(host[1:].partition("]")[0])
            return str(host.rpartition(":")[0] if ":" in host else host).rstrip(".")
    return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
