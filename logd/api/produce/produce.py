"""Produce, served from 3 to 13: append batches to their partitions' logs.

All work happens inside the data callback. With one replica a write is committed once it is appended, so
acks=1 and acks=all are answered at once. The response waits (`acknowledgement`) if flush.messages or flush.ms
ask for an fsync, or acks=all for other replicas. The connection's next batches are appended meanwhile.

Two kinds of batches delay the requests after them. A batch that begins a transaction waits for the
coordinator's answer, if that needs an fsync or another broker. A batch that takes long to validate is
validated in a thread first (`waiting_batch`).

With acks=0 there is no response, so an error can only close the connection. Topics have ids from version 13
on. From version 12 on a transactional batch adds its partition to the transaction (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError, RecordsRefused
from kafka_client.wire.produce import (
    LEADERS,
    TOPIC_IDS,
    PartitionProduced,
    Topic,
    decode_produce_request,
    encode_produce_response,
)
from logd.api.current_leaders import Find, tell_leaders
from logd.api.produce.acknowledgement import Acknowledgement, PendingAck
from logd.api.produce.waiting_batch import WaitingBatch
from logd.api.request.answer import Refused
from logd.api.transaction_codes import IMPLICIT_FROM, produce_code
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.partition.batch_rules import NotYetValidated

if TYPE_CHECKING:
    from kafka_client.wire.produce import ReceivedProduce
    from logd.api.request.context import RequestContext
    from logd.broker.topics.cluster_view import Node
    from logd.broker.topics.topic import Topic as BrokerTopic

    Answers: TypeAlias = list[tuple[Topic, list[PartitionProduced]]]


ZSTD_FROM = 7
"""First version whose clients may send zstd (KIP-110)."""

_ACKS = (-1, 0, 1)
NOT_LEASED = "this broker's session with ZooKeeper may be over: another one may lead the partition"


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> bytes | asyncio.Future[bytes] | Coroutine[Any, Any, bytes | asyncio.Future[bytes] | None] | None:
    """Append the batches in ``view[pos:end]``. Return the response frame, or None with acks=0.

    Return a future of the frame if something appended is not acknowledged yet. Return a coroutine, with one
    of these results, if something is not appended yet. Raises Refused.
    """
    request = decode_produce_request(view, version, pos, end)
    broker = context.broker
    acks = request.acks
    now_ms = broker.now_ms()
    find = broker.catalog.topics.get if version < TOPIC_IDS else broker.catalog.topics_by_id.get
    transactional_id, implicit = request.transactional_id, version >= IMPLICIT_FROM
    answers: Answers = []
    is_misled = False
    pending: list[PendingAck] = []
    waiting: list[WaitingBatch] = []
    membership = broker.membership
    is_fenced = membership is not None and not membership.is_leased
    refusal_of = None if broker.authorizer is None else _authorization(request, context)
    for name, partitions in request.topics:
        topic = find(name)  # type: ignore[arg-type]
        refusal = None if refusal_of is None else refusal_of(name, topic)
        produced: list[PartitionProduced] = []
        for index, records in partitions:
            try:
                if refusal is not None:
                    raise refusal
                if topic is None or acks not in _ACKS or topic.is_internal or is_fenced:
                    raise _refusal(topic, name, acks)
                if version < ZSTD_FROM:
                    _refuse_zstd(records)
                partition = topic.partition(index)
                appended = partition.produce(
                    records, now_ms, acks, transactional_id=transactional_id, implicit=implicit
                )
                if acks and partition.holds_back and (commit := partition.flushed(appended, acks)):
                    pending.append(PendingAck(produced, len(produced), partition, commit))
                first, _, append_time, log_start, _ = appended
                produced.append(PartitionProduced(index, 0, first, append_time, log_start))
            except KafkaError as error:
                is_misled |= error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
                produced.append(_failed(index, error, version))
            except (NotYetAdmitted, NotYetValidated) as not_yet:
                assert topic is not None, "its partition has asked"
                batch = memoryview(bytes(records))  # `view` is only valid during the call
                append = partial(partition.produce, batch, now_ms, acks)
                append = partial(append, transactional_id=transactional_id, implicit=implicit)
                waiting.append(
                    WaitingBatch(produced, len(produced), topic, partition, batch, now_ms, append, not_yet)
                )
                produced.append(PartitionProduced(index, ErrorCode.NOT_ENOUGH_REPLICAS))
        answers.append((name, produced))
    if acks == 0:
        return _end_unanswered(answers, waiting, version, context)
    if waiting:
        return _answer_once_appended(request, answers, pending, waiting, version, correlation_id, context)
    if pending:
        return _acknowledge(request, answers, pending, version, correlation_id, context)
    if membership is not None and not membership.is_leased:
        is_misled = _fence(answers)
    if is_misled:
        return _encode_with_leaders(answers, version, correlation_id, context)
    return encode_produce_response(answers, version, correlation_id)


def _authorization(
    request: ReceivedProduce, context: RequestContext
) -> Callable[[Topic, BrokerTopic | None], KafkaError | None] | None:
    """Return a function that returns why a topic is refused; None if the peer may do everything."""
    from logd.api.authorization.records import writing

    return writing(request, context)


def _refuse_zstd(records: memoryview) -> None:
    """Raise KafkaError if the batch is compressed with zstd."""
    if len(records) > 22 and records[22] & 7 == 4:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {ZSTD_FROM} or later")


def _end_unanswered(
    answers: Answers, waiting: list[WaitingBatch], version: int, context: RequestContext
) -> Coroutine[Any, Any, None] | None:
    """Return what appends the waiting batches, with acks=0, or None. Raises Refused if a batch is refused."""
    if waiting:
        return _append_unanswered(answers, waiting, version, context)
    _close_on_error(answers)
    return None


async def _append_unanswered(
    answers: Answers, waiting: list[WaitingBatch], version: int, context: RequestContext
) -> None:
    """Append what could not be appended yet, with acks=0. Raises Refused if anything was not appended."""
    for each in waiting:
        try:
            first, _, append_time, log_start, _ = await each.appended(context.broker.validator)
        except KafkaError as error:
            each.produced[each.place] = _failed(each.partition.index, error, version)
            continue
        each.produced[each.place] = PartitionProduced(each.partition.index, 0, first, append_time, log_start)
    _close_on_error(answers)


async def _answer_once_appended(
    request: ReceivedProduce,
    answers: Answers,
    pending: list[PendingAck],
    waiting: list[WaitingBatch],
    version: int,
    correlation_id: int,
    context: RequestContext,
) -> bytes | asyncio.Future[bytes]:
    """Append what could not be appended yet; return the response, or a future of it as `serve` does."""
    for each in waiting:
        produced, place, partition = each.produced, each.place, each.partition
        try:
            appended = await each.appended(context.broker.validator)
            durable = partition.flushed(appended, request.acks)
        except KafkaError as error:
            produced[place] = _failed(partition.index, error, version)
            continue
        first, _, append_time, log_start, _ = appended
        produced[place] = PartitionProduced(partition.index, 0, first, append_time, log_start)
        if durable is not None:
            pending.append(PendingAck(produced, place, partition, durable))
    if pending:
        return _acknowledge(request, answers, pending, version, correlation_id, context)
    return _encode_leased(answers, version, correlation_id, context)


def _acknowledge(
    request: ReceivedProduce,
    answers: Answers,
    pending: list[PendingAck],
    version: int,
    correlation_id: int,
    context: RequestContext,
) -> asyncio.Future[bytes]:
    """Return a future of the response, which waits at most `timeout_ms` of the request for other replicas."""
    return Acknowledgement(
        pending,
        request.timeout_ms / 1000,
        context.broker.timeouts,
        failed=lambda index, error: _failed(index, error, version),
        encode=lambda: _encode_leased(answers, version, correlation_id, context),
    ).answer


def _encode_leased(answers: Answers, version: int, correlation_id: int, context: RequestContext) -> bytes:
    """Encode the response, without acknowledgements if another broker may lead the partitions by now."""
    membership = context.broker.membership
    if membership is not None and not membership.is_leased:
        _fence(answers)
    return _encode_with_leaders(answers, version, correlation_id, context)


def _encode_with_leaders(
    answers: Answers, version: int, correlation_id: int, context: RequestContext
) -> bytes:
    """Encode the response, with the current leaders for clients that asked the wrong broker."""
    nodes: Sequence[Node] = ()
    if version >= LEADERS:
        catalog = context.broker.catalog
        find: Find = catalog.topics.get if version < TOPIC_IDS else catalog.topics_by_id.get
        misled = (ErrorCode.NOT_LEADER_OR_FOLLOWER,)
        nodes = tell_leaders(answers, misled, find, context.broker.cluster, context.endpoint)
    return encode_produce_response(answers, version, correlation_id, nodes=nodes)


def _fence(answers: Answers) -> bool:
    """Acknowledge nothing: another broker may lead these partitions, and not know of what was appended."""
    for _, produced in answers:
        for place, answer in enumerate(produced):
            if not answer.error_code:
                produced[place] = PartitionProduced(
                    answer.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=NOT_LEASED
                )
    return True


def _failed(index: int, error: KafkaError, version: int) -> PartitionProduced:
    records = error.record_errors if isinstance(error, RecordsRefused) else ()
    return PartitionProduced(
        index, produce_code(error, version), error_message=error.message, record_errors=records
    )


def _refusal(topic: BrokerTopic | None, name: Topic, acks: int) -> KafkaError:
    if acks not in _ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}; use 0, 1 or -1 (all)")
    if topic is not None and topic.is_internal:
        return KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {topic.name} is the broker's own; clients only read it"
        )
    if topic is not None:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, NOT_LEASED)
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _close_on_error(answers: Answers) -> None:
    for _, produced in answers:
        for answer in produced:
            if answer.error_code:
                raise Refused(f"produced with acks=0 what cannot be taken: {answer.error_message}")
