"""Follows a flow's progress: asks the source where its logs end, and reports partitions that stand still."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kafka_client import Client, TopicPartition
from kafka_client.errors import MillstreamError
from kafka_client.fetcher.offsets import LATEST, list_each_offset
from mirror.source import MirrorSource
from mirror.stalls import Progress, Stalls, by_reason

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 1.0
"""Interval of the requests for the source's ends, for few partitions."""
PARTITION_SECONDS = 0.003
"""The addition of each partition to the interval, so that 10,000 idle ones cost little."""
TIMEOUT_MS = 5_000
"""How long a broker of the source may take to answer. After that the lag is unknown."""


class ProgressWatch:
    """The watch over the partitions that `mirror` copies. `name` is the flow's, for the log."""

    def __init__(self, name: str, source: Client, mirror: MirrorSource, clock: Callable[[], float]) -> None:
        self._name = name
        self._source = source
        self._mirror = mirror
        self._clock = clock
        self.stalls = Stalls()

    async def run(self) -> None:
        """Check at intervals until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS + PARTITION_SECONDS * len(self._mirror.copies))
            await self.ask_source()
            self.check()

    async def ask_source(self) -> None:
        """Ask the source for the ends of all copied partitions, and note which it does not answer for."""
        copies, now = dict(self._mirror.copies), self._clock()
        specs = dict.fromkeys(copies, LATEST)
        results = await list_each_offset(
            self._source, specs, isolation_level="read_committed", timeout_ms=TIMEOUT_MS
        )
        for tp, result in results.items():
            if isinstance(result, MillstreamError):
                copies[tp].source.failed(str(result))
            else:
                copies[tp].source.answered(result.offset, now)

    def check(self) -> None:
        """Log the partitions that began to stand still, with the reason, and those that move again."""
        now = self._clock()
        copies = self._mirror.copies
        changes = self.stalls.check(
            (Progress(tp, copy.copied, copy.lag_records()) for tp, copy in copies.items()),
            now,
            self._mirror.stall_reason,
        )
        for line in by_reason(changes.started, now):
            log.warning("%s: %s", self._name, line)
        for stall in changes.ended:
            if stall.tp in copies:
                log.info("%s: %s is copied again", self._name, stall.tp)

    @property
    def silent(self) -> list[TopicPartition]:
        """The copied partitions for which the source did not answer when it was asked last."""
        return [tp for tp, copy in self._mirror.copies.items() if copy.source.silence is not None]

    def lines(self) -> list[str]:
        """Return a line for each reason for which partitions stand still."""
        return by_reason(self.stalls.stalled.values(), self._clock())
