"""The placement of a partition's replicas: spread evenly over brokers and racks, or assigned by a request.

First replicas go round the brokers. The others have a distance from the first that grows with each round, so
all brokers share in following each leader. With racks, the order of brokers alternates racks. A replica goes
to a rack without one as long as there is such a rack. For the same start and shift the result is that of
Kafka's AdminUtils.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.image import BrokerImage

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a placement: numbers from 0, taken modulo the brokers; random for a new topic.

    ``index`` chooses the first partition's first replica, ``shift`` the distance of its followers.
    """

    index: int
    shift: int


def place(
    brokers: Collection[BrokerImage], partitions: int, factor: int, start: Start, *, first_partition: int = 0
) -> list[Replicas]:
    """Return the replicas of `partitions` partitions, counted from ``first_partition``.

    Racks are used if every broker has one. Raises KafkaError(INVALID_REPLICATION_FACTOR).
    """
    check_factor(factor, len(brokers))
    racks = {broker.id: broker.rack for broker in sorted(brokers, key=lambda broker: broker.id)}
    if None in racks.values():
        racks = dict.fromkeys(racks, None)
    ring = _alternating(racks)
    index, shift = start.index % len(ring), start.shift % len(ring)
    placed = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(ring) == 0:
            shift += 1
        placed.append(_replicas(ring, racks, (partition + index) % len(ring), shift, factor))
    return placed


def check_factor(factor: int, brokers: int) -> None:
    """Raise KafkaError(INVALID_REPLICATION_FACTOR) unless 1 ≤ ``factor`` ≤ ``brokers``."""
    if factor < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {factor}: it must be at least 1"
        )
    if factor > brokers:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor} is larger than the {brokers} brokers that are alive: "
            "ask for a smaller one, or start more brokers",
        )


def check_assignments(assignments: Mapping[int, Sequence[int]], brokers: Collection[int]) -> list[Replicas]:
    """Return the replicas of partitions 0, 1, … as assigned by hand.

    Raises KafkaError(INVALID_REPLICA_ASSIGNMENT).
    """
    if sorted(assignments) != list(range(len(assignments))):
        raise _bad(f"partitions {sorted(assignments)}: they must be numbered 0, 1, 2 and so on without gaps")
    placed = [
        check_replicas(assignments[index], brokers, f"partition {index}") for index in range(len(assignments))
    ]
    check_same_factor(placed, len(placed[0]) if placed else 0)
    return placed


def check_same_factor(placed: Sequence[Replicas], factor: int, *, first_partition: int = 0) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) unless each partition has ``factor`` replicas."""
    for index, replicas in enumerate(placed, first_partition):
        if len(replicas) != factor:
            raise _bad(
                f"partition {index} has {len(replicas)} replicas {list(replicas)}, others have {factor}: "
                "every partition needs as many"
            )


def check_replicas(replicas: Sequence[int], brokers: Collection[int], what: str) -> Replicas:
    """Return the replicas of one partition, as assigned by hand.

    Raises KafkaError(INVALID_REPLICA_ASSIGNMENT).
    """
    if not replicas:
        raise _bad(f"{what} has no replicas: name at least one broker")
    if len(set(replicas)) < len(replicas):
        raise _bad(f"{what}: replicas {list(replicas)} name a broker twice")
    if unknown := [replica for replica in replicas if replica not in brokers]:
        raise _bad(
            f"{what}: replicas {list(replicas)} name brokers that are not alive: {unknown}. "
            f"Alive are {sorted(brokers)}"
        )
    return tuple(replicas)


def _bad(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _alternating(racks: Mapping[int, str | None]) -> list[int]:
    """Return the brokers with alternating racks: the first broker of each rack, then the second, and so on.

    Racks are in the order of their names, and the brokers of a rack in the order of their ids.
    """
    by_rack: dict[str, list[int]] = {}
    for broker, rack in racks.items():
        by_rack.setdefault(rack or "", []).append(broker)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(column) for column in columns)
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


def _replicas(
    ring: Sequence[int], racks: Mapping[int, str | None], first: int, shift: int, factor: int
) -> Replicas:
    rack_count = len(set(racks.values()))
    chosen = [ring[first]]
    used = {racks[ring[first]]}
    candidates = _followers(ring, first, shift * rack_count)
    while len(chosen) < factor:
        broker = next(candidates)
        is_rack_due = racks[broker] not in used or len(used) == rack_count
        if is_rack_due and broker not in chosen:
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)


def _followers(ring: Sequence[int], first: int, shift: int) -> Iterator[int]:
    """Yield the other brokers in cycles, beginning ``shift`` places after the one that follows the first."""
    others = len(ring) - 1
    step = 0
    while others:
        yield ring[(first + 1 + (shift + step) % others) % len(ring)]
        step += 1
