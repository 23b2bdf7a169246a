"""The requests of a transaction, each sent until it is answered: to the transaction coordinator, wherever it
is, and for offsets to the group's.

Which transaction version is spoken is the cluster's finalized feature `transaction.version` (KIP-890); it is
asked for anew when the coordinator was lost. What to do with it is left to `transactional`.
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
"""Transaction version from which on partitions are added by producing, and each transaction has its epoch."""

RETRY_SECONDS = (0.005, 0.5)
"""First and longest pause: mostly it is markers of the last transaction that are waited for."""

_INIT = (0, 5)
PART_BYTES = 256 * 1024
"""About the largest TxnOffsetCommit: what a broker takes at once is bounded by ``max.message.bytes`` of its
offsets topic, 1 MiB unless set.
"""
OFFSET_BYTES = 200
"""About what an offset takes there, besides its topic and metadata."""

_ADD_PARTITIONS = (0, 3)
"""From version 4 on it is for brokers."""
_ADD_OFFSETS = (0, 4)
_COMMIT_OFFSETS = {False: (0, 4), True: (5, 5)}
_END = {False: (0, 4), True: (5, 5)}
"""By whether the transaction version is 2."""

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)


class TransactionCoordinator:
    """Asks on behalf of one transactional id. Raises TransactionError, by the tables of
    `transaction_answers`.

    `transaction_timeout_ms`: after this the coordinator aborts a transaction by itself, and no later offsets
    are sent to it either.
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
        """The transaction version to speak from the next transaction on: 0, 1 or 2; `timeout_ms` as below."""

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
            found = await self._persist(answers.FIND, attempt, timeout_ms=timeout_ms, late=None)
            self._version = found
        return self._version

    async def initialise(self, current: Identity | None, *, timeout_ms: int | None = None) -> Identity:
        """InitProducerId: an identity that fences all before, once an open transaction is aborted.

        `current`: to go on with a new epoch (KIP-360); ProducerFenced if somebody else has taken over.
        After `timeout_ms` the last error that was to be tried again is raised as it is.
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
        """AddPartitionsToTxn, sent again as long as `is_wanted`."""
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
        """AddOffsetsToTxn, needed before `commit_offsets` with transaction versions below 2."""
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
        """TxnOffsetCommit, for as long as a transaction may last. All of them again where one has to be.

        Many are sent in several requests, one after the other: a coordinator's log takes so much at once.
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
        """EndTxn, again and again until it is answered; the identity to go on with.

        A repeated one is answered like the first: by state, and with transaction version 2 by the epoch
        before.
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
        """One attempt at the highest version both sides know, within `versions`."""
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
        """Raise what an answer's code means."""
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
        """Attempt until it is answered; the last error, as `late`, once that is not wanted any more, or time
        is up.
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
