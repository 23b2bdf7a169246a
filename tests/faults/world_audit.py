"""The promises of a broker after a crash, checked against what its clients were told before.

A broker that flushes before it acknowledges (`World.durable`) has all that was acknowledged or read. Each
transaction is there wholly with its offsets, or not at all, and none is left open. Any other broker has what
was written, without a gap. Its topics and settings are as they were acknowledged, and after a kill (`intact`)
so are its records and offsets.
"""

from __future__ import annotations

import asyncio

from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logd.broker.topics.topic import GROUP_OFFSETS, INTERNAL_TOPICS
from tests.faults.consumer import all_of, by_epoch, committed_of
from tests.faults.simulation import Client, SimulatedBroker
from tests.faults.world import Outcome, Part, Transaction, Where, World
from tests.faults.writers import Transactor

TRANSACTIONAL_IDS = ("tx0", "tx1")
GROUPS = ("consumers", "group-of-tx0", "group-of-tx1")
PATIENCE_S = 120.0
"""The loop's time until all transactions have to be over."""


def audit_files(world: World, broker: SimulatedBroker, *, intact: bool) -> None:
    """Look at topics and records, right after the start: nobody has written any yet. What was not sure before
    is known afterwards.
    """
    _audit_topics(world, broker)
    for topic in world.topics:
        for index in range(topic.partitions if topic.there else 0):
            where = Where(topic, index)
            partition = broker.catalog.partitions[topic.name, index]
            for epoch, some in by_epoch(partition):
                world.read(where, epoch, some)
            offset_values = all_of(partition)
            _audit_part(world, broker, where, offset_values, promised=world.durable or intact)
            part = world.part(where)
            part.acknowledged, part.reads = offset_values, {}


async def audit(world: World, broker: SimulatedBroker, *, intact: bool) -> None:
    """Look at transactions and offsets, once the coordinators have done what they have to."""
    if world.durable:
        await _finish(world, broker)
        for transaction in world.transactions:
            _audit_transaction(transaction, broker)
    await _audit_offsets(world, broker, promised=world.durable or intact)
    world.transactions.clear()


# Topics and settings


def _audit_topics(world: World, broker: SimulatedBroker) -> None:
    catalog = broker.catalog
    topic_ids = {topic.topic_id for topic in world.topics}
    for topic in world.topics:
        topic_entry = catalog.topics.get(topic.name)
        if topic.topic_id is None and topic.there is None:  # its creation was under way
            topic.there = topic_entry is not None and topic_entry.topic_id not in topic_ids
            topic.topic_id = topic_entry.topic_id if topic.there and topic_entry is not None else None
        is_there = topic_entry is not None and topic_entry.topic_id == topic.topic_id
        assert topic.there in (None, is_there), f"{topic}: acknowledged as there={topic.there}"
        topic.there = is_there
        if topic_entry is None or not is_there:
            continue
        assert topic_entry.image.partitions in (topic.partitions, topic.asked_partitions), (
            f"{topic} has shrunk"
        )
        topic.partitions, topic.asked_partitions = topic_entry.image.partitions, 0
        assert topic_entry.image.configs in (topic.configs, topic.asked_configs), (
            topic,
            topic_entry.image.configs,
        )
        topic.configs, topic.asked_configs = topic_entry.image.configs, None
        topic.busy = 0
        assert all(topic_entry.partitions) and len(topic_entry.partitions) == topic.partitions, (
            f"{topic} is half there"
        )
        for partition in topic_entry.partitions:
            assert partition is not None and partition.log.topic_id == topic.topic_id
    names = {topic.name for topic in world.topics if topic.there}
    assert catalog.topics.keys() - INTERNAL_TOPICS <= names, f"{set(catalog.topics)}, known are {names}"
    for name, topic_id in world.internal.items():
        assert catalog.topics[name].topic_id == topic_id
    setting = broker.image.broker_configs.get("", {}).get("message.max.bytes", "")
    assert setting in world.broker_configs, f"message.max.bytes={setting}"
    world.broker_configs = [setting]


# Transactions


async def _finish(world: World, broker: SimulatedBroker) -> None:
    """Have every open transaction ended: by its producer's return, or by its timeout."""
    if world.rng.random() < 0.5 and world.internal:
        for name in TRANSACTIONAL_IDS:
            await Transactor(name, world, broker, world.rng, implicit=False).begin()
    until = broker.loop.time() + PATIENCE_S
    while open_ones := [
        str(partition)
        for partition in broker.catalog.partitions.values()
        if partition.last_stable_offset < partition.high_watermark
    ]:
        assert broker.loop.time() < until, f"a transaction hangs in {open_ones}"
        await asyncio.sleep(1)


def _audit_transaction(transaction: Transaction, broker: SimulatedBroker) -> None:
    """Its records are seen in all partitions that are left, or in none."""
    visible_in: dict[bool, list[str]] = {True: [], False: []}
    for where, records in transaction.records.items():
        if not where.topic.there:
            continue
        partition = broker.catalog.partitions[where.topic.name, where.index]
        committed = committed_of(partition)
        for offset, value in records.items():
            if offset >= partition.log_start_offset:
                visible_in[committed.get(offset) == value].append(f"{where}@{offset}")
        stray = (transaction.values - set(records.values())) & {
            value for value in committed.values() if value
        }
        assert not stray, f"{transaction}: what was never acknowledged is committed in {where}"
    if transaction.outcome is Outcome.COMMITTED:
        assert not visible_in[False], f"{transaction} has lost {visible_in[False]}"
    elif transaction.outcome is Outcome.COMMIT_WANTED:
        assert not (visible_in[True] and visible_in[False]), f"{transaction}: {visible_in}"
        transaction.outcome = Outcome.COMMITTED if visible_in[True] else transaction.outcome
    else:
        assert not visible_in[True], f"{transaction} is read: {visible_in[True]}"


# Records


def _audit_part(
    world: World,
    broker: SimulatedBroker,
    where: Where,
    offset_values: dict[int, bytes | None],
    *,
    promised: bool,
) -> None:
    partition = broker.catalog.partitions[where.topic.name, where.index]
    part = world.part(where)
    start, end = partition.log_start_offset, partition.log_end_offset
    assert start <= part.start_asked, f"{where} begins at {start}, up to {part.start_asked} was deleted"
    assert list(offset_values) == list(range(start, end)), f"{where} has gaps"
    values = [value for value in offset_values.values() if value is not None]
    assert part.sent.issuperset(values), f"{where} holds what nobody sent"
    assert len(set(values)) == len(values), f"{where} holds something twice"
    expected = _expected(world, where, part)
    for offset, value in expected.items():
        if offset >= start and (promised or offset < end):
            assert offset_values.get(offset, b"nothing") == value, (
                f"{where}: offset {offset} is not {value!r:.20}"
            )


def _expected(world: World, where: Where, part: Part) -> dict[int, bytes | None]:
    return {**part.acknowledged, **part.reads}


# Offsets


async def _audit_offsets(world: World, broker: SimulatedBroker, *, promised: bool) -> None:
    if GROUP_OFFSETS not in broker.catalog.topics:
        assert not any(each.promised >= 0 for each in world.committed.values())
        return
    client = Client(broker)
    for (group, where), committed in world.committed.items():
        if not where.topic.there:
            continue
        offset = await _offset(client, group, where, stable=world.durable)
        others = {  # of topics that had this name before, which are forgotten some time
            each
            for (other_group, other), commits in world.committed.items()
            if other_group == group and other.topic.name == where.topic.name and other.index == where.index
            for each in commits.offsets
            if other is not where
        }
        what = f"{group} is at {offset} of {where}, {committed} was told"
        assert offset in (-1, *committed.offsets) or offset in others, what
        if promised and (world.durable or group == "consumers"):
            assert offset >= committed.promised or (offset in others and committed.promised < 0), what
        _audit_offsets_of_transactions(world, group, where, offset)
        committed.promised = offset if offset in committed.offsets else -1


async def _offset(client: Client, group: str, where: Where, *, stable: bool) -> int:
    topic = OffsetFetchRequestTopics(name=where.topic.name, partition_indexes=[where.index])
    group_request = OffsetFetchRequestGroup(group_id=group, topics=[topic])
    request = OffsetFetchRequest(groups=[group_request], require_stable=stable)
    until = client.broker.loop.time() + PATIENCE_S
    while True:
        (response,) = (await client.request(request, 8)).groups
        code = response.error_code or response.topics[0].partitions[0].error_code
        if code == 0:
            offset: int = response.topics[0].partitions[0].committed_offset
            return offset
        assert client.broker.loop.time() < until, f"{group} does not come to rest: error {code}"
        await asyncio.sleep(0.1)


def _audit_offsets_of_transactions(world: World, group: str, where: Where, offset: int) -> None:
    """Offsets of transactions are committed with the records, and only with them."""
    if not world.durable:
        return
    for transaction in world.transactions:
        if transaction.group != group or where not in transaction.offsets:
            continue
        its = transaction.offsets[where]
        has_topic_left = any(record_place.topic.there for record_place in transaction.records)
        if transaction.outcome is Outcome.COMMITTED:
            assert offset >= its, f"{transaction}: its offset {its} of {where} is lost, it is {offset}"
        elif transaction.outcome is not Outcome.COMMIT_WANTED or has_topic_left:
            assert offset != its, f"{transaction}: its offset {its} of {where} is committed"
