"""The records that consumers find in the bytes of a log."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_client.records import BatchHeader, Record, decode_records, iter_batches
from logd.broker.partition.partition import Partition

Batch = tuple[BatchHeader, list[Record]]


def batches(data: bytes | memoryview) -> Iterator[Batch]:
    """Yield the batches of a buffer with their records."""
    for position, header in iter_batches(data):
        yield header, decode_records(data, position)


def values(header: BatchHeader, records: list[Record]) -> dict[int, bytes | None]:
    """Return the values at the offsets of a batch, None for markers."""
    return {record[0]: None if header.is_control else record[3] for record in records}


def all_of(partition: Partition) -> dict[int, bytes | None]:
    """Return the value of every record from the log start offset on, by offset."""
    offset_values: dict[int, bytes | None] = {}
    for chunk in partition.read_all():
        for header, records in batches(chunk):
            offset_values.update(values(header, records))
    return {offset: value for offset, value in offset_values.items() if offset >= partition.log_start_offset}


def by_epoch(partition: Partition) -> Iterator[tuple[int, dict[int, bytes | None]]]:
    """Yield every batch's leader epoch, and its values by offset."""
    for chunk in partition.read_all():
        for header, records in batches(chunk):
            yield header.partition_leader_epoch, values(header, records)


def committed_of(partition: Partition) -> dict[int, bytes | None]:
    """Return what a consumer of committed records gets, by the algorithm of Apache Kafka's consumer."""
    log = partition.log
    start, end = partition.log_start_offset, partition.last_stable_offset
    waiting = sorted(log.reader.aborted(start, end), key=lambda each: -each.first_offset)
    aborting: set[int] = set()
    offset_values: dict[int, bytes | None] = {}
    for chunk in log.reader.batches(start, end):
        for header, records in batches(chunk):
            while waiting and waiting[-1].first_offset <= header.last_offset:
                aborting.add(waiting.pop().producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                offset_values.update(values(header, records))
    return {offset: value for offset, value in offset_values.items() if offset >= start}
