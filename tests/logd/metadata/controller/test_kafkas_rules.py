"""Whom we elect, and what we make of reassignments, is what Kafka's controller does; with one exception.

java -cp "$KAFKA_3_LIBS/*" tests/java/ControllerRules.java > golden/kafka_rules.txt
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafka_client.errors import KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.core import Controller
from logd.metadata.controller.election import ElectionType
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import with_leader
from logd.metadata.controller.reassignment import towards
from logd.metadata.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from tests.support.java import LIBS_3, needs_javac_3, run_program

GOLDEN = Path(__file__).parent / "golden" / "kafka_rules.txt"
TP = TopicPartition("t", 0)
REPLICAS = (2, 1, 3)


def lines(section: str) -> list[tuple[list[str], list[str]]]:
    """Return the words before and after the arrow of each line in a section."""
    text = GOLDEN.read_text().partition(f"== {section}\n")[2].partition("== ")[0]
    pairs = [line.split(" -> ") for line in text.splitlines()]
    return [(case.split(), expected.split()) for case, expected in pairs]


def numbers(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split(",")))


def image_of(isr: Sequence[int], leader: int, alive: Sequence[int], leaving: Sequence[int]) -> ClusterImage:
    state = PartitionImage(replicas=REPLICAS, isr=tuple(isr), leader=leader)
    topic = TopicImage(name=TP.topic, topic_id=b"t" * 16, partitions=1)
    brokers = (BrokerImage(id=number, epoch=1, is_shutting_down=number in leaving) for number in alive)
    return ClusterImage.of(
        [topic.as_change(), state.as_change(TP), *(broker.as_change() for broker in brokers)]
    )


def name(leader: int) -> str:
    return "-" if leader == NO_LEADER else str(leader)


def test_elections_without_a_leader() -> None:
    """Unlike Kafka we elect no broker out of sync while one in sync is alive, even if that one is shutting
    down.
    """
    kept_clean = 0
    for case, (clean, unclean, preferred, _) in lines("elections"):
        isr, alive, leaving = map(numbers, case)
        image = image_of(isr, NO_LEADER, alive, leaving)
        state, live = image.partitions[TP], Liveness(image)
        assert name(with_leader(TP, state, live, allow_unclean=False).leader) == clean, case
        ours = name(with_leader(TP, state, live, allow_unclean=True).leader)
        if set(isr) & set(leaving) and clean == "-":
            kept_clean += unclean != "-"
            assert ours == "-", case
        else:
            assert ours == unclean, case
        elected = Controller(image, epoch=1).elect_leaders(ElectionType.PREFERRED, [TP])
        assert isinstance(elected.answer[TP], KafkaError) == (preferred == "-"), case
    assert kept_clean


def test_leaders_that_shut_down_are_relieved() -> None:
    """By each broker that shuts down in turn, while it leads."""
    relieved = 0
    for case, (*_, successor) in lines("elections"):
        isr, alive, leaving = map(numbers, case)
        for leader in set(isr) & set(leaving):
            others = [number for number in leaving if number != leader]
            controller = Controller(image_of(isr, leader, alive, others), epoch=1)
            remaining = controller.apply(controller.shut_down(leader, 1))
            state = controller.image.partitions[TP]
            assert state.leader == (leader if successor == "-" else int(successor)), case
            assert remaining == ([TP] if successor == "-" else [])
            relieved += successor != "-"
    assert relieved


def test_reassignments() -> None:
    for case, expected in lines("reassignments"):
        replicas, adding, removing, target = map(numbers, case)
        state = PartitionImage(
            replicas=replicas, isr=replicas, leader=replicas[0], adding=adding, removing=removing
        )
        after = towards(state, target)
        assert [after.replicas, after.adding, after.removing, after.origin] == list(map(numbers, expected))
        assert after.target == target


@needs_javac_3
def test_kafka_does_so_still() -> None:
    assert run_program("ControllerRules", libs=LIBS_3) == GOLDEN.read_text(encoding="utf-8")
