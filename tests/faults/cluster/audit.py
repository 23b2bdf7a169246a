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
        for partition in range(writer.partitions):
            logs = logs_of(cluster, writer.topic, partition)
            assert len(set(logs.values())) == 1, f"{writer.topic}-{partition} differs between brokers"
            found = values(logs[1])
            assert [int(value or b"") for _, value in found] == list(
                range(partition, writer.sent, writer.partitions)
            ), f"{writer.topic}-{partition}"
            for offset, value in found:
                said = writer.acknowledged[int(value or b"")]
                assert said in ((partition, offset), (partition, None)), (
                    f"{value!r} is at {partition}, {offset}, said was {said}"
                )
    return sum(writer.sent for writer in writers)
