"""Client quotas of a broker: what is counted, the waits in the answers, and connections that are muted.

The waits are exact where a client's first request exceeds its quota: the rate is over ten seconds that were
quiet, and the clock has not moved since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire import Message
from kafka_client.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_client.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafka_client.wire.messages.metadata import MetadataRequest
from tests.support.client_quotas import HEADROOM, alter_quotas, is_answered, produce
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

QUIET_S = 10
"""The time that the rate of a client's first request is over, in seconds."""
METADATA = MetadataRequest(topics=[])

Limit = Callable[..., str]


@pytest.fixture
def limit(client: RawClient, new_name: Callable[..., str]) -> Iterator[Limit]:
    """Return a function that makes a client id with quotas; they are removed at the end."""
    made: list[tuple[str, dict[str, float]]] = []

    def make(**quotas: float) -> str:
        client_id = new_name()
        made.append((client_id, quotas))
        alter_quotas(client, {"client-id": client_id}, quotas)
        return client_id

    yield make
    for client_id, quotas in made:
        alter_quotas(client, {"client-id": client_id}, dict.fromkeys(quotas))


def test_a_flood_of_records_waits(
    logd: LogdProcess, client: RawClient, make_topic: Callable[..., str], limit: Limit
) -> None:
    topic, client_id = make_topic(), limit(producer_byte_rate=1)
    with RawClient(logd.port, client_id=client_id) as flood:
        answer = produce(flood, topic, 5_000)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert 5_000 * 1_000 < answer.throttle_time_ms + QUIET_S * 1_000 < (5_000 + HEADROOM) * 1_000
        flood.send_produce(topic, [(1_000, None, b"later", ())])
        assert client.request(METADATA, 12).throttle_time_ms == 0
        assert produce(client, topic, 5_000).throttle_time_ms == 0
        assert client.fetch(topic, 1).high_watermark == 2, "what was sent later is not served yet"
        assert not is_answered(flood)


def test_the_wait_is_over(logd: LogdProcess, make_topic: Callable[..., str], limit: Limit) -> None:
    topic, client_id = make_topic(), limit(producer_byte_rate=1_000)
    with RawClient(logd.port, client_id=client_id) as flood:
        assert 0 < produce(flood, topic, QUIET_S * 1_000).throttle_time_ms < HEADROOM
        assert produce(flood, topic, 0).responses[0].partition_responses[0].base_offset == 1


def test_without_acknowledgements(
    logd: LogdProcess, client: RawClient, make_topic: Callable[..., str], limit: Limit
) -> None:
    topic, client_id = make_topic(), limit(producer_byte_rate=1)
    with RawClient(logd.port, client_id=client_id) as flood:
        flood.send_produce(topic, [(1_000, None, bytes(5_000), ())], acks=0)
        flood.send_produce(topic, [(1_000, None, b"later", ())])
        assert len(client.fetch(topic, 0, max_wait_ms=60_000).records) > 5_000
        assert client.fetch(topic, 0).high_watermark == 1
        assert not is_answered(flood)


@pytest.mark.parametrize("version", [4, 12, 16])
def test_reading_too_much_waits(
    logd: LogdProcess, client: RawClient, make_topic: Callable[..., str], limit: Limit, version: int
) -> None:
    topic, client_id = make_topic(), limit(consumer_byte_rate=10)
    for _ in range(3):
        produce(client, topic, 1_000)
    topic_id = client.request(MetadataRequest(topics=None), 12)
    by_name = {each.name: each.topic_id for each in topic_id.topics}
    with RawClient(logd.port, client_id=client_id) as flood:
        flood.send_fetch(by_name[topic] if version > 12 else topic, version=version)
        answer = flood.receive(1, version)
        records = answer.responses[0].partitions[0].records
        assert 1_000 < len(records) < 2_000, "10 bytes a second allow no second batch"
        size = (answer.throttle_time_ms / 1_000 + QUIET_S) * 10
        assert len(records) < size < len(records) + HEADROOM
        flood.send_fetch(by_name[topic] if version > 12 else topic, version=version)
        assert client.request(METADATA, 12).throttle_time_ms == 0
        assert not is_answered(flood)


def test_a_fetch_that_waits_for_records(
    logd: LogdProcess, client: RawClient, make_topic: Callable[..., str], limit: Limit
) -> None:
    topic, client_id = make_topic(), limit(consumer_byte_rate=10)
    with RawClient(logd.port, client_id=client_id) as flood:
        flood.send_fetch(topic, max_wait_ms=60_000)
        produce(client, topic, 1_000)
        assert flood.receive(1, 12).throttle_time_ms > 50_000


def test_time_of_requests_waits_for_a_second_at_most(
    logd: LogdProcess, client: RawClient, make_topic: Callable[..., str], limit: Limit
) -> None:
    topic, client_id = make_topic(), limit(request_percentage=1e-300)
    answers: list[int] = []
    for request in (lambda flood: flood.request(METADATA, 12), lambda flood: produce(flood, topic, 1)):
        with RawClient(logd.port, client_id=client_id) as flood:
            answers.append(request(flood).throttle_time_ms)
    assert answers == [1_000, 1_000]
    assert client.request(METADATA, 12).throttle_time_ms == 0


def creation(name: str, partitions: int = 3) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
    )


def outcome(logd: LogdProcess, client_id: str, request: Message, version: int) -> tuple[int, bool]:
    """Return the error code of a topic, and whether the client has to wait."""
    with RawClient(logd.port, client_id=client_id) as client:
        answer = client.request(request, version)
    results = (
        "topics" if hasattr(answer, "topics") else "results" if hasattr(answer, "results") else "responses"
    )
    (result,) = getattr(answer, results)
    return result.error_code, answer.throttle_time_ms > 0


def test_changes_of_topics(logd: LogdProcess, new_name: Callable[..., str], limit: Limit) -> None:
    client_id, first, second = limit(controller_mutation_rate=0.001), new_name(), new_name()
    exceeded = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    growth = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=first, count=5, assignments=None)])
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=first)])
    old_deletion = DeleteTopicsRequest(topic_names=[second])

    def topic_error(request: Message, version: int) -> tuple[int, bool]:
        return outcome(logd, client_id, request, version)

    assert topic_error(creation(first, partitions=0), 7) == (ErrorCode.INVALID_PARTITIONS, False)
    assert topic_error(creation(first), 7) == (0, True)
    assert topic_error(creation(second), 6) == (exceeded, True)
    assert topic_error(creation(first), 7) == (ErrorCode.TOPIC_ALREADY_EXISTS, True)
    assert topic_error(growth, 3) == (exceeded, True)
    assert topic_error(deletion, 6) == (exceeded, True)
    assert topic_error(creation(second), 5) == (0, True), "its client does not know the error"
    assert topic_error(growth, 2) == (0, True)
    assert topic_error(old_deletion, 4) == (0, True)
    assert outcome(logd, "another", deletion, 6) == (0, False)


def test_what_is_set_is_described(client: RawClient, limit: Limit) -> None:
    client_id = limit(producer_byte_rate=1024, request_percentage=12.5)
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="client-id", match_type=0, match=client_id)]
    )
    (entry,) = client.request(request, 1).entries
    assert [(each.entity_type, each.entity_name) for each in entry.entity] == [("client-id", client_id)]
    assert {each.key: each.value for each in entry.values} == {
        "producer_byte_rate": 1024.0,
        "request_percentage": 12.5,
    }
