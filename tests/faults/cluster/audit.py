"""What is on the brokers' disks in the end: every replica the same, and in it what was acknowledged."""

from __future__ import annotations

from pathlib import Path

from logd.records import decode_records, iter_batches
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.writers import Writer
from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for


def log_of(broker: LogdProcess, topic: str, partition: int) -> bytes:
    """All segments of a replica, one after the other: brokers need not roll them at the same places."""
    folder = Path(str(broker.overrides["log.dirs"])) / f"{topic}-{partition}"
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def logs_of(cluster: Cluster, topic: str, partition: int) -> dict[int, bytes]:
    """Of all brokers."""
    return {id_: log_of(broker, topic, partition) for id_, broker in cluster.brokers.items()}


def are_equal(cluster: Cluster, topic: str, partition: int) -> bool:
    """Whether all replicas have the same bytes now."""
    return len(set(logs_of(cluster, topic, partition).values())) == 1


def values(log: bytes) -> list[tuple[int, bytes | None]]:
    """Offset and value of each record, without markers."""
    return [
        (offset, value)
        for pos, header in iter_batches(log)
        if not header.is_control
        for offset, _, _, value, _ in decode_records(log, pos)
    ]


def settle(cluster: Cluster, *writers: Writer) -> None:
    """Have writers end and replicas come together, while all brokers are up."""
    for writer in writers:
        writer.finish()
    for writer in writers:
        wait_for(lambda topic=writer.topic: cluster.is_in_sync(topic))  # type: ignore[misc]
        for partition in range(writer.partitions):
            wait_for(lambda t=writer.topic, p=partition: are_equal(cluster, t, p))  # type: ignore[misc]


def assert_kept(cluster: Cluster, *writers: Writer) -> int:
    """Each record that was acknowledged is there once, where the broker said, in order; how many there are.

    The brokers are stopped first: what they leave is what counts.
    """
    settle(cluster, *writers)
    cluster.stop()
    cluster.assert_no_tracebacks()
    for writer in writers:
        assert_written(cluster, writer)
    return sum(writer.sent for writer in writers)


def assert_written(cluster: Cluster, writer: Writer) -> None:
    """Of one writer, of whom nothing more comes."""
    for partition in range(writer.partitions):
        logs = logs_of(cluster, writer.topic, partition)
        assert len(set(logs.values())) == 1, f"{writer.topic}-{partition} differs between brokers"
        found = values(logs[1])
        numbers = [int(value or b"") for _, value in found]
        if not writer.is_idempotent:
            numbers = sorted(set(numbers))
        assert numbers == list(range(partition, writer.sent, writer.partitions)), "\n".join(
            [f"{writer.topic}-{partition}", *writer.notes]
        )
        at = {offset: int(value or b"") for offset, value in found}
        for number in numbers:
            where, offset = writer.acknowledged[number]
            assert where == partition, f"{number} is in partition {partition}, said was {where}"
            assert offset is None or at.get(offset) == number, (
                f"{at.get(offset)} is at {offset}, not {number}"
            )


def count_of(cluster: Cluster, writer: Writer) -> int:
    """How many records there are in a writer's topic; replicas are equal then."""
    any_broker = next(iter(cluster.brokers.values()))
    return sum(len(values(log_of(any_broker, writer.topic, each))) for each in range(writer.partitions))
