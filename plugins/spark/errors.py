"""Errors of the Spark source and sink, grouped by what the caller does next.

ConnectError
├── DataLost            records at the position are gone from the log: choose a new position
│   └── PartitionGone   the partition itself was deleted: read without it, or read another topic
├── TopicRecreated      the topic was deleted and created again: accept.topic.ids goes on with the new one
├── Fenced              another writer has claimed the table: stop
├── PositionLost        a Delta table has lost a transaction of the sink: take a new path
├── TableRefused        a table that this sink cannot write, or that is not its own: take a new path
├── SchemaConflict      a topic's field does not fit the table's column: declare value.schema
├── CompactionLost      another compaction has replaced the same files: repeat it
├── UnsupportedColumns  a DataFrame has columns of other types than records have: select or cast them
├── InvalidRow          a row cannot be a record: filter or correct it
├── BatchChanged        a repeated micro-batch is divided otherwise: run the query as before
├── VerificationFailed  Spark wrote other rows than planned: nothing was committed
├── JobFailed           Spark refused or failed the job; the message is Spark's
└── RetriableError
    ├── CommitLost      others commit to a Delta table without a pause: repeat the call
    ├── DriverDied      the driver process ended: repeat the call, which starts a new one
    └── JobBrokenOff    a Python worker of Spark ended, or the broker was unreachable: repeat the call
"""

from __future__ import annotations

import base64

from connect.api import ConnectError, RetriableError


def id_text(topic_id: str) -> str:
    """Return a topic's id, from its hex form, as Kafka's tools print it."""
    return base64.urlsafe_b64encode(bytes.fromhex(topic_id)).decode().rstrip("=")


class DataLost(ConnectError):
    """An offset to read is not in the log of `topic`-`partition`; the nearest one in it is `available`."""

    def __init__(self, topic: str, partition: int, offset: int, available: int) -> None:
        super().__init__(topic, partition, offset, available)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.available = available

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: offset {self.offset} is wanted, the log has {self.available}; "
            "records between them are lost (failOnDataLoss=false, for a connector fail.on.data.loss=false, "
            "goes on without them)"
        )

    def __repr__(self) -> str:
        return f"DataLost({str(self)!r})"


class PartitionGone(DataLost):
    """A partition whose records are in the table, up to `offset`, is no longer in the cluster."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(topic, partition, offset, -1)

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition} is gone, and the table was fed from it up to offset "
            f"{self.offset}; what came behind is lost (leave the topic out, or fail.on.data.loss=false "
            "goes on without it)"
        )


class TopicRecreated(ConnectError):
    """The table has offsets of a deleted topic with the same name but another topic id."""

    def __init__(self, topic: str, table_id: str, cluster_id: str) -> None:
        super().__init__(topic, table_id, cluster_id)
        self.topic = topic
        self.table_id = table_id
        self.cluster_id = cluster_id

    def __str__(self) -> str:
        return (
            f"topic {self.topic} was made again: the table was fed from topic id {id_text(self.table_id)}, "
            f"the cluster now has {id_text(self.cluster_id)}; its offsets do not continue "
            f"(accept.topic.ids={self.topic}:{id_text(self.cluster_id)} keeps the rows and goes on with the "
            "new topic from its start)"
        )

    def __repr__(self) -> str:
        return f"TopicRecreated({str(self)!r})"


class Fenced(ConnectError):
    """Another writer has claimed the table after this one."""


class PositionLost(ConnectError):
    """A Delta table has no transaction with the next offset of a partition that it has rows of."""

    def __init__(self, app_id: str) -> None:
        super().__init__(app_id)
        self.app_id = app_id

    def __str__(self) -> str:
        return (
            f"the table has no transaction {self.app_id}, which has the next offset: another program has "
            "removed it, or delta.setTransactionRetentionDuration; restore the table, or take a new path"
        )

    def __repr__(self) -> str:
        return f"PositionLost({str(self)!r})"


class TableRefused(ConnectError):
    """A table that this sink cannot write, or that belongs to another one."""


class SchemaConflict(ConnectError):
    """A field of a topic's values does not fit the table's column of the same name."""


class UnsupportedColumns(ConnectError):
    """A column that records need is missing, or has another type."""


class InvalidRow(ConnectError):
    """A row that a broker or Kafka's producer would refuse."""


class BatchChanged(ConnectError):
    """A repeated micro-batch has other rows in a task than the task committed before."""

    def __init__(self, batch_id: int, task: int, committed: int, rows: int) -> None:
        super().__init__(batch_id, task, committed, rows)
        self.batch_id = batch_id
        self.task = task
        self.committed = committed
        self.rows = rows

    def __str__(self) -> str:
        return (
            f"batch {self.batch_id}, task {self.task}: {self.committed} rows were committed before, "
            f"now there are {self.rows}; end the batch with the query and the settings it was begun with"
        )


class CompactionLost(ConnectError):
    """A compaction was not committed; the table is as before."""


class VerificationFailed(ConnectError):
    """Rows or offsets in the written files differ from the plan."""


class JobFailed(ConnectError):
    """A call to the driver failed inside Spark."""


class CommitLost(RetriableError):
    """Other writers of a Delta table were first with every version that was tried."""


class DriverDied(RetriableError):
    """The driver process, or its JVM, ended before it answered."""


class JobBrokenOff(RetriableError):
    """A call failed inside Spark because something it needs was killed or restarted meanwhile."""
