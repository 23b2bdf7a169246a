"""ExactlyOnce: what a worker of a group does for exactly-once source tasks (KIP-618).

A task asks the leader for a round of fencing before its producer starts, and looks afterwards whether it is
still this worker's: only then no task of another plan can write, neither before nor behind it.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
from typing import Protocol
from urllib.parse import quote

from connect.distributed.fencing import ZombieFencing, task_transactional_id
from connect.distributed.plans import Request
from connect.distributed.signatures import sign
from connect.errors import ConnectError, MillstreamError, Rebalancing
from connect.group import Unit
from connect.herder import Herder
from connect.stores import ConfigTopic
from kafka_client import Backoff

_log = logging.getLogger(__name__)
_BACKOFF_FIRST_SECONDS, _BACKOFF_MAX_SECONDS = 0.1, 10.0
_DONE, _AGAIN = (200, 204), (404, 409, 500)
"""Statuses of an answer; 404 of a leader that has not read of the connector yet."""


class Group(Protocol):
    """The worker, as its exactly-once tasks see it."""

    def leader_url(self) -> str | None:
        """Return the leader's address, None if this worker leads. Raises Rebalancing if there is none now."""
        ...

    def has(self, unit: Unit) -> bool:
        """Return True if a connector or task is assigned to this worker."""
        ...

    @property
    def is_current(self) -> bool:
        """True if the group's coordinator has lately confirmed this worker's membership."""
        ...


class ExactlyOnce:
    """The fencing of a worker's source tasks; its runtime's `TaskFencing`."""

    def __init__(
        self,
        group: Group,
        group_id: str,
        herder: Herder,
        configs: ConfigTopic,
        fencing: ZombieFencing,
        request: Request,
        algorithm: str,
    ) -> None:
        self._group = group
        self._group_id = group_id
        self._herder = herder
        self._configs = configs
        self._fencing = fencing
        self._request = request
        self._algorithm = algorithm

    def transactional_id(self, connector: str, task: int) -> str:
        """Return the transactional id of a task."""
        return task_transactional_id(self._group_id, connector, task)

    async def fence(self, connector: str) -> int | None:
        """Return the connector's generation of plans once no task of an older one can write.

        Asks again while the group rebalances or the leader cannot be reached. Raises ConnectError if the
        leader refuses.
        """
        backoff = Backoff(_BACKOFF_FIRST_SECONDS, _BACKOFF_MAX_SECONDS)
        while True:
            generation = self._herder.config.generation(connector)
            try:
                await self._fence_once(connector)
                return generation
            except (Rebalancing, OSError, http.client.HTTPException, TimeoutError) as e:
                seconds = backoff.next()
                _log.info("older tasks of %s are not fenced yet, again in %.1f s: %s", connector, seconds, e)
            await asyncio.sleep(seconds)

    async def check(self, connector: str, task: int, generation: int | None) -> None:
        """Return if the task is still this worker's, by the newest configs. Raises ConnectError."""
        name = f"{connector}-{task}"
        await self._configs.read_to_end()
        if self._herder.config.generation(connector) != generation:
            raise ConnectError(
                f"Cannot start source task {name} with exactly-once support as the connector has already "
                "generated a new set of task configs"
            )
        if not self._group.has(Unit(connector, task)):
            raise ConnectError(
                f"Cannot start source task {name} as the task has been assigned to another worker"
            )

    async def _fence_once(self, connector: str) -> None:
        if not self._group.is_current:
            raise Rebalancing("this worker has not heard of its group for a while")
        leader_url = self._group.leader_url()
        if leader_url is None:
            await self._fencing.fence(connector)
            return
        url = f"{leader_url.rstrip('/')}/connectors/{quote(connector, safe='')}/fence?forward=false"
        key = self._herder.config.session_key
        headers = {} if key is None else sign(key, self._algorithm, b"")
        try:
            answer = await asyncio.to_thread(self._request, "PUT", url, b"", headers)
        except (MillstreamError, ValueError) as e:
            raise Rebalancing(f"the leader {leader_url} does not answer: {e}") from e
        if answer.status in _AGAIN:
            raise Rebalancing(f"the leader {leader_url} answers {answer.status}: {answer.body[:500]!r}")
        if answer.status not in _DONE:
            raise ConnectError(
                f"the leader {leader_url} does not fence older tasks of {connector}, as exactly-once sources "
                f"need: it answers {answer.status}: {answer.body[:500]!r}"
            )
