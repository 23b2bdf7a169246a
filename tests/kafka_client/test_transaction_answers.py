"""Each error code of each API leads to a retry, an abort or a fatal error of the transaction.

The lists repeat those of Kafka's TransactionManager.
"""

from __future__ import annotations

import pytest

from kafka_client import GroupMetadata, TopicPartition, TransactionalProducer
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    FatalTransactionError,
    KafkaError,
    ProducerFenced,
    RebalanceNeeded,
    RetriableError,
    TransactionError,
    TransactionRebalanced,
)
from kafka_client.producer import transaction_answers as answers
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_coordinator import coordinated, producing
from tests.support.depth import deep

E = ErrorCode
A, F, X, R = AbortableTransactionError, FatalTransactionError, ProducerFenced, TransactionRebalanced

AGAIN = [
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.CONCURRENT_TRANSACTIONS,
    E.REQUEST_TIMED_OUT,
    E.NETWORK_EXCEPTION,
]
TABLE: dict[answers.Answers, dict[type[TransactionError], list[ErrorCode]]] = {
    answers.INIT: {
        A: [E.TRANSACTION_ABORTABLE],
        X: [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED],
        F: [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TRANSACTION_TIMEOUT, E.INVALID_REQUEST],
    },
    answers.ADD_PARTITIONS: {
        A: [
            E.TOPIC_AUTHORIZATION_FAILED,
            E.OPERATION_NOT_ATTEMPTED,
            E.UNKNOWN_PRODUCER_ID,
            E.TRANSACTION_ABORTABLE,
            E.UNKNOWN_SERVER_ERROR,
        ],
        X: [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED],
        F: [
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_ID_MAPPING,
        ],
    },
    answers.ADD_OFFSETS: {
        A: [
            E.GROUP_AUTHORIZATION_FAILED,
            E.UNKNOWN_PRODUCER_ID,
            E.TRANSACTION_ABORTABLE,
        ],
        X: [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED],
        F: [
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_ID_MAPPING,
            E.UNKNOWN_SERVER_ERROR,
        ],
    },
    answers.COMMIT_OFFSETS: {
        A: [E.GROUP_AUTHORIZATION_FAILED, E.FENCED_INSTANCE_ID, E.TRANSACTION_ABORTABLE],
        R: [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION],
        X: [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED],
        F: [
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            E.INVALID_TXN_STATE,
            E.UNKNOWN_SERVER_ERROR,
        ],
    },
    answers.END: {
        A: [E.UNKNOWN_PRODUCER_ID, E.TRANSACTION_ABORTABLE],
        X: [E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED],
        F: [
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_ID_MAPPING,
            E.UNKNOWN_SERVER_ERROR,
        ],
    },
    answers.PRODUCE: {
        A: [
            E.INVALID_PRODUCER_EPOCH,
            E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            E.UNKNOWN_PRODUCER_ID,
            E.INVALID_RECORD,
            E.TOPIC_AUTHORIZATION_FAILED,
            E.TRANSACTION_ABORTABLE,
            E.INVALID_TXN_STATE,
        ],
        X: [E.PRODUCER_FENCED],
        F: [
            E.CLUSTER_AUTHORIZATION_FAILED,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.INVALID_PRODUCER_ID_MAPPING,
            E.UNSUPPORTED_VERSION,
        ],
    },
}
KEYS = {
    answers.INIT: ApiKey.INIT_PRODUCER_ID,
    answers.ADD_PARTITIONS: ApiKey.ADD_PARTITIONS_TO_TXN,
    answers.ADD_OFFSETS: ApiKey.ADD_OFFSETS_TO_TXN,
    answers.COMMIT_OFFSETS: ApiKey.TXN_OFFSET_COMMIT,
    answers.END: ApiKey.END_TXN,
    answers.PRODUCE: ApiKey.PRODUCE,
}
ONLY_BEFORE_2 = (answers.ADD_PARTITIONS, answers.ADD_OFFSETS)

REFUSED = [
    pytest.param(version, api, code, expected, id=f"{version}-{api.api}-{code.name}")
    for api, classes in TABLE.items()
    for expected, codes in classes.items()
    for code in codes
    for version in (1, 2)
    if api is not answers.INIT and not (version == 2 and api in ONLY_BEFORE_2)
]


async def one_transaction(producer: TransactionalProducer, value: bytes) -> None:
    producer.begin()
    await producer.send("t", 0, [(0, None, value, ())])
    await producer.send_offsets({TopicPartition("in", 0): 5}, "g")
    await producer.commit()


@deep
@pytest.mark.parametrize(("version", "api", "code", "expected"), REFUSED)
async def test_a_code_that_fails_a_transaction(
    version: int, api: answers.Answers, code: ErrorCode, expected: type[TransactionError]
) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        coordinator.refuse(KEYS[api], code)
        with pytest.raises(TransactionError) as caught:
            await one_transaction(producer, b"refused")
        assert (type(caught.value), caught.value.code) == (expected, code)
        with pytest.raises(expected):
            producer.begin()
        with pytest.raises(expected):
            await producer.commit()
        if issubclass(expected, FatalTransactionError):
            with pytest.raises(expected):
                await producer.abort()
            assert coordinator.committed == {}
        else:
            await producer.abort()
            await one_transaction(producer, b"next")
            assert coordinator.committed == {0: [b"next"]}
            assert coordinator.offsets == {"in-0": 5}


@deep
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("code", [*AGAIN, "lost"])
@pytest.mark.parametrize("api", list(TABLE), ids=lambda api: api.api)
async def test_a_code_that_passes_is_tried_again(
    version: int, api: answers.Answers, code: ErrorCode | str
) -> None:
    async with coordinated(version) as (coordinator, client):
        if isinstance(code, ErrorCode):
            coordinator.refuse(KEYS[api], code, code)
        else:
            coordinator.lose(KEYS[api])
        async with TransactionalProducer(client, "id", linger_ms=0) as producer:
            for value in (b"a", b"b"):
                await one_transaction(producer, value)
        assert coordinator.committed == {0: [b"a", b"b"]}
        assert coordinator.offsets == {"in-0": 5}


@pytest.mark.parametrize(
    ("code", "expected"), [(code, kind) for kind, codes in TABLE[answers.INIT].items() for code in codes]
)
async def test_a_code_that_ends_the_start(code: ErrorCode, expected: type[TransactionError]) -> None:
    async with coordinated(2) as (coordinator, client):
        coordinator.refuse(ApiKey.INIT_PRODUCER_ID, code)
        with pytest.raises(expected):
            await TransactionalProducer(client, "id").start()


@pytest.mark.parametrize("table", [*TABLE, answers.FIND], ids=lambda table: table.api)
def test_every_code_there_is_says_what_to_do(table: answers.Answers) -> None:
    for code in ErrorCode:
        if code is ErrorCode.NONE:
            continue
        error: KafkaError = table.error(code, "x")
        assert isinstance(error, RetriableError | TransactionError), code
        if KafkaError(code).retriable:
            assert isinstance(error, RetriableError), code
    assert isinstance(answers.COMMIT_OFFSETS.error(E.ILLEGAL_GENERATION, "x"), RebalanceNeeded)


async def test_offsets_carry_who_the_member_is() -> None:
    async with producing(1) as (coordinator, producer):
        producer.begin()
        member = GroupMetadata(group_id="g", generation=7, member_id="m", group_instance_id="i")
        await producer.commit({TopicPartition("in", 3): 9}, member)
        (request,) = [a.message for a in coordinator.broker.requests if a.api_key == ApiKey.TXN_OFFSET_COMMIT]
        assert (request.generation_id, request.member_id, request.group_instance_id) == (7, "m", "i")
        assert coordinator.offsets == {"in-3": 9}
        assert coordinator.steps == ["init", "add offsets g", "offsets g 7", "end commit at 0"]
