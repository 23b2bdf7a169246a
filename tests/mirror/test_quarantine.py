"""Partitions that cannot go on: which, why, for how long, and that nobody else waits for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition
from kafka_client.errors import ErrorCode
from kafka_client.wire import ApiKey
from mirror.errors import (
    MirrorError,
    NotPlaced,
    RecordsLost,
    SourceRecreated,
    SourceTruncated,
    TargetNotEmpty,
)
from mirror.link import Link
from mirror.offsets import OffsetSync
from mirror.position import Position
from mirror.quarantine import Quarantine
from mirror.source import MirrorSource
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.kafka_client.fake_log import FakeLog
from tests.mirror.pair import Pair, numbered, produce
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NewName = Callable[[], str]
TP = TopicPartition("flights", 3)


def test_each_failure_in_a_row_waits_longer() -> None:
    quarantine = Quarantine(lambda: 1.0)
    waits = []
    now = 0.0
    for _ in range(12):
        failed = quarantine.put(NotPlaced(TP, "away"), now)
        waits.append(failed.retry_at - now)
        assert quarantine.due(failed.retry_at - 0.1) == []
        now = failed.retry_at
        assert quarantine.due(now) == [TP]
        quarantine.release(TP)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert quarantine.on_probation() == [TP]
    quarantine.forget(TP)
    assert quarantine.put(NotPlaced(TP, "away"), now).failures == 1


def test_what_an_operator_has_to_mend_is_given_up_at_once_and_the_rest_after_some_attempts() -> None:
    quarantine = Quarantine(lambda: 0.0)
    assert quarantine.put(RecordsLost(TP, "gone"), 0).is_given_up
    quarantine.forget(TP)
    assert [quarantine.put(NotPlaced(TP, "away"), 0).is_given_up for _ in range(3)] == [False, False, True]
    failed = quarantine.partitions[TP]
    assert (failed.reason, failed.failures, failed.since) == ("NotPlaced", 3, 0)


def test_what_is_asked_in_every_turn_is_what_a_look_through_all_partitions_finds() -> None:
    random = Random(1)
    quarantine = Quarantine(random.random)
    failed, now = set[TopicPartition](), 0.0
    for _ in range(3_000):
        tp = TopicPartition("t", random.randrange(6))
        match random.choice(["fail", "fail for good", "release", "forget", "pass time"]):
            case "fail":
                failed.add(tp)
                quarantine.put(NotPlaced(tp, "away"), now)
            case "fail for good":
                failed.add(tp)
                quarantine.put(RecordsLost(tp, "gone"), now)
            case "release":
                quarantine.release(tp)
            case "forget":
                failed.discard(tp)
                quarantine.forget(tp)
            case "pass time":
                now += random.choice([0.5, 2, 20])
        quarantined = quarantine.partitions
        assert set(quarantine.due(now)) == {tp for tp in quarantined if quarantined[tp].retry_at <= now}
        assert set(quarantine.on_probation()) == failed - quarantined.keys()
        assert quarantine.all_given_up == all(each.is_given_up for each in quarantined.values())


async def create(bootstrap: str, topic: str, **configs: str) -> None:
    async with Client(bootstrap) as client:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        await Admin(client).create_topics([NewTopic(topic, 1, 1, settings)])


@deep
async def test_a_partition_the_target_refuses_is_tried_again_while_the_others_go_on(
    pair: Pair, new_name: NewName
) -> None:
    """Other partitions go on, where once a batch too large for its remote topic ended all flows."""
    large, other = new_name(), new_name()
    large_tp, other_tp = TopicPartition(large, 0), TopicPartition(other, 0)
    await create(pair.dc2, f"dc1.{large}", max_message_bytes="1000")
    for topic in (large, other):
        await pair.create(topic)
        await produce(pair.dc1, topic, {0: [numbered(1)]})
    await produce(pair.dc1, large, {0: [numbered(1, 1, value=b"x" * 5000), numbered(1, 2)]})
    settings = replace(pair.link(f"{large},{other}"), sync_topic_configs=False)
    async with Link(settings) as link:
        running = asyncio.create_task(link.run())
        await until(lambda: link.quarantined or running.done())
        assert link.quarantined[large_tp].reason == "NotPassed"
        assert "at 1: MESSAGE_TOO_LARGE" in str(link.quarantined[large_tp].error)
        await produce(pair.dc1, other, {0: [numbered(9, 1)]})
        await until(lambda: link.status()[other_tp].records == 10 or running.done())
        async with Client(pair.dc2) as dc2:
            await Admin(dc2).incremental_alter_configs(f"dc1.{large}", {"max.message.bytes": "100000"})
        await until(lambda: large_tp in link.status() and link.status()[large_tp].position == 3)
        assert link.quarantined == {}
        link.stop()
        await running
    assert (await pair.verify(large)).equal
    assert (await pair.verify(other)).equal


@deep
async def test_a_partition_without_a_place_keeps_no_other_from_being_copied(
    pair: Pair, new_name: NewName
) -> None:
    foreign, other = new_name(), new_name()
    await create(pair.dc2, f"dc1.{foreign}")
    await produce(pair.dc2, f"dc1.{foreign}", {0: [numbered(1)]})
    for topic in (foreign, other):
        await pair.create(topic)
        await produce(pair.dc1, topic, {0: [numbered(10)]})
    with pytest.raises(TargetNotEmpty, match=foreign):
        await pair.copy(f"{foreign},{other}")
    assert (await pair.verify(other)).equal


@deep
async def test_a_remote_topic_that_cannot_be_made_keeps_no_other_from_being_copied(
    pair: Pair, new_name: NewName
) -> None:
    bad, other = new_name(), new_name()
    for topic in (bad, other):
        await pair.create(topic)
        await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(f"none-{bad}")) as link:
        topics = {
            topic.name: topic
            for topic in (await Admin(link._source).list_topics()).values()
            if topic.name in (bad, other)
        }
        long = {bad: "x" * 300, other: f"dc1.{other}"}  # no cluster takes such a name
        link._topics.name_of = lambda name: long[name]  # type: ignore[method-assign]
        refused = await link._topics.align(list(topics.values()))
    assert [(name, error.code) for name, error in refused.items()] == [
        (bad, ErrorCode.INVALID_TOPIC_EXCEPTION)
    ]
    assert await pair.copy(other) == 10


@deep
async def test_a_source_that_lost_what_was_copied_is_known_by_its_leader_epoch(
    pair: Pair, new_name: NewName
) -> None:
    """Truncated sources are recognized by the leader epoch in the sync (KIP-320).

    Once a source that was truncated and refilled with as many other records was copied on from the middle.
    The sync has the leader epoch of the last copied record: here an epoch that the source never had.
    """
    topic = new_name()
    tp = TopicPartition(topic, 0)
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    async with Link(pair.link(topic)) as link:
        sync = link._syncs.latest(tp)
        assert sync is not None
        assert sync.leader_epoch >= 0
        await link._syncs.write(sync._replace(leader_epoch=sync.leader_epoch + 7), 0)
        await link._syncs.flush()
    await produce(pair.dc1, topic, {0: [numbered(10, 10)]})
    with pytest.raises(MirrorError) as failed:
        await pair.copy(topic)
    assert type(failed.value).__name__ == "SourceTruncated"


@deep
@pytest.mark.parametrize("others", [3, 40], ids=["fewer than were copied", "more than were copied"])
def test_a_source_that_a_power_loss_truncated_is_not_copied_on(
    pair: Pair, new_name: NewName, tmp_path: Path, others: int
) -> None:
    """While the mirror is away: the source loses records that were copied, and others take their offsets."""
    topic = new_name()

    async def main(source: LogdProcess) -> None:
        ends = Pair(source.bootstrap, pair.dc2)
        await ends.create(topic)
        await produce(ends.dc1, topic, {0: [numbered(10)]})
        (segment,) = tmp_path.glob(f"data/{topic}-0/*.log")
        size = segment.stat().st_size
        await produce(ends.dc1, topic, {0: [numbered(10, 10)]})
        assert await ends.copy(topic) == 20
        source.kill()
        os.truncate(segment, size)
        source.start()
        await produce(ends.dc1, topic, {0: [numbered(others, 100)]})
        with pytest.raises(MirrorError, match=topic) as failed:
            await ends.copy(topic)
        assert type(failed.value) is (SourceTruncated if others > 10 else SourceRecreated)
        async with Client(pair.dc2) as target:
            remote = TopicPartition(f"dc1.{topic}", 0)
            assert (await Admin(target).list_offsets({remote: "latest"}))[remote].offset == 20

    with LogdProcess(tmp_path) as source:
        asyncio.run(main(source))


class Syncs:
    """Notes the syncs it is given."""

    def __init__(self) -> None:
        self.written: dict[TopicPartition, OffsetSync] = {}

    def latest(self, tp: TopicPartition) -> OffsetSync | None:
        return self.written.get(tp)

    async def write(self, sync: OffsetSync, timestamp_ms: int) -> asyncio.Future[int | None]:
        self.written[sync.tp] = sync
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        done.set_result(0)
        return done

    async def flush(self) -> None:
        pass


class HalfStuckTarget:
    """Takes the batches of topic `r`, those of partition 0 only once it `is_stuck` no more."""

    def __init__(self, broker: FakeBroker) -> None:
        self.logs = {0: FakeLog(), 1: FakeLog()}
        self.is_stuck = True
        broker.topics = {"r": {0: 1, 1: 1}}
        broker.on(ApiKey.PRODUCE, self._answer)

    def _answer(self, request: ReceivedRequest) -> bytes:
        (_, partitions), *_ = request.message.topics
        results = []
        for number, batch in partitions:
            if number == 0 and self.is_stuck:
                results.append((number, ErrorCode.NOT_ENOUGH_REPLICAS, -1))
            else:
                results.append((number, *self.logs[number].append(batch)))
        return request.produced(*results)


class HalfStuckMirror:
    """Copies both partitions of a topic of `RECORDS` large records to a `HalfStuckTarget`."""

    RECORDS = 30

    def __init__(self, source: Client, target: Client, topic: str) -> None:
        self.stuck, self.good = TopicPartition(topic, 0), TopicPartition(topic, 1)
        self.now = 1000.0
        self.failures: list[MirrorError] = []
        self.syncs = Syncs()
        syncs: Any = self.syncs
        self.source = MirrorSource(
            source,
            target,
            syncs,
            sync_interval=1,
            clock=lambda: self.now,
            on_failure=self.failures.append,
        )

    def add(self, tp: TopicPartition, position: Position) -> None:
        self.source.add(tp, TopicPartition("r", tp.partition), b"", b"", position, self.RECORDS)

    async def copy_the_good_one(self) -> None:
        """Start both partitions, and return when all records of the good one are acknowledged."""
        for tp in (self.stuck, self.good):
            self.add(tp, Position(0, 0))
        while self.source.copies[self.good].records < self.RECORDS:
            self.now += 0.01
            await self.source.copy()

    def let_go_the_stuck_one(self) -> None:
        """Release the stuck partition's answer after the time for acknowledgements is over."""
        self.source.fail_unacked()
        assert self.failures == [], "not for so long yet"
        self.now += 60
        self.source.fail_unacked()
        (failed,) = self.failures
        assert (type(failed).__name__, failed.tp) == ("NotAcked", self.stuck)
        assert list(self.source.copies) == [self.good]

    async def copy_the_stuck_one(self, offset: int) -> None:
        """Once the target takes its batches; it holds so many records."""
        sync = self.syncs.written[self.stuck]
        assert sync.producer is not None
        self.add(self.stuck, Position(offset, offset, sync.producer.after(offset)))
        while not self.source.is_at(self.stuck, self.RECORDS):
            await self.source.copy()


@deep
async def test_a_partition_the_target_does_not_acknowledge_holds_its_share_of_memory_and_is_let_go(
    pair: Pair, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches filled the memory for what is on its way, and everybody waited for room."""
    monkeypatch.setattr("mirror.source.BUFFER_MEMORY", 17 << 20)  # a request's size, and a bit
    monkeypatch.setattr("mirror.source.SHARE_MIN", 1 << 20)
    topic = new_name()
    await pair.create(topic, 2)
    big = [[(0, None, b"%d" % i + b"x" * 900_000, ())] for i in range(HalfStuckMirror.RECORDS)]
    await produce(pair.dc1, topic, {0: big, 1: big})
    async with FakeBroker() as broker, Client(pair.dc1) as source:
        target = HalfStuckTarget(broker)
        async with Client(broker.bootstrap) as client:
            mirror = HalfStuckMirror(source, client, topic)
            await mirror.source.open()
            await mirror.copy_the_good_one()
            assert mirror.source.copies[mirror.stuck].in_flight_bytes < 11 << 20
            assert mirror.source.copies[mirror.stuck].records == 0
            mirror.let_go_the_stuck_one()
            target.is_stuck = False
            await until(lambda: mirror.source.can_add(TopicPartition("r", 0)))
            await mirror.copy_the_stuck_one(len(target.logs[0].values))
            await mirror.source.close()
    assert target.logs[0].values == target.logs[1].values
    assert len(target.logs[0].values) == HalfStuckMirror.RECORDS


@deep
async def test_a_look_for_topics_that_takes_long_keeps_nothing_from_being_copied(
    pair: Pair, new_name: NewName
) -> None:
    """Copying goes on, where once it waited until the configs of all topics were described one by one."""
    topic = new_name()
    tp = TopicPartition(topic, 0)
    await pair.create(topic)
    async with Link(pair.link(topic)) as link:
        called = asyncio.Event()

        async def never(topics: object) -> dict[str, Any]:
            called.set()
            await asyncio.Event().wait()
            return {}

        link._topics.align = never  # type: ignore[assignment]
        running = asyncio.create_task(link.run())
        link._refreshed_at = 0.0
        await called.wait()
        await produce(pair.dc1, topic, {0: [numbered(10)]})
        await until(lambda: link.status()[tp].records == 10 or running.done())
        link.stop()
        await running


@deep
async def test_configs_of_many_topics_are_asked_for_in_few_requests(pair: Pair, new_name: NewName) -> None:
    prefix = new_name()
    async with Client(pair.dc1) as dc1:
        new = [NewTopic(f"{prefix}-{i:03}", 1, 1, {"retention.ms": "-1"}) for i in range(250)]
        await Admin(dc1).create_topics(new)
    async with Link(pair.link(f"{prefix}-.*")) as link:
        assert len(link.status()) == 250
        requests: list[str] = []
        for client in (link._source, link._target):
            client.request = noting(client.request, requests)  # type: ignore[method-assign]
        await link._refresh()
        assert requests.count("DescribeConfigsRequest") == 4, "two of the source, two of the target"
        assert "IncrementalAlterConfigsRequest" not in requests


def noting(request: Callable[..., Any], requests: list[str]) -> Callable[..., Any]:
    def noted(message: Any, *args: Any, **kwargs: Any) -> Any:
        requests.append(type(message).__name__)
        return request(message, *args, **kwargs)

    return noted
