"""Produce, served from 3 to 13: batches go to the end of their partitions' logs.

Everything happens inside the data callback: with one replica a write is committed once it is appended, so
that acks=1 and acks=all are answered at once. Where flush.messages or flush.ms ask for an fsync, or acks=all
for other replicas, the answer waits (`acknowledgement`), while the connection's next batches are appended. A
batch that begins a transaction in its partition is not appended before the coordinator has answered, where
its log asks for an fsync or it is another broker, and holds up what comes behind it. With acks=0 there is no
answer, and an error closes the connection, which is the only way to tell. Topics are named by id from version
13 on. From version 12 on a transactional batch makes its partition part of the transaction (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from logd.api.acknowledgement import Acknowledgement, Unkept
from logd.api.answer import Refused
from logd.api.current_leaders import Find, tell_leaders
from logd.api.transaction_codes import IMPLICIT_FROM, produce_code
from logd.broker.admission import NotYetAdmitted
from logd.errors import ErrorCode, KafkaError, RecordsRefused
from logd.wire.produce import (
    LEADERS,
    TOPIC_IDS,
    PartitionProduced,
    Topic,
    decode_produce_request,
    encode_produce_response,
)

if TYPE_CHECKING:
    from logd.api.context import RequestContext
    from logd.broker.cluster_view import Node
    from logd.broker.partition import Partition
    from logd.broker.topic import Topic as BrokerTopic
    from logd.storage import Appended
    from logd.wire.produce import ReceivedProduce

    Answers: TypeAlias = list[tuple[Topic, list[PartitionProduced]]]


class Waiting(NamedTuple):
    """A batch whose producer is not admitted yet: an answer's list and place in it, `again` to append it once
    `consent` was awaited.
    """

    produced: list[PartitionProduced]
    place: int
    topic: BrokerTopic
    partition: Partition
    again: Callable[[], Appended]
    consent: Awaitable[None]


ZSTD_FROM = 7
"""First version whose clients may send zstd (KIP-110)."""

_ACKS = (-1, 0, 1)
NOT_LEASED = "this broker's session with ZooKeeper may be over: another one may lead the partition"


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> bytes | asyncio.Future[bytes] | Coroutine[Any, Any, bytes] | None:
    """Append what ``view[pos:end]`` holds; the response frame, or a future of it when all is appended, or a
    coroutine that gives it where something is not, or None with acks=0. Raises Refused.
    """
    request = decode_produce_request(view, version, pos, end)
    broker = context.broker
    acks = request.acks
    now_ms = broker.now_ms()
    find = broker.catalog.topics.get if version < TOPIC_IDS else broker.catalog.topics_by_id.get
    transactional_id, implicit = request.transactional_id, version >= IMPLICIT_FROM
    answers: Answers = []
    is_misled = False
    unkept: list[Unkept] = []
    waiting: list[Waiting] = []
    shared = broker.shared
    is_fenced = shared is not None and not shared.is_leased
    for name, partitions in request.topics:
        topic = find(name)  # type: ignore[arg-type]
        produced: list[PartitionProduced] = []
        for index, records in partitions:
            try:
                if topic is None or acks not in _ACKS or topic.is_internal or is_fenced:
                    raise _refusal(topic, name, acks)
                if version < ZSTD_FROM and len(records) > 22 and records[22] & 7 == 4:
                    raise KafkaError(
                        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {ZSTD_FROM} or later"
                    )
                partition = topic.partition(index)
                appended = partition.produce(
                    records, now_ms, acks, transactional_id=transactional_id, implicit=implicit
                )
                if partition.holds_back and acks and (kept := partition.flushed(appended, acks)) is not None:
                    unkept.append(Unkept(produced, len(produced), partition, kept))
                first, _, append_time, log_start, _ = appended
                produced.append(PartitionProduced(index, 0, first, append_time, log_start))
            except KafkaError as error:
                is_misled |= error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
                produced.append(_failed(index, error, version))
            except NotYetAdmitted as not_yet:
                assert topic is not None, "its partition has asked"
                again = partial(
                    partition.produce,
                    memoryview(bytes(records)),
                    now_ms,
                    acks,
                    transactional_id=transactional_id,
                    implicit=implicit,
                )
                waiting.append(Waiting(produced, len(produced), topic, partition, again, not_yet.flushed))
                produced.append(PartitionProduced(index, ErrorCode.NOT_ENOUGH_REPLICAS))
        answers.append((name, produced))
    if acks == 0:
        _close_on_error(answers)
        return None
    if waiting:
        return _answer_once_admitted(request, answers, unkept, waiting, version, correlation_id, context)
    if unkept:
        return _acknowledge(request, answers, unkept, version, correlation_id, context)
    if shared is not None and not shared.is_leased:
        is_misled = _fence(answers)
    if is_misled:
        return _encode_with_leaders(answers, version, correlation_id, context)
    return encode_produce_response(answers, version, correlation_id)


async def _answer_once_admitted(
    request: ReceivedProduce,
    answers: Answers,
    unkept: list[Unkept],
    waiting: list[Waiting],
    version: int,
    correlation_id: int,
    context: RequestContext,
) -> bytes:
    """The response to batches some of which could not be appended yet."""
    for each in waiting:
        produced, place, _, partition, _, _ = each
        try:
            appended = await _append_once_admitted(each)
            kept = partition.flushed(appended, request.acks)
        except KafkaError as error:
            produced[place] = _failed(partition.index, error, version)
            continue
        first, _, append_time, log_start, _ = appended
        produced[place] = PartitionProduced(partition.index, 0, first, append_time, log_start)
        if kept is not None:
            unkept.append(Unkept(produced, place, partition, kept))
    if unkept:
        return await _acknowledge(request, answers, unkept, version, correlation_id, context)
    return _encode_leased(answers, version, correlation_id, context)


def _acknowledge(
    request: ReceivedProduce,
    answers: Answers,
    unkept: list[Unkept],
    version: int,
    correlation_id: int,
    context: RequestContext,
) -> asyncio.Future[bytes]:
    """The response, once what it acknowledges is kept, or is known not to be in the time the client gives."""
    return Acknowledgement(
        unkept,
        request.timeout_ms / 1000,
        failed=lambda index, error: _failed(index, error, version),
        encode=lambda: _encode_leased(answers, version, correlation_id, context),
    ).answer


def _encode_leased(answers: Answers, version: int, correlation_id: int, context: RequestContext) -> bytes:
    """Acknowledge nothing where another broker may lead by now."""
    shared = context.broker.shared
    if shared is not None and not shared.is_leased:
        _fence(answers)
    return _encode_with_leaders(answers, version, correlation_id, context)


def _encode_with_leaders(
    answers: Answers, version: int, correlation_id: int, context: RequestContext
) -> bytes:
    """Tell clients that ask the wrong broker which is the right one."""
    nodes: Sequence[Node] = ()
    if version >= LEADERS:
        catalog = context.broker.catalog
        find: Find = catalog.topics.get if version < TOPIC_IDS else catalog.topics_by_id.get
        misled = (ErrorCode.NOT_LEADER_OR_FOLLOWER,)
        nodes = tell_leaders(answers, misled, find, context.broker.cluster, context.endpoint)
    return encode_produce_response(answers, version, correlation_id, nodes=nodes)


async def _append_once_admitted(waiting: Waiting) -> Appended:
    """Another broker may lead the partition by then: what is written here would be in nobody's history."""
    _, _, topic, partition, append, consent = waiting
    while True:
        await consent
        if topic.partition(partition.index) is not partition:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was closed and opened again")
        try:
            return append()
        except NotYetAdmitted as not_yet:
            consent = not_yet.flushed


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
