"""What the shells around the coordinators share: the partitions of an internal topic, each loaded once for
each time that this broker is elected their leader.

On a single node nobody is ever elected: then all that is held is led (`Leadership`). In a cluster whoever
applies the metadata calls `only_elected` before the start, and from then on `elected` and `resigned`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.topics.leadership import Leadership
from logd.broker.work.periodic import PAUSE_AFTER_MISTAKE_S, PeriodicTasks, report

if TYPE_CHECKING:
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.topics.topic import Topic
    from logd.storage import Log

log = logging.getLogger("logd.broker")


def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic that a group or a transactional id lives in: Java's
    `abs(hashCode) % count`.

    Java hashes UTF-16 code units, and `Utils.abs` gives 0 for the smallest int.
    """
    units = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for (unit,) in struct.iter_unpack(">H", units):
        code = (31 * code + unit) & 0xFFFFFFFF
    if code >= 0x80000000:
        code -= 0x100000000
    return (0 if code == -0x80000000 else abs(code)) % partition_count


class CoordinatorPartition(Protocol):
    """One partition of the internal topic at work."""

    index: int

    def load_if_empty(self) -> bool:
        """A partition without records is ready at once; whether it is ready."""

    async def load(self) -> None:
        """Replay the partition. MillstreamError when it cannot be read."""

    async def flushed(self) -> None:
        """Wait until what was read or appended may be answered. KafkaError: see `CoordinatorLog.flushed`."""

    def close(self) -> object:
        """Stop coordinating: whoever waits is answered, nothing is appended any more."""


P = TypeVar("P", bound=CoordinatorPartition)
R = TypeVar("R")


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
        self._leadership = Leadership()
        self._rounds = PeriodicTasks()
        self._loads: set[asyncio.Task[None]] = set()
        """Loads that a request brought forward."""
        self._elected: dict[P, None] = {}
        """What was elected and is to be loaded, one after the other, so that clients have their turn."""
        self._loading_elected: asyncio.Task[None] | None = None

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

    def check_lease(self, index: int) -> None:
        """Raise KafkaError(NOT_COORDINATOR) where another broker may coordinate a partition that is led here.

        What it has acknowledged is not known here then, so requests that only read are refused as well.
        """
        partition = self._catalog.partitions.get(TopicPartition(self.topic, index))
        if partition is not None and not partition.is_leased:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"another broker may coordinate {self.topic}-{index} by now"
            )

    def _loaded(self, index: int) -> P:
        """Return the partition, ready to use: every request comes by here.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while it is recovered, NOT_COORDINATOR.
        """
        found = self._open(index)
        self.check_lease(index)
        if not found.load_if_empty():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index} is being loaded")
        return found

    async def _read_all(self, read: Callable[[P], Iterable[R]]) -> list[R]:
        """Return what `read` gives of every partition led here, once it is committed.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is recovered, COORDINATOR_NOT_AVAILABLE
        where another broker may coordinate one. Who lists asks each broker, and retries these only.
        """
        topic = self._catalog.topics.get(self.topic)
        indexes = [
            index
            for index, partition in enumerate(topic.partitions if topic is not None else ())
            if partition is not None and self.leads(index)
        ]
        try:
            for index in indexes:
                self._open(index)  # all begin to load before the first refuses
            partitions = [self._loaded(index) for index in indexes]
            results = [result for partition in partitions for result in read(partition)]
            for partition in partitions:
                await partition.flushed()
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:
                raise
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error
        return results

    def _open(self, index: int) -> P:
        """The partition at work; one not seen before begins to load."""
        found = self._partitions.get(index)
        if found is None:
            if not self._leadership.leads(index):
                raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{index} has another coordinator")
            found = self._partitions[index] = self._new_partition(index)
            if not found.load_if_empty():
                self._load_soon(found)
        elif self._elected and found in self._elected:
            del self._elected[found]  # a request brings it forward
            self._load_soon(found)
        return found

    def _load_soon(self, partition: P) -> None:
        load = self._rounds.spawn(self._load(partition))
        self._loads.add(load)
        load.add_done_callback(self._loads.discard)

    # Leadership

    def only_elected(self) -> None:
        """Lead nothing but what was `elected`: for a broker of a cluster, before `start`."""
        self._leadership = Leadership(leads_untold=False)

    def leads(self, index: int) -> bool:
        """Whether the partition is coordinated here, loaded or not."""
        return self._leadership.leads(index)

    def elected(self, index: int, leader_epoch: int, *, complete: bool = True) -> None:
        """This broker leads the partition from `leader_epoch` on: load what the log holds now.

        Call it once the partition is held, with its leader epoch set and its log truncated, and before
        clients can write there. An epoch seen before, or an older one, changes nothing. `complete`: the
        election was clean, so that nothing that was acknowledged is missing (else producers get new ids, see
        `TxnLog`).
        """
        if not self._leadership.elected(index, leader_epoch, is_complete=complete):
            return
        self._let_go_of(index)
        try:
            found = self._partitions[index] = self._new_partition(index)
        except KafkaError as error:  # its next request tries again
            report(f"{self.topic}-{index} cannot be loaded", error)
            return
        if not found.load_if_empty():
            self._elected[found] = None
            if self._loading_elected is None or self._loading_elected.done():
                self._loading_elected = self._rounds.spawn(self._load_elected())

    def resigned(self, index: int, leader_epoch: int) -> None:
        """This broker does not lead the partition any more: whoever waits is told NOT_COORDINATOR.

        `leader_epoch` is the new leader's, or its own where there is none; an older one changes nothing.
        """
        if self._leadership.resigned(index, leader_epoch):
            self._let_go_of(index)

    def resign_all(self) -> None:
        """Coordinate nothing any more, as if other brokers had taken over, until `elect_all`: for tests."""
        topic = self._catalog.topics.get(self.topic)
        for index in range(len(topic.partitions) if topic is not None else 0):
            self.resigned(index, max(self._leadership.epoch(index), 0))

    def elect_all(self) -> None:
        """Coordinate again what was resigned, by what the log says."""
        for index in self._leadership.not_led():
            self.elected(index, self._leadership.epoch(index) + 1, complete=False)

    def _deposed(self, partition: P) -> None:
        """An append, or the wait for one, has failed because another broker leads the partition: what was
        decided here may be gone from the log, so nobody is to see it. `elected` makes it anew.
        """
        index = partition.index
        if self._partitions.get(index) is partition:
            log.warning("%s-%d is led by another broker", self.topic, index)
            self.resigned(index, max(self._leadership.epoch(index), 0))

    def _let_go_of(self, index: int) -> None:
        found = self._partitions.get(index)
        if found is not None:
            self._let_go(found)

    # Loading

    async def _load_elected(self) -> None:
        while self._elected:
            found = next(iter(self._elected))
            del self._elected[found]
            await self._load(found)

    async def _load_all(self) -> None:
        """One after the other; a request brings its own partition forward. Returns when all are."""
        topic = self._catalog.topics.get(self.topic)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition is None or index in self._partitions or not self.leads(index):
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
        self._elected.pop(partition, None)
        try:
            partition.close()
        except Exception as error:
            report(f"closing {self.coordinates} of partition {partition.index}", error)
        return is_at_work
