"""The stream writer of `writeStream.format("millstream")`: at least once, or exactly once with `exactlyOnce`.

A task commits its own rows when it has sent them (`task_transaction`). So the driver has nothing to commit.
A batch that fails half way is completed when Spark repeats it: tasks that committed write nothing again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from plugins.spark.task_transaction import BatchTask
from plugins.spark.write_options import WriteOptions
from plugins.spark.writer import TaskWritten, write_rows

if TYPE_CHECKING:
    import pyarrow as pa


class MillstreamStreamWriter(DataSourceStreamArrowWriter):
    """A writer that Spark pickles for its tasks, so it has only the options."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Write the rows of one task. Raises InvalidRow, BatchChanged, KafkaError and TransactionError."""
        if not self.options.exactly_once:
            return TaskWritten(write_rows(self.options, iterator))
        from plugins.spark.exactly_once import write_once

        return TaskWritten(write_once(self.options, current_task(), iterator))


def current_task() -> BatchTask:
    """Return the task that Spark runs in this process now, by the properties that Spark passes to it."""
    context = TaskContext.get()
    assert context is not None, "called by Spark's worker"
    query_id = context.getLocalProperty("sql.streaming.queryId")
    batch_id = context.getLocalProperty("streaming.sql.batchId")
    assert query_id is not None, "Spark sets it for each micro-batch"
    assert batch_id is not None, "Spark sets it for each micro-batch"
    return BatchTask(query_id=query_id, batch_id=int(batch_id), task=context.partitionId())
