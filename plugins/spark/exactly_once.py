"""Writes the rows of a task in its transaction, or counts them if an earlier attempt has committed them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from plugins.spark.errors import BatchChanged
from plugins.spark.row_sender import RowSender
from plugins.spark.task_transaction import BatchTask, TaskTransaction
from plugins.spark.worker_connections import CONNECTIONS, WorkerConnection
from plugins.spark.write_options import WriteOptions


def write_once(options: WriteOptions, task: BatchTask, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the rows unless the task's batch was committed before, and return how many were written.

    Raises InvalidRow, KafkaError, RequestTimedOut and TransactionError; then nothing is committed. Raises
    BatchChanged if the committed batch had another number of rows.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:  # A task without rows needs no transaction.
        return 0
    with CONNECTIONS.borrow(options.bootstrap_servers, options.client, {}) as connection:

        async def open_transaction() -> TaskTransaction:
            client = await connection.client()
            return await TaskTransaction.open(client, task, options.transactional_id_prefix, options.producer)

        transaction = connection.run(open_transaction())
        try:
            if transaction.is_done:
                _check_count(transaction, task, first, batches)
                return 0
            return _write(connection, transaction, options, first, batches)
        finally:
            connection.run(transaction.close())


def _write(
    connection: WorkerConnection,
    transaction: TaskTransaction,
    options: WriteOptions,
    first: pa.RecordBatch,
    batches: Iterator[pa.RecordBatch],
) -> int:
    async def sender() -> RowSender:
        return RowSender(await connection.client(), transaction.producer, options.topic)

    rows = connection.run(sender())
    connection.run(rows.send(first))
    for batch in batches:
        connection.run(rows.send(batch))
    topic = options.topic if options.topic is not None else first.column("topic")[0].as_py()
    connection.run(transaction.commit(topic, rows.row_count))
    return rows.row_count


def _check_count(
    transaction: TaskTransaction, task: BatchTask, first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]
) -> None:
    """Raise BatchChanged if the task's rows are not as many as it committed for the same batch."""
    committed = transaction.committed
    if committed is None or committed.batch_id != task.batch_id:
        return  # the checkpoint is older than what was written: only the last batch's count is known
    row_count = first.num_rows + sum(batch.num_rows for batch in batches)
    if row_count != committed.row_count:
        raise BatchChanged(task.batch_id, task.task, committed.row_count, row_count)
