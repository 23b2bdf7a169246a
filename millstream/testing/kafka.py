"""The calls by which a test writes to Kafka, reads from it and makes assertions, for brokers and clusters.

The client connects by the address, as any client does. `broker` and `cluster` add the start, the end and
faults.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kafka_client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from millstream.testing.assertions import Key
    from millstream.testing.client import SyncClient
    from millstream.testing.records import ReadRecord, Text

LOOK_AGAIN_S = 0.02
WAIT_S = 10.0


class Kafka(ABC):
    """A broker or cluster, used as a context manager that starts and stops it.

    `stop` calls `_close_client`.
    """

    def __init__(self) -> None:
        self._client: SyncClient | None = None

    @abstractmethod
    def start(self) -> Self:
        """Start and wait until it serves. Raises BrokerError if it does not start."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The address for clients, ``host:port``; several are separated by commas."""

    @property
    def _reachable(self) -> str:
        """The address for this object's own client."""
        return self.bootstrap_servers

    @abstractmethod
    def report(self) -> str:
        """Return the report that a failed test prints."""

    # Records

    def produce(
        self,
        topic: str,
        values: Iterable[Text | tuple[Text, Text]],
        *,
        partition: int | None = None,
        headers: Mapping[str, Text] | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Write records, which are values or pairs of key and value, and wait until they are acknowledged.

        A missing topic is created. Kafka's default partitioner chooses the partition unless `partition` is
        set. `timestamp` is in milliseconds since 1970. Raises KafkaError if a write fails.
        """
        from millstream.testing import client
        from millstream.testing.records import new_record

        records = [new_record(value, headers, timestamp) for value in values]
        self._ask_client().run(
            lambda connection: client.produce(connection, topic, records, partition), creates_topics=True
        )

    def records(self, topic: str) -> list[ReadRecord]:
        """Return all committed records of a topic, by partition and offset.

        Raises KafkaError for a missing topic.
        """
        from millstream.testing import client

        return self._ask_client().run(lambda connection: client.read(connection, topic))

    def wait_for_records(self, topic: str, count: int, *, seconds: float = WAIT_S) -> list[ReadRecord]:
        """Return `records` once there are at least `count`. The topic may be missing at first.

        Raises AssertionError if there are fewer after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while len(records := self._records_so_far(topic)) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(records)} records in {topic!r} after {seconds:g} s, not {count}")
            time.sleep(LOOK_AGAIN_S)
        return records

    def _records_so_far(self, topic: str) -> list[ReadRecord]:
        try:
            return self.records(topic)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return []

    # Assertions

    def wait_lag_zero(self, group: str, topics: Collection[str] = (), *, seconds: float = WAIT_S) -> None:
        """Wait until a group has committed all records of its partitions and of all partitions of `topics`.

        The group's partitions are those with a committed offset. Raises AssertionError with the lag after
        `seconds`.
        """
        from millstream.testing import client
        from millstream.testing.assertions import lag_told

        names = [topics] if isinstance(topics, str) else list(topics)
        deadline = time.monotonic() + seconds
        while True:
            unread = self._ask_client().run(lambda connection: client.unread(connection, group, names))
            if unread and not any(unread.values()):
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:g} s {lag_told(group, unread)}")
            time.sleep(LOOK_AGAIN_S)

    def assert_exactly_once(
        self, topic: str, *, key: Key | None = None, expected: Iterable[object] | None = None
    ) -> None:
        """Assert that each key occurs once among a topic's committed records.

        With `expected`, the keys must be exactly these. `key` makes the key of a record (`key=lambda record:
        record.value`); by default it is the record's key in bytes. Raises AssertionError with offsets.
        """
        from millstream.testing.assertions import exactly_once

        exactly_once(self.records(topic), key, expected)

    def _ask_client(self) -> SyncClient:
        if self._client is None:
            from millstream.testing.client import SyncClient

            self._client = SyncClient(lambda: self._reachable)
        return self._client

    def _close_client(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            client.close()
