"""Tests that a decision costs only what has changed: other partitions are not looked at.

Looks are counted, not timed: 100,000 partitions are held by brokers to which nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

import pytest

from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.alter_partition import NewIsr
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.election import ElectionType
from logd.metadata.controller.placement import Start
from logd.metadata.controller.reassignment import list_reassignments
from logd.metadata.controller.topics import NewTopic
from logd.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from tests.support import depth

ELSEWHERE = depth.times(100_000)
HERE = 30
MANY, FEW = "many", "few"
FIRST = TopicPartition(FEW, 0)

Decide: TypeAlias = Callable[[Controller], Decision[Any]]


class CountedPartitions(dict[TopicPartition, PartitionImage]):
    """Partitions that note in ``looked_at`` which of them are read, and raise AssertionError when all are
    walked through.
    """

    def __init__(self, partitions: Mapping[TopicPartition, PartitionImage]) -> None:
        super().__init__(partitions)
        self.looked_at: set[TopicPartition] = set()

    def __getitem__(self, tp: TopicPartition) -> PartitionImage:
        self.looked_at.add(tp)
        return super().__getitem__(tp)

    def get(self, tp: TopicPartition, default: Any = None) -> Any:
        self.looked_at.add(tp)
        return super().get(tp, default)

    def pop(self, tp: TopicPartition, *default: Any) -> Any:
        self.looked_at.add(tp)
        return super().pop(tp, *default)

    def _walked(self) -> NoReturn:
        raise AssertionError("all partitions are walked through")

    def __iter__(self) -> Iterator[TopicPartition]:
        self._walked()

    def keys(self) -> NoReturn:
        self._walked()

    def values(self) -> NoReturn:
        self._walked()

    def items(self) -> NoReturn:
        self._walked()


@pytest.fixture(scope="module")
def image() -> ClusterImage:
    """Brokers 1 to 3 hold `few`, 11 to 13 `many`."""
    image = ClusterImage()
    for number in (1, 2, 3, 11, 12, 13):
        image.apply(BrokerImage(id=number, epoch=1).as_change())
    for name, count, first in ((FEW, HERE, 1), (MANY, ELSEWHERE, 11)):
        image.apply(TopicImage(name=name, topic_id=name.encode().ljust(16), partitions=count).as_change())
        for index in range(count):
            replicas = tuple(first + (index + step) % 3 for step in range(3))
            state = PartitionImage(replicas=replicas, isr=replicas, leader=replicas[0])
            image.apply(state.as_change(TopicPartition(name, index)))
    image.partitions = CountedPartitions(image.partitions)
    return image


def isr_of(controller: Controller, tp: TopicPartition, leader: int, isr: tuple[int, ...]) -> NewIsr:
    state = dict.__getitem__(controller.image.partitions, tp)
    return NewIsr(
        tp=tp,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        isr=dict.fromkeys(isr, -1),
    )


def broker(number: int, epoch: int) -> BrokerImage:
    return BrokerImage(id=number, epoch=epoch)


STEPS: list[tuple[str, Decide, int]] = [
    ("shut down", lambda c: c.shut_down(1, 1), HERE),
    ("gone", lambda c: c.change_brokers(departed=[1]), HERE),
    ("came", lambda c: c.change_brokers(arrived=[broker(1, 2)]), HERE),
    ("leader's word", lambda c: c.alter_partition(2, 1, [isr_of(c, FIRST, 2, (2, 3, 1))]), 1),
    ("elect all", lambda c: c.elect_leaders(ElectionType.PREFERRED, None), HERE // 3),
    ("unclean, all", lambda c: c.elect_leaders(ElectionType.UNCLEAN, None), 0),
    ("rebalance", lambda c: c.rebalance_leaders(), HERE // 3),
    ("restarted", lambda c: c.change_brokers(arrived=[broker(2, 3)]), HERE),
    ("log directory", lambda c: c.fail_log_dirs(3, 1, log_dirs=["/d"], partitions=[FIRST]), 1),
    ("reassign", lambda c: c.alter_reassignments({TopicPartition(FEW, 1): [1, 11]}), 1),
    ("take over", lambda c: c.take_over({1: [FIRST]}), HERE),
    ("all gone", lambda c: c.change_brokers(departed=[1, 2, 3]), HERE),
    ("take over without them", lambda c: c.take_over({}), HERE),
    ("settings", lambda c: c.configure(c.settings), HERE),
    (
        "create",
        lambda c: c.create_topic(NewTopic(name="new", topic_id=b"n" * 16, start=Start(1, 1), partitions=5)),
        5,
    ),
    ("grow", lambda c: c.grow_topic("new", 7), 3),
    ("delete", lambda c: c.delete_topic(FEW, FEW.encode().ljust(16)), HERE),
]


def test_what_is_elsewhere_is_not_looked_at(image: ClusterImage) -> None:
    counted = image.partitions
    assert isinstance(counted, CountedPartitions)
    controller = Controller(image, epoch=1)
    for name, decide, bound in STEPS:
        counted.looked_at.clear()
        controller.apply(decide(controller))
        list_reassignments(image)
        assert len(counted.looked_at) <= bound + len(image.broker_index.reassigning), name
        assert all(tp.topic != MANY for tp in counted.looked_at), name
