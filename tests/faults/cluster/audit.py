"""An audit of the brokers' disks: all replicas are the same, and have what was acknowledged."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from kafka_client.records import decode_records, iter_batches
from tests.faults.cluster.cluster import REPLICAS, Cluster
from tests.faults.cluster.writers import Writer
from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for


def folders_of(broker: LogdProcess, topic: str, partition: int) -> list[Path]:
    """Return the folders of a broker's replica: one, or none."""
    folders = [Path(each) for each in str(broker.overrides["log.dirs"]).split(",")]
    return [folder for each in folders if (folder := each / f"{topic}-{partition}").exists()]


def log_in(folder: Path) -> bytes:
    """Return all segments of a replica joined, since brokers need not roll them at the same offsets."""
    return b"".join(segment.read_bytes() for segment in sorted(folder.glob("*.log")))


def logs_of(cluster: Cluster, topic: str, partition: int) -> list[bytes]:
    """Return the logs of all replicas."""
    return [
        log_in(folder)
        for broker in cluster.brokers.values()
        for folder in folders_of(broker, topic, partition)
    ]


def are_equal(cluster: Cluster, topic: str, partition: int) -> bool:
    """Return True if all replicas have the same bytes now."""
    logs = logs_of(cluster, topic, partition)
    return len(logs) == REPLICAS and len(set(logs)) == 1


class LoggedRecord(NamedTuple):
    """A record: where it is, and under which epoch its producer sent it."""

    offset: int
    number: int
    producer_epoch: int


def records_in(log: bytes) -> list[LoggedRecord]:
    """Return the records of a log without its markers."""
    return [
        LoggedRecord(offset, int(value or b""), header.producer_epoch)
        for pos, header in iter_batches(log)
        if not header.is_control
        for offset, _, _, value, _ in decode_records(log, pos)
    ]


def first_copies(records: list[LoggedRecord]) -> tuple[list[LoggedRecord], dict[int, list[LoggedRecord]]]:
    """Return the records without later copies, and the copies by number.

    A copy is a record that its producer sent again under a newer epoch of its own.

    No broker can tell that they are the same, nor write a batch under another epoch: the CRC covers it.
    """
    first: dict[int, LoggedRecord] = {}
    originals, again = [], defaultdict[int, list[LoggedRecord]](list)
    for record in records:
        original = first.setdefault(record.number, record)
        if record.producer_epoch > original.producer_epoch:
            again[record.number].append(record)
        else:
            originals.append(record)
    return originals, again


def settle(cluster: Cluster, *writers: Writer) -> None:
    """Have writers end and replicas come together, while all brokers are up."""
    for writer in writers:
        writer.finish()
    for writer in writers:
        wait_for(lambda topic=writer.topic: cluster.is_in_sync(topic))  # type: ignore[misc]
        for partition in range(writer.partitions):
            wait_for(lambda t=writer.topic, p=partition: are_equal(cluster, t, p))  # type: ignore[misc]


def assert_kept(cluster: Cluster, *writers: Writer) -> int:
    """Check that acknowledged records are there once, in order, where the broker said.

    Return how many there are.

    The brokers are stopped first: what they leave is what counts.
    """
    settle(cluster, *writers)
    cluster.stop()
    cluster.assert_no_tracebacks()
    for writer in writers:
        assert_written(cluster, writer)
    return sum(writer.sent for writer in writers)


def assert_written(cluster: Cluster, writer: Writer) -> None:
    """Check the records of one writer, who has finished."""
    for partition in range(writer.partitions):
        where = f"{writer.topic}-{partition}"
        logs = logs_of(cluster, writer.topic, partition)
        assert len(logs) == REPLICAS, f"{where} has {len(logs)} replicas"
        assert len(set(logs)) == 1, f"{where} differs between brokers"
        expected = list(range(partition, writer.sent, writer.partitions))
        if writer.is_idempotent:
            assert_once(writer, partition, records_in(logs[0]), expected)
        else:
            assert_at_least_once(writer, partition, records_in(logs[0]), expected)


def assert_once(writer: Writer, partition: int, records: list[LoggedRecord], expected: list[int]) -> None:
    """Check that records are there once in order, or again if their producer began a new epoch for them."""
    where = f"{writer.topic}-{partition}"
    originals, again = first_copies(records)
    assert not again or writer.may_repeat, f"{where} has twice {dict(again)}"
    assert [record.number for record in originals] == expected, "\n".join([where, *writer.notes])
    for record in originals:
        acknowledged = writer.acknowledged[record.number]
        places = [(partition, each.offset) for each in (record, *again.get(record.number, ()))]
        assert acknowledged in (*places, (partition, None)), (
            f"{record.number} is at {places}, said was {acknowledged}"
        )
    if again:
        print(f"{where}: {len(again)} records were sent again under a new epoch")


def assert_at_least_once(
    writer: Writer, partition: int, records: list[LoggedRecord], expected: list[int]
) -> None:
    """Check that each record is there, also where the broker said."""
    at = {record.offset: record.number for record in records}
    assert sorted(set(at.values())) == expected, f"{writer.topic}-{partition}"
    for number in expected:
        where, offset = writer.acknowledged[number]
        assert where == partition, f"{number} is in partition {partition}, said was {where}"
        assert offset is None or at.get(offset) == number, f"{at.get(offset)} is at {offset}, not {number}"


def tally(cluster: Cluster, writer: Writer) -> Counter[str]:
    """Count what was acknowledged to an idempotent writer, and what became of it. No broker may run."""
    count = Counter({"records acknowledged": len(writer.acknowledged)})
    acknowledged: dict[int, set[int]] = defaultdict(set)
    for number, (partition, _) in writer.acknowledged.items():
        acknowledged[partition].add(number)
    for partition in range(writer.partitions):
        count.update(tally_of(logs_of(cluster, writer.topic, partition), acknowledged[partition]))
    return count


def tally_of(logs: list[bytes], acknowledged: set[int]) -> Counter[str]:
    """Count what became of a partition's records, in all replicas.

    A record that one of them lacks is lost.
    """
    count = Counter({"replicas that differ": len(set(logs)) - 1})
    lost, doubled, again = set[int](), set[int](), set[int]()
    for log in logs:
        originals, sent_again = first_copies(records_in(log))
        times = Counter(record.number for record in originals)
        count["records checked, in all replicas"] += len(originals)
        lost |= acknowledged - times.keys()
        doubled.update(number for number, n in times.items() if n > 1)
        again |= sent_again.keys()
    count.update({"lost": len(lost), "doubled": len(doubled), "sent again under a new epoch": len(again)})
    return count


def count_of(cluster: Cluster, writer: Writer) -> int:
    """Return how many records a writer's topic has; replicas must be equal."""
    partitions = range(writer.partitions)
    return sum(len(records_in(logs_of(cluster, writer.topic, each)[0])) for each in partitions)
