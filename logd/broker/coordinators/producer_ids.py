"""Producer ids: blocks from wherever the cluster keeps them, one id at a time to whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from logd.broker.coordinators.producer_id_blocks import BlocksAhead, ProducerIdBlocks, StoredBlocks
from logd.metadata.image import ClusterImage
from logd.metadata.store import MetadataStore

PREFETCH_AT = 0.9
"""How much of a block is given out when the next one is asked for, as by Apache Kafka."""


class ProducerIds:
    """Never gives an id twice, over restarts too; what blocks have to do with that, see `StoredBlocks`.

    `found` is told of ids that stand in logs; without it they do not matter, since a controller gave them.
    `prefetch` is called when a block comes to its end.
    """

    def __init__(
        self,
        blocks: ProducerIdBlocks,
        *,
        found: StoredBlocks | None = None,
        prefetch: Callable[[], None] | None = None,
    ) -> None:
        self._blocks = blocks
        self._found = found
        self._prefetch = prefetch
        self._next = self._end = 0
        self._prefetch_at = -1
        self._allocating = asyncio.Lock()

    @classmethod
    def stored(cls, store: MetadataStore, image: ClusterImage) -> ProducerIds:
        """Those of a single node."""
        blocks = StoredBlocks(store, image)
        return cls(blocks, found=blocks)

    @classmethod
    def of_cluster(cls, blocks: BlocksAhead) -> ProducerIds:
        """Those of a broker in a cluster; whoever made `blocks` stops them."""
        return cls(blocks, prefetch=blocks.prefetch)

    def met(self, producer_id: int) -> None:
        """Note an id that is in use, whoever gave it out."""
        if self._found is not None:
            self._found.met(producer_id)
            if self._next <= producer_id:
                self._end = self._next  # given by another broker: our block may hold it

    def unread(self, what: str) -> None:
        """Note what may hold ids and cannot be read. Call it before `all_met`."""
        if self._found is not None:
            self._found.unread(what)

    def all_met(self) -> None:
        """All logs were searched for ids: from now on ids can be given."""
        if self._found is not None:
            self._found.all_met()

    async def take(self) -> int:
        """A producer id that was never given.

        KafkaError: COORDINATOR_NOT_AVAILABLE when none can be stored, COORDINATOR_LOAD_IN_PROGRESS.
        """
        await self.reserve()
        return self.take_reserved()

    @property
    def has_reserved(self) -> bool:
        """Whether `take_reserved` has an id at hand."""
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
        """A producer id that was never given; call it right after `reserve`."""
        assert self._next < self._end, "no producer id was reserved"
        taken = self._next
        self._next += 1
        if self._prefetch is not None and taken >= self._prefetch_at:
            self._prefetch()
        return taken
