"""The loss of partitions when brokers stop."""

from __future__ import annotations

from kafka_client import PartitionMetadata, TopicPartition
from millstream.commands.broker.loss import SHOWN, Loss
from millstream.commands.partition.status import Standing


def standing(number: int, isr: tuple[int, ...], *, leader: int = 1, min_isr: int | None = 2) -> Standing:
    partition = PartitionMetadata(number, leader, replicas=(1, 2, 3), isr=isr)
    return Standing(TopicPartition("t", number), partition, 3, min_isr, leader >= 0)


def test_who_could_lead_and_who_could_write() -> None:
    standings = [
        standing(0, (1, 2, 3)),
        standing(1, (1, 2)),
        standing(2, (1,)),
        standing(3, (2, 3)),
        standing(4, (1, 2), min_isr=None),
    ]
    assert not Loss.of([standings[0]], {1}, {1, 2, 3})
    assert Loss.of(standings, {1}, {1, 2, 3}) == Loss(["t-2"], ["t-1"])
    assert Loss.of(standings, {1, 2}, {1, 2, 3}) == Loss(["t-1", "t-2", "t-4"], ["t-0", "t-3"])
    assert Loss.of(standings, {1, 2, 3}, {1, 2, 3}).leaderless == [f"t-{number}" for number in range(5)]


def test_who_is_gone_already_counts_for_nothing() -> None:
    """Ignore lost replicas that are still in the ISR: for a while, or for good if it was the last."""
    assert Loss.of([standing(0, (1, 2, 3))], {1}, {1, 3}).under_min_isr == ["t-0"]
    assert Loss.of([standing(0, (1, 2), min_isr=1)], {1}, {1, 3}).leaderless == ["t-0"]
    assert not Loss.of([standing(0, (2,), leader=-1)], {1}, {1, 3})


def test_more_min_insync_replicas_than_replicas_ask_for_all_of_them() -> None:
    """Require all replicas to be in sync with min.insync.replicas=5."""
    standings = [standing(0, (1, 2, 3), min_isr=5), standing(1, (2, 3), min_isr=5)]
    assert Loss.of(standings, {1}, {1, 2, 3}) == Loss([], ["t-0"])
    assert [each.is_under_min_isr for each in standings] == [False, True]
    assert [each.is_at_min_isr for each in standings] == [True, False]


def test_it_is_said_in_words() -> None:
    many = [f"t-{number}" for number in range(SHOWN + 2)]
    assert str(Loss(["a-0"], [])) == "1 partition without a leader (a-0)"
    assert str(Loss(many, ["b-0", "b-1"])) == (
        "10 partitions without a leader (t-0, t-1, t-2, t-3, t-4, t-5, t-6, t-7, 2 more), "
        "2 partitions under min.insync.replicas (b-0, b-1)"
    )
