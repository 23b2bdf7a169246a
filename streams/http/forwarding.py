"""Asking another instance, over HTTP: one hop, in a bounded number of threads, for a bounded time.

Nothing is sent on that was sent on already (`HOP`), so requests go round in no circle.
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
"""The header that says that, and by whom."""
FORWARDS_MAX = 16
"""Requests that are sent on at one time; more wait for their turn, within their time."""
FORWARD_SECONDS = 3.0
ANSWER_MAX = 32 * 1024 * 1024
"""Bytes that are read of another instance's answer."""


class Forwarded(NamedTuple):
    """Another instance's answer."""

    status: int
    body: bytes


class Unreachable(Exception):
    """The other instance does not answer, or not in time."""


class Forwarding:
    """One application's."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(FORWARDS_MAX, "streams-http-forward")

    async def get(self, host: HostInfo, path: str, query: Mapping[str, str]) -> Forwarded:
        """``GET path?query`` there; Unreachable."""
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
            body = response.read(ANSWER_MAX + 1)
        finally:
            connection.close()
        if len(body) > ANSWER_MAX:
            raise http.client.HTTPException(f"its answer is larger than {ANSWER_MAX} bytes")
        return Forwarded(response.status, body)

    def close(self) -> None:
        """Wait for nothing: threads end with what they have in hand."""
        self._pool.shutdown(wait=False, cancel_futures=True)
