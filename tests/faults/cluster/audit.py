"""What is on the brokers' disks in the end: every replica the same, and in it what was acknowledged."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from logd.records import decode_records, iter_batches
from tests.faults.cluster.cluster import REPLICAS, Cluster
from tests.faults.cluster.writers import Writer
from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for


def folders_of(broker: LogdProcess, topic: str, partition: int) -> list[Path]:
    """Where a broker has its replica: one folder, or none."""
    folders = [Path(each) for each in str(broker.overrides["log.dirs"]).split(",")]
    return [folder for each in folders if (folder := each / f"{topic}-{partition}").exists()]


def log_in(folder: Path) -> bytes:
    """All segments of a replica, one after the other: brokers need not roll them at the same places."""
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def logs_of(cluster: Cluster, topic: str, partition: int) -> list[bytes]:
    """Of all replicas."""
    return [
        log_in(folder)
        for broker in cluster.brokers.values()
        for folder in folders_of(broker, topic, partition)
    ]


def are_equal(cluster: Cluster, topic: str, partition: int) -> bool:
    """Whether all replicas have the same bytes now."""
    logs = logs_of(cluster, topic, partition)
    return len(logs) == REPLICAS and len(set(logs)) == 1


class Found(NamedTuple):
    """A record: where it is, and under which epoch its producer sent it."""

    offset: int
    number: int
    producer_epoch: int


def records_in(log: bytes) -> list[Found]:
    """Without markers."""
    return [
        Found(offset, int(value or b""), header.producer_epoch)
        for pos, header in iter_batches(log)
        if not header.is_control
        for offset, _, _, value, _ in decode_records(log, pos)
    ]


def first_copies(found: list[Found]) -> tuple[list[Found], dict[int, list[Found]]]:
    """The records without those that their producer sent again under a newer epoch of its own, and those.

    No broker can tell that they are the same, nor write a batch under another epoch: the CRC holds it.
    """
    first: dict[int, Found] = {}
    kept, again = [], defaultdict[int, list[Found]](list)
    for record in found:
        known = first.setdefault(record.number, record)
        if record.producer_epoch > known.producer_epoch:
            again[record.number].append(record)
        else:
            kept.append(record)
    return kept, again


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
            assert len(logs) == REPLICAS, f"{writer.topic}-{partition} has {len(logs)} replicas"
            assert len(set(logs)) == 1, f"{writer.topic}-{partition} differs between brokers"
            found, again = first_copies(records_in(logs[0]))
            assert not again or writer.may_repeat, f"{writer.topic}-{partition} has twice {dict(again)}"
            assert [record.number for record in found] == list(
                range(partition, writer.sent, writer.partitions)
            ), "\n".join([f"{writer.topic}-{partition}", *writer.notes])
            for record in found:
                said = writer.acknowledged[record.number]
                places = [(partition, each.offset) for each in (record, *again.get(record.number, ()))]
                assert said in (*places, (partition, None)), (
                    f"{record.number} is at {places}, said was {said}"
                )
            if again:
                print(f"{writer.topic}-{partition}: {len(again)} records were sent again under a new epoch")
    return sum(writer.sent for writer in writers)
