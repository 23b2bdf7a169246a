"""Producer ids, handed out one at a time from blocks that the journal or the controller allots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from logd.broker.coordinators.producer_id_blocks import BlocksAhead, ProducerIdBlocks, StoredBlocks
from logd.metadata.image import ClusterImage
from logd.metadata.store import MetadataStore

PREFETCH_AT = 0.9
"""How much of a block is given out when the next one is asked for, as by Apache Kafka."""


class ProducerIds:
    """A source of producer ids that never repeats an id, also over restarts; for the blocks see
    `StoredBlocks`.

    `stored` is notified of ids that are in logs. It is None in a cluster, where the controller has allotted
    all ids. `prefetch` is called when a block is nearly used up.
    """

    def __init__(
        self,
        blocks: ProducerIdBlocks,
        *,
        stored: StoredBlocks | None = None,
        prefetch: Callable[[], None] | None = None,
    ) -> None:
        self._blocks = blocks
        self._stored = stored
        self._prefetch = prefetch
        self._next = self._end = 0
        self._prefetch_at = -1
        self._allocating = asyncio.Lock()

    @classmethod
    def stored(cls, store: MetadataStore, image: ClusterImage) -> ProducerIds:
        """Return the ids of a standalone broker."""
        blocks = StoredBlocks(store, image)
        return cls(blocks, stored=blocks)

    @classmethod
    def of_cluster(cls, blocks: BlocksAhead) -> ProducerIds:
        """Return the ids of a broker in a cluster; the creator of `blocks` stops them."""
        return cls(blocks, prefetch=blocks.prefetch)

    def met(self, producer_id: int) -> None:
        """Note an id that is in use, whichever broker handed it out."""
        if self._stored is not None:
            self._stored.met(producer_id)
            if self._next <= producer_id:
                self._end = self._next  # given by another broker: our block may hold it

    def unread(self, what: str) -> None:
        """Note what may hold ids and cannot be read. Call it before `all_met`."""
        if self._stored is not None:
            self._stored.unread(what)

    def all_met(self) -> None:
        """Allow ids to be handed out: all logs were searched for ids."""
        if self._stored is not None:
            self._stored.all_met()

    async def take(self) -> int:
        """Return a producer id that was never handed out.

        Raises KafkaError(COORDINATOR_NOT_AVAILABLE) if none can be stored, and
        KafkaError(COORDINATOR_LOAD_IN_PROGRESS) until `all_met`.
        """
        await self.reserve()
        return self.take_reserved()

    @property
    def has_reserved(self) -> bool:
        """True if `take_reserved` has an id at hand."""
        return self._next != self._end

    async def reserve(self) -> None:
        """Have an id at hand for `take_reserved`, until the next await. KafkaError as `take`."""
        while self._next == self._end:
            async with self._allocating:
                if self._next == self._end:
                    first, last = await self._blocks.next_block()
                    self._next, self._end = first, last + 1
                    self._prefetch_at = first + int((last + 1 - first) * PREFETCH_AT)

    def take_reserved(self) -> int:
        """Return a producer id that was never handed out; call it right after `reserve`."""
        assert self._next < self._end, "no producer id was reserved"
        producer_id = self._next
        self._next += 1
        if self._prefetch is not None and producer_id >= self._prefetch_at:
            self._prefetch()
        return producer_id
