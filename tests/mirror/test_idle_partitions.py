from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client import Client, TopicPartition
from mirror.link import Link
from mirror.offsets import OffsetSync
from mirror.partition import PartitionCopy
from tests.kafka_client.fake_broker import FakeBroker
from tests.mirror.pair import Pair, produce
from tests.mirror.test_quarantine import HalfStuckMirror, HalfStuckTarget
from tests.support.depth import deep

NewName = Callable[[], str]


@deep
async def test_offset_syncs_are_thought_of_where_something_was_acked(
    pair: Pair, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a second every partition of the link was looked at, active or not."""
    topic, looked_at = new_name(), set[TopicPartition]()
    sync = PartitionCopy.sync

    def noted(copy: PartitionCopy) -> OffsetSync | None:
        looked_at.add(copy.tp)
        return sync(copy)

    monkeypatch.setattr(PartitionCopy, "sync", noted)
    await pair.create(topic, 20)
    await produce(pair.dc1, topic, {7: [[(0, None, b"a", ())]]})
    async with Link(pair.link(topic)) as link:
        await link.run(until_caught_up=True)
        assert sum(status.records for status in link.status().values()) == 1
    assert looked_at == {TopicPartition(topic, 7)}


@deep
async def test_a_turn_passes_over_partitions_that_only_wait_for_their_acks(
    pair: Pair, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns do not look at partitions that wait for acknowledgements, where once they looked at all."""
    topic, looked_at = new_name(), set[TopicPartition]()
    take_acks = PartitionCopy.take_acks

    def noted(copy: PartitionCopy, now: float) -> int:
        looked_at.add(copy.tp)
        return take_acks(copy, now)

    await pair.create(topic, 2)
    batches = [[(0, None, b"%d" % number, ())] for number in range(HalfStuckMirror.RECORDS)]
    await produce(pair.dc1, topic, {0: batches, 1: batches})
    async with FakeBroker() as broker, Client(pair.dc1) as source:
        HalfStuckTarget(broker)
        async with Client(broker.bootstrap) as client:
            mirror = HalfStuckMirror(source, client, topic)
            await mirror.source.open()
            await mirror.copy_the_good_one()
            stuck = mirror.source.copies[mirror.stuck]
            while len(stuck.in_flight) < HalfStuckMirror.RECORDS:
                await mirror.source.copy()
            monkeypatch.setattr(PartitionCopy, "take_acks", noted)
            await produce(pair.dc1, topic, {1: batches[:1]})
            while mirror.source.copies[mirror.good].records == HalfStuckMirror.RECORDS:
                await mirror.source.copy()
            await mirror.source.close()
    assert looked_at == {mirror.good}
