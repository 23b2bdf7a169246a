"""Roles of a replicated partition: what its role and the disk allow to read, and which waiters are woken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from tests.logd.broker.roles import NOW, FakeRole, Waiter, opened, run, turns


def test_the_role_says_what_may_be_read(tmp_path: Path) -> None:
    async def work() -> None:
        role = FakeRole()
        with opened(tmp_path, role) as bench:
            partition = bench.partition
            consumer, follower = Waiter(partition, follower=False), Waiter(partition, follower=True)
            bench.produce(2), bench.produce(3)
            assert role.ends == [2, 5] and partition.high_watermark == 0
            assert (bench.offsets(), bench.offsets(follower=True)) == ([], [0, 2])
            assert (consumer.woken, follower.woken) == (0, 2)
            role.high_watermark = 2
            partition.advance_high_watermark()
            assert bench.offsets() == [0] and partition.last_stable_offset == 2
            assert (consumer.woken, follower.woken) == (1, 2)
            partition.advance_high_watermark()
            role.high_watermark = 1
            partition.advance_high_watermark()
            assert partition.high_watermark == 2 and consumer.woken == 1, "it never goes back"
            role.high_watermark = 9
            partition.advance_high_watermark()
            assert partition.high_watermark == 5, "not behind the log's end"

    run(work)


def test_the_only_replica_has_followers_wait_as_consumers_do(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path) as bench:
            waiter = Waiter(bench.partition, follower=True)
            bench.produce()
            assert bench.partition.followers is None and waiter.woken == 1
            assert bench.offsets(follower=True) == bench.offsets() == [0]
            assert not bench.partition.holds_back

    run(work)


@pytest.mark.parametrize("disk_first", [True, False])
def test_the_disk_and_the_role_have_both_to_let_it_through(tmp_path: Path, disk_first: bool) -> None:
    async def work() -> None:
        role = FakeRole()
        with opened(tmp_path, role, slow=True, flush_messages="1") as bench:
            partition = bench.partition
            appended = bench.produce()
            waiting = partition.flushed(appended)
            assert waiting is not None
            task = asyncio.ensure_future(waiting)
            await turns()
            for step in (disk_first, not disk_first):
                assert partition.high_watermark == 0 and not task.done()
                if step:
                    await bench.release()
                else:
                    role.high_watermark = 1
                    partition.advance_high_watermark()
            await task
            assert partition.high_watermark == 1 and bench.offsets() == [0]

    run(work)


def test_acknowledgements(tmp_path: Path) -> None:
    async def work() -> None:
        role = FakeRole()
        with opened(tmp_path, role) as bench:
            partition = bench.partition
            appended = [bench.produce(2) for _ in range(4)]
            assert partition.flushed(appended[0], 1) is None, "only acks=all waits for the others"
            waits = [partition.flushed(one) for one in appended]
            first, second, third, fourth = (asyncio.ensure_future(wait) for wait in waits if wait is not None)
            again = partition.flushed(appended[0])  # a duplicate
            assert again is not None
            second.cancel()
            role.high_watermark = 5
            partition.advance_high_watermark()
            await turns()
            assert first.done() and not third.done(), "a part of it is not enough"
            await again
            role.high_watermark = 6
            partition.advance_high_watermark()
            await third
            assert partition.flushed(appended[2]) is None
            partition.take_role(FakeRole(6))
            with pytest.raises(KafkaError) as caught:
                await fourth
            assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(work)


def test_acks_1_waits_for_the_disk_alone(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, FakeRole(), slow=True, flush_messages="1") as bench:
            waiting = bench.partition.flushed(bench.produce(acks=1), 1)
            assert waiting is not None
            await turns()
            await bench.release()
            await waiting
            assert bench.partition.high_watermark == 0

    run(work)


def test_replicas_in_sync(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, FakeRole(), min_insync_replicas="2") as bench:
            assert bench.produce().base_offset == 0, "one replica is all there is"
            bench.partition.replica_count = 2
            with pytest.raises(KafkaError) as caught:
                bench.produce()
            assert caught.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert bench.produce(acks=1).base_offset == 1
            bench.partition.in_sync_replicas = 2
            assert bench.produce().base_offset == 2

    run(work)


def test_whoever_waits_is_told_of_another_role(tmp_path: Path) -> None:
    async def work() -> None:
        with opened(tmp_path, FakeRole()) as bench:
            partition = bench.partition
            bench.produce()
            consumer, follower = Waiter(partition, follower=False), Waiter(partition, follower=True)
            partition.take_role(FakeRole())
            assert (consumer.woken, follower.woken) == (1, 1)
            partition.forget_waiter(follower)
            partition.take_role(None)
            assert partition.high_watermark == 1 and consumer.woken == 3 and follower.woken == 1
            assert not partition.holds_back
            bench.produce()
            assert partition.high_watermark == 2

    run(work)


def test_a_follower(tmp_path: Path) -> None:
    """Followers take the leader's high watermark as far as their disk has the records."""

    async def work() -> None:
        role = FakeRole()
        with opened(tmp_path, role, slow=True, flush_messages="3") as bench:
            partition = bench.partition
            partition.leader_epoch = 4
            waiter = Waiter(partition, follower=False)

            def sent(base: int) -> bytes:
                return build_batch([(NOW, b"k", b"v", ())] * 2, base_offset=base, leader_epoch=4)

            role.high_watermark = 2
            copied = partition.copy(sent(0), NOW)
            assert (copied.end_offset, partition.high_watermark, waiter.woken) == (2, 2, 1)
            role.high_watermark = 4
            partition.copy(sent(2) + sent(4)[:40], NOW)
            assert partition.log_end_offset == 4 and partition.high_watermark == 2, "owed a flush"
            assert bench.flusher.statistics()["unflushed_bytes"] == 2 * len(sent(0))
            await turns()
            await bench.release()
            assert partition.high_watermark == 4 and role.ends == [2, 4]
            partition.copy(b"", NOW)
            with pytest.raises(KafkaError):
                partition.copy(sent(2), NOW)
            assert role.ends == [2, 4]

    run(work)


def test_a_restart_begins_from_what_was_checkpointed(tmp_path: Path) -> None:
    async def work() -> None:
        role = FakeRole()
        with opened(tmp_path, role) as bench:
            bench.produce(2)
            bench.produce(2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
            bench.partition.append_marker(7, 0, False, 0, NOW)
            role.high_watermark = 3
            bench.partition.advance_high_watermark()
            assert bench.partition.last_stable_offset == 2, "only this log is known to have the marker"
        with opened(tmp_path, FakeRole(3)) as bench:
            partition = bench.partition
            assert partition.checkpointed_high_watermark == partition.high_watermark == 3
            assert len(bench.offsets()) == 1
        with opened(tmp_path, FakeRole(99)) as bench:
            assert bench.partition.high_watermark == bench.partition.last_stable_offset == 5
        with opened(tmp_path) as bench:
            assert bench.partition.high_watermark == 5

    run(work)
