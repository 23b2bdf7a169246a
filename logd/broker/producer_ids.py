"""Producer ids: blocks from the metadata store, one id at a time to whoever asks."""

from __future__ import annotations

import asyncio
import logging

from logd.errors import ErrorCode, KafkaError
from logd.metadata.found import beyond, beyond_unread
from logd.metadata.image import PRODUCER_ID_BLOCK, ClusterImage
from logd.metadata.store import MetadataStore

WAIT_S = 1.0
"""How long a request for an id waits for ``__transaction_state`` to be read, before its client has to retry.
"""

log = logging.getLogger("logd.broker")


class ProducerIds:
    """Never gives an id twice, over restarts too: a block is stored as used before its first id is given.

    The store may not know all: Apache Kafka, if it ran over these folders, gave ids too, which stand in the
    logs and in ``__transaction_state``. `met` notes those, and no id is given before `all_met`. `unread`
    notes logs that cannot be read: the ids then leap beyond all that may stand in them. To withhold them
    until it is readable would leave producers without a broker for as long as one folder of many is away.
    """

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self._store = store
        self._image = image
        self._next = self._end = 0
        self._allocating = asyncio.Lock()
        self._highest_met = -1
        self._all_met = asyncio.Event()
        self._unread: list[str] = []

    def met(self, producer_id: int) -> None:
        """Note an id that is in use, whoever gave it out."""
        self._highest_met = max(self._highest_met, producer_id)
        if self._next <= producer_id:
            self._end = self._next  # given by another broker: our block may hold it

    def unread(self, what: str) -> None:
        """Note what may hold ids and cannot be read. Call it before `all_met`."""
        self._unread.append(what)

    def all_met(self) -> None:
        """All logs were searched for ids: from now on ids can be given."""
        self._all_met.set()

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
                    await self._allocate()

    def take_reserved(self) -> int:
        """A producer id that was never given; call it right after `reserve`."""
        assert self._next < self._end, "no producer id was reserved"
        taken = self._next
        self._next += 1
        return taken

    async def _allocate(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._all_met.wait()
        except TimeoutError:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "producer ids in use are still being read"
            ) from None
        leaps = beyond_unread if self._unread else beyond
        start = leaps(self._image.next_producer_id, (self._highest_met,))
        change = {"type": "producer-ids", "next": start + PRODUCER_ID_BLOCK}
        try:
            await self._store.write([change])
        except OSError as error:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"producer ids not stored: {error}"
            ) from error
        self._image.apply(change)
        if self._unread:
            log.warning(
                "producer ids go on from %d, so that none is given that stands in what could not be read: "
                "%s. New producers need nothing else; mend it and restart for those who had their ids",
                start,
                ", ".join(self._unread),
            )
            self._unread.clear()
        self._next, self._end = start, start + PRODUCER_ID_BLOCK
