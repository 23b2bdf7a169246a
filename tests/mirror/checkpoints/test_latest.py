"""Which checkpoints are written: Kafka's rules, and what its history had wrong."""

from __future__ import annotations

import pytest

from kafka_client import OffsetAndMetadata, TopicPartition
from mirror.checkpoints.latest import LatestCheckpoints, translated
from mirror.offsets import OffsetSync
from mirror.records.checkpoint import Checkpoint
from mirror.syncs.store import OffsetSyncStore

TP = TopicPartition("t", 0)
REMOTE = TopicPartition("a.t", 0)


def checkpoint(upstream: int, downstream: int) -> Checkpoint:
    return Checkpoint("g", REMOTE, upstream, downstream)


@pytest.mark.parametrize(
    ("upstream", "downstream", "is_new"),
    [
        (10, 5, False),
        (11, 5, False),
        (11, 6, True),
        (10, 6, True),
        (11, 4, False),
        (10, 4, False),
        (9, 4, True),
    ],
)
def test_a_checkpoint_goes_back_only_with_its_group(upstream: int, downstream: int, is_new: bool) -> None:
    """KAFKA-13452: after a restart older syncs are lost, and the same offset translates to a lower one."""
    latest = LatestCheckpoints()
    assert latest.new([checkpoint(10, 5)]) == [checkpoint(10, 5)], "the first of the group"
    latest.update([checkpoint(10, 5)])
    assert bool(latest.new([checkpoint(upstream, downstream)])) == is_new


def test_groups_and_partitions_are_apart() -> None:
    latest = LatestCheckpoints()
    latest.update([checkpoint(10, 5)])
    others = [
        Checkpoint("h", REMOTE, 1, 1),
        Checkpoint("g", TopicPartition("a.t", 1), 1, 1),
        Checkpoint("g", TopicPartition("a.u", 0), 1, 1),
    ]
    assert latest.new(others) == others
    assert latest.of_group("g") == {REMOTE: checkpoint(10, 5)}
    assert latest.of_group("h") == {}


def test_only_what_can_be_translated_is_a_checkpoint() -> None:
    store = OffsetSyncStore()
    store.add(OffsetSync(TP, 10, 4, 10, 4))
    store.finish_loading()
    committed = {
        TP: OffsetAndMetadata(12, "note"),
        TopicPartition("t", 1): OffsetAndMetadata(3),  # has no syncs
        TopicPartition("u", 0): OffsetAndMetadata(3),  # is not copied
    }
    store.add(OffsetSync(TopicPartition("u", 0), 1, 1, 1, 1))
    remote = {"t": "a.t"}.get
    assert translated("g", committed, store.translate, remote) == [Checkpoint("g", REMOTE, 12, 5, "note")]
    assert translated("g", {TP: OffsetAndMetadata(9)}, store.translate, remote) == [], "older than the syncs"
    assert translated("g", committed, OffsetSyncStore().translate, remote) == [], (
        "not loaded yet (KAFKA-13659)"
    )
