"""PlanSender: brings the task configs that a connector plans into the config topic, through the leader."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import quote

from connect.distributed.signatures import sign
from connect.errors import ConnectError, MillstreamError, Rebalancing
from connect.herder import Herder
from connect.herder.config_state import Properties
from connect.stores import ConfigRecord
from kafka_client import Backoff
from kafka_client.http.client import Answer

_log = logging.getLogger(__name__)
_BACKOFF_FIRST_SECONDS, _BACKOFF_MAX_SECONDS = 0.25, 60.0
_DONE = (200, 204)


class Group(Protocol):
    """The worker, as its sender of plans sees it."""

    def leader_url(self) -> str | None:
        """Return the leader's address, None if this worker leads. Raises Rebalancing if there is none now."""
        ...

    def has_connector(self, name: str) -> bool:
        """Return True if this worker runs the connector."""
        ...


Request = Callable[[str, str, bytes, dict[str, str]], Answer]
"""Method, url, body and headers; it blocks."""


class PlanSender:
    """Sends each connector's newest plan until it is taken; one task a connector."""

    def __init__(
        self,
        group: Group,
        herder: Herder,
        write: Callable[[Sequence[ConfigRecord]], Awaitable[None]],
        request: Request,
        algorithm: str,
    ) -> None:
        self._group = group
        self._herder = herder
        self._write = write
        self._request = request
        self._algorithm = algorithm
        self._sending: dict[str, asyncio.Task[None]] = {}

    def send(self, name: str, configs: Sequence[Properties]) -> None:
        """Send a plan in the background, in the place of an older one of this connector."""
        if (older := self._sending.pop(name, None)) is not None:
            older.cancel()
        if self._herder.put_plan(name, configs):
            self._sending[name] = asyncio.create_task(self._send(name, configs), name=f"plan of {name}")

    async def close(self) -> None:
        """Stop sending."""
        tasks = list(self._sending.values())
        self._sending.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, name: str, configs: Sequence[Properties]) -> None:
        backoff = Backoff(_BACKOFF_FIRST_SECONDS, _BACKOFF_MAX_SECONDS)
        while self._group.has_connector(name):
            try:
                await self._send_once(name, configs)
                return
            except (MillstreamError, OSError, ValueError, http.client.HTTPException, TimeoutError) as e:
                seconds = backoff.next()
                log = _log.info if isinstance(e, Rebalancing) else _log.warning
                log("the plan of %s is not taken, trying again in %.1f s: %s", name, seconds, e)
            await asyncio.sleep(seconds)

    async def _send_once(self, name: str, configs: Sequence[Properties]) -> None:
        leader_url = self._group.leader_url()
        if leader_url is None:
            await self._write(self._herder.put_plan(name, configs))
            return
        url = f"{leader_url.rstrip('/')}/connectors/{quote(name, safe='')}/tasks?forward=false"
        body = json.dumps([dict(config) for config in configs]).encode()
        headers = {"Content-Type": "application/json"}
        key = self._herder.config.session_key
        if key is not None:
            headers |= sign(key, self._algorithm, body)
        answer = await asyncio.to_thread(self._request, "POST", url, body, headers)
        if answer.status == 409:
            raise Rebalancing(f"the leader {leader_url} answers 409: {answer.body[:500]!r}")
        if answer.status not in _DONE:
            raise ConnectError(f"the leader {leader_url} answers {answer.status}: {answer.body[:500]!r}")
