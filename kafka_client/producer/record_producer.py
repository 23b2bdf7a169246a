"""The producer of single records, in or without transactions, for applications."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Self

from kafka_client.cluster.cluster import Client
from kafka_client.errors import (
    AbortableTransactionError,
    ConfigError,
    FatalTransactionError,
    MillstreamError,
    TransactionError,
)
from kafka_client.producer.consumed_offsets import ConsumedOffsets
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.producer.pending_record import PendingRecord
from kafka_client.producer.producer import IN_FLIGHT_MAX, BatchProducer, CompressionType
from kafka_client.producer.record_metadata import RecordMetadata
from kafka_client.producer.transaction_manager import Offsets
from kafka_client.producer.transactional import TransactionalProducer
from kafka_client.records.record import NewRecord

Acks = Literal["all", -1, 0, 1]
Serializer = Callable[[Any], bytes | None]


class Producer:
    """Sends records one by one; they travel in batches, in order per partition, without duplicates.

        async with Client("localhost:9092") as client, Producer(client) as producer:
            record = await producer.send_and_wait("orders", b"1 apple", key=b"ann")

    The settings have Kafka's names, with `_` for `.`:

    `acks`: "all" (or -1) waits for all in-sync replicas, 1 for the leader, 0 for nobody.
    `enable_idempotence`: the broker drops what a retry sends twice (KIP-98). It takes effect with acks "all".
    `transactional_id`: name of this producer across restarts; allows `transaction` (KIP-98, KIP-447).
    A newer producer with the same id fences this one.
    `transaction_timeout_ms`: after this time the broker aborts an open transaction.
    `linger_ms`: how long a batch waits for more records. `batch_size`: bytes of a batch before compression.
    `compression_type`: "none", "gzip", "snappy", "lz4" or "zstd"; `compression_level` is the codec's.
    `max_request_size`: largest request, and so the largest record, in bytes.
    `buffer_memory`: bytes of records that may wait for their acknowledgement; `send` waits for room.
    `delivery_timeout_ms`: time after which a record that was not acknowledged fails.
    `max_in_flight`: requests under way per broker, 1 to 5 (max.in.flight.requests.per.connection).
    `key_serializer`, `value_serializer`: turn keys and values into bytes, such as `str.encode`. None stays
    None. Without a serializer keys and values are bytes.

    Raises ConfigError if a setting has no sense, or contradicts `transactional_id`.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: Acks = "all",
        enable_idempotence: bool = True,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        linger_ms: float = 5,
        batch_size: int = 262_144,
        compression_type: CompressionType = "none",
        compression_level: int | None = None,
        max_request_size: int = 1_048_576,
        buffer_memory: int = 33_554_432,
        delivery_timeout_ms: int = 120_000,
        max_in_flight: int = IN_FLIGHT_MAX,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
    ) -> None:
        self._client = client
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        settings: dict[str, Any] = {
            "linger_ms": linger_ms,
            "batch_size": batch_size,
            "compression_type": compression_type,
            "compression_level": compression_level,
            "max_request_size": max_request_size,
            "buffer_memory": buffer_memory,
            "delivery_timeout_ms": delivery_timeout_ms,
            "max_in_flight": max_in_flight,
        }
        if acks not in ("all", -1, 0, 1):
            raise ConfigError("acks", acks, '"all", -1, 0 or 1')
        self._transactional: TransactionalProducer | None = None
        self._batches: BatchProducer | TransactionalProducer
        if transactional_id is None:
            self._batches = BatchProducer(
                client,
                acks=-1 if acks == "all" else acks,
                enable_idempotence=enable_idempotence,
                **settings,
            )
        else:
            if acks not in ("all", -1):
                raise ConfigError("acks", acks, 'a transactional producer needs "all"')
            if not enable_idempotence:
                raise ConfigError("enable_idempotence", False, "a transactional producer needs True")
            self._batches = self._transactional = TransactionalProducer(
                client, transactional_id, transaction_timeout_ms=transaction_timeout_ms, **settings
            )

    # --- life ---

    async def start(self) -> Self:
        """Get a producer id. `async with` does it.

        A transactional producer fences earlier ones with its id and waits until their transaction is
        aborted. Raises MillstreamError; ProducerFenced if a newer one took the id meanwhile.
        """
        await self._batches.start()
        return self

    async def close(self, *, timeout_ms: int = 30_000) -> None:
        """Send what is queued, for at most `timeout_ms`, and stop. An open transaction is aborted.

        Records that were not acknowledged by then fail with ConnectionClosed. May be called twice.
        """
        await self._batches.close(timeout_ms=timeout_ms)

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self.close(timeout_ms=0)
            raise

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- sending ---

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> PendingRecord:
        """Queue one record; `await` what is returned to wait for the acknowledgement.

        Waits only for room in `buffer_memory`, and for the topic's metadata. Without `partition` Kafka's
        default partitioner chooses: by murmur2 of the key, and one partition per batch for records without a
        key (KIP-480). `timestamp_ms`: create time in ms since 1970, the present by default. `headers`: pairs
        of name and bytes (or None).

        Raises TypeError if a key or value is not bytes after its serializer, and what the serializer raises.
        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION if there is no such topic, MESSAGE_TOO_LARGE above
        `max_request_size`. Raises ConnectionClosed after `close`. Raises RuntimeError if the producer is
        transactional and no transaction is open, and the transaction's error if it has failed.

        The `PendingRecord` fails with RequestTimedOut after `delivery_timeout_ms`, RecordsRefused or another
        KafkaError if the broker refuses the record, and ConnectionClosed if the producer was closed.
        Retriable errors are retried until then. In a transaction a failure also fails the commit.
        """
        key, value = _bytes("key", key, self._key_serializer), _bytes("value", value, self._value_serializer)
        if partition is None:
            count = (await self._client.topic(topic)).partition_count
            partition = self._batches.partition_for(topic, key, count)
        timestamp_ms = _now_ms() if timestamp_ms is None else timestamp_ms
        future = await self._batches.send(topic, partition, [(timestamp_ms, key, value, tuple(headers))])
        return PendingRecord(future, topic, partition, timestamp_ms)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """Send one record and wait for its acknowledgement. Raises as `send` and its `PendingRecord` do.

        Each call waits for a request to the broker, after `linger_ms`: to send much, use `send` or
        `send_many`.
        """
        pending = await self.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return await pending

    async def send_many(
        self,
        topic: str,
        records: Iterable[tuple[Any, Any]],
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> list[PendingRecord]:
        """Queue many records, given as (key, value), with one piece of work per partition.

        Returns one `PendingRecord` per partition that got some. It is done once all of that partition's
        records are acknowledged, and has the metadata of the first one. Records of a partition, and so of a
        key, keep their order. Records without a key go to one partition. Raises as `send`; records of
        other partitions may be queued by then.
        """
        timestamp_ms = _now_ms() if timestamp_ms is None else timestamp_ms
        of_key, of_value = self._key_serializer, self._value_serializer
        new: list[NewRecord] = [
            (timestamp_ms, _bytes("key", key, of_key), _bytes("value", value, of_value), ())
            for key, value in records
        ]
        if not new:
            return []
        if partition is not None:
            split = {partition: new}
        else:
            count = (await self._client.topic(topic)).partition_count
            split = self._batches.partitioned(topic, new, count)
        return [
            PendingRecord(await self._batches.send(topic, number, some), topic, number, timestamp_ms)
            for number, some in split.items()
        ]

    async def flush(self) -> None:
        """Send what is queued without lingering, and wait until all of it is acknowledged or has failed.

        Failures are raised by the `PendingRecord`s, not here.
        """
        await self._batches.flush()

    # --- transactions ---

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Run the body of `async with` in a transaction: commit at its end, abort if it raises.

            async with producer.transaction():
                await producer.send("output", b"value")
                await producer.send_offsets(consumer)

        The commit waits until all records are acknowledged. Readers with `read_committed` see all of the
        transaction's records and offsets, or none.

        Raises what the body raised, after the abort. If the commit fails: AbortableTransactionError (aborted;
        do the work again in a new transaction), TransactionRebalanced (the same, and the partitions may be
        another member's now), ProducerFenced (a newer producer has the id: stop), FatalTransactionError
        (close this producer and make a new one). Raises RuntimeError without `transactional_id`, or if a
        transaction is open.
        """
        producer = self._needs_transactions()
        producer.begin()
        try:
            yield self
        except BaseException as error:
            await _abort(producer, error)
            raise
        try:
            await producer.commit()
        except TransactionError as error:
            await _abort(producer, error)
            raise
        except BaseException as error:
            # Cancelled, or closed. A commit that has begun goes on, and `abort` waits for its outcome.
            with suppress(RuntimeError):
                await _abort(producer, error)
            raise

    async def send_offsets(
        self,
        offsets: ConsumedOffsets | Offsets,
        group: GroupMetadata | str | None = None,
    ) -> None:
        """Have a group's offsets committed with the open transaction (KIP-98, KIP-447).

        `offsets`: a `Consumer`, whose `consumed_offsets` and group are taken, or the next offset to read of
        each partition. `group`: needed with a mapping: a `Consumer.group_metadata()`, which fences a member
        whose generation is over, or a group's id alone.

        Raises TransactionRebalanced if the member's generation is over, RebalanceNeeded while the consumer
        has none, and other errors as `transaction`. Raises ValueError if the group is missing.
        """
        producer = self._needs_transactions()
        if not isinstance(offsets, Mapping):
            group = offsets.group_metadata() if group is None else group
            offsets = offsets.consumed_offsets()
        if not group:
            raise ValueError("offsets are a group's: give its id or a consumer's group_metadata()")
        await producer.send_offsets(offsets, group)

    # --- looking ---

    async def partitions_for(self, topic: str) -> list[int]:
        """Return the topic's partition numbers. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION without it."""
        return sorted((await self._client.topic(topic)).partitions)

    def statistics(self) -> dict[str, int]:
        """Return counters and gauges, as `BatchProducer` and `TransactionalProducer` do."""
        return self._batches.statistics()

    # --- parts ---

    def _needs_transactions(self) -> TransactionalProducer:
        if self._transactional is None:
            raise RuntimeError("the producer has no transactions: give it a transactional_id")
        return self._transactional


def _bytes(what: str, data: Any, serializer: Serializer | None) -> bytes | None:
    """Return a key or value as bytes; None stays None. Raises TypeError if it is not bytes-like."""
    if data is None:
        return None
    if serializer is not None:
        data = serializer(data)
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise TypeError(
        f"a {what} has to be bytes, not {type(data).__name__}: encode it, or give {what}_serializer"
    )


async def _abort(producer: TransactionalProducer, cause: BaseException) -> None:
    """Abort because of `cause`, which gets a note if the abort fails, too.

    Raises FatalTransactionError instead of an abortable `cause`: the next transaction would not begin.
    """
    try:
        await producer.abort()
    except FatalTransactionError as error:
        if isinstance(cause, AbortableTransactionError):
            raise error from cause
        cause.add_note(f"the transaction could not be aborted: {error}")
    except MillstreamError as error:
        cause.add_note(f"the transaction could not be aborted: {error}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
