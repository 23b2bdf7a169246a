"""Foreign clients that work on one cluster at a time, so that a fault is one for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from logd.broker.coordinators.coordinator import partition_for
from tests.faults.cluster.audit import assert_written, count_of, settle
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.foreign import ForeignClient, ForeignReader, ForeignWriter
from tests.faults.cluster.writers import PARTITIONS
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

RECORDS_BETWEEN = 20
"""In each partition."""
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
"""Replicas of each topic's partitions: a partition's leader is the same in all topics, also after faults."""
OFFSETS_TOPIC, OFFSETS_PARTITIONS = "__consumer_offsets", 50


class AtWork:
    """A client's writer and its reader, with a topic and a group of their own."""

    def __init__(self, cluster: Cluster, client: ForeignClient, folder: Path) -> None:
        self._cluster = cluster
        self._client = client
        # Made beforehand: aiokafka may forget the leader of a topic that comes after it began.
        self.topic = cluster.create_topic_on(f"{client.name}-records", *REPLICAS)
        self.group = _group_of(client.name)
        self._stack = ExitStack()
        writer = ForeignWriter(client, cluster.bootstrap, self.topic, folder / f"{client.name}-writer.log")
        self._writer = self._stack.enter_context(writer)
        log = folder / f"{client.name}-reader.log"
        reader = ForeignReader(client, cluster.bootstrap, self.topic, self.group, log)
        self._reader = self._stack.enter_context(reader)

    def go_on(self) -> None:
        """Wait until more is acknowledged, read and told to be committed, in each partition."""
        before = self._counts()
        targets = {what: count + RECORDS_BETWEEN for what, count in before.items()}

        def has_gone_on() -> bool:
            assert not self._writer.failed, self._writer.failed[0]
            self._reader.check()
            counts = self._counts()
            return all(counts[what] >= target for what, target in targets.items())

        try:
            wait_for(has_gone_on)
        except AssertionError as error:
            error.add_note(f"{self._client.name} came from {before} to {self._counts()}")
            raise

    def _counts(self) -> Mapping[tuple[str, int], int]:
        reader, counts = self._reader, {}
        for partition in range(PARTITIONS):
            counts["acknowledged", partition] = self._writer.counts[partition]
            counts["read", partition] = len(reader.numbers[partition])
            if self._client.tells_commits:
                counts["committed", partition] = reader.committed.get(partition, 0)
        return counts

    def reopen(self) -> None:
        """Have the reader leave its group, and begin again where that has come to."""
        self._reader.reopen()

    def finish(self) -> None:
        """Have it come to its end: what was acknowledged is there, read and committed."""
        settle(self._cluster, self._writer)
        assert_written(self._cluster, self._writer)
        self._reader.comes_to(count_of(self._cluster, self._writer))
        self._stack.close()
        self._assert_read()
        ends = {partition: len(numbers) for partition, numbers in self._reader.numbers.items()}
        assert self._committed_offsets() == ends
        if self._client.tells_commits:
            assert self._reader.committed == ends
        print(f"{self._client.name}: {self._writer.sent} records")

    def _assert_read(self) -> None:
        """Check that the reader has read each record where the writer was told that it is."""
        for number, (partition, offset) in self._writer.acknowledged.items():
            assert offset is None or self._reader.numbers[partition][offset] == number
        read = {number for numbers in self._reader.numbers.values() for number in numbers.values()}
        assert read == set(range(self._writer.sent))

    def _committed_offsets(self) -> Mapping[int, int]:
        """Return the committed offsets by the group's coordinator."""
        topic_request = OffsetFetchRequestTopic(name=self.topic, partition_indexes=list(range(PARTITIONS)))
        with RawClient(self._cluster.brokers[self._cluster.coordinator(self.group)].port) as raw:
            answer = raw.request(OffsetFetchRequest(group_id=self.group, topics=[topic_request]), 5)
        (topic,) = answer.topics
        return {each.partition_index: each.committed_offset for each in topic.partitions}

    def give_up(self, error: BaseException) -> None:
        """Kill its programs."""
        self._stack.__exit__(type(error), error, error.__traceback__)


class SideBySide:
    """`failures`: of clients that have failed, which are left out from then on, while the others go on."""

    def __init__(self, cluster: Cluster, clients: Mapping[str, ForeignClient], folder: Path) -> None:
        self._cluster = cluster
        self.failures: dict[str, Exception] = {}
        self._at_work: dict[str, AtWork] = {}
        for name, client in clients.items():
            try:
                self._at_work[name] = AtWork(cluster, client, folder)
            except Exception as error:
                self.failures[name] = error

    def work_through_failovers(self) -> None:
        """Take all clients through the failovers, to their ends."""
        try:
            self._all_do(AtWork.go_on)
            self._lose(lambda: {self._cluster.leader(each.topic) for each in self._at_work.values()})
            self._lose(
                lambda: {self._cluster.coordinator(each.group) for each in self._at_work.values()},
                AtWork.reopen,
                AtWork.go_on,
            )
            self._lose(lambda: {self._cluster.controller})
            for id_ in self._cluster.brokers:
                self._cluster.restart(id_)
                self._all_do(AtWork.go_on)
                self._in_sync()
            self._all_do(AtWork.finish)
        except BaseException as error:
            for each in self._at_work.values():
                each.give_up(error)
            raise

    def _lose(self, who: Callable[[], set[int]], *then: Callable[[AtWork], None]) -> None:
        """Kill the broker, or one after the other where it is not the same for all clients."""
        for victim in who():
            self._cluster.kill(victim)
            for each in (AtWork.go_on, *then):
                self._all_do(each)
            self._cluster.start(victim)
            self._in_sync()

    def _in_sync(self) -> None:
        for topic in (*(each.topic for each in self._at_work.values()), OFFSETS_TOPIC):
            wait_for(lambda topic=topic: self._cluster.is_in_sync(topic))  # type: ignore[misc]

    def _all_do(self, what: Callable[[AtWork], None]) -> None:
        """Do the same with all clients at once."""
        names = list(self._at_work)
        with ThreadPoolExecutor(len(names) or 1) as pool:
            list(pool.map(lambda name: self._does(name, what), names))

    def _does(self, name: str, what: Callable[[AtWork], None]) -> None:
        try:
            what(self._at_work[name])
        except Exception as error:
            error.add_note(self._cluster.report())
            self.failures[name] = error
            self._at_work.pop(name).give_up(error)


def _group_of(client: str) -> str:
    """Return a group of this client in one partition of the offsets topic: all groups have the same
    coordinator.
    """
    names = (f"{client}-readers-{number}" for number in itertools.count())
    return next(name for name in names if partition_for(name, OFFSETS_PARTITIONS) == 0)
