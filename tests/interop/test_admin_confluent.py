"""The admin client of confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.interop.clients import confluent
from tests.interop.clients.base import SECONDS, wait_until
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic

LIMIT = {"request_timeout": SECONDS}


@pytest.fixture(scope="module")
def admin(logd: LogdProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": logd.bootstrap, **confluent.QUIET})


def results(futures: dict[Any, Any]) -> dict[Any, Any]:
    return {key: future.result(SECONDS) for key, future in futures.items()}


def refusal(futures: dict[Any, Any]) -> str:
    """Return the name of the error with which the only future fails."""
    (future,) = futures.values()
    with pytest.raises(KafkaException) as refused:
        future.result(SECONDS)
    name: str = refused.value.args[0].name()
    return name


def topic_config(admin: AdminClient, topic: str) -> dict[str, Any]:
    (config,) = results(admin.describe_configs([ConfigResource("topic", topic)], **LIMIT)).values()
    assert isinstance(config, dict)
    return config


def group_with_offsets(logd: LogdProcess, topic: str, group: str, *, close: bool = True) -> Any:
    confluent.produce(logd.bootstrap, topic, [(1, None, b"v", ())] * 5)
    member = confluent.member(logd.bootstrap, group, topic)
    received = wait_until(lambda: bool(member.assigned), member)
    while len(received) < 5:
        received += member.poll()
    member.commit()
    if close:
        member.close()
    return member


def test_the_cluster(admin: AdminClient, logd: LogdProcess) -> None:
    cluster = admin.describe_cluster(**LIMIT).result(SECONDS)
    assert len(cluster.cluster_id) == 22
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [logd.bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id == 1


def test_topics_are_created_described_and_deleted(admin: AdminClient, new_name: Callable[[str], str]) -> None:
    name = new_name("admin")
    new = NewTopic(name, 3, 1, config={"cleanup.policy": "compact", "segment.ms": "60000"})
    results(admin.create_topics([new], validate_only=True, **LIMIT))
    assert name not in admin.list_topics(timeout=SECONDS).topics
    results(admin.create_topics([new], **LIMIT))
    assert refusal(admin.create_topics([new], **LIMIT)) == "TOPIC_ALREADY_EXISTS"
    assert len(admin.list_topics(timeout=SECONDS).topics[name].partitions) == 3
    described = results(admin.describe_topics(TopicCollection([name]), **LIMIT))[name]
    assert [(partition.id, partition.leader.id) for partition in described.partitions] == [
        (0, 1),
        (1, 1),
        (2, 1),
    ]
    assert topic_config(admin, name)["cleanup.policy"].value == "compact"
    results(admin.delete_topics([name], **LIMIT))
    assert name not in admin.list_topics(timeout=SECONDS).topics
    assert refusal(admin.delete_topics([name], **LIMIT)) == "UNKNOWN_TOPIC_OR_PART"
    assert refusal(admin.describe_topics(TopicCollection([name]), **LIMIT)) == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("bad/name", 1, 1), "TOPIC_EXCEPTION"),
        (NewTopic("too-many", 1, 3), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("bad-config", 1, 1, config={"segment.ms": "soon"}), "INVALID_CONFIG"),
        (NewTopic("unknown-config", 1, 1, config={"segment.mss": "1"}), "INVALID_CONFIG"),
    ],
    ids=["name", "replicas", "value", "key"],
)
def test_topics_that_cannot_be(admin: AdminClient, new: NewTopic, error: str) -> None:
    assert refusal(admin.create_topics([new], **LIMIT)) == error


def test_partitions_are_added(admin: AdminClient, logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("admin"))
    results(admin.create_partitions([NewPartitions(topic, 4)], **LIMIT))
    assert len(admin.list_topics(timeout=SECONDS).topics[topic].partitions) == 4
    assert refusal(admin.create_partitions([NewPartitions(topic, 2)], **LIMIT)) == "INVALID_PARTITIONS"
    confluent.produce(logd.bootstrap, topic, [(1, b"k", b"v", ())], partition=3)
    assert len(confluent.consume(logd.bootstrap, topic, 1, partition=3)) == 1


def test_configs_have_sources_and_change(
    admin: AdminClient, logd: LogdProcess, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("admin"), {"segment.ms": "60000"})
    config = topic_config(admin, topic)
    assert config["segment.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert config["retention.ms"].is_default and config["retention.ms"].value == "604800000"
    change = ConfigResource(
        "topic",
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
            ConfigEntry("segment.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    results(admin.incremental_alter_configs([change], **LIMIT))
    config = topic_config(admin, topic)
    assert config["retention.ms"].value == "1234567"
    assert config["cleanup.policy"].value == "delete,compact"
    assert config["segment.ms"].is_default
    wrong = ConfigResource(
        "topic",
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "x", incremental_operation=AlterConfigOpType.SET)],
    )
    assert refusal(admin.incremental_alter_configs([wrong], **LIMIT)) == "INVALID_CONFIG"
    nowhere = ConfigResource("topic", "no-such-topic")
    assert refusal(admin.describe_configs([nowhere], **LIMIT)) == "UNKNOWN_TOPIC_OR_PART"


def test_the_brokers_own_config(admin: AdminClient) -> None:
    (config,) = results(admin.describe_configs([ConfigResource("broker", "1")], **LIMIT)).values()
    assert config["node.id"].value == "1" and config["node.id"].is_read_only
    assert config["group.min.session.timeout.ms"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert config["log.segment.bytes"].is_default


def test_offsets_by_specification_and_deleted_records(
    admin: AdminClient, logd: LogdProcess, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("admin"))
    confluent.produce(logd.bootstrap, topic, [(1000 * stamp, None, b"v", ()) for stamp in (1, 2, 5, 3)])
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> tuple[int, int]:
        (result,) = results(admin.list_offsets({partition: spec}, **LIMIT)).values()
        return result.offset, result.timestamp

    assert offset(OffsetSpec.earliest())[0] == 0
    assert offset(OffsetSpec.latest())[0] == 4
    assert offset(OffsetSpec.max_timestamp()) == (2, 5000)
    assert offset(OffsetSpec.for_timestamp(1500)) == (1, 2000)
    assert offset(OffsetSpec.for_timestamp(5001))[0] == -1
    (deleted,) = results(admin.delete_records([TopicPartition(topic, 0, 2)], **LIMIT)).values()
    assert deleted.low_watermark == 2
    assert offset(OffsetSpec.earliest())[0] == 2
    assert refusal(admin.delete_records([TopicPartition(topic, 0, 9)], **LIMIT)) == "OFFSET_OUT_OF_RANGE"
    (deleted,) = results(admin.delete_records([TopicPartition(topic, 0, -1)], **LIMIT)).values()
    assert deleted.low_watermark == 4


def test_groups_are_listed_described_and_deleted(
    admin: AdminClient, logd: LogdProcess, new_name: Callable[[str], str]
) -> None:
    topic, group = create_topic(logd, new_name("admin"), partitions=2), new_name("g")
    member = group_with_offsets(logd, topic, group, close=False)
    described = results(admin.describe_consumer_groups([group], **LIMIT))[group]
    assert described.state == ConsumerGroupState.STABLE
    assert described.partition_assignor == "range"
    (only,) = described.members
    assert {(tp.topic, tp.partition) for tp in only.assignment.topic_partitions} == {(topic, 0), (topic, 1)}
    assert only.host.lstrip("/") == "127.0.0.1"
    assert refusal(admin.delete_consumer_groups([group], **LIMIT)) == "NON_EMPTY_GROUP"
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, **LIMIT).result(SECONDS).valid
    assert group in {listed.group_id for listed in stable}
    member.close()
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}, **LIMIT).result(SECONDS).valid
    (listed,) = (listed for listed in empty if listed.group_id == group)
    assert listed.type in (ConsumerGroupType.CLASSIC, ConsumerGroupType.UNKNOWN)
    results(admin.delete_consumer_groups([group], **LIMIT))
    assert group not in {
        listed.group_id for listed in admin.list_consumer_groups(**LIMIT).result(SECONDS).valid
    }
    assert refusal(admin.delete_consumer_groups([group], **LIMIT)) == "GROUP_ID_NOT_FOUND"


def test_group_offsets_are_listed_and_altered(
    admin: AdminClient, logd: LogdProcess, new_name: Callable[[str], str]
) -> None:
    topic, group = create_topic(logd, new_name("admin")), new_name("g")
    group_with_offsets(logd, topic, group)

    def offsets() -> dict[int, int]:
        request = [ConsumerGroupTopicPartitions(group)]
        response = results(admin.list_consumer_group_offsets(request, **LIMIT))[group]
        return {partition.partition: partition.offset for partition in response.topic_partitions}

    assert offsets() == {0: 5}
    altered = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    results(admin.alter_consumer_group_offsets([altered], **LIMIT))
    assert offsets() == {0: 2}
    member = confluent.member(logd.bootstrap, group, topic)
    received = wait_until(lambda: bool(member.assigned), member)
    while len(received) < 3:
        received += member.poll()
    assert [record[0] for _, record in received] == [2, 3, 4]
    member.close()
