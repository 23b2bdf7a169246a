"""Producer ids: blocks from the metadata store, one id at a time to whoever asks."""

from __future__ import annotations

import asyncio

from logd.errors import ErrorCode, KafkaError
from logd.metadata.image import PRODUCER_ID_BLOCK, ClusterImage
from logd.metadata.store import MetadataStore


class ProducerIds:
    """Never gives an id twice, over restarts too: a block is stored as used before its first id is given."""

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self._store = store
        self._image = image
        self._next = self._end = 0
        self._allocating = asyncio.Lock()

    async def take(self) -> int:
        """A producer id nobody had before; KafkaError(COORDINATOR_NOT_AVAILABLE) when none can be stored."""
        await self.reserve()
        return self.take_reserved()

    async def reserve(self) -> None:
        """Have an id at hand for `take_reserved`, until the next await. KafkaError as `take`."""
        while self._next == self._end:
            async with self._allocating:
                if self._next == self._end:
                    await self._allocate()

    def take_reserved(self) -> int:
        """A producer id nobody had before, right after `reserve`."""
        assert self._next < self._end, "no producer id was reserved"
        taken = self._next
        self._next += 1
        return taken

    async def _allocate(self) -> None:
        start = self._image.next_producer_id
        change = {"type": "producer-ids", "next": start + PRODUCER_ID_BLOCK}
        try:
            await self._store.write([change])
        except OSError as error:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"producer ids not stored: {error}"
            ) from error
        self._image.apply(change)
        self._next, self._end = start, start + PRODUCER_ID_BLOCK
