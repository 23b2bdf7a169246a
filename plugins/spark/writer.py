"""The batch writer of `write.format("millstream")`: rows become records, as by Spark's Kafka sink.

Each task sends its rows by an idempotent producer of its own. A task that Spark repeats sends them again:
a batch write is at least once, as Spark's Kafka sink is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from plugins.spark.worker_connections import CONNECTIONS
from plugins.spark.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskWritten(WriterCommitMessage):
    """A task's report to the driver: the number of rows that it wrote."""

    row_count: int


class MillstreamWriter(DataSourceArrowWriter):
    """A writer that Spark pickles for its tasks, so it has only the options."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task. Raises InvalidRow, KafkaError and RequestTimedOut."""
        return TaskWritten(write_rows(self.options, iterator))


def write_rows(options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> int:
    """Send the rows of Arrow batches by a pooled connection, and return their number."""
    # Imported here: the driver, which only checks the columns, need not load pyarrow.
    from kafka_client import BatchProducer
    from plugins.spark.row_sender import RowSender

    with CONNECTIONS.borrow(options.bootstrap_servers, options.client, {}) as connection:

        async def start() -> tuple[BatchProducer, RowSender]:
            client = await connection.client()
            producer = await BatchProducer(client, **options.producer).start()
            return producer, RowSender(client, producer, options.topic)

        producer, sender = connection.run(start())
        try:
            for batch in batches:
                connection.run(sender.send(batch))
        finally:
            connection.run(producer.close(timeout_ms=0))
        return sender.row_count
