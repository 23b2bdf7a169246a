"""What the shells around the coordinators share: the partitions of an internal topic, each loaded once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import ClassVar, Generic, Protocol, TypeVar

from logd.broker.catalog import TopicCatalog
from logd.errors import MillstreamError
from logd.storage import Log

log = logging.getLogger("logd.broker")


class CoordinatorPartition(Protocol):
    """One partition of the internal topic at work."""

    index: int

    def load_if_empty(self) -> bool:
        """A partition without records is ready at once; whether it is ready."""

    async def load(self) -> None:
        """Replay the partition. MillstreamError when it cannot be read."""


P = TypeVar("P", bound=CoordinatorPartition)


class Coordinator(Generic[P]):
    """Recovers partitions in the background. `read_in` has a log in memory before it is replayed."""

    topic: ClassVar[str]
    """The internal topic."""
    coordinates: ClassVar[str]
    """What it keeps, in the plural, for messages."""

    def __init__(self, catalog: TopicCatalog, read_in: Callable[[Log], Awaitable[None]]) -> None:
        self._catalog = catalog
        self._read_in = read_in
        self._partitions: dict[int, P] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def _new_partition(self, index: int) -> P:
        """A partition that has not loaded anything yet; KafkaError where there is none."""
        raise NotImplementedError

    def _open(self, index: int) -> P:
        """The partition at work; one not seen before begins to load."""
        found = self._partitions.get(index)
        if found is None:
            found = self._partitions[index] = self._new_partition(index)
            if not found.load_if_empty():
                self._spawn(self._load(found))
        return found

    async def _load_all(self) -> None:
        """One after the other; a request brings its own partition forward."""
        topic = self._catalog.topics.get(self.topic)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition is not None and index not in self._partitions:
                found = self._partitions[index] = self._new_partition(index)
                if not found.load_if_empty():
                    await self._load(found)

    async def _load(self, partition: P) -> None:
        try:
            stored = self._catalog.partitions.get((self.topic, partition.index))
            if stored is not None:
                await self._read_in(stored.log)
            await partition.load()
        except MillstreamError as error:
            # Its next request tries again.
            log.error("%s of partition %d cannot be loaded: %s", self.coordinates, partition.index, error)
            if self._partitions.get(partition.index) is partition:
                del self._partitions[partition.index]

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
