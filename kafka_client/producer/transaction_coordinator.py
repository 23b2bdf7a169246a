"""The requests of a transaction, each repeated until it is answered.

They go to the transaction coordinator, wherever it is, and offsets go to the group's coordinator. The
transaction version is the cluster's finalized feature `transaction.version` (KIP-890), looked up again after
the coordinator was lost. `transactional` decides what to do by it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kafka_client.backoff import Backoff
from kafka_client.cluster.cluster import GROUP, TRANSACTION, Client
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.cluster.versions import SOFTWARE_NAME, SOFTWARE_VERSION, highest_common
from kafka_client.errors import (
    AbortableTransactionError,
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
    RequestTimedOut,
    TransactionError,
)
from kafka_client.producer import transaction_answers as answers
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.producer.identity import Identity
from kafka_client.producer.transaction_answers import Answers
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafka_client.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_client.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")

FEATURE = "transaction.version"
IMPLICIT_FROM = 2
"""First transaction version in which producing adds partitions and each transaction has its own epoch."""

RETRY_SECONDS = (0.005, 0.5)
"""First and longest pause; mostly the markers of the previous transaction are being written."""

_INIT = (0, 5)
PART_BYTES = 256 * 1024
"""Approximate limit of a TxnOffsetCommit in bytes.

Brokers limit it by ``max.message.bytes`` of their offsets topic, 1 MiB unless set.
"""
OFFSET_BYTES = 200
"""Approximate bytes of an offset in that request, besides its topic and metadata."""

_ADD_PARTITIONS = (0, 3)
"""Versions for clients; from 4 on AddPartitionsToTxn is for brokers."""
_ADD_OFFSETS = (0, 4)
_COMMIT_OFFSETS = {False: (0, 4), True: (5, 5)}
_END = {False: (0, 4), True: (5, 5)}
"""Versions by whether the transaction version is 2."""

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)


class TransactionCoordinator:
    """A client of the coordinator, for one transactional id.

    Calls raise TransactionError by the tables of `transaction_answers`. `transaction_timeout_ms`: the time
    after which the coordinator aborts a transaction on its own, and after which no offsets are sent.
    """

    def __init__(self, client: Client, transactional_id: str, transaction_timeout_ms: int) -> None:
        self._client = client
        self._id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._lane = client.new_lane("transactions")
        self._version: int | None = None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close_lane(self._lane)

    async def version(self, *, timeout_ms: int | None = None) -> int:
        """Return the version of the next transaction: 0, 1 or 2. `timeout_ms` as for `initialise`."""

        async def attempt() -> int:
            request = ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
            )
            response: ApiVersionsResponse = await self._ask(request, ApiVersionsRequest.VERSIONS)
            if response.error_code:
                raise answers.FIND.error(response.error_code, "ApiVersions")
            levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
            return levels.get(FEATURE, 0)

        if self._version is None:
            version = await self._persist(answers.FIND, attempt, timeout_ms=timeout_ms, late=None)
            self._version = version
        return self._version

    async def initialise(self, current: Identity | None, *, timeout_ms: int | None = None) -> Identity:
        """Send InitProducerId; return an identity that fences all before, after an open transaction's abort.

        `current`: the identity to continue in a new epoch (KIP-360). Raises ProducerFenced if another
        producer has taken over, and the last error as it is if retries fail for `timeout_ms`.
        """
        request = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=current.producer_id if current else -1,
            producer_epoch=current.epoch if current else -1,
        )

        async def attempt() -> Identity:
            response: InitProducerIdResponse = await self._ask(request, _INIT)
            self._check(answers.INIT, response.error_code)
            return Identity(response.producer_id, response.producer_epoch)

        return await self._persist(answers.INIT, attempt, timeout_ms=timeout_ms, late=None)

    async def add_partitions(
        self,
        identity: Identity,
        partitions: Iterable[TopicPartition],
        *,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Add partitions to the transaction. Repeat a failed request while `is_wanted` returns True."""
        topics: dict[str, list[int]] = defaultdict(list)
        for tp in partitions:
            topics[tp.topic].append(tp.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers) for name, numbers in topics.items()
            ],
        )

        async def attempt() -> None:
            response: AddPartitionsToTxnResponse = await self._ask(request, _ADD_PARTITIONS)
            refused = [
                (p.partition_error_code, f"{topic.name}-{p.partition_index}")
                for topic in response.results_by_topic_v3_and_below
                for p in topic.results_by_partition
                if p.partition_error_code
            ]
            # What was not attempted because of another partition says nothing.
            refused.sort(key=lambda one: one[0] == ErrorCode.OPERATION_NOT_ATTEMPTED)
            for code, name in refused:
                self._check(answers.ADD_PARTITIONS, code, name)

        await self._persist(answers.ADD_PARTITIONS, attempt, is_wanted=is_wanted)

    async def add_offsets(
        self, identity: Identity, group_id: str, *, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Add a group's offsets to the transaction, as `commit_offsets` needs below transaction version 2."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group_id,
        )

        async def attempt() -> None:
            response: AddOffsetsToTxnResponse = await self._ask(request, _ADD_OFFSETS)
            self._check(answers.ADD_OFFSETS, response.error_code, f"group {group_id!r}")

        await self._persist(answers.ADD_OFFSETS, attempt, is_wanted=is_wanted)

    async def commit_offsets(
        self,
        identity: Identity,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: GroupMetadata,
        *,
        implicit: bool,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Commit consumed offsets in the transaction, retrying for as long as a transaction may last.

        Many offsets are sent in several requests, one after the other, as the coordinator's log limits the
        size of one. If a request fails, all of its offsets are sent again.
        """
        for part in _in_parts(offsets):
            request = self._offsets_request(identity, part, group)
            await self._commit_part(request, group, implicit=implicit, is_wanted=is_wanted)

    async def _commit_part(
        self,
        request: TxnOffsetCommitRequest,
        group: GroupMetadata,
        *,
        implicit: bool,
        is_wanted: Callable[[], bool],
    ) -> None:
        async def attempt() -> None:
            response: TxnOffsetCommitResponse = await self._ask(
                request, _COMMIT_OFFSETS[implicit], key=group.group_id, type=GROUP
            )
            for topic in response.topics:
                for p in topic.partitions:
                    about = f"group {group.group_id!r}, {topic.name}-{p.partition_index}"
                    self._check(answers.COMMIT_OFFSETS, p.error_code, about, key=group.group_id, type=GROUP)

        await self._persist(answers.COMMIT_OFFSETS, attempt, is_wanted=is_wanted, timeout_ms=self._timeout_ms)

    async def end(self, identity: Identity, *, commit: bool, implicit: bool) -> Identity:
        """End the transaction. Repeat the request until it is answered, and return the next identity.

        The coordinator answers a repeated request like the first. It knows it by the transaction's state, and
        with transaction version 2 by the epoch before.
        """
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        )

        async def attempt() -> Identity:
            response: EndTxnResponse = await self._ask(request, _END[implicit])
            self._check(answers.END, response.error_code, "commit" if commit else "abort")
            if response.producer_id < 0:
                return identity
            return Identity(response.producer_id, response.producer_epoch)

        return await self._persist(answers.END, attempt)

    def _offsets_request(
        self,
        identity: Identity,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: GroupMetadata,
    ) -> TxnOffsetCommitRequest:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
        for tp, offset in offsets.items():
            whole = OffsetAndMetadata.of(offset)
            topics[tp.topic].append(
                TxnOffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=whole.offset,
                    committed_leader_epoch=whole.leader_epoch,
                    committed_metadata=whole.metadata,
                )
            )
        return TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()
            ],
        )

    # --- asking ---

    async def _ask(
        self, message: Message, versions: tuple[int, int], *, key: str = "", type: int = TRANSACTION
    ) -> Any:
        """Send the request once, in the highest version within `versions` that both sides know."""
        node = await self._find(key or self._id, type)
        request = message.__class__
        try:
            connection = await self._client.connection(node, lane=self._lane)
            version = highest_common(request.API_KEY, versions, connection.versions, connection.name)
            payload = await connection.call(
                lambda correlation_id: encode_request(
                    message, version, correlation_id, self._client.client_id
                ),
                timeout=self._client.request_timeout_ms / 1000,
            )
        except (ConnectionClosed, RequestTimedOut):
            self._forget(key or self._id, type)
            raise
        _, pos = decode_response_header(request.API_KEY, version, payload)
        response = decode(response_class(request.API_KEY), version, payload, pos)
        if throttle_ms := getattr(response, "throttle_time_ms", 0):
            connection.throttle(throttle_ms)
        return response

    async def _find(self, key: str, type: int) -> int:
        try:
            return await self._client.coordinator(key, type)
        except KafkaError as error:
            raise error if answers.is_passing(error) else answers.FIND.verdict(error) from None

    def _forget(self, key: str, type: int) -> None:
        self._client.forget_coordinator(key, type)
        if type == TRANSACTION:
            self._version = None

    def _check(
        self, table: Answers, code: int, about: str = "", *, key: str = "", type: int = TRANSACTION
    ) -> None:
        """Raise the exception of a response's error code, if there is one."""
        if not code:
            return
        if code in _MOVED:
            self._forget(key or self._id, type)
        raise table.error(code, about or f"transactional id {self._id!r}")

    async def _persist(
        self,
        table: Answers,
        attempt: Callable[[], Awaitable[T]],
        *,
        is_wanted: Callable[[], bool] = lambda: True,
        timeout_ms: int | None = None,
        late: type[TransactionError] | None = AbortableTransactionError,
    ) -> T:
        """Repeat `attempt` until it is answered.

        Raises the last error as `late` if `is_wanted` turns false or `timeout_ms` are over.
        """
        loop = asyncio.get_running_loop()
        deadline = float("inf") if timeout_ms is None else loop.time() + timeout_ms / 1000
        backoff = Backoff(*RETRY_SECONDS, self._client.random)
        while True:
            try:
                return await attempt()
            except MillstreamError as error:
                if not answers.is_passing(error) or self._client.closed:
                    raise table.verdict(error) from error
                pause = backoff.next()
                if loop.time() + pause > deadline and late is None:
                    raise
                if not is_wanted() or loop.time() + pause > deadline:
                    raise answers.as_transaction_error(late or AbortableTransactionError, error) from error
            await asyncio.sleep(pause)


def _in_parts(
    offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> Iterator[dict[TopicPartition, OffsetAndMetadata]]:
    part: dict[TopicPartition, OffsetAndMetadata] = {}
    size = 0
    for tp, offset in offsets.items():
        part[tp] = whole = OffsetAndMetadata.of(offset)
        size += OFFSET_BYTES + len(tp.topic) + len(whole.metadata)
        if size >= PART_BYTES:
            yield part
            part, size = {}, 0
    if part:
        yield part
