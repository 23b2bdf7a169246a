"""Tests that a follower cuts off what its leader does not have, and keeps all that both logs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import OffsetOutOfRange
from kafka_client.records import build_batch
from logd.config.topic import TopicConfig
from logd.replication import Fetch, Follower, Truncate, find_divergence
from logd.storage import LogDirectory
from tests.faults.replication.memory_log import Batch, MemoryLog

LEADER_EPOCH = 20
ROUNDS_MAX = 20


@st.composite
def histories(draw: st.DrawFn) -> tuple[MemoryLog, MemoryLog]:
    """Draw the logs of a leader and a follower. They begin alike, and then each has batches in epochs of its
    own.
    """
    sides = draw(st.lists(st.sampled_from("ble"), max_size=8))  # both, leader, follower
    leader, follower = MemoryLog(), MemoryLog()
    is_parted = False
    for epoch, side in enumerate(sides, 1):
        count = draw(st.integers(1, 3))
        is_parted |= side != "b"
        for _ in range(count):
            if side in "bl":
                leader.append(Batch(0, epoch, (f"{epoch} {leader.log_end_offset}",)))
            if side == "e" or (side == "b" and not is_parted):
                follower.append(Batch(0, epoch, (f"{epoch} {follower.log_end_offset}",)))
    if not is_parted and follower.batches and draw(st.booleans()):
        follower.truncate(Truncate(draw(st.integers(0, follower.log_end_offset))))
    leader.begin_epoch(LEADER_EPOCH)
    return leader, follower


@given(histories())
def test_histories_meet(logs: tuple[MemoryLog, MemoryLog]) -> None:
    leader, log = logs
    shared = 0
    for mine, other in zip(leader.batches, log.batches, strict=False):
        if mine != other:
            break
        shared += 1
    follower = Follower(log, leader=1, leader_epoch=LEADER_EPOCH, high_watermark=0)
    for _ in range(ROUNDS_MAX):
        step = follower.next
        if isinstance(step, Truncate):
            log.truncate(step)
            follower.truncated()
            continue
        assert isinstance(step, Fetch)
        diverging = None
        if step.last_fetched_epoch >= 0:
            diverging = find_divergence(leader, LEADER_EPOCH, step.last_fetched_epoch, step.offset)
        if follower.answered(step, diverging=diverging):
            break
    assert log.batches == leader.batches[:shared]


def test_epochs_nobody_knows() -> None:
    log = MemoryLog()
    log.append(Batch(0, 3, ("a",)))
    with pytest.raises(OffsetOutOfRange, match="orders-0: nothing is known of offset 1 in leader epoch 7"):
        find_divergence(log, 5, 7, 1)


def test_the_real_log(tmp_path: Path) -> None:
    """Followers and leaders both work on the real `logd.storage.log.Log`."""
    folder = LogDirectory.open(
        tmp_path,
        node_id=1,
        cluster_id="cluster",
        config_for=lambda topic: TopicConfig(),
        now_ms=0,
        on_offline=lambda why: None,
    )
    try:
        log = folder.create_log("t", 0, topic_id=bytes(16), config=TopicConfig(), now_ms=0)
        for epoch in (1, 1, 4):
            log.writer.append(build_batch([(0, None, b"v", ())]), epoch, 0)
        follower = Follower(log, leader=2, leader_epoch=9, high_watermark=0)
        assert follower.next == Fetch(3, 4, 9)
        assert find_divergence(log, 9, 1, 3) == (1, 2)
        assert not follower.answered(Fetch(3, 4, 9), diverging=(2, 1))
        order: object = follower.next
        assert order == Truncate(2)
        log.shortening.truncate_to(2, 0)
        assert not follower.truncated()
        assert follower.next == Fetch(2, 1, 9)
    finally:
        folder.close()
