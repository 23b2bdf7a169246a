"""Tests of deletions and markers that compaction removes: the removal offset, what it waits for, and its
file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka_client.topic_partition import TopicPartition
from logd.storage.checkpoints import encode_lines, encode_offsets
from logd.storage.names import CLEANER_OFFSETS, REMOVAL_OFFSET
from logd.storage.removals import Removals

MARKER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0, "leader_epoch": 0}
FACTS: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}


def age(keyed: Any) -> list[int]:
    """Clean once, wait for delete.retention.ms, and clean again. Return the removal offsets reported for the
    groups.
    """
    keyed.roll()
    keyed.compact()
    keyed.now += 1000
    return again(keyed)


def again(keyed: Any) -> list[int]:
    keyed.append(("tick", str(keyed.now)))
    keyed.roll()
    groups, done, compaction = keyed.round()
    for cleaned in groups:
        swap = keyed.log.compaction.start_swap(compaction, cleaned)
        assert swap.prepare()
        keyed.log.compaction.finish_swap(swap).run()
    keyed.first_dirty = done.first_dirty
    return [cleaned.removal_offset for cleaned in groups]


def deletions(keyed: Any) -> list[int]:
    return [offset for offset, _, value in keyed.records() if value is None]


def markers(keyed: Any) -> list[int]:
    return [header.base_offset for header, _ in keyed.batches() if header.is_control and header.count]


def test_deletions_that_go_are_told(keyed: Any) -> None:
    keyed.append(("a", "1"), ("b", "1"))
    keyed.append(("c", "1"), ("a", None), ("d", "1"))
    keyed.append(("b", "2"))
    assert age(keyed)[-1] == 4
    assert not deletions(keyed)


def test_what_only_gives_way_to_a_later_record_is_not_told(keyed: Any) -> None:
    """Records that give way to later ones raise no removal offset: a replica that lags
    gets the later ones.
    """
    keyed.append(("a", "1"), ("b", None))
    keyed.append(("a", "2"), ("b", "1"))
    assert set(age(keyed)) == {0}


def test_deletions_stay_above_where_a_replica_is(keyed: Any) -> None:
    keyed.append(("a", "1"), ("b", "1"))
    keyed.append(("a", None))
    keyed.append(("b", None))
    keyed.removable_to = 3
    assert age(keyed)[-1] == 3
    assert deletions(keyed) == [3]
    keyed.removable_to = 4
    assert again(keyed)[-1] == 4
    assert not deletions(keyed)


def test_markers_that_go_are_told_and_stay_above_where_a_replica_is(keyed: Any) -> None:
    keyed.append(("a", "1"))
    keyed.append(("b", "lost"), base_sequence=0, **FACTS)
    keyed.log.writer.append_marker(commit=False, now_ms=keyed.now, **MARKER)
    keyed.append(("c", "1"), base_sequence=1, **FACTS)
    keyed.log.writer.append_marker(commit=True, now_ms=keyed.now, **MARKER)
    keyed.roll()
    keyed.compact()  # the records go, their markers are known to be of nothing in the next round
    keyed.removable_to = 2
    age(keyed)
    assert set(again(keyed)) == {0}
    assert markers(keyed) == [2, 4]
    keyed.removable_to = 3
    assert again(keyed)[-1] == 3
    assert markers(keyed) == [4]


# On the disk


def test_it_outlives_a_restart(keyed: Any) -> None:
    removals = keyed.log.removals
    assert keyed.log.removal_offset == 0
    removals.raise_to(7)
    removals.raise_to(5)
    keyed.log.compaction.save_removals()
    keyed.append(*[("a", "1")] * 20)
    assert keyed.reopen().removal_offset == 7


def test_nothing_is_written_for_a_log_that_was_never_compacted(keyed: Any) -> None:
    keyed.append(("a", "1"))
    keyed.reopen(clean=True)
    assert not (keyed.log_path / REMOVAL_OFFSET).exists()
    assert keyed.log.removal_offset == 0


@pytest.mark.parametrize("checkpoint", [None, "3 4", "nonsense"])
def test_what_somebody_else_has_compacted_may_lack_anything(keyed: Any, checkpoint: str | None) -> None:
    """Apache Kafka, an earlier release, a broker that was alone: none of them says what it removes."""
    keyed.append(*[("a", str(number)) for number in range(10)])
    keyed.kill()
    if checkpoint is not None:
        (keyed.log_path / REMOVAL_OFFSET).write_bytes(encode_lines([checkpoint]))
    (keyed.path / CLEANER_OFFSETS).write_bytes(encode_offsets({TopicPartition("t", 0): 6}))
    assert keyed.open().removal_offset == 6


def test_what_this_broker_has_compacted_lacks_what_it_says(keyed: Any) -> None:
    keyed.append(*[("a", str(number)) for number in range(10)])
    keyed.kill()
    (keyed.log_path / REMOVAL_OFFSET).write_bytes(encode_lines(["3 6"]))
    (keyed.path / CLEANER_OFFSETS).write_bytes(encode_offsets({TopicPartition("t", 0): 6}))
    assert keyed.open().removal_offset == 3


def test_a_checkpoint_beyond_the_log_says_no_more_than_the_log(tmp_path: Path) -> None:
    assert Removals.read(tmp_path, 100, 10).offset == 10


def test_saving_again_writes_nothing(keyed: Any) -> None:
    keyed.log.removals.raise_to(7)
    keyed.log.compaction.save_removals()
    before = os.stat(keyed.log_path / REMOVAL_OFFSET)
    keyed.log.compaction.save_removals()
    assert os.stat(keyed.log_path / REMOVAL_OFFSET).st_ino == before.st_ino


def test_a_deleted_log_is_left_alone(keyed: Any) -> None:
    log = keyed.log
    log.removals.raise_to(7)
    keyed.folder.delete_log("t", 0)
    log.compaction.save_removals()
    assert not (keyed.log_path / REMOVAL_OFFSET).exists()
    keyed.folder.create_log("t", 0, topic_id=bytes(16), config=keyed.config, now_ms=keyed.now)
    assert keyed.log.removal_offset == 0
