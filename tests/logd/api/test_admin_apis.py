"""APIs that admin clients of a 4.x cluster use. Apache Kafka gives the expected answers: both brokers get
the same requests.

Without these APIs such clients were disconnected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire import ApiKey, Message
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from kafka_client.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.list_config_resources import ListConfigResourcesRequest
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest
from kafka_client.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.millstream.kafka_tools.players import JavaTools
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import sample
from tests.support.java import needs_javac, needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

NEWER = {
    "API_VERSIONS": ((0, 4), (0, 5)),
    "TXN_OFFSET_COMMIT": ((0, 5), (0, 6)),
    "DELETE_GROUPS": ((0, 2), (0, 3)),
}
"""API versions, ours and Kafka's, of the APIs that Kafka 4.4 has newer versions of."""
TOPICS = {"one": 1, "three": 3, "five": 5}
ALL = object()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker that has the topics of `TOPICS` only."""
    with LogdProcess(tmp_path_factory.mktemp("alone"), {"max.request.partition.size.limit": 7}) as process:
        for name, partitions in TOPICS.items():
            create_topic(process, name, partitions=partitions)
        yield process


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    settings = {"max.request.partition.size.limit": 7}
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), settings) as broker:
        for name, partitions in TOPICS.items():
            create_topic(broker, name, partitions=partitions)
        with RawClient(broker.port) as client:  # its broker learns of them in a moment
            everything = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in TOPICS])
            wait_for(lambda: not any(t.error_code for t in client.request(everything, 0).topics))
        yield broker


def describe_request(
    names: tuple[str, ...], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Message:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )


PAGES = {
    "one": describe_request(("three",)),
    "twice": describe_request(("three", "three")),
    "all": describe_request((), 2),
    "the broker's limit": describe_request(("five", "one", "three")),
    "missing and a limit": describe_request(("three", "five", "absent"), 4),
    "goes on": describe_request(("three", "five", "absent"), 4, ("five", 4)),
    "goes on in all": describe_request((), 2, ("five", 4)),
    "goes on behind a topic that went": describe_request((), 2, ("four", 1)),
    "ends where a topic begins": describe_request(("five", "one", "three"), 5),
    "no room": describe_request(("one", "three"), 0),
    "less than no room": describe_request(("one", "three"), -1),
    "behind the last partition": describe_request(("three", "five"), 3, ("five", 17)),
    "before the first": describe_request(("three", "five"), 3, ("five", -1)),
    "a cursor that was not describe_request for": describe_request(("three", "five"), 3, ("four", 1)),
    "no name": describe_request(("b ad",)),
}


def page(port: int, request: Message) -> tuple[list[tuple[Any, ...]], tuple[str, int] | None]:
    with RawClient(port) as client:
        answer = client.request(request, 0)
    topics = [
        (
            t.error_code,
            t.name,
            any(t.topic_id),
            t.is_internal,
            t.partitions,
            t.topic_authorized_operations,
        )
        for t in answer.topics
    ]
    cursor = answer.next_cursor
    return topics, (cursor.topic_name, cursor.partition_index) if cursor is not None else None


def test_pages_of_partitions(alone: LogdProcess) -> None:
    """Pages name every partition exactly once, whatever the size of a page."""
    for limit in range(1, 11):
        partitions: list[tuple[str, int]] = []
        cursor: tuple[str, int] | None = None
        while True:
            topics, cursor = page(alone.port, describe_request((), limit, cursor))
            rows = [(topic[1], partition.partition_index) for topic in topics for partition in topic[4]]
            assert len(rows) <= min(limit, 7)
            partitions += rows
            if cursor is None:
                break
        assert partitions == [(name, index) for name in sorted(TOPICS) for index in range(TOPICS[name])]


@needs_kafka
@pytest.mark.parametrize("name", PAGES)
def test_pages_as_apache_kafka_answers(alone: LogdProcess, kafka: ApacheKafka, name: str) -> None:
    assert page(alone.port, PAGES[name]) == page(kafka.port, PAGES[name])


def update(feature: str, level: int, **facts: Any) -> Message:
    key = FeatureUpdateKey(feature=feature, max_version_level=level, **facts)
    return UpdateFeaturesRequest(feature_updates=[key], validate_only=True)


SAME = [
    *((SaslHandshakeRequest(mechanism="PLAIN"), version) for version in (0, 1)),
    *((SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), version) for version in (0, 1, 2)),
    *((UpdateFeaturesRequest(feature_updates=[]), version) for version in (0, 1, 2)),
    *((update("transaction.version", 2), version) for version in (0, 1, 2)),
    *((update("nobody.knows", 1), version) for version in (0, 1, 2)),
    (update("transaction.version", 2, upgrade_type=7), 2),
    (ListConfigResourcesRequest(), 0),
    *((ListConfigResourcesRequest(resource_types=types), 1) for types in ([16], [32], [1], [99, 2])),
]


@needs_kafka
@pytest.mark.parametrize(("request_", "version"), SAME)
def test_as_apache_kafka_answers(
    alone: LogdProcess, kafka: ApacheKafka, request_: Message, version: int
) -> None:
    answers = []
    for port in (alone.port, kafka.port):
        with RawClient(port) as client:
            answers.append(client.request(request_, version))
    assert answers[0] == answers[1]


@sample(1)
@pytest.mark.parametrize("level", [0, 1, 3])
def test_the_transaction_version_stays(alone: LogdProcess, level: int) -> None:
    with RawClient(alone.port) as client:
        answer = client.request(update("transaction.version", level, upgrade_type=2), 2)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "cannot be changed" in answer.error_message


def test_what_has_settings(alone: LogdProcess) -> None:
    with RawClient(alone.port) as client:
        answer = client.request(ListConfigResourcesRequest(), 1)
        assert {(r.resource_type, r.resource_name) for r in answer.config_resources} == {
            (4, "1"),
            *((2, name) for name in TOPICS),
        }
        answer = client.request(ListConfigResourcesRequest(resource_types=[4]), 1)
        assert [resource.resource_type for resource in answer.config_resources] == [4]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_there_is_no_quorum(alone: LogdProcess, version: int) -> None:
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])
    with RawClient(alone.port) as client:
        answer = client.request(DescribeQuorumRequest(topics=[topic]), version)
    assert (answer.error_code, answer.topics) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert version < 2 or "no quorum" in answer.error_message


def test_the_message_of_a_coordinator_that_was_found(logd: LogdProcess) -> None:
    """Messages of found coordinators are ``NONE`` up to version 3, as in Kafka, and empty afterwards."""
    with RawClient(logd.port) as client:
        for version in range(1, 7):
            answer = client.request(FindCoordinatorRequest(key="g", coordinator_keys=["g"]), version)
            (coordinator,) = answer.coordinators if version >= 4 else (answer,)
            assert coordinator.error_code == 0
            assert coordinator.error_message == ("NONE" if version < 4 else "")


@needs_kafka
def test_no_api_is_offered_in_other_versions_than_kafkas(alone: LogdProcess, kafka: ApacheKafka) -> None:
    """Kafka's version ranges are served, without the newest versions of a few APIs."""
    ranges = []
    for port in (alone.port, kafka.port):
        with RawClient(port) as client:
            answer = client.request(
                ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4
            )
        ranges.append({api.api_key: (api.min_version, api.max_version) for api in answer.api_keys})
    ours, theirs = ranges
    others = {
        ApiKey(key).name: (versions, theirs[key]) for key, versions in ours.items() if versions != theirs[key]
    }
    assert others == NEWER


@pytest.fixture(scope="module")
def java_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    with JavaTools(tmp_path_factory.mktemp("java")) as tools:
        yield tools


@needs_javac
@pytest.mark.parametrize(
    ("tool", "arguments", "status", "expected"),
    [
        ("org.apache.kafka.tools.TopicCommand", ["--describe"], 0, "PartitionCount: 5"),
        ("org.apache.kafka.tools.TopicCommand", ["--describe", "--topic", "three"], 0, "Leader: 1"),
        ("org.apache.kafka.tools.FeatureCommand", ["describe"], 0, "transaction.version"),
        ("org.apache.kafka.tools.MetadataQuorumCommand", ["describe", "--status"], 1, "no quorum"),
        ("org.apache.kafka.tools.ClientMetricsCommand", ["--list"], 0, ""),
        (
            "org.apache.kafka.tools.FeatureCommand",
            ["downgrade", "--feature", "transaction.version=1"],
            1,
            "cannot be changed",
        ),
    ],
)
def test_javas_tools(
    alone: LogdProcess, java_tools: JavaTools, tool: str, arguments: list[str], status: int, expected: str
) -> None:
    done = java_tools.run([tool, "--bootstrap-server", alone.bootstrap, *arguments], "")
    assert done.status == status, done.stdout + done.stderr
    assert expected in done.stdout + done.stderr
    assert "Traceback" not in alone.log
