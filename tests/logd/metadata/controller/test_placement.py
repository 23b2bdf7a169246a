"""Where replicas are placed is, broker by broker, where Kafka's AdminUtils places them.

java -cp "$KAFKA_3_LIBS/*" tests/java/Placement.java > tests/logd/metadata/controller/golden/placement.txt
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.controller.placement import Start, check_assignments, place
from logd.metadata.image import BrokerImage
from tests.support.java import LIBS_3, needs_javac_3, run_program

GOLDEN = Path(__file__).parent / "golden" / "placement.txt"


def broker(number: int, rack: str | None = None) -> BrokerImage:
    return BrokerImage(id=number, epoch=1, rack=rack)


@pytest.mark.parametrize("rack", "-acz")
def test_kafkas_placement(rack: str) -> None:
    """Replicas are placed as Kafka does, in all cases in which this is the first broker's rack."""
    cases = [line for line in GOLDEN.read_text().splitlines() if line.startswith(f"0:{rack}")]
    assert len(cases) > 15
    for line in cases:
        brokers, *numbers, expected = line.split()
        partitions, factor, index, shift, first = map(int, numbers)
        racks = (pair.split(":") for pair in reversed(brokers.split(",")))
        placed = place(
            [broker(int(number), None if rack == "-" else rack) for number, rack in racks],
            partitions,
            factor,
            Start(index, shift),
            first_partition=first,
        )
        assert ";".join(",".join(map(str, replicas)) for replicas in placed) == expected, line


@needs_javac_3
def test_kafka_places_them_still() -> None:
    assert run_program("Placement", libs=LIBS_3) == GOLDEN.read_text(encoding="utf-8")


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=1, max_size=9),
    factor=st.integers(1, 9),
    index=st.integers(0, 10**6),
    shift=st.integers(0, 10**6),
)
def test_replicas_are_spread(racks: list[str], factor: int, index: int, shift: int) -> None:
    """Replicas of a partition are on different brokers and on as many racks as possible. Each broker is first
    equally often.
    """
    factor = min(factor, len(racks))
    brokers = [broker(number, rack) for number, rack in enumerate(racks)]
    placed = place(brokers, 3 * len(racks), factor, Start(index, shift))
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({racks[replica] for replica in replicas}) == min(factor, len(set(racks)))
    firsts = [replicas[0] for replicas in placed]
    assert {firsts.count(number) for number in range(len(racks))} == {3}


def test_racks_count_only_where_every_broker_has_one() -> None:
    some = [broker(0, "a"), broker(1, "a"), broker(2)]
    none = [broker(0), broker(1), broker(2)]
    assert place(some, 7, 2, Start(1, 1)) == place(none, 7, 2, Start(1, 1))


@pytest.mark.parametrize(
    ("factor", "message"), [(0, "at least 1"), (3, "factor 3 is larger than the 2 brokers")]
)
def test_a_factor_that_cannot_be(factor: int, message: str) -> None:
    with pytest.raises(KafkaError, match=message) as refused:
        place([broker(0), broker(1)], 1, factor, Start(0, 0))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({0: [1], 2: [1]}, "without gaps"),
        ({0: [1, 1]}, "name a broker twice"),
        ({0: []}, "has no replicas"),
        ({0: [1, 9]}, r"not alive: \[9\]. Alive are \[1, 2\]"),
        ({0: [1], 1: [1, 2]}, "every partition needs as many"),
    ],
)
def test_assignments_that_cannot_be(assignments: dict[int, list[int]], message: str) -> None:
    with pytest.raises(KafkaError, match=message) as refused:
        check_assignments(assignments, {1, 2})
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_assignments_that_can_be() -> None:
    assert check_assignments({1: [2, 1], 0: [1, 2]}, {1, 2}) == [(1, 2), (2, 1)]
