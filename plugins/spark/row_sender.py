"""Sends rows as records, and waits until each Arrow batch of them is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_client import BatchProducer, Client, TransactionalProducer
from kafka_client.records import NewRecord
from plugins.spark.row_records import Row, rows_by_topic

if TYPE_CHECKING:
    import pyarrow as pa

KEYLESS_ROWS_MAX = 1000
"""Rows without a key that are sent to one partition before the partitioner may choose another one."""


class RowSender:
    """The rows of one task on their way to a producer.

    Spark hands over the next rows after any time, during which the event loop stands still. So nothing is in
    flight then: each call waits for all acknowledgements.
    """

    def __init__(
        self, client: Client, producer: BatchProducer | TransactionalProducer, topic: str | None
    ) -> None:
        self._client = client
        self._producer = producer
        self._topic = topic
        self.row_count = 0

    async def send(self, batch: pa.RecordBatch) -> None:
        """Send the rows, and wait until the brokers have them.

        Raises InvalidRow for a row that is no record, and KafkaError or RequestTimedOut if a broker refuses
        rows or does not answer. Other rows of the batch may be in the log by then.
        """
        pending: list[asyncio.Future[int | None]] = []
        try:
            for topic, rows in rows_by_topic(batch, self._topic).items():
                for start in range(0, len(rows), KEYLESS_ROWS_MAX):
                    by_partition = await self._divide(topic, rows[start : start + KEYLESS_ROWS_MAX])
                    for partition, records in by_partition.items():
                        pending.append(await self._producer.send(topic, partition, records))
        finally:
            await self._producer.flush()
            results = await asyncio.gather(*pending, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        self.row_count += batch.num_rows

    async def _divide(self, topic: str, rows: Sequence[Row]) -> dict[int, list[NewRecord]]:
        """Return the records by partition: the row's, or what Kafka's default partitioner chooses."""
        if any(partition is None for partition, _ in rows):
            count = (await self._client.topic(topic)).partition_count
            if all(partition is None for partition, _ in rows):
                return self._producer.partitioned(topic, [record for _, record in rows], count)
        divided: dict[int, list[NewRecord]] = {}
        for partition, record in rows:
            if partition is None:
                partition = self._producer.partition_for(topic, record[1], count)
            divided.setdefault(partition, []).append(record)
        return divided
