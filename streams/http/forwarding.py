"""Requests forwarded to another instance over HTTP, in a bounded number of threads, for a bounded time.

A forwarded request has a header (`HOP`) and is not forwarded again, so requests do not go in circles.
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlencode

from streams.http.application import Application
from streams.queries import HostInfo

HOP = "x-millstream-forwarded-by"
"""The header of a forwarded request: the address of the forwarding instance."""
INSTANCE_OF = "x-millstream-instance-of"
"""The header of an instance's responses: its application id. No other response is handed on."""
FORWARDS_MAX = 16
"""The most requests forwarded at one time; further ones wait, within their timeout."""
FORWARD_SECONDS = 3.0
ANSWER_MAX = 32 * 1024 * 1024
"""The most bytes of another instance's answer."""


class Forwarded(NamedTuple):
    """Another instance's answer."""

    status: int
    body: bytes


class Unreachable(Exception):
    """The other instance did not answer in time."""


class Forwarding:
    """The client by which an application forwards requests to other instances."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(FORWARDS_MAX, "streams-http-forward")

    async def get(self, host: HostInfo, path: str, query: Mapping[str, str]) -> Forwarded:
        """Send ``GET path?query`` to an instance and return its answer. Raises Unreachable."""
        target = path + ("?" + urlencode(query) if query else "")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(FORWARD_SECONDS):
                return await loop.run_in_executor(self._pool, self._get, host, target)
        except (OSError, http.client.HTTPException) as error:  # a TimeoutError is an OSError
            raise Unreachable(f"{host} does not answer ({error or type(error).__name__})") from error

    def _get(self, host: HostInfo, target: str) -> Forwarded:
        connection = http.client.HTTPConnection(host.host, host.port, timeout=FORWARD_SECONDS)
        try:
            connection.request("GET", target, headers={HOP: str(self._app.host)})
            response = connection.getresponse()
            if response.headers.get(INSTANCE_OF) != self._app.config.application_id:
                # Any member of the group may name an address, also that of a service it cannot reach itself.
                raise http.client.HTTPException(f"it is no instance of {self._app.config.application_id}")
            body = response.read(ANSWER_MAX + 1)
        finally:
            connection.close()
        if len(body) > ANSWER_MAX:
            raise http.client.HTTPException(f"its answer is larger than {ANSWER_MAX} bytes")
        return Forwarded(response.status, body)

    def close(self) -> None:
        """Close the client without waiting: its threads end after their current requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)
