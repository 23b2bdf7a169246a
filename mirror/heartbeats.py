"""Writes heartbeats of a flow to the source, as MirrorMaker's MirrorHeartbeatConnector does.

The flow copies the topic of heartbeats like any other. So consumers of the target see that the flow is alive,
how late it is, and through which clusters the copies came.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from kafka_client import NO_TIMEOUT_MS, BatchProducer, Client
from kafka_client.errors import MillstreamError
from mirror.config import LinkSettings
from mirror.internal_topics import create_internal_topic
from mirror.records.heartbeat import Heartbeat

log = logging.getLogger(__name__)

CLOSE_MS = 1_000
RETRY_SECONDS = 60.0
"""How long to wait after a failure, which is logged."""


class Heartbeats:
    """The heartbeats of one flow. `source` is the client of the source's cluster."""

    def __init__(
        self, settings: LinkSettings, source: Client, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._source = source
        self._clock = clock

    async def run(self) -> None:
        """Write heartbeats until cancelled. A failure is logged, and never stops the copy."""
        while True:
            try:
                await self._run_once()
            except MillstreamError as e:
                log.warning(
                    "%s: no heartbeats, trying again in %.0f s: %s", self._settings.name, RETRY_SECONDS, e
                )
            await asyncio.sleep(RETRY_SECONDS)

    async def _run_once(self) -> None:
        settings = self._settings
        topic = settings.policy.heartbeats_topic()
        factor = settings.heartbeats_replication_factor
        await create_internal_topic(self._source, topic, factor, "heartbeats.topic.replication.factor")
        producer = BatchProducer(self._source, delivery_timeout_ms=NO_TIMEOUT_MS)
        await producer.start()
        try:
            while True:
                now = int(self._clock() * 1000)
                beat = Heartbeat(settings.source.alias, settings.target.alias, now)
                record = (now, beat.record_key, beat.record_value, ())
                await (await producer.send(topic, 0, [record]))
                await asyncio.sleep(settings.emit_heartbeats_interval_seconds)
        finally:
            await producer.close(timeout_ms=CLOSE_MS)
