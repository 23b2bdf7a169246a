"""The admin client of kafka-python, which asks newer versions than the others do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

pytest.importorskip("kafka")

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    GroupIdNotFoundError,
    InvalidPartitionsError,
    NoError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import OffsetSpec, OffsetTimestamp

from tests.interop.clients import python
from tests.interop.clients.base import wait_until
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic


@pytest.fixture(scope="module")
def admin(logd: LogdProcess) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=logd.bootstrap)
    yield admin
    admin.close()


def test_the_cluster(admin: KafkaAdminClient, logd: LogdProcess) -> None:
    cluster = admin.describe_cluster()
    assert [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]] == [logd.bootstrap]
    assert cluster["controller_id"] == 1


def test_topics(admin: KafkaAdminClient, new_name: Callable[[str], str]) -> None:
    name = new_name("admin")
    request = {name: {"num_partitions": 2, "configs": {"segment.ms": "60000"}}}
    admin.create_topics(request, validate_only=True)
    assert name not in admin.list_topics()
    (created,) = admin.create_topics(request, wait_for_metadata=True)["topics"]
    assert created["num_partitions"] == 2 and created["replication_factor"] == 1
    assert created["configs"]["segment.ms"]["value"] == "60000"
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics(request)
    admin.create_partitions({name: 5})
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({name: 3})
    (described,) = admin.describe_topics([name])
    assert len(described["partitions"]) == 5
    topic_id = UUID(described["topic_id"])
    (by_id,) = admin.describe_topics([topic_id])
    assert by_id["name"] == name
    admin.delete_topics([topic_id])
    assert name not in admin.list_topics()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_configs(admin: KafkaAdminClient, logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("admin"), {"segment.ms": "60000"})
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    def modified() -> dict[str, str]:
        config = admin.describe_configs([resource])["topic"][topic]
        return {key: entry["value"] for key, entry in config.items()}

    assert modified() == {"segment.ms": "60000"}
    for incremental in (True, False):
        change = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1234567"})
        admin.alter_configs([change], incremental=incremental)
        assert modified() == {"segment.ms": "60000", "retention.ms": "1234567"}
        admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
        assert modified() == {"segment.ms": "60000"}
    everything = admin.describe_configs([resource], include_synonyms=True, config_filter="all")["topic"][
        topic
    ]
    assert everything["retention.ms"]["value"] == "604800000"
    synonyms = [synonym["name"] for synonym in everything["segment.bytes"]["synonyms"]]
    assert "log.segment.bytes" in synonyms


def test_offsets_and_deleted_records(
    admin: KafkaAdminClient, logd: LogdProcess, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("admin"))
    python.produce(logd.bootstrap, topic, [(1000 * stamp, None, b"v", ()) for stamp in (1, 2, 5, 3)])
    partition = TopicPartition(topic, 0)

    def offset(spec: object) -> int:
        position: int = admin.list_partition_offsets({partition: spec})[partition].offset
        return position

    assert offset(OffsetSpec.EARLIEST) == 0
    assert offset(OffsetSpec.LATEST) == 4
    assert offset(OffsetSpec.MAX_TIMESTAMP) == 2
    assert offset(OffsetSpec.EARLIEST_LOCAL) == 0
    assert offset(OffsetTimestamp(1500)) == 1
    assert offset(OffsetTimestamp(9999)) == -1
    assert admin.delete_records({partition: 3})[partition]["low_watermark"] == 3
    assert offset(OffsetSpec.EARLIEST) == 3
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 7})


def test_groups(admin: KafkaAdminClient, logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic, group = create_topic(logd, new_name("admin"), partitions=2), new_name("g")
    python.produce(logd.bootstrap, topic, [(1, None, b"v", ())] * 4)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    member = python.member(logd.bootstrap, group, topic)
    received = wait_until(lambda: bool(member.assigned), member)
    while len(received) < 4:
        received += member.poll()
    member.commit()
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
    (only,) = described["members"]
    assert only["member_assignment"]["assigned_partitions"] == [{"topic": topic, "partitions": [0, 1]}]
    assert group in {result["group_id"] for result in admin.list_groups(states_filter=["Stable"])}
    assert group in {result["group_id"] for result in admin.list_groups(types_filter=["classic"])}
    assert group not in {result["group_id"] for result in admin.list_groups(states_filter=["Empty"])}
    assert set(admin.delete_groups([group]).values()) == {"NonEmptyGroupError"}
    member.close()
    assert admin.list_group_offsets([group])[group][first].offset == 4
    altered = admin.alter_group_offsets(group, {second: OffsetAndMetadata(9, "noted", None)})
    assert altered == {second: NoError}
    result = admin.list_group_offsets({group: [second]})[group][second]
    assert (result.offset, result.metadata) == (9, "noted")
    reset = admin.reset_group_offsets(group, {first: OffsetSpec.EARLIEST})
    assert reset[first]["offset"] == 0
    assert admin.delete_group_offsets(group, [first]) == {first: NoError}
    assert set(admin.list_group_offsets([group])[group]) == {second}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert group not in {result["group_id"] for result in admin.list_groups()}
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_group_offsets(group, [first])
