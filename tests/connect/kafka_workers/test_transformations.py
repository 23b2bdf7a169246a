"""Kafka's TransformationIntegrationTest against our worker: `Filter` with each predicate.

| Kafka's method | our test |
|---|---|
| testFilterOnTopicNameWithSinkConnector | test_a_sink_filters_by_the_topics_name |
| testFilterOnTombstonesWithSinkConnector | test_a_sink_filters_tombstones |
| testFilterOnHasHeaderKeyWithSourceConnector | test_a_source_filters_by_a_headers_key |

The names of transforms and predicates are the short ones, as there. Filtered records count as read: the
group's offsets come to the end of every partition.
"""

from __future__ import annotations

from collections import Counter

from kafka_client import Admin, Client, NewTopic, Producer, TopicPartition
from tests.connect.kafka_workers.worker_script import WorkerScript

COUNT = 60
PARTITIONS = 3


def filtering(predicate: str, **more: str) -> dict[str, str]:
    """Return the settings of a Filter with this predicate; keys of the predicate are in `more`."""
    settings = {"transforms": "filter", "transforms.filter.type": "Filter", "predicates": "only"}
    settings |= {"transforms.filter.predicate": "only", "predicates.only.type": predicate}
    return settings | {f"predicates.only.{key}": value for key, value in more.items()}


async def produce(bootstrap: str, *topics: str, tombstones: bool = False) -> None:
    """Create topics, and write COUNT records to each, in turn to its partitions; half may be tombstones."""
    async with Client(bootstrap) as client, Producer(client) as producer:
        await Admin(client).create_topics([NewTopic(name, PARTITIONS, 1) for name in topics])
        for name in topics:
            for n in range(COUNT):
                value = None if tombstones and n % 2 else b"simple-message-value-%d" % n
                await producer.send(name, value, key=b"key", partition=n % PARTITIONS)
        await producer.flush()


def wait_committed(worker: WorkerScript, name: str, *topics: str) -> None:
    """Wait until a sink's group has committed the ends of all partitions."""
    expected = {TopicPartition(topic, n): COUNT // PARTITIONS for topic in topics for n in range(PARTITIONS)}

    def committed() -> dict[TopicPartition, int]:
        rows = worker.do("GET", f"/connectors/{name}/offsets")["offsets"]
        return {
            TopicPartition(row["partition"]["kafka_topic"], row["partition"]["kafka_partition"]): row[
                "offset"
            ]["kafka_offset"]
            for row in rows
        }

    worker.wait_until(lambda: committed() == expected)


def counts(worker: WorkerScript, name: str) -> Counter[str]:
    """Return how many records of each topic the sink was given."""
    return Counter(event["topic"] for event in worker.events(name, "put"))


async def test_a_sink_filters_by_the_topics_name(worker, kit, topic, name):
    foo, bar = f"foo-{topic}", f"bar-{topic}"
    await produce(kit.bootstrap, foo, bar)
    worker.put(name, worker.sink(name, f"{foo},{bar}") | filtering("TopicNameMatches", pattern="bar-.*"))
    worker.wait_running(name)
    wait_committed(worker, name, foo, bar)
    assert counts(worker, name) == {foo: COUNT}


async def test_a_sink_filters_tombstones(worker, kit, topic, name):
    await produce(kit.bootstrap, topic, tombstones=True)
    worker.put(name, worker.sink(name, topic) | filtering("RecordIsTombstone"))
    worker.wait_running(name)
    wait_committed(worker, name, topic)
    assert counts(worker, name) == {topic: COUNT // 2}
    assert None not in [event["value"] for event in worker.events(name, "put")]


def test_a_source_filters_by_a_headers_key(worker, kit, topic, name):
    config = worker.source(name, topic, max_messages=str(COUNT), throughput="500")
    config |= filtering("HasHeaderKey", name="header-8") | {"transforms.filter.negate": "true"}
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    assert worker.do("PUT", path, config | {"name": name})["error_count"] == 0
    worker.put(name, config)
    worker.wait_running(name)
    worker.wait_until(lambda: any(event["saved"] == COUNT for event in worker.events(name, "commit")))
    assert [key for _, key, _ in kit.read(topic)] == [b"key-0-8"]
