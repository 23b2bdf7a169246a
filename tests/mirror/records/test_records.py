"""MirrorMaker 2's records: their bytes, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client import TopicPartition
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from mirror.records.heartbeat import Heartbeat, parse_heartbeat
from mirror.records.offset_sync import OffsetSync, parse_offset_sync

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
PARTITIONS = st.builds(TopicPartition, TEXTS, INT32)
SYNC = OffsetSync(TopicPartition("flights", 3), 1000, 400)
CHECKPOINT = Checkpoint("g", TopicPartition("a.t", 1), 7, 5, "m")
HEARTBEAT = Heartbeat("a", "bc", 9)


def test_an_offset_sync_has_mirrormakers_bytes() -> None:
    assert SYNC.record_key == bytes.fromhex("0007 666c6967687473 00000003")
    assert SYNC.record_value == bytes.fromhex("00000000000003e8 0000000000000190")


def test_a_checkpoint_has_mirrormakers_bytes() -> None:
    assert CHECKPOINT.record_key == bytes.fromhex("0001 67 0003 612e74 00000001")
    assert CHECKPOINT.record_value == bytes.fromhex("0000 0000000000000007 0000000000000005 0001 6d")
    assert CHECKPOINT.connect_partition == {"group": "g", "topic": "a.t", "partition": 1}


def test_a_heartbeat_has_mirrormakers_bytes() -> None:
    assert HEARTBEAT.record_key == bytes.fromhex("0001 61 0002 6263")
    assert HEARTBEAT.record_value == bytes.fromhex("0000 0000000000000009")
    assert HEARTBEAT.connect_partition == {"sourceClusterAlias": "a", "targetClusterAlias": "bc"}


@given(st.builds(OffsetSync, PARTITIONS, INT64, INT64))
def test_offset_syncs_come_back(sync: OffsetSync) -> None:
    assert parse_offset_sync(sync.record_key, sync.record_value) == sync


@given(st.builds(Checkpoint, TEXTS, PARTITIONS, INT64, INT64, TEXTS))
def test_checkpoints_come_back(checkpoint: Checkpoint) -> None:
    assert parse_checkpoint(checkpoint.record_key, checkpoint.record_value) == checkpoint


@given(st.builds(Heartbeat, TEXTS, TEXTS, INT64))
def test_heartbeats_come_back(heartbeat: Heartbeat) -> None:
    assert parse_heartbeat(heartbeat.record_key, heartbeat.record_value) == heartbeat


@pytest.mark.parametrize(
    ("record", "parse"),
    [(SYNC, parse_offset_sync), (CHECKPOINT, parse_checkpoint), (HEARTBEAT, parse_heartbeat)],
)
def test_every_shorter_record_is_refused_and_a_longer_one_is_read(record, parse) -> None:
    key, value = record.record_key, record.record_value
    for size in range(len(key)):
        with pytest.raises(ValueError, match=r"no (offset sync|checkpoint|heartbeat): "):
            parse(key[:size], value)
    for size in range(len(value)):
        with pytest.raises(ValueError, match=r"no (offset sync|checkpoint|heartbeat): "):
            parse(key, value[:size])
    assert parse(key + b"\1", value + b"\2") == record


def test_a_later_version_is_refused_with_its_number() -> None:
    with pytest.raises(ValueError, match=r"a checkpoint of version 1: .* update it"):
        parse_checkpoint(CHECKPOINT.record_key, b"\0\1" + CHECKPOINT.record_value[2:])
    with pytest.raises(ValueError, match="a heartbeat of version -1"):
        parse_heartbeat(HEARTBEAT.record_key, b"\xff\xff" + HEARTBEAT.record_value[2:])


def test_lengths_that_lie_are_refused() -> None:
    with pytest.raises(ValueError, match="a string of -1 bytes where 4 are left"):
        parse_offset_sync(b"\xff\xff" + bytes(4), SYNC.record_value)
    with pytest.raises(ValueError, match="a string of 32767 bytes where 4 are left"):
        parse_offset_sync(b"\x7f\xff" + bytes(4), SYNC.record_value)


def test_what_does_not_fit_is_refused() -> None:
    assert len(SYNC._replace(topic_partition=TopicPartition("x" * 32767, 0)).record_key) == 32773
    with pytest.raises(ValueError, match="a string of 32768 bytes, at most 32767"):
        _ = SYNC._replace(topic_partition=TopicPartition("x" * 32768, 0)).record_key
    with pytest.raises(ValueError, match="9223372036854775808 does not fit into 8 bytes"):
        _ = SYNC._replace(upstream_offset=1 << 63).record_value
