"""The common part of the coordinators: the partitions of an internal topic, each loaded once per election.

A standalone broker holds no elections: it leads every partition that it holds (`Leadership`). In a cluster,
`cluster.membership` calls `only_elected` before the start. From then on it calls `elected` and `resigned` as
it applies the metadata.
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
    """Return the partition of an internal topic for a group or transactional id: Java's `abs(hashCode) %
    count`.

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
    """A loaded or loading partition of the internal topic."""

    index: int

    def load_if_empty(self) -> bool:
        """Mark a partition without records as loaded. Return True if the partition is ready."""

    async def load(self) -> None:
        """Replay the partition. Raises MillstreamError if it cannot be read."""

    async def flushed(self) -> None:
        """Wait until results and appends may be sent to clients. KafkaError: see `CoordinatorLog.flushed`."""

    def close(self) -> object:
        """Stop coordinating: answer waiting requests, and append nothing more."""


P = TypeVar("P", bound=CoordinatorPartition)
R = TypeVar("R")


class Coordinator(ABC, Generic[P]):
    """The base of the group and transaction coordinators, which loads their partitions in the background.

    `create_topic` creates an internal topic. `read_in` reads a log into memory before the log is replayed.
    """

    topic: ClassVar[str]
    """The internal topic."""
    coordinates: ClassVar[str]
    """A plural noun for the contents of the partitions, such as "groups", used in log messages."""

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
        """Elected partitions that are still to be loaded, one at a time so that clients are served in
        between.
        """
        self._loading_elected: asyncio.Task[None] | None = None

    async def ensure_topic(self) -> None:
        """Create the internal topic at its first use. Raises KafkaError if that fails."""
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
        """Return a partition that has loaded nothing yet. Raises KafkaError if the log is not open here."""

    def check_lease(self, index: int) -> None:
        """Raise KafkaError(NOT_COORDINATOR) if another broker may coordinate a partition that is led here.

        The other broker's acknowledgements are unknown here, so requests that only read are refused as well.
        """
        partition = self._catalog.partitions.get(TopicPartition(self.topic, index))
        if partition is not None and not partition.is_leased:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"another broker may coordinate {self.topic}-{index} by now"
            )

    def _loaded(self, index: int) -> P:
        """Return the partition, loaded and ready to use; every request calls this.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while it is recovered, NOT_COORDINATOR.
        """
        partition = self._open(index)
        self.check_lease(index)
        if not partition.load_if_empty():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index} is being loaded")
        return partition

    async def _read_all(self, read: Callable[[P], Iterable[R]]) -> list[R]:
        """Return the results of `read` for every partition led here, once they are committed.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS while one is recovered, COORDINATOR_NOT_AVAILABLE if
        another broker may coordinate one. A client that lists asks each broker, and retries only these
        errors.
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
        """Return the loaded or loading partition; the first call begins to load it."""
        partition = self._partitions.get(index)
        if partition is None:
            if not self._leadership.leads(index):
                raise KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.topic}-{index} has another coordinator")
            partition = self._partitions[index] = self._new_partition(index)
            if not partition.load_if_empty():
                self._load_soon(partition)
        elif self._elected and partition in self._elected:
            del self._elected[partition]  # a request brings it forward
            self._load_soon(partition)
        return partition

    def _load_soon(self, partition: P) -> None:
        load = self._rounds.spawn(self._load(partition))
        self._loads.add(load)
        load.add_done_callback(self._loads.discard)

    # Leadership

    def only_elected(self) -> None:
        """Lead only partitions that were `elected`; for a broker in a cluster, before `start`."""
        self._leadership = Leadership(leads_untold=False)

    def leads(self, index: int) -> bool:
        """Return True if this broker coordinates the partition, loaded or not."""
        return self._leadership.leads(index)

    def elected(self, index: int, leader_epoch: int, *, complete: bool = True) -> None:
        """Coordinate the partition as its leader from `leader_epoch` on, and load the records in its log.

        Call it once the replica exists, with its leader epoch set and its log truncated, and before clients
        can write to it. An epoch not above the last one changes nothing. `complete`: the election was clean,
        so that no acknowledged record is missing (otherwise producers get new ids, see `TxnLog`).
        """
        if not self._leadership.elected(index, leader_epoch, is_complete=complete):
            return
        self._close_index(index)
        try:
            partition = self._partitions[index] = self._new_partition(index)
        except KafkaError as error:  # its next request tries again
            report(f"{self.topic}-{index} cannot be loaded", error)
            return
        if not partition.load_if_empty():
            self._elected[partition] = None
            if self._loading_elected is None or self._loading_elected.done():
                self._loading_elected = self._rounds.spawn(self._load_elected())

    def resigned(self, index: int, leader_epoch: int) -> None:
        """Stop coordinating the partition: waiting requests are answered with NOT_COORDINATOR.

        `leader_epoch` is the new leader's, or its own where there is none; an older one changes nothing.
        """
        if self._leadership.resigned(index, leader_epoch):
            self._close_index(index)

    def resign_all(self) -> None:
        """Coordinate nothing any more, as if other brokers had taken over, until `elect_all`: for tests."""
        topic = self._catalog.topics.get(self.topic)
        for index in range(len(topic.partitions) if topic is not None else 0):
            self.resigned(index, max(self._leadership.epoch(index), 0))

    def elect_all(self) -> None:
        """Coordinate the resigned partitions again, from the records in their logs."""
        for index in self._leadership.not_led():
            self.elected(index, self._leadership.epoch(index) + 1, complete=False)

    def _deposed(self, partition: P) -> None:
        """Resign after an append, or the wait for one, failed because another broker leads the partition.

        Decisions made here may be missing from the log, so no client may see them. `elected` loads the
        partition again.
        """
        index = partition.index
        if self._partitions.get(index) is partition:
            log.warning("%s is led by another broker", TopicPartition(self.topic, index))
            self.resigned(index, max(self._leadership.epoch(index), 0))

    def _close_index(self, index: int) -> None:
        partition = self._partitions.get(index)
        if partition is not None:
            self._close_partition(partition)

    # Loading

    async def _load_elected(self) -> None:
        while self._elected:
            partition = next(iter(self._elected))
            del self._elected[partition]
            await self._load(partition)

    async def _load_all(self) -> None:
        """Load all partitions led here, one after the other, and return when all are loaded.

        A request for a partition loads it at once.
        """
        topic = self._catalog.topics.get(self.topic)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition is None or index in self._partitions or not self.leads(index):
                continue
            try:
                loading = self._partitions[index] = self._new_partition(index)
            except KafkaError as error:
                report(f"{self.topic}-{index} cannot be loaded", error)  # it went offline meanwhile
                continue
            if not loading.load_if_empty():
                await self._load(loading)
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
            self._close_partition(partition)

    @contextlib.contextmanager
    def _reloading(self, partition: P) -> Iterator[None]:
        """Report a failure of a round's work on one partition, without ending the round."""
        try:
            yield
        except KafkaError as error:
            self._report(partition, error)  # refused as a whole: nothing has changed
        except Exception as error:
            self._reload(partition, error)

    def _reload(self, partition: P, error: Exception) -> None:
        """Load the partition again: its work stopped half-way, so its state may differ from its log."""
        self._report(partition, error)
        if self._close_partition(partition):
            self._rounds.spawn(self._open_again(partition.index))

    async def _open_again(self, index: int) -> None:
        """Load the partition again after a pause, so that one that always fails costs little.

        A request loads it at once.
        """
        await asyncio.sleep(PAUSE_AFTER_MISTAKE_S)
        with contextlib.suppress(KafkaError):  # offline: requests for it are refused
            self._open(index)

    def _report(self, partition: P, error: Exception) -> None:
        report(f"{self.coordinates} of partition {partition.index}", error)

    def _close_partition(self, partition: P) -> bool:
        """Close a partition whose state differs from its log. Return True if it was in use."""
        is_at_work = self._partitions.get(partition.index) is partition
        if is_at_work:
            del self._partitions[partition.index]
        self._elected.pop(partition, None)
        try:
            partition.close()
        except Exception as error:
            report(f"closing {self.coordinates} of partition {partition.index}", error)
        return is_at_work
