"""The connectors in Connect workers between two clusters: goes on, takes over, each record once."""

import asyncio
import json
import time

import pytest

from connect.api import ConfigError
from connect.runtime import Worker, WorkerConfig
from kafka_client import Admin, BatchFetcher, Client, OffsetAndMetadata, TopicPartition
from mirror.client import MirrorClient
from tests.mirror.pair import numbered, produce
from tests.support.connect_group import ConnectGroup
from tests.support.waiting import until

KAFKAS = "org.apache.kafka.connect.mirror."
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"


def connector(pair, kind, **more):
    """Return a connector's config as MirrorMaker's users write it."""
    return {
        "name": f"mirror-{kind}",
        "connector.class": f"{KAFKAS}Mirror{kind}Connector",
        "source.cluster.alias": "dc1",
        "target.cluster.alias": "dc2",
        "source.cluster.bootstrap.servers": pair.dc1,
        "target.cluster.bootstrap.servers": pair.dc2,
        "key.converter": CONVERTER,
        "value.converter": CONVERTER,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def worker(pair, folder):
    return Worker(
        WorkerConfig.parse(
            {
                "bootstrap.servers": pair.dc2,
                "offset.storage.file.filename": str(folder / "offsets"),
                "offset.flush.interval.ms": "20",
            }
        )
    )


async def read(bootstrap, topic, count=None):
    """Return the values of each partition of a topic, up to its end, in order; wait for `count` values."""
    async with Client(bootstrap) as client, BatchFetcher(client, isolation_level="read_committed") as fetcher:
        admin = Admin(client)
        deadline = time.monotonic() + 60
        while not (tps := (await client.metadata([topic], allow_missing=True)).partitions([topic])):
            assert time.monotonic() < deadline, f"no {topic}"
            await asyncio.sleep(0.02)
        fetcher.assign(dict.fromkeys(tps, 0))
        values = {tp.partition: [] for tp in tps}
        while True:
            ends = await admin.list_offsets(dict.fromkeys(tps, "latest"), isolation_level="read_committed")
            is_read = all(fetcher.position(tp) >= ends[tp].offset for tp in tps)
            if is_read and (count is None or sum(map(len, values.values())) >= count):
                return values
            assert time.monotonic() < deadline, f"{sum(map(len, values.values()))} values of {topic}"
            for fetched in await fetcher.fetch(timeout_ms=100):
                values[fetched.tp.partition] += [record[3] for record in fetched.records()]


async def test_copies_and_goes_on_after_its_source_offsets(pair, new_name, tmp_path):
    topic = new_name()
    await pair.create(topic, 3)
    config = connector(pair, "Source", topics=topic, tasks_max="2")
    records = {p: numbered(40, 100 * p) for p in range(3)}
    for begin, end in ((0, 10), (10, 40)):
        await produce(
            pair.dc1, topic, {p: [records[p][begin:end]] for p in range(3)}, compression_type="zstd"
        )
        async with worker(pair, tmp_path) as running:
            await running.start_connector(config)
            await read(pair.dc2, f"dc1.{topic}", 3 * end)
            ((name, status),) = ((s["name"], s) for s in running.status())
            assert name == "mirror-Source" and len(status["tasks"]) == 2
    assert await read(pair.dc2, f"dc1.{topic}") == {p: [r[2] for r in records[p]] for p in range(3)}
    assert (await pair.verify(topic)).equal
    assert stored(tmp_path) == {("mirror-Source", "dc1", p, topic): {"offset": 39} for p in range(3)}


def stored(folder):
    """Return the source offsets in the worker's file, by connector, cluster, partition and topic."""
    pairs = [json.loads(line) for line in (folder / "offsets").read_text().splitlines()]
    return {(key[0], *dict(sorted(key[1].items())).values()): offset for key, offset in pairs}


async def test_takes_over_where_kafkas_connector_stopped(pair, new_name, tmp_path):
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10), numbered(10, 10)]})
    # Java writes a partition's fields in the order of its map.
    key = f'["mirror-Source",{{"topic":"{topic}","partition":0,"cluster":"dc1"}}]'
    (tmp_path / "offsets").write_text(f'[{key},{{"offset":13}}]\n')
    async with worker(pair, tmp_path) as running:
        await running.start_connector(connector(pair, "Source", topics=topic))
        values = await read(pair.dc2, f"dc1.{topic}", 6)
    assert values == {0: [record[2] for record in numbered(6, 14)]}
    assert stored(tmp_path) == {("mirror-Source", "dc1", 0, topic): {"offset": 19}}


async def test_an_offset_that_the_source_does_not_have_fails_the_task(pair, new_name, tmp_path):
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(3)]})
    key = f'["mirror-Source",{{"cluster":"dc1","partition":0,"topic":"{topic}"}}]'
    (tmp_path / "offsets").write_text(f'[{key},{{"offset":99}}]\n')
    async with worker(pair, tmp_path) as running:
        await running.start_connector(connector(pair, "Source", topics=topic))
        await until(lambda: running.failed)
        (task,) = running.status()[0]["tasks"]
    assert (
        "SourceRecreated" in task["trace"] and "offset 100 is wanted, the source has 0 to 3" in task["trace"]
    )


async def test_offsets_of_groups_are_translated_and_heartbeats_written(pair, new_name, tmp_path):
    topic, group = new_name(), f"group-of-{new_name()}"
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10), numbered(20, 10)]})
    async with Client(pair.dc1) as client:
        await Admin(client).alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(30)})
    common = {"topics": topic, "offset-syncs.topic.location": "target"}
    checkpoints = connector(
        pair,
        "Checkpoint",
        groups=group,
        emit_checkpoints_interval_seconds="0",
        sync_group_offsets_enabled="true",
        sync_group_offsets_interval_seconds="0",
        **common,
    )
    remote = TopicPartition(f"dc1.{topic}", 0)
    async with worker(pair, tmp_path) as running, Client(pair.dc2) as client:
        for config in (
            connector(pair, "Source", **common),
            checkpoints,
            connector(pair, "Heartbeat", heartbeats_topic_name="beats"),
        ):
            await running.start_connector(config)
        deadline = time.monotonic() + 60
        while (await Admin(client).list_group_offsets(group)) != {remote: OffsetAndMetadata(30)}:
            assert not running.failed and time.monotonic() < deadline, running.status()
            await asyncio.sleep(0.05)
        while not (offsets := await MirrorClient(client).remote_consumer_offsets(group, "dc1")):
            assert not running.failed and time.monotonic() < deadline, running.status()
            await asyncio.sleep(0.05)
        beats = await read(pair.dc2, "beats", 2)
    assert offsets[remote].offset == 30
    assert len(beats[0]) >= 2


@pytest.mark.parametrize(
    ("key", "value"),
    [("topics", "("), ("replication.policy.class", "Missing"), ("use.defaults.from", "nowhere")],
)
async def test_a_setting_that_a_flow_cannot_use_is_refused(pair, tmp_path, key, value):
    async with worker(pair, tmp_path) as running:
        with pytest.raises(ConfigError, match=key):
            await running.start_connector(connector(pair, "Source") | {key: value})


@pytest.mark.parametrize("is_exactly_once", [True, False])
def test_a_group_of_workers_loses_no_record_though_one_is_killed(pair, new_name, tmp_path, is_exactly_once):
    """The workers share the partitions, and the one that is left takes over those of the killed one.

    With exactly-once support (KIP-618) records and source offsets are in one transaction of the target, so no
    record is there twice. As in Kafka's MirrorConnectorsIntegrationExactlyOnceTest, with a kill -9 in the
    middle of the copy.
    """
    topic, total = new_name(), 240
    asyncio.run(pair.create(topic, 4))
    group = ConnectGroup(pair.dc2, tmp_path)
    config = connector(pair, "Source", topics=topic, tasks_max="2", refresh_topics_interval_seconds="1")
    if is_exactly_once:
        group.settings["exactly.once.source.support"] = "enabled"
        config["exactly.once.support"] = "required"
    try:
        first, second = group.start(), group.start()
        group.do("POST", f"{second}/connectors", {"name": config["name"], "config": config})
        for begin in range(0, total, 60):
            records = {p: [numbered(10, n) for n in range(begin, begin + 60, 10)] for p in range(4)}
            asyncio.run(produce(pair.dc1, topic, records))
            asyncio.run(read(pair.dc2, f"dc1.{topic}", 4 * begin + 40))
            if begin == 60:
                tasks = group.owners(second, config["name"])[config["name"]]
                assert sorted(tasks) == sorted(url.removeprefix("http://") for url in (first, second))
                group.end(first)
        values = asyncio.run(until_each_is_there(pair.dc2, f"dc1.{topic}", total))
        tasks = group.owners(second, config["name"])[config["name"]]
        assert tasks == [second.removeprefix("http://")] * 2
    finally:
        for url in list(group.workers):
            group.end(url)
    if not is_exactly_once:
        values = {p: list(dict.fromkeys(each)) for p, each in values.items()}
    assert values == {p: [record[2] for record in numbered(total)] for p in range(4)}


async def until_each_is_there(bootstrap, topic, total):
    """Return the values of a topic of four partitions once each has `total` different ones."""
    count = 4 * total
    while True:
        values = await read(bootstrap, topic, count)
        if sum(len(set(each)) for each in values.values()) >= 4 * total:
            return values
        count = sum(map(len, values.values())) + 1
