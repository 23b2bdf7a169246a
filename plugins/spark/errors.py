"""What goes wrong between the log, Spark and the table, by what the caller does next.

ConnectError
├── DataLost            records the position needs are gone from the log: choose a new position
│   └── PartitionGone   the partition itself is gone: do without it, or read another topic
├── TopicRecreated      the topic is another one of the same name: point the sink at a new table
├── Fenced              another writer took the table over: stop
├── VerificationFailed  what Spark wrote is not what was planned: nothing was committed
├── JobFailed           Spark refused or failed the job; says what Spark said
└── RetriableError
    ├── DriverDied      the driver process ended: the same call starts a new one
    └── JobBrokenOff    a Python worker of Spark's ended, or the broker was away: the same call tries again
"""

from __future__ import annotations

from connect.api import ConnectError, RetriableError


class DataLost(ConnectError):
    """Offset `wanted` is not in the log of `topic`-`partition`; the nearest it has is `available`."""

    def __init__(self, topic: str, partition: int, wanted: int, available: int) -> None:
        super().__init__(topic, partition, wanted, available)
        self.topic = topic
        self.partition = partition
        self.wanted = wanted
        self.available = available

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: offset {self.wanted} is wanted, the log has {self.available}; "
            "records between them are lost (failOnDataLoss=false, for a connector fail.on.data.loss=false, "
            "goes on without them)"
        )

    def __repr__(self) -> str:
        return f"DataLost({str(self)!r})"


class PartitionGone(DataLost):
    """`topic`-`partition` is not in the cluster any more; the table holds it up to offset `wanted`."""

    def __init__(self, topic: str, partition: int, wanted: int) -> None:
        super().__init__(topic, partition, wanted, -1)

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition} is gone, and the table was fed from it up to offset "
            f"{self.wanted}; what came behind is lost (leave the topic out, or fail.on.data.loss=false "
            "goes on without it)"
        )


class TopicRecreated(ConnectError):
    """The table holds offsets of another topic of this name."""

    def __init__(self, topic: str, known: str, found: str) -> None:
        super().__init__(topic, known, found)
        self.topic = topic
        self.known = known
        self.found = found

    def __str__(self) -> str:
        return (
            f"topic {self.topic} was made again: the table was fed from topic id {self.known}, "
            f"the cluster now has {self.found}; its offsets do not continue"
        )

    def __repr__(self) -> str:
        return f"TopicRecreated({str(self)!r})"


class Fenced(ConnectError):
    """Another writer claimed the table after this one did."""


class VerificationFailed(ConnectError):
    """Rows or offsets in the written files differ from the plan."""


class JobFailed(ConnectError):
    """A call to the driver failed inside Spark."""


class DriverDied(RetriableError):
    """The driver process, or its JVM, ended before it answered."""


class JobBrokenOff(RetriableError):
    """A call failed inside Spark because something it needs was killed or restarted meanwhile."""
