"""What the shells around the coordinators share: the partitions of an internal topic, each loaded once."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from typing import ClassVar, Generic, Protocol, TypeVar

from logd.broker.catalog import TopicCatalog
from logd.broker.rounds import PAUSE_AFTER_MISTAKE_S, Rounds, report
from logd.broker.topic import Topic
from logd.errors import ErrorCode, KafkaError
from logd.storage import Log
from logd.topic_partition import TopicPartition


class CoordinatorPartition(Protocol):
    """One partition of the internal topic at work."""

    index: int

    def load_if_empty(self) -> bool:
        """A partition without records is ready at once; whether it is ready."""

    async def load(self) -> None:
        """Replay the partition. MillstreamError when it cannot be read."""

    def close(self) -> object:
        """Stop coordinating."""


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
        self._resigned: set[int] = set()
        self._rounds = Rounds()
        self._loads: set[asyncio.Task[None]] = set()
        """Loads that a request brought forward."""

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
            if index in self._resigned:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{index} has another coordinator")
            found = self._partitions[index] = self._new_partition(index)
            if not found.load_if_empty():
                load = self._rounds.spawn(self._load(found))
                self._loads.add(load)
                load.add_done_callback(self._loads.discard)
        return found

    def resign(self) -> None:
        """Coordinate nothing any more, as if other brokers had taken over; requests are refused, those that
        wait are answered so, until `elected`.
        """
        topic = self._catalog.topics.get(self.topic)
        self._resigned.update(range(len(topic.partitions) if topic is not None else 0))
        for partition in tuple(self._partitions.values()):
            self._let_go(partition)

    def elected(self) -> None:
        """Coordinate again, by what the log says."""
        self._resigned.clear()

    async def _load_all(self) -> None:
        """One after the other; a request brings its own partition forward. Returns when all are."""
        topic = self._catalog.topics.get(self.topic)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition is None or index in self._partitions:
                continue
            try:
                found = self._partitions[index] = self._new_partition(index)
            except KafkaError as error:
                report(f"{self.topic}-{index} cannot be loaded", error)  # it went offline meanwhile
                continue
            if not found.load_if_empty():
                await self._load(found)
        while self._loads:
            await asyncio.wait(self._loads)

    async def _load(self, partition: P) -> None:
        try:
            stored = self._catalog.partitions.get(TopicPartition(self.topic, partition.index))
            if stored is not None:
                await self._read_in(stored.log)
            await partition.load()
        except Exception as error:
            # Its next request tries again.
            report(f"{self.coordinates} of partition {partition.index} cannot be loaded", error)
            self._let_go(partition)

    @contextlib.contextmanager
    def _reloading(self, partition: P) -> Iterator[None]:
        """Wraps a round's work on one partition: a failure is reported, and does not end the round."""
        try:
            yield
        except KafkaError as error:
            self._report(partition, error)  # refused as a whole: nothing has changed
        except Exception as error:
            self._reload(partition, error)

    def _reload(self, partition: P, error: Exception) -> None:
        """Load the partition again: work on it broke off half-way, so its state may differ from its log."""
        self._report(partition, error)
        if self._let_go(partition):
            self._rounds.spawn(self._open_again(partition.index))

    async def _open_again(self, index: int) -> None:
        """Load it again after a pause, so that one that always fails costs little.

        A request loads it at once.
        """
        await asyncio.sleep(PAUSE_AFTER_MISTAKE_S)
        with contextlib.suppress(KafkaError):  # offline: requests for it are refused
            self._open(index)

    def _report(self, partition: P, error: Exception) -> None:
        report(f"{self.coordinates} of partition {partition.index}", error)

    def _let_go(self, partition: P) -> bool:
        """Close a partition whose state differs from its log; whether it was still in use."""
        is_at_work = self._partitions.get(partition.index) is partition
        if is_at_work:
            del self._partitions[partition.index]
        try:
            partition.close()
        except Exception as error:
            report(f"closing {self.coordinates} of partition {partition.index}", error)
        return is_at_work
