"""The records in a raw batch, as a reader of the topic would get them."""

from __future__ import annotations

from connect.api.raw_batch import RawBatch
from connect.api.records import SourceRecord
from connect.runtime.raw_batches import passed
from kafka_client.records import decode_records


def decoded(batch: RawBatch) -> list[SourceRecord]:
    """Return the records that a worker would write, keys and values as bytes; the last one has the offset.

    Raises DataError for a batch that a worker would refuse.
    """
    data, count = passed(batch)
    if not count:
        return []
    records = [
        SourceRecord(
            batch.topic,
            value,
            key,
            timestamp,
            batch.partition,
            [(name, None, data) for name, data in headers],
            batch.source_partition,
        )
        for _, timestamp, key, value, headers in decode_records(data)
    ]
    records[-1].source_offset = batch.source_offset
    return records
