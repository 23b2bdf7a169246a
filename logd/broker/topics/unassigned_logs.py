"""Logs found at the start of a broker in a cluster, before it knows which of them are assigned to it.

Partitions that begin take their logs from here. A stray log (see `metadata.controller.stray`), which is not
assigned to this broker, is set aside. It is renamed to a name that no start takes for a log. It is not
deleted, since the assignment may be mistaken.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import NamedTuple

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.stray import why_stray
from logd.metadata.image import ClusterImage
from logd.storage import Log, LogDirectory

logger = logging.getLogger("logd.broker")


class UnassignedLog(NamedTuple):
    """An open log, and the directory it is in."""

    directory: LogDirectory
    log: Log

    @property
    def rank(self) -> tuple[bool, int]:
        """The log's priority: the highest of a partition's logs is served, since shorter logs are beginnings
        of it.
        """
        return self.log.topic_id is not None, self.log.log_end_offset


class UnassignedLogs:
    """All in these directories, which are open; `image` is the cluster's, as this broker is told it."""

    def __init__(self, directories: Iterable[LogDirectory], image: ClusterImage, node_id: int) -> None:
        self._image = image
        self._node_id = node_id
        self._logs: dict[TopicPartition, list[UnassignedLog]] = {}
        for directory in directories:
            for tp, log in directory.logs.items():
                self._logs.setdefault(tp, []).append(UnassignedLog(directory, log))

    async def take(self, tp: TopicPartition) -> UnassignedLog | None:
        """Return the log of a partition that begins here, or None; other logs of that name are set aside.

        There are several if a power loss undid a move's rename, or a log directory was offline for a while.
        """
        await self._set_strays_aside(tp)
        logs = sorted(self._logs.get(tp, ()), key=lambda one: one.rank)
        if not logs:
            return None
        chosen = logs.pop()
        self._keep(tp, [chosen])
        for one in logs:
            await self._set_aside(
                one, f"it was found twice, and the one in {chosen.directory.path} is served"
            )
        return chosen if self._logs.pop(tp, None) else None  # unless its directory has failed meanwhile

    async def set_strays_aside(self) -> None:
        """Set all stray logs aside. Call it when every partition assigned to this broker is known."""
        for tp in tuple(self._logs):
            await self._set_strays_aside(tp)

    def forget(self, directory: LogDirectory) -> list[TopicPartition]:
        """Drop the logs of a log directory that failed. Return their partitions."""
        forgotten = []
        for tp, logs in tuple(self._logs.items()):
            left = [one for one in logs if one.directory is not directory]
            if len(left) < len(logs):
                forgotten.append(tp)
                self._keep(tp, left)
        return forgotten

    async def _set_strays_aside(self, tp: TopicPartition) -> None:
        logs = self._logs.pop(tp, [])
        reasons = [self._why_stray(one.log) for one in logs]
        self._keep(tp, [one for one, reason in zip(logs, reasons, strict=True) if not reason])
        for one, reason in zip(logs, reasons, strict=True):
            if reason:
                await self._set_aside(one, reason)

    def _keep(self, tp: TopicPartition, logs: list[UnassignedLog]) -> None:
        if logs:
            self._logs[tp] = logs
        else:
            self._logs.pop(tp, None)

    def _why_stray(self, log: Log) -> str:
        is_empty = not log.log_end_offset and not log.epochs.entries
        return why_stray(self._image, self._node_id, log.tp, log.topic_id, is_empty=is_empty)

    async def _set_aside(self, one: UnassignedLog, reason: str) -> None:
        tp = one.log.tp
        with contextlib.suppress(KafkaError):  # which is in the log
            place = one.directory.set_aside(*tp)
            logger.warning("%s is set aside as %s: %s", tp, place, reason)
        await asyncio.sleep(0)
