"""Tests of a leader that scripts do not cover: settings, errors, times, and what its calls cost."""

from __future__ import annotations

import dataclasses

import pytest

from kafka_client.errors import ErrorCode, KafkaError, OffsetOutOfRange
from logd.replication import Leader, LeaderSettings
from tests.faults.replication.controller import PartitionImage
from tests.faults.replication.memory_log import Batch, MemoryLog

EPOCHS = {1: 101, 2: 102, 3: 103}
LAG_MS = 10_000
IMAGE = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=1, partition_epoch=7)


class Led:
    """A leader of epoch 1 with its log."""

    def __init__(
        self,
        image: PartitionImage = IMAGE,
        *,
        records: int = 0,
        leader: type[Leader] = Leader,
        **settings: int,
    ) -> None:
        self.log = MemoryLog()
        self.log.begin_epoch(image.leader_epoch)
        self.registered: dict[int, int] = dict(EPOCHS)
        self.leader = leader(
            self.log,
            image,
            broker_id=1,
            brokers=self.registered.get,
            high_watermark=0,
            now_ms=0,
            settings=LeaderSettings(replica_lag_time_max_ms=LAG_MS, **settings),
        )
        if records:
            self.append(records)

    def append(self, count: int, now_ms: int = 0, own_end: int | None = None) -> None:
        self.log.append(Batch(0, 1, tuple(range(count))))
        self.leader.appended(self.log.log_end_offset, now_ms, own_end=own_end)

    def fetch(self, follower: int, offset: int, now_ms: int = 0, **more: int) -> object:
        arguments = {"current_leader_epoch": 1, "broker_epoch": EPOCHS.get(follower, -1), **more}
        return self.leader.fetched(follower, offset, 1 if offset else -1, now_ms, **arguments)


def test_slowest_in_sync_replica_holds_the_high_watermark() -> None:
    led = Led(records=9)
    led.fetch(2, 9)
    assert led.leader.high_watermark == 0
    led.fetch(3, 4)
    assert led.leader.high_watermark == 4
    led.fetch(3, 9)
    assert led.leader.high_watermark == 9


def test_high_watermark_does_not_go_back_with_a_follower() -> None:
    """Followers that go back do not lower the high watermark. One may lose its power, and stays in the ISR
    until the controller has noticed.
    """
    led = Led(records=4)
    led.fetch(2, 4)
    led.fetch(3, 4)
    led.fetch(3, 1)
    assert led.leader.high_watermark == 4
    led.append(2)
    led.fetch(2, 6)
    assert led.leader.high_watermark == 4


def test_own_log_counts_once_it_is_flushed() -> None:
    led = Led()
    led.append(3, own_end=0)
    led.fetch(2, 3)
    led.fetch(3, 3)
    assert led.leader.high_watermark == 0
    led.leader.flushed(3, 1)
    assert led.leader.high_watermark == 3


def test_alone_it_waits_for_its_own_flush_only() -> None:
    led = Led(PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=1))
    assert led.leader.is_alone
    led.append(2)
    assert led.leader.high_watermark == 2
    led.append(1, own_end=2)
    assert led.leader.high_watermark == 2
    led.leader.flushed(3, 0)
    assert led.leader.high_watermark == 3
    assert led.leader.due_ms is None


@pytest.mark.parametrize(
    ("follower", "offset", "more", "code"),
    [
        (2, 1, {"current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 1, {"current_leader_epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 1, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 1, {"broker_epoch": 99}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_fetches_that_do_not_count(follower: int, offset: int, more: dict[str, int], code: ErrorCode) -> None:
    led = Led(records=2)
    with pytest.raises(KafkaError, match="orders-0") as refused:
        led.fetch(follower, offset, **more)
    assert refused.value.code == code
    progress = led.leader.progress(follower)
    assert progress is None or progress.log_end_offset == -1


def test_offsets_out_of_range_do_not_count() -> None:
    led = Led(records=4)
    led.log.delete_before(2)
    for offset, last_epoch in ((1, 1), (1, -1), (5, -1)):
        with pytest.raises(OffsetOutOfRange) as refused:
            led.leader.fetched(2, offset, last_epoch, 0, current_leader_epoch=1, broker_epoch=102)
        assert (refused.value.start, refused.value.end, refused.value.offset) == (2, 4, offset)
    follower = led.leader.progress(2)
    assert follower is not None
    assert follower.log_end_offset == -1


def test_a_fetch_that_diverges_does_not_count() -> None:
    led = Led(records=2)
    assert led.fetch(2, 3) == (1, 2)
    follower = led.leader.progress(2)
    assert follower is not None
    assert follower.log_end_offset == -1


def test_min_insync_replicas() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1, 3)), min_insync_replicas=3)
    message = r"min\.insync\.replicas is 3, of 3 replicas 2 are in sync: 1, 3"
    with pytest.raises(KafkaError, match=message) as refused:
        led.leader.check_enough_replicas()
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    led.leader.settings.min_insync_replicas = 2
    led.leader.check_enough_replicas()


def test_fewer_min_insync_replicas_let_the_high_watermark_go() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)), records=1, min_insync_replicas=2)
    assert led.leader.high_watermark == 0
    led.leader.settings.min_insync_replicas = 1
    led.leader.tick(0)
    assert led.leader.high_watermark == 1


def test_more_min_insync_replicas_than_replicas_ask_for_all_of_them() -> None:
    """KAFKA-15583: acks=all is accepted while all are in sync, and refused with one less."""
    led = Led(records=1, min_insync_replicas=5)
    led.leader.check_enough_replicas()
    assert led.leader.acknowledgement(1) is None
    led.fetch(2, 1)
    led.fetch(3, 1)
    assert led.leader.high_watermark == 1
    assert led.leader.acknowledgement(1) == ErrorCode.NONE
    led.leader.image_changed(
        dataclasses.replace(IMAGE, isr=(1, 2), partition_epoch=IMAGE.partition_epoch + 1), 0
    )
    with pytest.raises(KafkaError, match="of 3 replicas 2 are in sync"):
        led.leader.check_enough_replicas()
    assert led.leader.acknowledgement(1) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_min_insync_replicas_count_again_once_there_are_replicas_for_them() -> None:
    alone = dataclasses.replace(IMAGE, replicas=(1,), isr=(1,))
    led = Led(alone, records=1, min_insync_replicas=2)
    led.leader.check_enough_replicas()
    assert led.leader.acknowledgement(1) == ErrorCode.NONE
    led.leader.image_changed(
        dataclasses.replace(IMAGE, isr=(1,), partition_epoch=IMAGE.partition_epoch + 1), 0
    )
    with pytest.raises(KafkaError, match="of 3 replicas 1 are in sync: 1"):
        led.leader.check_enough_replicas()


def test_due_when_the_first_follower_will_have_lagged_too_long() -> None:
    led = Led()
    led.fetch(2, 0)
    led.fetch(3, 0)
    assert led.leader.due_ms is None
    led.append(1, now_ms=500)
    led.fetch(2, 1, 600)
    assert led.leader.due_ms == 500 + LAG_MS + 1
    led.leader.tick(led.leader.due_ms - 1)
    assert led.leader.take_proposal() is None
    led.leader.tick(led.leader.due_ms)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    assert proposal.broker_ids == (1, 2)
    assert proposal.isr == ((1, 101), (2, 102))
    assert led.leader.take_proposal() is None


def test_an_append_says_nothing_of_who_was_behind_before() -> None:
    led = Led()
    led.fetch(2, 0)
    led.fetch(3, 0)
    led.append(1, now_ms=500)
    led.append(1, now_ms=8_000)
    assert led.leader.due_ms == 500 + LAG_MS + 1


def test_who_has_lost_something_is_not_at_the_end_any_more() -> None:
    led = Led(records=2)
    led.fetch(2, 2, 100)
    led.fetch(3, 2, 100)
    led.fetch(3, 1, 200)
    led.append(1, now_ms=900)
    assert led.leader.due_ms == 100 + LAG_MS + 1


def test_a_new_leader_gives_the_isr_time_and_waits_for_nobody_else() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1, 2)), records=1)
    led.leader.tick(LAG_MS)
    assert led.leader.take_proposal() is None
    led.fetch(2, 1)
    assert led.leader.high_watermark == 1


def test_who_joins_by_an_image_has_time_from_then_and_the_others_have_not() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1, 2)), records=1)
    led.leader.image_changed(dataclasses.replace(IMAGE, partition_epoch=8), 5_000)
    assert led.leader.due_ms == LAG_MS + 1
    led.fetch(2, 1, 6_000)
    assert led.leader.due_ms == 5_000 + LAG_MS + 1


def test_who_is_not_taken_in_is_waited_for_as_long_as_it_is_caught_up() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    led.append(1, now_ms=100)
    led.leader.refused(proposal, ErrorCode.INELIGIBLE_REPLICA, 200)
    assert led.leader.high_watermark == 0
    assert led.leader.due_ms == 100 + LAG_MS + 1
    led.leader.tick(led.leader.due_ms)
    assert led.leader.high_watermark == 1


def test_a_refusal_lets_the_high_watermark_go() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    led.append(1, now_ms=100)
    led.leader.tick(101 + LAG_MS)
    assert led.leader.high_watermark == 0
    led.leader.refused(proposal, ErrorCode.INELIGIBLE_REPLICA, 102 + LAG_MS)
    assert led.leader.high_watermark == 1


def test_a_broker_of_an_epoch_not_heard_of_yet_is_not_taken_in() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0, broker_epoch=200)
    assert led.leader.take_proposal() is None
    led.registered[2] = 200
    led.fetch(2, 0, broker_epoch=200)
    assert led.leader.take_proposal() is not None


@pytest.mark.parametrize("how", ["tick", "reconsider"])
def test_who_is_silent_is_taken_in_when_its_registration_is_heard_of(how: str) -> None:
    """Followers that have the whole log join the ISR as soon as their registration is known. Their fetch
    sessions say nothing more, and without them nothing may be appended.
    """
    led = Led(dataclasses.replace(IMAGE, isr=(1,)), min_insync_replicas=2)
    led.fetch(2, 0, broker_epoch=200)
    assert led.leader.take_proposal() is None
    led.registered[2] = 200
    getattr(led.leader, how)(LAG_MS)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    assert proposal.isr == ((1, 101), (2, 200))


def test_who_is_silent_is_taken_in_when_another_change_came_first() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1, 3)))
    led.fetch(2, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    del led.registered[3]
    led.leader.image_changed(dataclasses.replace(IMAGE, isr=(1,), partition_epoch=8), 0)
    led.leader.refused(proposal, ErrorCode.INVALID_UPDATE_VERSION, 0)
    again = led.leader.take_proposal()
    assert again is not None
    assert again.broker_ids == (1, 2)
    assert again.partition_epoch == 8


def test_who_is_silent_is_taken_in_behind_another() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0)
    led.fetch(3, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    led.leader.accepted(proposal, (1, 2), leader_epoch=1, partition_epoch=8, now_ms=0)
    behind = led.leader.take_proposal()
    assert behind is not None
    assert behind.broker_ids == (1, 2, 3)


def test_who_never_fetched_in_this_epoch_is_not_taken_in() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.leader.tick(0)
    assert led.leader.take_proposal() is None


def test_a_leader_leaves_no_one_but_itself() -> None:
    led = Led(records=1)
    led.leader.tick(LAG_MS + 1)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    assert proposal.broker_ids == (1,)


def test_a_broker_that_shuts_down_is_not_taken_in() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    del led.registered[2]
    led.fetch(2, 0)
    assert led.leader.take_proposal() is None
    led.registered[2] = 102
    led.fetch(2, 0)
    assert led.leader.take_proposal() is not None


@pytest.mark.parametrize(
    ("code", "is_withdrawn", "is_sent_again"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, True, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False, False),
        (ErrorCode.NOT_CONTROLLER, False, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False, True),
        (ErrorCode.STALE_BROKER_EPOCH, False, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False, True),
    ],
)
def test_refusals(code: ErrorCode, is_withdrawn: bool, is_sent_again: bool) -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    led.leader.refused(proposal, code, 0)
    assert led.leader.maximal_isr == ({1} if is_withdrawn else {1, 2})
    assert (led.leader.take_proposal() == proposal) is is_sent_again


def test_answers_of_another_time_are_passed_over() -> None:
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0)
    old = led.leader.take_proposal()
    assert old is not None
    led.leader.image_changed(dataclasses.replace(IMAGE, isr=(1, 3), partition_epoch=9), 0)
    led.leader.accepted(old, (1, 2), leader_epoch=1, partition_epoch=8, now_ms=0)
    led.leader.refused(old, ErrorCode.INELIGIBLE_REPLICA, 0)
    led.leader.unanswered(old)
    assert led.leader.isr == (1, 3)
    assert led.leader.maximal_isr == {1, 2, 3}
    proposal = led.leader.take_proposal()  # on top of what holds now
    assert proposal is not None
    assert proposal.partition_epoch == 9


def test_an_older_image_is_passed_over() -> None:
    led = Led()
    led.leader.image_changed(dataclasses.replace(IMAGE, isr=(1,), partition_epoch=6), 0)
    assert led.leader.isr == (1, 2, 3)


def test_an_image_of_the_same_partition_epoch_has_the_proposal_sent_again() -> None:
    """From a new controller, say: there is nothing newer to wait for."""
    led = Led(dataclasses.replace(IMAGE, isr=(1,)))
    led.fetch(2, 0)
    proposal = led.leader.take_proposal()
    assert proposal is not None
    led.leader.image_changed(dataclasses.replace(IMAGE, isr=(1,)), 0)
    assert led.leader.take_proposal() is None  # it is on its way
    led.leader.refused(proposal, ErrorCode.INVALID_UPDATE_VERSION, 0)
    assert led.leader.take_proposal() is None
    led.leader.image_changed(dataclasses.replace(IMAGE, isr=(1,)), 0)
    assert led.leader.take_proposal() == proposal


def test_replicas_come_and_go() -> None:
    led = Led(records=1)
    led.fetch(2, 1)
    led.leader.image_changed(dataclasses.replace(IMAGE, replicas=(1, 2, 4), isr=(1, 2), partition_epoch=8), 0)
    assert led.leader.high_watermark == 1
    assert led.leader.progress(3) is None
    assert led.leader.progress(4) is not None


def test_readable_from_followers_in_sync_that_hold_the_offset() -> None:
    led = Led(dataclasses.replace(IMAGE, replicas=(1, 2, 3, 4), isr=(1, 2, 3)), records=5)
    led.registered[4] = 104
    led.fetch(2, 5, log_start_offset=3)
    led.fetch(3, 2, log_start_offset=0)
    led.fetch(4, 4, broker_epoch=104, log_start_offset=0)
    assert [follower.broker_id for follower in led.leader.readable_from(1)] == [3]
    assert [follower.broker_id for follower in led.leader.readable_from(4)] == [2]


def test_the_high_watermark_is_looked_at_when_the_slowest_moves() -> None:
    """Not with every fetch, and never with an append."""
    looks = 0

    class Counting(Leader):
        def _advance(self, now_ms: int) -> None:
            nonlocal looks
            looks += 1
            super()._advance(now_ms)

    led = Led(records=8, leader=Counting)
    led.fetch(3, 2)
    led.fetch(2, 3)
    assert led.leader.high_watermark == 2
    looks = 0
    for offset in range(4, 8):
        led.fetch(2, offset)
    led.append(5)
    assert looks == 0
    led.fetch(3, 3)
    assert looks == 1
    assert led.leader.high_watermark == 3
