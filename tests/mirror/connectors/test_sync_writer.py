"""When offset syncs are due, with the cases of Kafka's MirrorSourceTaskTest and OffsetSyncWriterTest."""

import asyncio

import pytest

from kafka_client import TopicPartition
from mirror.connectors.sync_writer import PartitionState, SyncWriter
from mirror.records.offset_sync import parse_offset_sync

TP = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("lag", "updates"),
    [
        (
            50,
            [
                (0, 100, True),  # the first sync of this life
                (2, 102, True),  # a skipped upstream record
                (3, 152, False),
                (4, 153, True),  # too far from the last sync
                (5, 154, False),
                (6, 203, False),
                (7, 204, True),
                (2, 206, True),  # upstream went back
                (3, 207, False),
                (4, 3, True),  # downstream went back
                (5, 4, False),
            ],
        ),
        (0, [(0, 100, True), (2, 102, True), (3, 153, True), (4, 154, True), (5, 155, True)]),
    ],
)
def test_a_sync_is_due(lag, updates):
    state = PartitionState(lag)
    assert [state.update(up, down) for up, down, _ in updates] == [due for _, _, due in updates]


def test_a_batch_counts_by_both_ends():
    state = PartitionState(100)
    assert state.update(0, 0, end=(9, 9))
    assert not state.update(10, 10, end=(109, 109))
    assert state.update(110, 110, end=(119, 119))
    assert state.update(125, 120, end=(129, 124))  # upstream has a gap


class Producer:
    """A producer whose acknowledgements the test gives."""

    def __init__(self):
        self.sent = []

    async def send(self, topic, partition, records):
        ((_, key, value, _),) = records
        future = asyncio.get_running_loop().create_future()
        self.sent.append((parse_offset_sync(key, value)[1:], future))
        return future

    @property
    def offsets(self):
        return [offsets for offsets, _ in self.sent]


@pytest.fixture
def producer(monkeypatch):
    made = Producer()
    monkeypatch.setattr("mirror.connectors.sync_writer.BatchProducer", lambda *_, **__: made)
    return made


async def test_the_last_record_of_an_idle_partition_gets_a_sync_when_offsets_are_committed(producer):
    writer = SyncWriter(None, "syncs", 100)
    writer.copied(TP, (0, 5), (9, 14))
    writer.copied(TP, (10, 15), (19, 24))
    await writer.fire()
    assert producer.offsets == [(0, 5)]
    writer.promote_delayed()
    await writer.fire()
    assert producer.offsets == [(0, 5), (19, 24)]


async def test_syncs_in_flight_are_bounded_and_a_newer_one_replaces_a_waiting_one(producer):
    writer = SyncWriter(None, "syncs", 100)
    for n in range(10):
        writer.copied(TopicPartition("t", n), (0, 0), (0, 0))
    await writer.fire()
    writer.copied(TP, (5, 1), (5, 1))
    writer.copied(TP, (9, 2), (9, 2))
    await writer.fire()
    assert writer.in_flight == 10 == len(producer.sent)
    for _, future in producer.sent:
        future.set_result(0)
    await asyncio.sleep(0)
    await writer.fire()
    assert producer.offsets[10:] == [(9, 2)]
