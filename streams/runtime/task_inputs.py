"""The inputs of an instance's tasks: fetches their records into the tasks' queues."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_client import Admin, BatchFetcher, Fetched, OffsetAndMetadata, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, OffsetOutOfRange
from streams.runtime.application import Application
from streams.runtime.clients import Clients
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.queue import InputQueue
from streams.runtime.task.resets import position_after_loss
from streams.runtime.task.running import RunningTask

log = logging.getLogger(__name__)


class Polled(NamedTuple):
    """The result of one fetch."""

    fetched: list[Fetched]
    lost: OffsetOutOfRange | None
    """The error if the log no longer has the next offset of an input."""
    epoch: int
    """The number of the assignment for which records were fetched."""

    @property
    def record_count(self) -> int:
        """The number of fetched records."""
        return sum(each.record_count for each in self.fetched)


class TaskInputs:
    """The input partitions of the tasks that run, with one fetcher for all of them."""

    def __init__(self, application: Application, clients: Clients, buffer: InputBuffer) -> None:
        self.queues: dict[TopicPartition, InputQueue] = {}
        self.buffer = buffer
        self._config = application.config
        names, topics = application.names, application.topology.repartition_topics
        self._own_topics = frozenset(map(names.topic, topics))
        self._client = clients.client
        self._member = clients.member
        # The reset policy of each source decides after a lost offset (see `_reset_lost`).
        self._fetcher = BatchFetcher(
            clients.client,
            isolation_level=self._config.isolation_level,
            fetch_max_wait_ms=self._config.poll_ms,
        )
        self._paused: set[TopicPartition] = set()
        self._epoch = 0

    @property
    def paused_count(self) -> int:
        """The number of inputs that are not fetched because their queues are full."""
        return len(self._paused)

    def assign(self, tasks: Iterable[RunningTask]) -> None:
        """Fetch what these tasks need from now on, each input from the end of its queue."""
        self._epoch += 1
        self.queues = {tp: queue for running in tasks for tp, queue in running.task.queues.items()}
        self._fetcher.assign(
            {
                tp: OffsetAndMetadata(queue.fetched, leader_epoch=queue.leader_epoch)
                for tp, queue in self.queues.items()
            }
        )
        self._paused = self._fetcher.paused()

    # -- fetching

    def nothing(self) -> Polled:
        """Return the result of a poll that brought no records."""
        return Polled([], None, self._epoch)

    async def poll(self, timeout_ms: int) -> Polled:
        """Wait at most ``timeout_ms`` for records of any input; `feed` the result to the queues next.

        Raises KafkaError if a topic that is not read by pattern is missing.
        """
        try:
            fetched = await self._fetcher.fetch(timeout_ms=timeout_ms)
        except OffsetOutOfRange as lost:
            return Polled([], lost, self._epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not self._are_matched():
                raise
            log.warning("%s: the group assigns again the topics that match the pattern", error.message)
            self._member.request_rejoin()
            return self.nothing()
        return Polled(fetched, None, self._epoch)

    def _are_matched(self) -> bool:
        """Return True if all inputs whose fetch failed are read by pattern: such topics may be deleted."""
        failed = [self.queues[tp] for tp in self._fetcher.failures() if tp in self.queues]
        return all(queue.source.pattern is not None for queue in failed)

    def feed(self, polled: Polled) -> None:
        """Append fetched records to their queues, and pause the inputs that have enough."""
        if polled.lost is not None:
            self._reset_lost(polled.lost)
        for each in polled.fetched:
            self._feed(each, polled.epoch)

    def _feed(self, fetched: Fetched, epoch: int) -> None:
        queue = self.queues.get(fetched.tp)
        if queue is None or epoch != self._epoch:
            return  # The inputs were assigned again since the fetch; needed records are fetched again.
        end = self._readable_end(fetched)
        if fetched.position != queue.fetched:
            log.warning(
                "%s: the log has no offset %d, going on at %d", fetched.tp, queue.fetched, fetched.position
            )
            queue.reset(fetched.position, end)
        queue.add_fetched(fetched, end)
        if self._has_enough(queue):
            self._paused.add(fetched.tp)
            self._fetcher.pause([fetched.tp])

    def _readable_end(self, fetched: Fetched) -> int:
        """Return the end of what this isolation level may read, as of the fetch."""
        committed = self._config.isolation_level == "read_committed"
        return fetched.last_stable_offset if committed else fetched.high_watermark

    def _has_enough(self, queue: InputQueue) -> bool:
        """Return True if the input's fetching is to be paused. An empty queue never has enough: its task may
        be waiting for it.
        """
        limit = self._config.buffered_records_per_partition
        return len(queue) > limit or (self.buffer.is_full and queue.has_input)

    def _reset_lost(self, lost: OffsetOutOfRange) -> None:
        """Go on after the loss of an input's next offset, as the reset of its source or the config says."""
        tp = TopicPartition(lost.topic, lost.partition)
        queue = self.queues.get(tp)
        if queue is not None and queue.fetched == lost.offset:
            self._fetcher.seek(tp, position_after_loss(queue, lost, self._config.auto_offset_reset))

    def resume(self) -> None:
        """Fetch paused inputs again if their queues have room."""
        ready = [tp for tp in self._paused if not self._has_enough(self.queues[tp])]
        self._fetcher.resume(ready)
        self._paused.difference_update(ready)

    # -- positions

    def leader_epoch(self, tp: TopicPartition, offset: int) -> int:
        """Return the leader epoch of the record before ``offset``, -1 if unknown."""
        return self._fetcher.leader_epoch(tp, offset)

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to process of each input."""
        return {tp: queue.position for tp, queue in self.queues.items()}

    async def ends(self) -> Mapping[TopicPartition, int]:
        """Ask the brokers for the log end of each input."""
        if not self.queues:
            return {}
        inner = {tp: "latest" for tp in self.queues if tp.topic in self._own_topics}
        outer = {tp: "latest" for tp in self.queues if tp.topic not in self._own_topics}
        admin = Admin(self._client)
        offsets = await admin.list_offsets(outer, isolation_level=self._config.isolation_level)
        # Records of this application's open transactions count, even before their markers are written.
        offsets |= await admin.list_offsets(inner)
        return {tp: each.offset for tp, each in offsets.items()}

    async def close(self) -> None:
        """Close the fetcher."""
        await self._fetcher.close()
