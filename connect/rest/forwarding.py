"""Forwarding of requests to the group's leader, at most two hops, as in Kafka Connect.

A worker that is not the leader sends the request on with `forward=true`. If that worker is no longer the
leader, it sends the request on with `forward=false`, and a third worker answers 409.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from connect.errors import NotLeader
from connect.rest.failures import error_answer
from connect.runtime.stage import request_stage
from kafka_client.http.client import Answer, HttpClient

NO_LEADER = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
FORWARDS_MAX = 16
"""The most requests forwarded at one time; further ones wait, within their timeout."""
_SIGNATURE = ("x-connect-authorization", "x-connect-request-signature-algorithm")
_PASSED = ("authorization", "content-type", *_SIGNATURE)
_ANSWERED = ("content-type", "location")


class Forwarding:
    """The client by which a worker forwards requests to the leader."""

    def __init__(self, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(timeout=timeout, tls=tls)
        self._pool = ThreadPoolExecutor(FORWARDS_MAX, "connect-rest-forward")

    async def forward(self, request: Request, error: NotLeader) -> Response:
        """Return the leader's answer to a request that was refused with `error`."""
        hop = request.query_params.get("forward")
        if hop is not None and hop.lower() != "true":
            return error_answer(409, CONFLICT)
        if not error.leader_url:
            return error_answer(409, NO_LEADER)
        url = self._url(request, error.leader_url, last=hop is not None)
        body = request.scope.get("millstream.body")
        body = await request.body() if body is None else body
        headers = {name: value for name in _PASSED if (value := request.headers.get(name)) is not None}
        request_stage().enter(f"forwarding the request to the leader {error.leader_url}")
        try:
            answer = await self._send(request.method, url, body, headers)
        except (OSError, ValueError, http.client.HTTPException) as e:
            return error_answer(500, f"IO Error trying to forward REST request: {e or type(e).__name__}")
        passed = {name: value for name in _ANSWERED if (value := answer.headers.get(name)) is not None}
        return Response(answer.body, answer.status, passed)

    async def _send(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._client.request, method, url, body, headers)

    def _url(self, request: Request, leader: str, *, last: bool) -> str:
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        query = [(key, value) for key, value in request.query_params.multi_items() if key != "forward"]
        query.append(("forward", "false" if last else "true"))
        path = raw.decode("latin-1").partition("?")[0]
        return f"{leader.rstrip('/')}{path}?{urlencode(query)}"

    def close(self) -> None:
        """Close the client without waiting: its threads end after their current requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)
