"""The clients of a simulated broker that write records: idempotent producers, and transactional ones."""

from __future__ import annotations

import asyncio
from typing import Any

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.faults.actors import LATER, Actor, Unexpected, granted
from tests.faults.world import Outcome, Transaction, Where

TXN_TIMEOUT_MS = 20_000
IMPLICIT_VERSION = 5
"""Version of TxnOffsetCommit and EndTxn: the first one of transaction version 2."""


class Producer(Actor):
    """An idempotent producer; what was under way when the machine died it sends again afterwards."""

    def __init__(self, name: str, *facts: Any) -> None:
        super().__init__(*facts)
        self.name = name
        self._identity = (-1, -1)
        self._sequences: dict[Where, int] = {}

    async def run(self, steps: int) -> None:
        unsure = self.world.unsure.get(self.name)
        if unsure is not None and unsure[0].topic.there:
            await self._send(*unsure)
        self.world.unsure.pop(self.name, None)
        response = await self.until_taken(InitProducerIdRequest(transactional_id=None), 4)
        granted(response.error_code)
        self._identity = response.producer_id, response.producer_epoch
        self.world.identified(self.name, *self._identity)
        await super().run(steps)

    async def step(self) -> None:
        where = self.world.any_part()
        if where is None:
            return
        record = self.world.record(where)
        batch = build_batch(
            [record],
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=self._sequences.get(where, 0),
        )
        self._sequences[where] = self._sequences.get(where, 0) + 1
        assert record[2] is not None
        await self._send(where, batch, record[2])

    async def _send(self, where: Where, batch: bytes, value: bytes) -> None:
        self.world.unsure[self.name] = where, batch, value
        where.topic.busy += 1
        answer = await self.client.produce(where.topic.name, where.index, batch)
        where.topic.busy -= 1
        if answer.error_code:
            raise Unexpected(f"{where}: {ErrorCode(answer.error_code).name} {answer.error_message}")
        self.world.part(where).acknowledged[answer.base_offset] = value
        del self.world.unsure[self.name]
        self.acknowledged()


class Transactor(Actor):
    """A transactional producer, which also commits offsets in its transactions."""

    def __init__(self, name: str, *facts: Any, implicit: bool) -> None:
        super().__init__(*facts)
        self.name = name
        self._implicit = implicit
        self._identity = (-1, -1)
        self._sequences: dict[Where, int] = {}

    async def run(self, steps: int) -> None:
        await self.begin()
        await super().run(steps)

    async def begin(self) -> None:
        """InitProducerId, which ends what was open."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TXN_TIMEOUT_MS)
        response = await self.until_taken(request, 4)
        granted(response.error_code)
        self._become(response.producer_id, response.producer_epoch)

    def _become(self, producer_id: int, epoch: int) -> None:
        self._identity = producer_id, epoch
        self.world.identified(self.name, producer_id, epoch)
        self._sequences = {}

    async def step(self) -> None:
        """Write one transaction."""
        wheres = {where for _ in range(self.rng.randint(1, 3)) if (where := self.world.any_part())}
        if not wheres:
            return
        transaction = Transaction(self.name, f"group-of-{self.name}")
        self.world.transactions.append(transaction)
        fine = True
        for where in sorted(wheres, key=lambda where: (where.topic.number, where.index)):
            fine = fine and await self._busy(where, self._produce(where, transaction))
        where = self.world.any_part()
        if fine and where is not None and self.rng.random() < 0.5:
            fine = await self._busy(where, self._commit_offset(where, transaction))
        if self.rng.random() < 0.1:
            return await self.begin()  # as after a crash of the producer
        return await self._end(transaction, commit=fine and self.rng.random() < 0.7)

    async def _busy(self, where: Where, work: Any) -> bool:
        if not where.topic.there:
            work.close()
            return False
        where.topic.busy += 1
        result: bool = await work
        where.topic.busy -= 1
        return result

    async def _produce(self, where: Where, transaction: Transaction) -> bool:
        if not self._implicit:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self._identity[0],
                v3_and_below_producer_epoch=self._identity[1],
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=where.topic.name, partitions=[where.index])
                ],
            )
            for _ in range(400):
                response = await self.client.request(request, 3)
                code = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                if code not in LATER:
                    break
                await asyncio.sleep(0.05)
            if code:
                raise Unexpected(f"adding {where}: {ErrorCode(code).name}")
        record = self.world.record(where, transaction)
        batch = build_batch(
            [record],
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=self._sequences.get(where, 0),
            transactional=True,
        )
        for _ in range(400):
            answer = await self.client.produce(
                where.topic.name,
                where.index,
                batch,
                version=12 if self._implicit else 9,
                transactional_id=self.name,
            )
            if answer.error_code not in LATER:
                break
            await asyncio.sleep(0.05)
        if answer.error_code:
            raise Unexpected(f"{where}: {ErrorCode(answer.error_code).name} {answer.error_message}")
        self._sequences[where] = self._sequences.get(where, 0) + 1
        assert record[2] is not None
        transaction.records.setdefault(where, {})[answer.base_offset] = record[2]
        self.world.part(where).acknowledged[answer.base_offset] = record[2]
        self.acknowledged()
        return True

    async def _commit_offset(self, where: Where, transaction: Transaction) -> bool:
        if not self._implicit:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.name,
                producer_id=self._identity[0],
                producer_epoch=self._identity[1],
                group_id=transaction.group,
            )
            response = await self.until_taken(request, 3)
            granted(response.error_code)
        offset = self.world.offset(transaction.group, where)
        transaction.offsets[where] = offset
        partition = TxnOffsetCommitRequestPartition(
            partition_index=where.index, committed_offset=offset, committed_metadata=""
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=transaction.group,
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            generation_id=-1,
            topics=[TxnOffsetCommitRequestTopic(name=where.topic.name, partitions=[partition])],
        )
        for _ in range(400):
            answer = await self.client.request(commit, IMPLICIT_VERSION if self._implicit else 3)
            code = answer.topics[0].partitions[0].error_code
            if code not in LATER:
                break
            await asyncio.sleep(0.05)
        if code:
            raise Unexpected(f"offset of {where}: {ErrorCode(code).name}")
        self.acknowledged()
        return True

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        if commit:
            transaction.outcome = Outcome.COMMIT_WANTED
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            committed=commit,
        )
        response = await self.until_taken(request, IMPLICIT_VERSION if self._implicit else 3)
        if response.error_code == ErrorCode.INVALID_TXN_STATE and not transaction.values:
            return  # nothing was in it
        granted(response.error_code)
        transaction.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        if commit:
            for where, offset in transaction.offsets.items():
                committed = self.world.commits(transaction.group, where)
                committed.promised = max(committed.promised, offset)
        if self._implicit:
            self._become(response.producer_id, response.producer_epoch)
        self.acknowledged()
