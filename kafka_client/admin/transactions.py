"""Admin calls about transactions: what is open, who holds it open, and ending what hangs (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.cluster import TRANSACTION
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut, error_for
from kafka_client.fetcher.offsets import by_leader, by_topic
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from kafka_client.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafka_client.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id in ListTransactions; `coordinator` is the broker that lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transactional id and its transaction; `start_time_ms` is -1 before the first one."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that a partition remembers; absent values are -1.

    `coordinator_epoch` is the one of its last transaction's marker; its open transaction begins at
    `transaction_start_offset`.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int


class TransactionAdmin(AdminBase):
    """Transactions and their producers; see `admin.Admin`."""

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """Return the transactional ids of every coordinator that pass the filters; empty ones pass all.

        `longer_than_ms`: only transactions running longer (Kafka 3.8). `transactional_id_pattern`: a regular
        expression for the whole id (Kafka 4.1). Raises KafkaError UNSUPPORTED_VERSION if a broker does not
        support the filter.
        """
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        needed = 2 if transactional_id_pattern is not None else 1 if longer_than_ms >= 0 else 0

        async def ask() -> list[ListedTransaction]:
            transactions: list[ListedTransaction] = []
            for node in (await self._client.metadata((), refresh=True)).brokers:
                await self._check_version(node, needed)
                response: ListTransactionsResponse = await self._client.request(request, node=node)
                if response.error_code:
                    raise error_for(response.error_code, f"transactions of broker {node}")
                transactions += [
                    ListedTransaction(
                        listed.transactional_id, node, listed.producer_id, listed.transaction_state
                    )
                    for listed in response.transaction_states
                ]
            return transactions

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def _check_version(self, node: int, needed: int) -> None:
        connection = await self._client.connection(node)
        key, versions = ListTransactionsRequest.API_KEY, ListTransactionsRequest.VERSIONS
        if highest_common(key, versions, connection.versions, connection.name) < needed:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"broker {node} cannot filter transactions by {'duration' if needed == 1 else 'pattern'}",
            )

    async def describe_transactions(self, ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        """Return state and partitions of transactional ids.

        Raises KafkaError TRANSACTIONAL_ID_NOT_FOUND, which names the id.
        """
        return {
            transactional_id: await self._describe_transaction(transactional_id) for transactional_id in ids
        }

    async def _describe_transaction(self, transactional_id: str) -> DescribedTransaction:
        client = self._client
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        async def ask() -> DescribedTransaction:
            node = await client.coordinator(transactional_id, TRANSACTION)
            try:
                response: DescribeTransactionsResponse = await client.request(request, node=node)
            except (ConnectionClosed, RequestTimedOut):
                client.forget_coordinator(transactional_id, TRANSACTION)
                raise
            state = response.transaction_states[0]
            if state.error_code in _MOVED:
                client.forget_coordinator(transactional_id, TRANSACTION)
            if state.error_code:
                raise error_for(state.error_code, f"transactional id {transactional_id!r}")
            return DescribedTransaction(
                transactional_id,
                node,
                state.producer_id,
                state.producer_epoch,
                state.transaction_state,
                state.transaction_timeout_ms,
                state.transaction_start_time_ms,
                [
                    TopicPartition(topic.topic, partition)
                    for topic in state.topics
                    for partition in topic.partitions
                ],
            )

        return await client.retrying(ask, timeout_ms=self._timeout_ms)

    async def describe_producers(
        self, tps: Iterable[TopicPartition], *, node: int | None = None
    ) -> dict[TopicPartition, list[ActiveProducer]]:
        """Return the producers that each partition remembers, by its leader or by the broker `node`."""
        partitions = list(tps)

        async def ask() -> dict[TopicPartition, list[ActiveProducer]]:
            nodes = await by_leader(self._client, partitions) if node is None else {node: partitions}
            producers: dict[TopicPartition, list[ActiveProducer]] = {}
            for broker, its_partitions in nodes.items():
                producers.update(await self._producers_of(broker, its_partitions))
            return producers

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def _producers_of(
        self, node: int, tps: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer]]:
        topics = [
            TopicRequest(name=name, partition_indexes=partitions)
            for name, partitions in by_topic(tps).items()
        ]
        request = DescribeProducersRequest(topics=topics)
        response: DescribeProducersResponse = await self._client.request(request, node=node)
        producers: dict[TopicPartition, list[ActiveProducer]] = {}
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code:
                    raise error_for(partition.error_code, partition.error_message or f"producers of {tp}")
                producers[tp] = [_active(producer) for producer in partition.active_producers]
        return producers

    async def abort_transaction(
        self, tp: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Write an abort marker to a partition, for a transaction that the coordinator does not know.

        Raises Fenced if the partition knows a newer producer or coordinator epoch.
        """
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
            coordinator_epoch=coordinator_epoch,
        )

        async def ask() -> None:
            node = await self._client.leader(tp)
            request = WriteTxnMarkersRequest(markers=[marker])
            response: WriteTxnMarkersResponse = await self._client.request(request, node=node)
            for result in response.markers:
                for topic in result.topics:
                    for partition in topic.partitions:
                        if partition.error_code:
                            raise error_for(
                                partition.error_code, f"aborting producer {producer_id}'s transaction in {tp}"
                            )

        await self._client.metadata([tp.topic])
        await self._client.retrying(ask, timeout_ms=self._timeout_ms)


def _active(producer: ProducerState) -> ActiveProducer:
    return ActiveProducer(
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
    )
