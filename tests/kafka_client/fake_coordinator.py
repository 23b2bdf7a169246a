"""A scripted broker with a transaction coordinator, of transaction version 1 or 2, and one group.

What it was asked stands in `steps`, to be read aloud; answers are right unless `refuse` or `lose` was called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_client import Client, TopicPartition, TransactionalProducer
from kafka_client.errors import ErrorCode
from kafka_client.records import decode_records, read_header
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafka_client.wire.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from kafka_client.wire.messages.end_txn import EndTxnResponse
from kafka_client.wire.messages.init_producer_id import InitProducerIdResponse
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.kafka_client.fake_broker import CUT, FakeBroker, ReceivedRequest, Script
from tests.kafka_client.fake_log import FakeLog
from tests.kafka_client.running import QUICK

NAMES = {
    ApiKey.INIT_PRODUCER_ID: "init",
    ApiKey.ADD_PARTITIONS_TO_TXN: "add",
    ApiKey.ADD_OFFSETS_TO_TXN: "add offsets",
    ApiKey.TXN_OFFSET_COMMIT: "offsets",
    ApiKey.PRODUCE: "produce",
    ApiKey.END_TXN: "end",
}
SERVED = {
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
}
PRODUCER = 77
VERSIONS = pytest.mark.parametrize("version", [1, 2])
OFFSETS = {TopicPartition("in", 0): 5}
SMALL: dict[str, Any] = {"buffer_memory": 4_000, "max_request_size": 4_000}
"""Settings of a producer that soon has to wait for memory."""


class FakeCoordinator:
    """Topic `t` has two partitions. `committed` are the values of committed transactions, by partition."""

    def __init__(self, broker: FakeBroker, version: int, transactional_id: str = "id") -> None:
        self.broker = broker
        self.version = version
        self.transactional_id = transactional_id
        self.epoch = -1
        self.steps: list[str] = []
        self.committed: dict[int, list[bytes | None]] = defaultdict(list)
        self.offsets: dict[str, int] = {}
        self.ends: dict[bool, Any] = {}
        """An awaitable or event that delays the answer to a commit (key True) or to an abort (key False)."""
        self._open: dict[int, list[bytes | None]] = defaultdict(list)
        self._open_offsets: dict[str, int] = {}
        self._logs: dict[int, FakeLog] = defaultdict(FakeLog)
        self._faults: dict[ApiKey, list[ErrorCode | str]] = defaultdict(list)
        self._last_end: tuple[int, bool] | None = None

    def serve_at(self, broker: FakeBroker) -> None:
        """Answer requests at `broker` as well."""
        broker.topics = {"t": {0: self.broker.node_id, 1: self.broker.node_id}}
        broker.served.update(SERVED)
        broker.on(ApiKey.API_VERSIONS, self._versions)
        for key, serve in self.scripts.items():
            broker.on(key, serve)

    @property
    def scripts(self) -> dict[ApiKey, Script]:
        """The handlers of a transaction's requests."""
        return {
            ApiKey.INIT_PRODUCER_ID: self._init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.TXN_OFFSET_COMMIT: self._commit_offsets,
            ApiKey.PRODUCE: self.produce,
            ApiKey.END_TXN: self._end,
        }

    def refuse(self, key: ApiKey, *codes: ErrorCode) -> None:
        """Answer the next requests with these codes, without any effect."""
        self._faults[key] += codes

    def lose(self, key: ApiKey) -> None:
        """Carry out the next request, but cut the connection before the answer."""
        self._faults[key].append(CUT)

    def _fault(self, request: ReceivedRequest, what: str) -> ErrorCode | str:
        faults = self._faults[ApiKey(request.api_key)]
        fault = faults.pop(0) if faults else ErrorCode.NONE
        suffix = ""
        if fault != ErrorCode.NONE:
            suffix = " → lost" if fault == CUT else f" → {ErrorCode(int(fault)).name}"
        self.steps.append(f"{NAMES[ApiKey(request.api_key)]} {what}".rstrip() + suffix)
        return fault

    def _versions(self, request: ReceivedRequest) -> ApiVersionsResponse:
        ranges = self.broker.served.items()
        return ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in ranges],
            finalized_features_epoch=1,
            finalized_features=[
                FinalizedFeatureKey(
                    name="transaction.version", max_version_level=self.version, min_version_level=self.version
                )
            ],
        )

    def _init(self, request: ReceivedRequest) -> Any:
        epoch = request.message.producer_epoch
        fault = self._fault(request, f"at {epoch}" if epoch >= 0 else "")
        if fault not in (ErrorCode.NONE, CUT):
            return InitProducerIdResponse(error_code=fault, producer_epoch=-1)
        if epoch < 0 or epoch == self.epoch:
            self.epoch += 1
        self._forget()
        if fault == CUT:
            return CUT
        return InitProducerIdResponse(producer_id=PRODUCER, producer_epoch=self.epoch)

    def _forget(self) -> None:
        self._open.clear()
        self._open_offsets.clear()

    def _add(self, request: ReceivedRequest) -> Any:
        topics = request.message.v3_and_below_topics
        partitions = [p for topic in topics for p in topic.partitions]
        fault = self._fault(request, " ".join(map(str, sorted(partitions))))
        if fault == CUT:
            return CUT
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=p, partition_error_code=fault)
                        for p in topic.partitions
                    ],
                )
                for topic in topics
            ]
        )

    def _add_offsets(self, request: ReceivedRequest) -> Any:
        fault = self._fault(request, request.message.group_id)
        return CUT if fault == CUT else AddOffsetsToTxnResponse(error_code=fault)

    def _commit_offsets(self, request: ReceivedRequest) -> Any:
        message = request.message
        fault = self._fault(request, f"{message.group_id} {message.generation_id}")
        if fault in (ErrorCode.NONE, CUT):
            for topic in message.topics:
                for p in topic.partitions:
                    self._open_offsets[f"{topic.name}-{p.partition_index}"] = p.committed_offset
        if fault == CUT:
            return CUT
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=fault)
                        for p in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def produce(self, request: ReceivedRequest) -> Any:
        assert request.version >= 12 if self.version >= 2 else request.version <= 11
        assert request.message.transactional_id == self.transactional_id
        batches = [(p, batch) for _, partitions in request.message.topics for p, batch in partitions]
        epochs = " ".join(f"{p}@{read_header(batch).producer_epoch}" for p, batch in sorted(batches))
        fault = self._fault(request, epochs)
        if fault not in (ErrorCode.NONE, CUT):
            return request.produced(*((p, int(fault), -1) for p, _ in batches))
        results = []
        for p, batch in batches:
            header = read_header(batch)
            assert header.is_transactional
            count = len(self._logs[p].values)
            code, offset = self._logs[p].append(batch)
            if len(self._logs[p].values) > count:
                self._open[p] += [record[3] for record in decode_records(batch)]
            results.append((p, code, offset))
        return CUT if fault == CUT else request.produced(*results)

    async def _end(self, request: ReceivedRequest) -> Any:
        assert request.version == 5 if self.version >= 2 else request.version < 5
        return await self.end_of_any_version(request)

    async def end_of_any_version(self, request: ReceivedRequest) -> Any:
        """Answer EndTxn by the rules of its own version, without regard to the cluster's."""
        commit, epoch = request.message.committed, request.message.producer_epoch
        bumps = request.version >= 5
        fault = self._fault(request, f"{'commit' if commit else 'abort'} at {epoch}")
        if commit in self.ends:
            await self.ends[commit].wait()
        if fault not in (ErrorCode.NONE, CUT):
            return EndTxnResponse(error_code=fault)
        if (epoch, commit) != self._last_end or not bumps:
            assert epoch == self.epoch, "not the producer's epoch"
            if commit:
                for p, values in self._open.items():
                    self.committed[p] += values
                self.offsets.update(self._open_offsets)
            self._forget()
            self._last_end = epoch, commit
            self.epoch += bumps
        if fault == CUT:
            return CUT
        if not bumps:
            return EndTxnResponse()
        return EndTxnResponse(producer_id=PRODUCER, producer_epoch=self.epoch)


@asynccontextmanager
async def coordinated(version: int, **settings: Any) -> AsyncIterator[tuple[FakeCoordinator, Client]]:
    """Run a fake broker with a coordinator, and a client connected to it."""
    async with FakeBroker() as broker:
        coordinator = FakeCoordinator(broker, version)
        coordinator.serve_at(broker)
        async with Client(broker.bootstrap, **{**QUICK, **settings}) as client:
            yield coordinator, client


@asynccontextmanager
async def producing(
    version: int, **settings: Any
) -> AsyncIterator[tuple[FakeCoordinator, TransactionalProducer]]:
    """Run a fake broker with a coordinator, and a started producer with these settings."""
    async with (
        coordinated(version) as (coordinator, client),
        TransactionalProducer(client, "id", **settings) as producer,
    ):
        yield coordinator, producer


def record(value: bytes) -> tuple[int, None, bytes, tuple[()]]:
    return (0, None, value, ())


async def send(producer: TransactionalProducer, value: bytes, partition: int = 0) -> Any:
    return await producer.send("t", partition, [record(value)])


async def transaction(producer: TransactionalProducer, *values: bytes) -> None:
    producer.begin()
    for value in values:
        await send(producer, value)
    await producer.commit()


def produced(coordinator: FakeCoordinator) -> list[str]:
    return [step for step in coordinator.steps if step.startswith("produce")]
