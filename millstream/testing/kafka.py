"""What a test writes to Kafka, reads from it and states about it: of one broker as of a cluster.

It is asked by its address, as any client asks. How it starts and ends, and faults, are left to `broker` and
`cluster`.
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
    """As a context manager it is started and stopped. `_close_client` comes in the end."""

    def __init__(self) -> None:
        self._client: SyncClient | None = None

    @abstractmethod
    def start(self) -> Self:
        """Have it serve. BrokerError."""

    @abstractmethod
    def stop(self) -> None:
        """End it."""

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
        """``host:port``, for clients; of several brokers separated by commas."""

    @property
    def _reachable(self) -> str:
        """Where our own client begins."""
        return self.bootstrap_servers

    @abstractmethod
    def report(self) -> str:
        """What a failed test prints."""

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
        """Write records: values, or pairs of key and value, and wait until they are acknowledged.

        A topic that is not there is created. Records go where Kafka's default partitioner has them, unless
        `partition` says. `timestamp` is in milliseconds since 1970. KafkaError.
        """
        from millstream.testing import client
        from millstream.testing.records import new_record

        records = [new_record(value, headers, timestamp) for value in values]
        self._ask_client().run(
            lambda connection: client.produce(connection, topic, records, partition), creates_topics=True
        )

    def records(self, topic: str) -> list[ReadRecord]:
        """All committed records of a topic, by partition and offset. KafkaError where there is none."""
        from millstream.testing import client

        return self._ask_client().run(lambda connection: client.read(connection, topic))

    def wait_for_records(self, topic: str, count: int, *, seconds: float = WAIT_S) -> list[ReadRecord]:
        """`records`, as soon as there are so many; AssertionError when there are not in time. The topic need
        not be there yet.
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
        """Wait until a group has committed all records of the partitions it has committed offsets for, and of
        all partitions of `topics`; AssertionError, saying what is left, when it has not in time.
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
        """Have each key once among a topic's committed records; with `expected`, all of these and no other.

        `key` makes it of a record (`key=lambda record: record.value`); without it it is the record's key, in
        bytes. AssertionError with offsets.
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
