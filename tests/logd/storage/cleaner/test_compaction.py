"""Tests of which records, batches and segments of a log remain after compaction."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import pytest

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import Codec
from logd.storage import LogDirectory
from logd.storage.disk import read_slice
from logd.storage.future_log import promote
from logd.storage.log.compaction import CleanerLimits
from logd.storage.log.rolling import roll
from logd.storage.names import future_directory


def test_the_last_record_of_each_key_stays_at_its_offset(keyed: Any) -> None:
    keyed.append(("a", "1"), ("b", "1"))
    keyed.append(("a", "2"))
    keyed.append(("c", "1"), ("b", "2"), ("b", "3"))
    keyed.roll()
    done = keyed.compact()
    assert keyed.records() == [(2, "a", "2"), (3, "c", "1"), (5, "b", "3")]
    assert (done.first_dirty, done.keys, done.records_read, done.records_kept) == (6, 3, 6, 3)
    assert keyed.log.log_start_offset == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_shortened_in_every_codec_and_keep_their_ends(keyed: Any, codec: Codec) -> None:
    keyed.append(("a", "1" * 50), ("b", "2" * 500), ("a", "3" * 5000), codec=codec)
    keyed.append(("b", "4"), codec=codec)
    keyed.roll()
    keyed.compact()
    assert keyed.records() == [(2, "a", "3" * 5000), (3, "b", "4")]
    header, records = keyed.batches()[0]
    assert (header.base_offset, header.last_offset, header.count, header.codec) == (0, 2, 1, codec)
    assert records[0][1] == keyed.now + 2 == header.max_timestamp


def test_a_batch_of_which_all_stays_is_the_same_bytes(keyed: Any) -> None:
    keyed.append(("a", "1"), codec=Codec.ZSTD)
    keyed.append(("b", "1"), codec=Codec.ZSTD)
    keyed.append(("a", "2"), codec=Codec.ZSTD)
    keyed.roll()
    piece = keyed.log.reader.read(1, 100)
    before = read_slice(piece)
    keyed.compact()
    assert read_slice(keyed.log.reader.read(1, 100)) == before


def test_a_deletion_stays_for_delete_retention_after_it_was_first_cleaned(keyed: Any) -> None:
    keyed.append(("a", "1"))
    keyed.append(("a", None), ("b", "1"))
    keyed.roll()
    keyed.now += 10_000
    keyed.compact()
    assert keyed.records() == [(1, "a", None), (2, "b", "1")]
    header, records = keyed.batches()[0]
    assert header.delete_horizon == keyed.now + 1000
    assert [record[1] for record in records] == [keyed.now - 10_000, keyed.now - 9_999]
    assert header.max_timestamp == keyed.now - 9_999

    keyed.now += 999
    keyed.append(("c", "1"))
    keyed.roll()
    keyed.compact()
    assert (1, "a", None) in keyed.records()
    assert keyed.batches()[0][0].delete_horizon == header.delete_horizon

    keyed.now += 1
    keyed.append(("d", "1"))
    keyed.roll()
    keyed.compact()
    assert keyed.records() == [(2, "b", "1"), (4, "c", "1"), (6, "d", "1")]
    assert keyed.batches()[0][1][0][1] == keyed.now - 10_000 - 999, "the other record's time is what it was"


def test_a_deletions_time_begins_when_its_key_is_cleaned(keyed: Any) -> None:
    """Retention time of a deletion begins when its own key is cleaned. It began for every deletion of a batch
    if the map was full in the middle of that batch.
    """
    keyed.append(("b", "1"))
    keyed.append(("a", None), ("b", None))
    keyed.roll()
    keyed.limits = CleanerLimits(map_bytes=24 * 2, map_load_factor=0.99)
    keyed.first_dirty = 1
    assert keyed.compact().first_dirty == 2, "b is not in"
    keyed.now += 1000
    keyed.compact()
    assert (2, "b", None) in keyed.records(), "whoever read its value is still to be told"


def test_a_deletion_that_is_overwritten_goes_at_once(keyed: Any) -> None:
    keyed.append(("a", None))
    keyed.append(("a", "1"))
    keyed.roll()
    keyed.compact()
    assert keyed.records() == [(1, "a", "1")]


def test_records_without_a_key_go(keyed: Any) -> None:
    keyed.append((None, "1"), ("a", "1"))
    keyed.roll()
    keyed.compact()
    assert keyed.records() == [(1, "a", "1")]


def test_segments_become_one_and_their_indexes_lead_to_the_records(keyed: Any) -> None:
    keyed.configure(index_interval_bytes=0)
    for number in range(20):
        keyed.append((f"k{number % 5}", str(number)), ("same", str(number)))
        keyed.now += 10
        keyed.roll()
    assert len(keyed.bases()) == 21
    keyed.compact_all()
    assert len(keyed.bases()) == 2
    expected = keyed.records()
    assert len(expected) == 6
    for reopened in (False, True):
        if reopened:
            keyed.reopen(clean=True)
        assert keyed.records() == expected
        for offset, *_ in expected:
            data = read_slice(keyed.log.reader.read(offset, 1))
            assert int.from_bytes(data[:8], "big") <= offset < int.from_bytes(data[:8], "big") + 2
        position = keyed.log.reader.offset_for_timestamp(keyed.now - 20)
        assert position is not None and position.timestamp == keyed.now - 20
        assert keyed.log.segments.row[0].largest_timestamp == keyed.now - 9


def test_a_map_too_small_cleans_a_part_at_a_time(keyed: Any) -> None:
    keyed.limits = CleanerLimits(map_bytes=24 * 5, map_load_factor=0.8)
    for number in range(40):
        keyed.append((f"k{number % 10}", str(number)))
    keyed.roll()
    done = keyed.compact()
    assert (done.first_dirty, done.keys) == (4, 4)
    keyed.compact_all()
    assert keyed.first_dirty == 40
    assert keyed.records() == [(30 + key, f"k{key}", str(30 + key)) for key in range(10)]


def test_the_active_segment_and_what_is_not_flushed_stay(keyed: Any) -> None:
    keyed.append(("a", "1"), ("a", "2"))
    keyed.compact()
    assert len(keyed.records()) == 2
    roll(keyed.log, keyed.log.flusher, keyed.now)
    keyed.append(("a", "3"))
    keyed.compact()
    assert len(keyed.records()) == 3
    keyed.log.flusher.flush()
    keyed.compact()
    assert keyed.records() == [(1, "a", "2"), (2, "a", "3")]


def test_lags_and_the_dirty_ratio_say_when(keyed: Any) -> None:
    def cleanable() -> Any:
        return keyed.log.compaction.cleanable(
            keyed.first_dirty, upper_bound=keyed.log.log_end_offset, now_ms=keyed.now
        )

    keyed.append(("a", "1"))
    assert not cleanable().is_due(keyed.config)
    keyed.roll()
    assert cleanable().is_due(keyed.config)
    assert cleanable().dirty_ratio == 1.0
    keyed.compact()
    assert not cleanable().is_due(keyed.config)
    keyed.configure(min_compaction_lag_ms=500)
    keyed.append(("a", "2"))
    keyed.roll()
    assert cleanable().dirty_bytes == 0
    keyed.now += 501
    assert 0.5 < cleanable().dirty_ratio < 1
    keyed.configure(min_cleanable_dirty_ratio=0.9)
    assert not cleanable().is_due(keyed.config)
    keyed.configure(max_compaction_lag_ms=400)
    assert cleanable().is_due(keyed.config)


def test_a_lone_segment_of_which_all_stays_is_left_alone(keyed: Any) -> None:
    keyed.append(("a", "1"))
    keyed.append(("b", "1"))
    keyed.roll()
    groups, done, _ = keyed.round()
    assert not groups
    assert done.first_dirty == 2
    assert not keyed.staged()


def test_records_of_an_aborted_transaction_go_and_its_marker_later(keyed: Any) -> None:
    facts: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    keyed.append(("a", "1"))
    keyed.append(("a", "lost"), ("b", "lost"), base_sequence=0, **facts)
    marker = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0, "leader_epoch": 0}
    keyed.log.writer.append_marker(commit=False, now_ms=keyed.now, **marker)
    keyed.append(("b", "1"), base_sequence=2, **facts)
    keyed.append(("c", "1"), base_sequence=3, **facts)
    keyed.log.writer.append_marker(commit=True, now_ms=keyed.now, **marker)
    keyed.append(("b", "2"), base_sequence=4, **facts)
    assert keyed.log.reader.aborted(0, 100)
    keyed.roll()
    # The open transaction holds back the whole segment.
    keyed.compact()
    assert len(keyed.records()) == 6
    keyed.log.writer.append_marker(commit=True, now_ms=keyed.now, **marker)
    keyed.roll()
    keyed.compact()
    assert keyed.records() == [(0, "a", "1"), (5, "c", "1"), (7, "b", "2")]
    assert [h.base_offset for h, _ in keyed.batches() if h.is_control] == [3, 6, 9]
    assert keyed.log.reader.aborted(0, 100), (
        "the marker is still of a transaction with data, when it was cleaned"
    )

    def clean_again() -> list[int]:
        keyed.append(("d", str(keyed.now)))
        keyed.roll()
        keyed.compact()
        return [header.base_offset for header, _ in keyed.batches() if header.is_control]

    assert clean_again() == [3, 6, 9]
    assert not keyed.log.reader.aborted(0, 4)
    horizons = {h.base_offset: h.delete_horizon for h, _ in keyed.batches() if h.is_control}
    assert horizons[3] == keyed.now + 1000
    assert horizons[6] is None
    keyed.now += 1000
    assert clean_again() == [6, 9]
    assert keyed.reopen().producers.producers[7].epoch == 0


def test_an_active_producers_last_sequence_outlives_its_records(keyed: Any) -> None:
    for sequence in range(3):
        keyed.append(("a", str(sequence)), producer_id=1, producer_epoch=3, base_sequence=sequence)
    keyed.append(("a", "end"))
    keyed.append(("b", "end"))
    keyed.roll()
    keyed.compact()
    headers = [header for header, _ in keyed.batches()]
    assert (headers[0].base_offset, headers[0].count, headers[0].base_sequence) == (2, 0, 2)
    assert keyed.records() == [(3, "a", "end"), (4, "b", "end")]
    for path in keyed.log_path.glob("*.snapshot"):
        path.unlink()
    keyed.reopen()
    assert keyed.log.producers.producers[1].next_sequence == 3
    assert keyed.log.producers.producers[1].epoch == 3


def test_no_batch_is_kept_for_nothing(keyed: Any) -> None:
    """Cleaning keeps no batch without records that nothing needs. Every segment it wrote used to end with
    one, and consumers got nothing else.
    """
    keyed.configure(segment_bytes=1500)
    for number in range(20):
        keyed.append(("a", f"{number}".ljust(1000)))
        keyed.roll()
    keyed.compact()
    assert all(header.count for header, _ in keyed.batches())
    assert [offset for offset, *_ in keyed.records()] == [38]


def test_what_ends_the_readable_log_is_kept_while_nothing_follows(keyed: Any) -> None:
    """Batches emptied at the last stable offset stay until records follow. Without them a reader found
    nothing to lead it to the log's end (KAFKA-17076).
    """
    keyed.append(("a", "1"))
    keyed.append((None, "no key, so it goes"))
    roll(keyed.log, keyed.log.flusher, keyed.now)
    facts: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    keyed.append(("b", "1"), base_sequence=0, transactional=True, **facts)
    keyed.log.flusher.flush()
    keyed.compact()
    assert keyed.log.first_unstable_offset == 2, "readers of committed records come up to here"
    headers = [header for header, _ in keyed.batches()]
    assert [(header.next_offset, header.count) for header in headers] == [(1, 1), (2, 0), (3, 1)]
    keyed.log.writer.append_marker(
        commit=True, coordinator_epoch=0, leader_epoch=0, now_ms=keyed.now, **facts
    )
    keyed.roll()
    keyed.compact()
    assert all(header.count for header, _ in keyed.batches())


@pytest.mark.parametrize("recovery_point", ["known", "lost", "too low"])
def test_a_segment_that_compaction_left_short_is_no_damage(keyed: Any, recovery_point: str) -> None:
    """Recovery keeps the segments after a gap that compaction left. It took the gap for the damage of a power
    loss, and deleted all segments after it.
    """
    keyed.configure(segment_bytes=1500)
    keyed.append(("a", "1".ljust(1000)))
    keyed.append(("b", "1"))
    roll(keyed.log, keyed.log.flusher, keyed.now)
    keyed.append(("b", "2".ljust(1000)))
    keyed.roll()
    keyed.folder.start_checkpoint()()
    keyed.compact()
    keyed.folder.cleaner_checkpoint({("t", 0): keyed.first_dirty})()
    assert keyed.bases() == [0, 2, 3]
    assert keyed.log.segments.row[0].next_offset() == 1
    path = keyed.path / "recovery-point-offset-checkpoint"
    if recovery_point == "lost":
        path.unlink()
    elif recovery_point == "too low":  # Apache Kafka writes it once a minute, and compacts meanwhile
        path.write_text("0\n1\nt 0 0\n")
    keyed.reopen()
    assert [offset for offset, *_ in keyed.records()] == [0, 2]
    assert keyed.log.log_end_offset == 4


def test_the_number_of_segments_does_not_grow(keyed: Any) -> None:
    """Segments of which a few bytes remain after a round join those of earlier rounds."""
    keyed.configure(segment_bytes=1500)
    for turn in range(12):
        for number in range(10):
            keyed.append((f"k{number % 3}", f"{turn} {number}".ljust(300)), ("big", "x" * 1000))
            keyed.roll()
        keyed.compact()
        assert len(keyed.bases()) <= 3, f"round {turn}"
        assert len(keyed.records()) == 4
    keyed.reopen()
    assert len(keyed.records()) == 4


def test_segments_far_apart_that_became_empty_go(keyed: Any) -> None:
    """Empty segments are deleted although their neighbours are more than 2^31 offsets away. A segment spans
    at most 2^31 offsets, so an empty segment remained for each such span (KAFKA-12889).
    """
    for number in range(5):
        keyed.append(("a", str(number)))
        keyed.roll()
        keyed.log.log_end_offset += 2**31 - 10
        roll(keyed.log, keyed.log.flusher, keyed.now)
    keyed.append(("a", "end"))
    keyed.roll()
    keyed.compact()
    assert len(keyed.bases()) == 3
    assert keyed.records()[-1][1:] == ("a", "end")


def test_the_cleaner_keeps_to_its_memory(keyed: Any) -> None:
    """Memory of the cleaner does not grow with the segment. Deferred batches were views of whole chunks: one
    remaining batch per chunk kept the whole segment in memory.
    """
    keyed.configure(segment_bytes=50_000_000)
    for number in range(60):
        keyed.append((f"k{number}", "1"))
        keyed.append(("a", "x" * 500_000))
    keyed.roll()
    tracemalloc.start()
    keyed.compact()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(keyed.records()) == 61
    assert peak < 8_000_000


def test_log_append_time_is_kept(keyed: Any) -> None:
    keyed.configure(message_timestamp_type="LogAppendTime")
    keyed.append(("a", "1"), ("b", "1"), ("c", None))
    keyed.append(("a", "2"))
    keyed.roll()
    keyed.now += 5
    keyed.compact()
    header, records = keyed.batches()[0]
    assert header.timestamp_type == 1
    assert [record[1] for record in records] == [keyed.now - 5] * 2


def test_readers_and_the_modification_time_are_not_disturbed(keyed: Any) -> None:
    for number in range(3):
        keyed.append(("a", str(number) * 1000))
    keyed.roll()
    os.utime(keyed.log_path / "00000000000000000000.log", (1_600_000_000, 1_600_000_000))
    slices = [keyed.log.reader.read(offset, 1) for offset in range(3)]
    before = [read_slice(piece) for piece in slices]
    keyed.compact()
    assert [read_slice(piece) for piece in slices] == before
    assert (keyed.log_path / "00000000000000000000.log").stat().st_mtime == 1_600_000_000
    assert read_slice(keyed.log.reader.read(0, 1)) == before[2], "the batch at or after the offset"


def test_a_damaged_batch_is_not_made_sound_again(keyed: Any) -> None:
    keyed.append(("a", "1"))
    keyed.append(("a", "2"))
    keyed.roll()
    path = keyed.log_path / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordBatch):
        keyed.compact()


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_record_larger_than_allowed_ends_compaction(keyed: Any, codec: Codec) -> None:
    """Until `max.decompressed.message.bytes` is raised, as in Kafka; it holds for compressed batches only."""
    keyed.configure(max_decompressed_message_bytes=500)
    keyed.append(("a", "1" * 1000), ("a", "2" * 1000), codec=codec)
    keyed.roll()
    if codec is Codec.NONE:
        keyed.compact()
        return
    with pytest.raises(CorruptRecordBatch, match="longer than a record may be"):
        keyed.compact()
    keyed.configure(max_decompressed_message_bytes=2000)
    keyed.compact()
    assert keyed.records() == [(1, "a", "2" * 1000)]


def test_segments_deleted_meanwhile_are_not_brought_back(keyed: Any) -> None:
    keyed.append(("a", "1"), ("a", "2"))
    keyed.roll()
    groups, _, compaction = keyed.round()
    swap = keyed.log.compaction.start_swap(compaction, groups[0])
    assert swap.prepare()
    for deleted in keyed.log.shortening.delete_records_before(2):
        deleted.run()
    assert keyed.log.compaction.finish_swap(swap) is None
    assert swap.is_gone
    swap.discard()
    assert not keyed.staged()
    keyed.reopen()
    assert keyed.records() == []


def test_snapshots_of_segments_that_are_no_more_go_too(keyed: Any) -> None:
    for number in range(5):
        keyed.append(("a", str(number)), producer_id=1, producer_epoch=0, base_sequence=number)
        keyed.roll()
    keyed.compact()
    assert keyed.bases() == [0, 9]
    assert len(list(keyed.log_path.glob("*.snapshot"))) == 1
    keyed.reopen(clean=True)
    assert keyed.log.producers.producers[1].next_sequence == 5


def test_a_copy_put_in_place_after_a_crash_keeps_its_short_segments(keyed: Any) -> None:
    """Starts that finish a move between log directories keep all records of a compacted log. A start checks
    the whole copy, and used to cut the copy off at the first gap in the offsets.
    """
    keyed.configure(segment_bytes=1500)
    keyed.append(("a", "1".ljust(1000)))
    keyed.append(("b", "1"))
    roll(keyed.log, keyed.log.flusher, keyed.now)
    keyed.append(("b", "2".ljust(1000)))
    keyed.roll()
    keyed.compact()
    keyed.log.removals.raise_to(1)
    keyed.log.compaction.save_removals()
    keyed.kill()
    future = keyed.path / future_directory("t", 0)
    keyed.log_path.rename(future)
    folder = LogDirectory.open(
        keyed.path, node_id=1, cluster_id="cluster", config_for=lambda topic: keyed.config, now_ms=keyed.now
    )
    keyed.folder = folder
    promote(folder, "t", 0, future, keyed.config, keyed.now)
    assert [offset for offset, *_ in keyed.records()] == [0, 2]
    assert keyed.log.removal_offset == 1
