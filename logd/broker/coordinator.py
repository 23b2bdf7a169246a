"""What the shells around the coordinators share: the partitions of an internal topic, each loaded once."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import ClassVar, Generic, Protocol, TypeVar

from logd.broker.catalog import TopicCatalog
from logd.broker.topic import Topic
from logd.errors import ErrorCode, KafkaError, MillstreamError
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


class Coordinator(ABC, Generic[P]):
    """Recovers partitions in the background. `create_topic` makes an internal topic, `read_in` has a log in
    memory before it is replayed.
    """

    topic: ClassVar[str]
    """The internal topic."""
    coordinates: ClassVar[str]
    """What it keeps, in the plural, for messages."""

    def __init__(
        self,
        catalog: TopicCatalog,
        create_topic: Callable[[str], Awaitable[Topic]],
        read_in: Callable[[Log], Awaitable[None]],
    ) -> None:
        self._catalog = catalog
        self._create_topic = create_topic
        self._read_in = read_in
        self._partitions: dict[int, P] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ensure_topic(self) -> None:
        """Create the internal topic at its first use. KafkaError when that does not work."""
        if self.topic in self._catalog.topics:
            return
        try:
            await self._create_topic(self.topic)
        except KafkaError as error:
            # Somebody else asked for a coordinator at the same time.
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    @abstractmethod
    def _new_partition(self, index: int) -> P:
        """A partition that has not loaded anything yet; KafkaError where there is none."""

    def _loaded(self, index: int) -> P:
        """The partition, ready to use; KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while it is recovered."""
        found = self._open(index)
        if not found.load_if_empty():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index} is being loaded")
        return found

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

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
