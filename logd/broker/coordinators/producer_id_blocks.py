"""Sources of blocks of producer ids: a standalone broker's metadata journal, or a cluster's controller."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut
from logd.broker.work.periodic import PeriodicTasks
from logd.metadata.image import PRODUCER_ID_BLOCK, ClusterImage
from logd.metadata.recovered_topics import beyond, beyond_unread
from logd.metadata.store import MetadataStore

WAIT_S = 1.0
"""How long a request for an id waits for a block; then its client has to retry."""
RETRY_FIRST_S = 0.05
RETRY_LAST_S = 1.0
"""How soon, and at the latest how late, a controller that gave no block is asked again."""

log = logging.getLogger("logd.broker")


class ProducerIdBlocks(Protocol):
    """Gives each block to one broker, once."""

    async def next_block(self) -> tuple[int, int]:
        """Return the first and the last id of a block that no other broker has.

        Raises KafkaError, ConnectionClosed, RequestTimedOut: ask again later.
        """


class StoredBlocks:
    """A source of blocks in a standalone broker's metadata journal.

    It may not know of all ids: Apache Kafka, if it ran over these directories, gave ids too, which stand in
    the logs and in ``__transaction_state``. `met` notes those, and no block is given before `all_met`.
    `unread` notes logs that cannot be read: the ids then leap beyond all that may stand in them. To withhold
    them until it is readable would leave producers without a broker for as long as one directory of many is
    away.
    """

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self._store = store
        self._image = image
        self._highest_met = -1
        self._all_met = asyncio.Event()
        self._unread: list[str] = []

    def met(self, producer_id: int) -> None:
        """Note an id that is in use, whichever broker handed it out."""
        self._highest_met = max(self._highest_met, producer_id)

    def unread(self, what: str) -> None:
        """Note what may hold ids and cannot be read. Call it before `all_met`."""
        self._unread.append(what)

    def all_met(self) -> None:
        """Allow blocks to be handed out: all logs were searched for ids."""
        self._all_met.set()

    async def next_block(self) -> tuple[int, int]:
        """See `ProducerIdBlocks`: a block is stored as used before its first id is given.

        KafkaError: COORDINATOR_NOT_AVAILABLE when that does not work, COORDINATOR_LOAD_IN_PROGRESS.
        """
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
        return start, start + PRODUCER_ID_BLOCK - 1


class BlocksAhead:
    """From a controller, one block ahead, so that mostly nobody waits for it.

    One request at a time, asked again until there is an answer: a client that does not wait so long loses
    nothing.
    """

    def __init__(self, controller: ProducerIdBlocks) -> None:
        self._controller = controller
        self._rounds = PeriodicTasks()
        self._asking: asyncio.Task[None] | None = None
        self._ahead: tuple[int, int] | None = None

    def prefetch(self) -> None:
        """Fetch the next block in advance: the block in use is nearly used up."""
        if self._ahead is None and (self._asking is None or self._asking.done()):
            self._asking = self._rounds.spawn(self._ask())

    async def next_block(self) -> tuple[int, int]:
        """See `ProducerIdBlocks`. KafkaError: COORDINATOR_LOAD_IN_PROGRESS while there is none, as by Apache
        Kafka.
        """
        if self._ahead is None:
            self.prefetch()
            assert self._asking is not None
            await asyncio.wait((self._asking,), timeout=WAIT_S)
        block, self._ahead = self._ahead, None
        if block is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the controller has not given producer ids yet"
            )
        return block

    async def stop(self) -> None:
        """Ask no more."""
        await self._rounds.stop()

    async def _ask(self) -> None:
        from kafka_client.backoff import Backoff  # only a broker in a cluster asks

        backoff = Backoff(RETRY_FIRST_S, RETRY_LAST_S)
        while self._ahead is None:
            try:
                self._ahead = await self._controller.next_block()
            except (KafkaError, ConnectionClosed, RequestTimedOut) as error:
                log.warning("no producer ids from the controller yet: %s", error)
                await asyncio.sleep(backoff.next())
