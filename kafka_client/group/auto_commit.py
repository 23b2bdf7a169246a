"""Automatic commits of a consumer's offsets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from kafka_client.cluster.cluster import is_retriable
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import MillstreamError, RebalanceNeeded
from kafka_client.topic_partition import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]

_log = logging.getLogger(__name__)


class AutoCommit:
    """The automatic commits of processed offsets, every `interval_ms`.

    `processed` returns the offsets to commit, `commit` commits them. It is not a task: the consumer calls it
    while it reads, so that no offset is committed during a rebalance.
    """

    def __init__(
        self,
        interval_ms: int,
        group_id: str,
        *,
        processed: Callable[[], Offsets],
        commit: Callable[[Offsets], Awaitable[None]],
    ) -> None:
        self._interval_s = interval_ms / 1000
        self._group_id = group_id
        self._processed = processed
        self._commit = commit
        self.due_at = 0.0
        """The time of the next commit, on the event loop's clock, in seconds."""
        self.committed: Offsets = {}
        """The offsets of the last commit."""

    async def run_if_due(self) -> None:
        """Commit if the interval is over. Raises the errors that are not retriable."""
        if asyncio.get_running_loop().time() >= self.due_at:
            await self.run()

    async def run(self, *, is_last: bool = False) -> None:
        """Commit the processed offsets if they have changed since the last commit.

        A retriable error is logged, and the next commit tries again. Other errors are raised, except at the
        last commit (`is_last`), which only logs them.
        """
        self.due_at = asyncio.get_running_loop().time() + self._interval_s
        offsets = self._processed()
        if not offsets or offsets == self.committed:
            return
        try:
            await self._commit(offsets)
        except MillstreamError as error:
            if not (is_last or is_retriable(error) or isinstance(error, RebalanceNeeded)):
                raise
            _log.warning("group %s: could not commit offsets: %s", self._group_id, error)
        else:
            self.committed = offsets
