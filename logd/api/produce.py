"""Produce, served from 3 to 13: batches go to the end of their partitions' logs.

Everything happens inside the data callback: with one replica a write is committed once it is appended, so
that acks=1 and acks=all are answered at once, except where flush.messages or flush.ms ask for an fsync: then
the answer waits for it, and the connection's later requests wait for the answer. With acks=0 there is no
answer, and an error closes the connection, which is the only way to tell. Topics are named by id from version
13 on. From version 12 on a transactional batch makes its partition part of the transaction (KIP-890).
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from logd.api.answer import Refused
from logd.api.transaction_codes import IMPLICIT_FROM, produce_code
from logd.errors import ErrorCode, KafkaError
from logd.wire.produce import PartitionProduced, Topic, decode_produce_request, encode_produce_response

if TYPE_CHECKING:
    from logd.api.context import RequestContext
    from logd.broker.topic import Topic as BrokerTopic

    Answers: TypeAlias = list[tuple[Topic, list[PartitionProduced]]]
    Unflushed: TypeAlias = list[tuple[list[PartitionProduced], int, Awaitable[None]]]
    """An answer's list and place in it, and what it has to wait for."""

ZSTD_FROM = 7
"""First version whose clients may send zstd (KIP-110)."""

_ACKS = (-1, 0, 1)


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> bytes | Coroutine[Any, Any, bytes] | None:
    """Append what ``view[pos:end]`` holds; the response frame, or something to await that gives it, or None
    with acks=0. Raises Refused.
    """
    request = decode_produce_request(view, version, pos, end)
    broker = context.broker
    acks = request.acks
    now_ms = broker.now_ms()
    find = broker.catalog.topics.get if version < 13 else broker.catalog.topics_by_id.get
    transactional_id, implicit = request.transactional_id, version >= IMPLICIT_FROM
    answers: Answers = []
    unflushed: Unflushed = []
    for name, partitions in request.topics:
        topic = find(name)  # type: ignore[arg-type]
        produced: list[PartitionProduced] = []
        for index, records in partitions:
            try:
                if topic is None or acks not in _ACKS or topic.is_internal:
                    raise _refusal(topic, name, acks)
                if version < ZSTD_FROM and len(records) > 22 and records[22] & 7 == 4:
                    raise KafkaError(
                        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {ZSTD_FROM} or later"
                    )
                partition = topic.partition(index)
                appended = partition.produce(
                    records, now_ms, acks, transactional_id=transactional_id, implicit=implicit
                )
                if partition.flushes and acks and (flushed := partition.flushed(appended)) is not None:
                    unflushed.append((produced, len(produced), flushed))
                first, _, append_time, log_start, _ = appended
                produced.append(PartitionProduced(index, 0, first, append_time, log_start))
            except KafkaError as error:
                code = produce_code(error, version)
                produced.append(PartitionProduced(index, code, error_message=error.message))
        answers.append((name, produced))
    if acks == 0:
        _close_on_error(answers)
        return None
    if unflushed:
        transaction = None
        if transactional_id and implicit:
            # Else a power loss could take the transaction and leave its records, held back for good.
            transaction = broker.transactions.flushed(transactional_id)
        return _answer_flushed(answers, unflushed, transaction, version, correlation_id)
    return encode_produce_response(answers, version, correlation_id)


async def _answer_flushed(
    answers: Answers,
    unflushed: Unflushed,
    transaction: Awaitable[None] | None,
    version: int,
    correlation_id: int,
) -> bytes:
    """The response, once what it acknowledges is on the disk, or is known not to get there."""
    failure: KafkaError | None = None
    if transaction is not None:
        try:
            await transaction
        except KafkaError as error:
            failure = error
    for produced, place, flushed in unflushed:
        try:
            await flushed
            if failure is not None:
                raise failure
        except KafkaError as error:
            index = produced[place].partition
            code = produce_code(error, version)
            produced[place] = PartitionProduced(index, code, error_message=error.message)
    return encode_produce_response(answers, version, correlation_id)


def _refusal(topic: BrokerTopic | None, name: Topic, acks: int) -> KafkaError:
    if acks not in _ACKS:
        return KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}; use 0, 1 or -1 (all)")
    if topic is not None:
        return KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {topic.name} is the broker's own; clients only read it"
        )
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _close_on_error(answers: Answers) -> None:
    for _, produced in answers:
        for answer in produced:
            if answer.error_code:
                raise Refused(f"produced with acks=0 what cannot be taken: {answer.error_message}")
