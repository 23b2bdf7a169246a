"""Decides which of two mirrors begins a partition that neither has copied before.

Each writes a first sync under its own producer id before its first record. The offset-syncs topic orders
these syncs: the first one counts. The other mirror goes on under the first one's producer id and sequence
numbers, so that the target appends each batch once (see `position`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka_client import Client, Identity, TopicPartition
from mirror.offsets import OffsetSync, OffsetSyncs, read_syncs

_LAST = 1 << 63


class Claims:
    """Syncs in the topic of `syncs` that this mirror's producer did not write.

    `client` is connected to the cluster of the topic, and `identity` is this mirror's producer's.
    """

    def __init__(self, client: Client, syncs: OffsetSyncs, identity: Identity) -> None:
        self._client = client
        self._syncs = syncs
        self._identity = identity
        self._position = syncs.read_until
        self._others: dict[TopicPartition, tuple[int, OffsetSync]] = {}
        """For each partition the offset of the first sync of another producer, and its latest sync."""

    async def follow(self) -> None:
        """Read the topic from where the last call ended. Call this at times, so that little is to read."""
        self._position = await read_syncs(self._client, self._syncs.topic, self.take, self._position)

    def take(self, offset: int, sync: OffsetSync) -> None:
        """Note a sync of the topic if another producer wrote it."""
        if sync.producer is not None and sync.producer.identity != self._identity:
            first, _ = self._others.get(sync.tp, (offset, sync))
            self._others[sync.tp] = (first, sync)

    async def lost(self, first_syncs: Mapping[TopicPartition, int | None]) -> list[TopicPartition]:
        """Return the partitions that another mirror began earlier, and take its syncs over.

        `first_syncs` are the offsets of this mirror's first syncs, None if unknown.
        """
        await self.follow()
        lost = []
        for tp, offset in first_syncs.items():
            first, sync = self._others.pop(tp, (_LAST, None))
            if sync is not None and first < (_LAST if offset is None else offset):
                self._syncs.adopt(sync)
                lost.append(tp)
        return lost
