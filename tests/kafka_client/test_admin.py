from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_client import (
    Admin,
    BatchProducer,
    Client,
    ConfigOp,
    ElectionType,
    NewTopic,
    ResourceType,
    TopicPartition,
)
from kafka_client.errors import ErrorCode, KafkaError
from tests.support.depth import deep

Name = Callable[[str], str]


async def test_a_topics_life(bootstrap: str, new_name: Name) -> None:
    name = new_name("life")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 2, 1, {"cleanup.policy": "compact"})])
        assert (await client.topic(name)).partition_count == 2
        with pytest.raises(KafkaError, match=name) as raised:
            await admin.create_topics([NewTopic(name, 2, 1)])
        assert raised.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        await admin.create_topics([NewTopic(name, 2, 1)], exist_ok=True)
        await admin.create_partitions({name: 5})
        assert (await admin.describe_topics([name]))[name].partition_count == 5
        with pytest.raises(KafkaError, match=name):
            await admin.create_partitions({name: 3})
        assert name in await admin.list_topics()
        await admin.delete_topics([name])
        assert name not in await admin.list_topics()
        with pytest.raises(KafkaError, match=name):
            await admin.delete_topics([name])
        await admin.delete_topics([name], missing_ok=True)


async def test_one_bad_topic_does_not_stop_the_others(bootstrap: str, new_name: Name) -> None:
    name = new_name("good")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        with pytest.raises(KafkaError, match="not/a/name"):
            await admin.create_topics([NewTopic("not/a/name", 1, 1), NewTopic(name, 1, 1)])
        assert name in await admin.list_topics()
        with pytest.raises(KafkaError, match=name):
            await admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)
        other = new_name("only-validated")
        await admin.create_topics([NewTopic(other, 1, 1)], validate_only=True)
        assert other not in await admin.list_topics()


async def test_configs_of_a_topic(bootstrap: str, new_name: Name) -> None:
    name = new_name("configs")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 1, 1, {"retention.ms": "-1"})])
        configs = await admin.describe_configs(name)
        assert configs["retention.ms"].value == "-1"
        assert "segment.bytes" in configs
        await admin.incremental_alter_configs(name, {"segment.bytes": "2000000", "retention.ms": None})
        await admin.incremental_alter_configs(name, {"cleanup.policy": (ConfigOp.APPEND, "compact")})
        keys = ["segment.bytes", "retention.ms", "cleanup.policy"]

        async def applied() -> bool:
            # Apache Kafka acknowledges a change before the broker asked has seen it.
            configs = await admin.describe_configs(name, keys=keys)
            assert set(configs) == set(keys)
            policies = set((configs["cleanup.policy"].value or "").split(","))
            return (
                configs["segment.bytes"].value == "2000000"
                and configs["retention.ms"].value != "-1"
                and policies == {"delete", "compact"}
            )

        async with asyncio.timeout(100):
            while True:
                if await applied():
                    break
                await asyncio.sleep(0.01)
        with pytest.raises(KafkaError, match=name):
            await admin.incremental_alter_configs(name, {"segment.bytes": "many"})
        missing = new_name("missing")
        with pytest.raises(KafkaError, match=missing):
            await admin.describe_configs(missing)


async def test_configs_of_a_broker(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        admin = Admin(client)
        cluster = await admin.describe_cluster()
        assert cluster.cluster_id == (await client.metadata(())).cluster_id
        node = str(cluster.brokers[0].node_id)
        assert "log.segment.bytes" in await admin.describe_configs(node, ResourceType.BROKER)


@deep
async def test_offsets_by_time_and_deleting_records(bootstrap: str, new_name: Name) -> None:
    name = new_name("offsets")
    tp = TopicPartition(name, 0)
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 1, 1, {"retention.ms": "-1"})])
        async with BatchProducer(client) as producer:
            for start in range(0, 100, 10):
                records = [(1000 * n, None, b"v", ()) for n in range(start, start + 10)]
                await (await producer.send(name, 0, records))

        async def offset(spec: str | int) -> int:
            return (await admin.list_offsets({tp: spec}))[tp].offset

        assert await offset("earliest") == 0
        assert await offset("latest") == 100
        assert await offset(42_000) == 42
        assert await offset(41_001) == 42
        assert await offset(999_999) == -1
        assert await offset("max_timestamp") == 99
        assert await admin.delete_records({tp: 30}) == {tp: 30}
        assert await offset("earliest") == 30
        with pytest.raises(KafkaError, match=f"{name}-0"):
            await admin.delete_records({tp: 1000})
        assert await admin.delete_records({tp: -1}) == {tp: 100}
        with pytest.raises(KafkaError, match=f"{name}-9"):
            await admin.list_offsets({TopicPartition(name, 9): "latest"})


async def test_offsets_of_a_group_without_members(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(topic, 2, 1)])
        assert await admin.list_group_offsets(group) == {}
        await admin.alter_group_offsets(group, {first: 5, second: 6})
        offsets = {tp: committed.offset for tp, committed in (await admin.list_group_offsets(group)).items()}
        assert offsets == {first: 5, second: 6}
        assert [g.state for g in await admin.list_groups() if g.group_id == group] == ["Empty"]
        assert (await admin.describe_groups([group]))[group].state == "Empty"
        await admin.delete_offsets(group, [first])
        assert set(await admin.list_group_offsets(group, [first, second])) == {second}
        await admin.delete_groups([group])
        assert (await admin.describe_groups([group]))[group].state == "Dead"
        with pytest.raises(KafkaError, match=group):
            await admin.delete_groups([group])
        await admin.delete_groups([group], missing_ok=True)


async def test_log_folders(bootstrap: str, new_name: Name) -> None:
    name = new_name("folders")
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 2, 1)])
        await (await producer.send(name, 0, [(0, None, b"value", ())]))
        tps = [TopicPartition(name, 0), TopicPartition(name, 1)]
        (node,) = (await admin.describe_cluster()).brokers
        everything = await admin.describe_log_dirs()
        some = await admin.describe_log_dirs([node.node_id], tps)
        assert set(everything) == set(some) == {node.node_id}
        replicas = {tp: replica for folder in some[node.node_id] for tp, replica in folder.replicas.items()}
        assert set(replicas) == set(tps)
        assert replicas[tps[0]].size > replicas[tps[1]].size == 0
        assert not replicas[tps[0]].is_future
        for folder in everything[node.node_id]:
            assert folder.error is None
            assert folder.total_bytes >= folder.usable_bytes > 0


async def test_elections(bootstrap: str, new_name: Name) -> None:
    name = new_name("elections")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 1, 1)])
        there, away = TopicPartition(name, 0), TopicPartition(name, 7)
        errors = await admin.elect_leaders(ElectionType.PREFERRED, [there, away])
        codes = {tp: error.code if error else None for tp, error in errors.items()}
        assert codes == {
            there: ErrorCode.ELECTION_NOT_NEEDED,
            away: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert there not in await admin.elect_leaders(ElectionType.PREFERRED)


async def test_reassignments(bootstrap: str, new_name: Name) -> None:
    name = new_name("moves")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 2, 1)])
        (node,) = (await admin.describe_cluster()).brokers
        here, there = TopicPartition(name, 0), TopicPartition(name, 1)
        errors = await admin.alter_partition_reassignments({here: [node.node_id], there: [4711]})
        assert errors[here] is None
        assert str(there) in str(errors[there])
        assert errors[there] is not None
        assert errors[there].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await admin.list_partition_reassignments([here, there]) == {}
        cancelled = await admin.alter_partition_reassignments({here: None})
        assert cancelled[here] is not None
        assert cancelled[here].code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_a_default_is_told_beside_what_is_set(bootstrap: str, new_name: Name) -> None:
    name = new_name("defaults")
    async with Client(bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(name, 1, 1, {"segment.bytes": "2000000"})])
        entry = (await admin.describe_configs(name, defaults=True))["segment.bytes"]
        assert (entry.value, entry.default) == ("2000000", "1073741824")
        with pytest.raises(KafkaError, match=name):
            await admin.create_partitions({name: 1}, validate_only=True)
        await admin.create_partitions({name: 3}, validate_only=True)
        assert (await admin.describe_topics([name]))[name].partition_count == 1
