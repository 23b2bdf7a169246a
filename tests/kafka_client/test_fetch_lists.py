"""The lists that are kept by events agree with a scan of all partitions after any steps."""

from __future__ import annotations

import random

import pytest

from kafka_client import TopicPartition
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.position import FetchPosition
from kafka_client.fetcher.requested_partitions import RequestedPartitions
from kafka_client.records import build_batch
from tests.support.depth import seeds

NODES = (1, 2, 3)
BATCH = memoryview(build_batch([(0, None, b"v" * 50, ())]))
SHARE = 60


class Watcher:
    """A double of `NodeFetch`."""

    def __init__(self, node: int, buffer: FetchBuffer) -> None:
        self.requested = RequestedPartitions(node, buffer, SHARE)
        buffer.watchers[node] = self

    def note(self, tp: TopicPartition) -> None:
        self.requested.changed[tp] = None


class Life:
    """A buffer and its brokers; every `step` does something at random that a fetcher does."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.buffer = FetchBuffer(1_000)
        self.watchers = {node: Watcher(node, self.buffer) for node in NODES}
        self.steps: list[str] = []

    def step(self) -> None:
        tp = TopicPartition("t", self.random.randrange(8))
        partition = self.buffer.partitions.get(tp)
        if partition is None:
            self.steps.append(f"add {tp}")
            self.buffer.add(tp, self.random.choice([-2, 0, 5]), self.random.choice([-1, 0]))
            return
        name = self.random.choice([name for name in dir(self) if name.startswith("do_")])
        self.steps.append(f"{name} {tp}")
        getattr(self, name)(partition)

    def do_remove(self, partition: FetchPosition) -> None:
        self.buffer.remove(partition.tp)
        partition.pause()  # Who still has it may go on changing it.

    def do_remove_most(self, partition: FetchPosition) -> None:
        for tp in list(self.buffer.partitions)[2:]:
            self.buffer.remove(tp)

    def do_add_again(self, partition: FetchPosition) -> None:
        self.buffer.add(partition.tp, 0, -1)

    def do_find_leader(self, partition: FetchPosition) -> None:
        partition.found_leader(self.random.choice(NODES), self.random.randrange(3), b"i" * 16)

    def do_find_offset(self, partition: FetchPosition) -> None:
        partition.found_offset(7)

    def do_put(self, partition: FetchPosition) -> None:
        for _ in range(self.random.randrange(1, 4)):
            partition.put(
                Fetched(
                    partition.tp, partition.fetch_offset, partition.fetch_offset + 1, BATCH, record_count=1
                )
            )

    def do_take(self, partition: FetchPosition) -> None:
        self.buffer.take(self.random.choice([1, 200, 5_000]), 1_000)

    def do_take_error(self, partition: FetchPosition) -> None:
        self.buffer.take_error()

    def do_seek(self, partition: FetchPosition) -> None:
        self.buffer.seek(partition.tp, self.random.choice([-1, 3]), self.random.choice([-1, 0]))

    def do_pause(self, partition: FetchPosition) -> None:
        partition.pause()

    def do_resume(self, partition: FetchPosition) -> None:
        partition.resume()

    def do_drop(self, partition: FetchPosition) -> None:
        self.buffer.drop(partition)

    def do_park(self, partition: FetchPosition) -> None:
        partition.park(self.random.choice([None, KafkaError(ErrorCode.INVALID_REQUEST)]))

    def do_lose_leader(self, partition: FetchPosition) -> None:
        partition.lose_leader()

    def do_back_off(self, partition: FetchPosition) -> None:
        partition.back_off(self.now + self.random.randrange(1, 5))

    def do_validate(self, partition: FetchPosition) -> None:
        partition.validated()

    def do_reset(self, partition: FetchPosition) -> None:
        partition.find_offset(-2)

    def do_read_from_replica(self, partition: FetchPosition) -> None:
        if partition.node != NO_NODE:
            partition.read_from(self.random.choice(NODES), self.now + self.random.randrange(1, 5))

    def do_read_from_leader(self, partition: FetchPosition) -> None:
        partition.read_from_leader()

    def do_make_room(self, partition: FetchPosition) -> None:
        self.buffer.free_bytes()

    # --- what a look through all of them finds ---

    def check(self) -> None:
        self.now += self.random.choice([0, 0, 1])
        for _ in range(2):  # A replica's time may be over, which concerns two brokers.
            for watcher in self.watchers.values():
                watcher.requested.update(self.now)
        every = self.buffer.partitions
        assert set(self.buffer.lookups) == {tp for tp, partition in every.items() if partition.needs_lookup}
        assert set(self.buffer.ready) == {
            tp for tp, partition in every.items() if partition.buffered and not partition.paused
        }
        assert set(self.buffer.paused) == {
            tp for tp, partition in every.items() if partition.buffered and partition.paused
        }
        assert set(self.buffer.failed) == {
            tp for tp, partition in every.items() if partition.error and not partition.buffered
        }
        assert self.buffer.buffered_bytes == sum(partition.buffered_bytes for partition in every.values())
        for node, watcher in self.watchers.items():
            requested = watcher.requested
            here = {
                tp: partition
                for tp, partition in every.items()
                if partition.source == node and partition.is_fetchable
            }
            rested = {tp: partition for tp, partition in here.items() if partition.not_before <= self.now}
            share = self.buffer.share_bytes(SHARE)
            full = {tp for tp, partition in rested.items() if partition.buffered_bytes >= share}
            # Shares that shrink because partitions come are noticed with a partition's next change.
            assert full.issuperset(requested.held_back)
            assert requested.partitions.keys() == rested.keys() - requested.held_back.keys()
            assert all(partition is every[tp] for tp, partition in requested.partitions.items())
            in_time = [
                partition.replica == NO_NODE or partition.replica_until > self.now
                for partition in rested.values()
            ]
            assert all(in_time), "it is time to read from the leader again"
            due_at = requested.due_at()
            assert rested.keys() == here.keys() or (due_at is not None and due_at > self.now)


@pytest.mark.parametrize("seed", seeds(20))
def test_lists_made_from_events_are_those_of_a_look_through_all(seed: int) -> None:
    life = Life(seed)
    try:
        for _ in range(600):
            life.step()
            if life.random.random() < 0.5:
                life.check()
        life.check()
    except AssertionError as error:
        error.add_note("\n".join(life.steps[-20:]))
        raise
