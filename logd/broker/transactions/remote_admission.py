"""Admission to partitions led here of producers whose transaction another broker coordinates (KIP-890).

The coordinator is asked by AddPartitionsToTxn, for many producers at a time: only to look whether the
partition is in the transaction, or, for producers of transaction version 2, to add it. The batch waits
meanwhile (`NotYetAdmitted`) and comes again, which takes the answer. An answer is good for that one batch,
and for a moment: a marker that is written in between ends the transaction it was about, so the coordinator
is asked again; else the batch would begin a transaction that nobody ends.

    admit ──▶ NotYetAdmitted ... answered ──▶ admit ──▶ consent, or its refusal
                     ended, moved: forgotten ──▶ admit ──▶ NotYetAdmitted ...
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from logd.broker.coordinators.peer_queue import IN_FLIGHT_MAX, Bounds, PeerQueue
from logd.broker.coordinators.peers import NO_LEADER, Cluster, Peers
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.work.periodic import PeriodicTasks, report
from logd.transactions import ProducerIdentity

ADMISSIONS_MAX = 10_000
"""Most questions and answers held at a time; a batch beyond that has to be sent again."""
QUESTIONS_PER_REQUEST = 100
"""Most partitions named in one request: a longer one would keep the other broker's clients waiting."""
ANSWER_HOLDS_S = 1.0
"""How long an answer waits for its batch, which comes in the loop's next turns unless its client is gone."""

_COME_AGAIN = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    )
)
"""Errors that are neither the producer's fault nor this broker's.

COORDINATOR_LOAD_IN_PROGRESS has the producer send the same batch again, to the same broker. Produce answers
it as NOT_ENOUGH_REPLICAS.
"""
_TOLD = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
} | dict.fromkeys(_COME_AGAIN, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""The error codes that a producer gets in their place, as by Apache Kafka; others are sent unchanged."""

log = logging.getLogger("logd.broker")


class _Question(NamedTuple):
    transactional_id: str
    identity: ProducerIdentity
    where: TopicPartition
    implicit: bool


class _Inquiry:
    """A question, and the answer once there is one: `refusal`, or consent."""

    __slots__ = ("answered", "coordinator", "question", "refusal", "until_s")

    def __init__(
        self, coordinator: TopicPartition, question: _Question, answered: asyncio.Future[None]
    ) -> None:
        self.coordinator = coordinator
        self.question = question
        self.answered = answered
        self.refusal: KafkaError | None = None
        self.until_s = 0.0

    @property
    def is_wanted(self) -> bool:
        """True if there is no answer yet."""
        return not self.answered.done()

    @property
    def subject(self) -> tuple[str, tuple[ProducerIdentity, bool]]:
        """Answers go by transactional id and partition."""
        transactional_id, identity, _, implicit = self.question
        return transactional_id, (identity, implicit)

    def answer(self, refusal: KafkaError | None) -> None:
        """Answer the question; only the first answer counts."""
        if not self.answered.done():
            self.refusal = refusal
            self.until_s = self.answered.get_loop().time() + ANSWER_HOLDS_S
            self.answered.set_result(None)


class RemoteAdmission:
    """Asks the coordinators on other brokers. `NONE` are the statistics of who has no other broker."""

    NONE: ClassVar[dict[str, int]] = {
        "admissions": 0,
        "admissions_max": ADMISSIONS_MAX,
        "admissions_in_flight": 0,
        "admissions_in_flight_max": IN_FLIGHT_MAX,
    }

    def __init__(self, cluster: Cluster) -> None:
        self._leaders, self._peers = cluster
        self._inquiries: dict[tuple[TopicPartition, int], _Inquiry] = {}
        """By partition and producer id, the oldest first."""
        self._queues: dict[int, PeerQueue[_Inquiry]] = {}
        self._rounds = PeriodicTasks()

    def statistics(self) -> dict[str, int]:
        """Return the counts of admissions in memory and of requests in flight to one broker, with bounds."""
        in_flight = max((queue.in_flight for queue in self._queues.values()), default=0)
        return self.NONE | {"admissions": len(self._inquiries), "admissions_in_flight": in_flight}

    async def stop(self) -> None:
        """Ask nobody any more."""
        await self._rounds.stop()

    def admit(
        self,
        coordinator: TopicPartition,
        transactional_id: str,
        identity: ProducerIdentity,
        where: TopicPartition,
        *,
        implicit: bool,
    ) -> None:
        """Return where the leader of `coordinator`, of `__transaction_state`, has consented just now.

        Raises NotYetAdmitted where it has to be asked: await that, which never fails, and call this again.
        KafkaError where it has refused.
        """
        question = _Question(transactional_id, identity, where, implicit)
        key = where, identity.producer_id
        inquiry = self._inquiries.get(key)
        if inquiry is not None and (inquiry.question != question or self._is_over(inquiry)):
            inquiry = None
        if inquiry is None:
            inquiry = self._ask(coordinator, question)
            self._inquiries.pop(key, None)
            self._inquiries[key] = inquiry
        if inquiry.is_wanted:
            raise NotYetAdmitted(asyncio.shield(inquiry.answered))
        del self._inquiries[key]
        if inquiry.refusal is not None:
            raise inquiry.refusal

    def ended(self, where: TopicPartition, producer_id: int) -> None:
        """Drop the answer after a marker was written: a consent, also one to come, is for the transaction
        before.
        """
        self._inquiries.pop((where, producer_id), None)

    def moved(self, where: TopicPartition) -> None:
        """Drop what coordinators have answered about a partition, after its leader has changed.

        Another leader may have written markers of transactions since those answers.
        """
        for key in [key for key in self._inquiries if key[0] == where]:
            del self._inquiries[key]

    def leaders_changed(self) -> None:
        """Have those come again who wait for a broker that is not their coordinator any more."""
        for broker_id, queue in self._queues.items():
            for inquiry in queue.unanswered():
                if self._leaders.leader_of(inquiry.coordinator) != broker_id:
                    inquiry.answer(_come_again(f"{inquiry.coordinator} has moved from broker {broker_id}"))

    def _is_over(self, inquiry: _Inquiry) -> bool:
        return inquiry.answered.done() and inquiry.until_s < asyncio.get_running_loop().time()

    def _ask(self, coordinator: TopicPartition, question: _Question) -> _Inquiry:
        broker_id = self._leaders.leader_of(coordinator)
        if broker_id in (None, NO_LEADER, self._leaders.broker_id):
            raise _come_again(f"{coordinator} has no coordinator now")
        assert broker_id is not None
        queue = self._queues.get(broker_id)
        if queue is None:
            sender = _Sender(broker_id, self._peers)
            bounds = Bounds(ADMISSIONS_MAX, QUESTIONS_PER_REQUEST)
            queue = self._queues[broker_id] = PeerQueue(sender.send, self._rounds, bounds)
        if not (self._has_room() and queue.has_room()):
            raise _come_again(f"{ADMISSIONS_MAX} transactional batches wait for their coordinators")
        inquiry = _Inquiry(coordinator, question, asyncio.get_running_loop().create_future())
        queue.add(inquiry)
        return inquiry

    def _has_room(self) -> bool:
        if len(self._inquiries) >= ADMISSIONS_MAX:
            self._inquiries = {
                key: inquiry for key, inquiry in self._inquiries.items() if not self._is_over(inquiry)
            }
        return len(self._inquiries) < ADMISSIONS_MAX


class _Sender:
    """To one coordinator."""

    def __init__(self, broker_id: int, peers: Peers) -> None:
        self._broker_id = broker_id
        self._peers = peers

    async def send(self, batch: list[_Inquiry]) -> None:
        """Ask, and answer everybody."""
        try:
            answer = await self._peers.request(self._broker_id, _request(batch))
            assert isinstance(answer, AddPartitionsToTxnResponse)
            codes = _codes(answer)
            for inquiry in batch:
                transactional_id, _, where, _ = inquiry.question
                code = answer.error_code or codes.get((transactional_id, where))
                if code is not None:
                    inquiry.answer(self._refusal(inquiry.question, code))
        except (ConnectionClosed, RequestTimedOut, KafkaError) as error:
            log.warning("broker %d has admitted none of %d producers: %s", self._broker_id, len(batch), error)
        except Exception as error:
            report(f"asking broker {self._broker_id} to admit producers", error)
        finally:
            for inquiry in batch:
                inquiry.answer(_come_again(f"broker {self._broker_id} has not answered"))

    def _refusal(self, question: _Question, code: int) -> KafkaError | None:
        if code == ErrorCode.NONE:
            return None
        transactional_id, identity, where, _ = question
        error_code = error_for(code).code
        return error_for(
            _TOLD.get(error_code, error_code),
            f"broker {self._broker_id} does not admit {transactional_id}, producer {identity.producer_id} "
            f"epoch {identity.epoch}, to {where}: {error_code.name}",
        )


def _come_again(message: str) -> KafkaError:
    return error_for(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)


def _request(batch: Sequence[_Inquiry]) -> AddPartitionsToTxnRequest:
    partitions: dict[tuple[str, ProducerIdentity, bool], dict[str, list[int]]] = {}
    for inquiry in batch:
        transactional_id, identity, where, implicit = inquiry.question
        topics = partitions.setdefault((transactional_id, identity, implicit), {})
        indexes = topics.setdefault(where.topic, [])
        if where.partition not in indexes:
            indexes.append(where.partition)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                verify_only=not implicit,
                topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                    for topic, indexes in topics.items()
                ],
            )
            for (transactional_id, identity, implicit), topics in partitions.items()
        ]
    )


def _codes(answer: AddPartitionsToTxnResponse) -> Mapping[tuple[str, TopicPartition], int]:
    return {
        (transaction.transactional_id, TopicPartition(topic.name, partition.partition_index)): (
            partition.partition_error_code
        )
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
