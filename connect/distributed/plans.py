"""PlanSender: brings the task configs that a connector plans into the config topic, through the leader."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import quote

from connect.distributed.signatures import sign
from connect.errors import ConnectError, MillstreamError, Rebalancing
from connect.herder import Herder
from connect.herder.config_state import Properties
from connect.stores import ConfigRecord
from connect.stores.config_records import Decision
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


class _Sending:
    """The plans of one connector on their way: the newest one waits until an older one is answered."""

    def __init__(self) -> None:
        self.newest: Sequence[Properties] | None = None
        self.is_renewed = asyncio.Event()
        """Set when `newest` is replaced; it ends a pause between attempts."""
        self.task: asyncio.Task[None]


class PlanSender:
    """Sends each connector's newest plan until it is taken; one request at a time a connector.

    A request that is under way is never given up for a newer plan: the leader could take it after that one.
    """

    def __init__(
        self,
        group: Group,
        herder: Herder,
        change: Callable[[Decision], Awaitable[None]],
        request: Request,
        algorithm: str,
    ) -> None:
        self._group = group
        self._herder = herder
        self._change = change
        self._request = request
        self._algorithm = algorithm
        self._sending: dict[str, _Sending] = {}

    def send(self, name: str, configs: Sequence[Properties]) -> None:
        """Send a plan in the background, after an older one of this connector that is under way."""
        sending = self._sending.get(name)
        if sending is None:
            if not self._herder.put_plan(name, configs):
                return
            sending = self._sending[name] = _Sending()
            sending.task = asyncio.create_task(self._send(name, sending), name=f"plan of {name}")
        sending.newest = configs
        sending.is_renewed.set()

    async def close(self) -> None:
        """Stop sending."""
        tasks = [sending.task for sending in self._sending.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, name: str, sending: _Sending) -> None:
        try:
            while sending.newest is not None and self._group.has_connector(name):
                configs, sending.newest = sending.newest, None
                sending.is_renewed.clear()
                await self._send_until_taken(name, configs, sending)
        finally:
            del self._sending[name]

    async def _send_until_taken(self, name: str, configs: Sequence[Properties], sending: _Sending) -> None:
        """Return once a plan is taken, there is a newer one, or the connector is no longer this worker's."""
        backoff = Backoff(_BACKOFF_FIRST_SECONDS, _BACKOFF_MAX_SECONDS)
        while sending.newest is None and self._group.has_connector(name):
            try:
                await self._send_once(name, configs)
                return
            except (MillstreamError, OSError, ValueError, http.client.HTTPException, TimeoutError) as e:
                seconds = backoff.next()
                log = _log.info if isinstance(e, Rebalancing) else _log.warning
                log("the plan of %s is not taken, trying again in %.1f s: %s", name, seconds, e)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await sending.is_renewed.wait()

    def _planned(self, name: str, configs: Sequence[Properties]) -> list[ConfigRecord]:
        """Return the records of a plan. Raises Rebalancing if another worker leads by now."""
        if (leader_url := self._group.leader_url()) is not None:
            raise Rebalancing(f"{leader_url} leads the group now")
        return self._herder.put_plan(name, configs)

    async def _send_once(self, name: str, configs: Sequence[Properties]) -> None:
        leader_url = self._group.leader_url()
        if leader_url is None:
            await self._change(lambda: self._planned(name, configs))
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
