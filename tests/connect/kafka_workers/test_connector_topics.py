"""Kafka's ConnectorTopicsIntegrationTest against our workers: the topics that a connector has used (KIP-558).

| Kafka's method | our test |
|---|---|
| testGetActiveTopics | test_topics_are_those_in_use_since_the_last_reset |
| testTopicResetIsDisabled | test_a_worker_may_refuse_resets |

Kafka's three workers are two here: one that resets, and one whose `topic.tracking.allow.reset` is false.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic
from tests.connect.kafka_workers.worker_script import WorkerScript


@pytest.fixture(scope="module")
def pair(logd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerScript]:
    script = WorkerScript(logd.bootstrap, tmp_path_factory.mktemp("pair"))
    try:
        script.start()
        script.group.settings["topic.tracking.allow.reset"] = "false"
        yield script.start()
    finally:
        script.close()


def topics(pair: WorkerScript, name: str) -> list[list[str]]:
    """Return the topics of a connector as each worker tells them."""
    return [pair.ask("GET", f"/connectors/{name}/topics", url=url)[1][name]["topics"] for url in pair.urls]


def wait_topics(pair: WorkerScript, name: str, *expected: str) -> None:
    pair.wait_until(lambda: topics(pair, name) == [sorted(expected)] * 2)


def reset(pair: WorkerScript, url: str, name: str) -> tuple[int, Any]:
    return pair.ask("PUT", f"/connectors/{name}/topics/reset", url=url)


def create_topics(bootstrap: str, *names: str) -> None:
    async def create() -> None:
        async with Client(bootstrap) as client:
            await Admin(client).create_topics([NewTopic(name, 3, 1) for name in names])

    asyncio.run(create())


def test_topics_are_those_in_use_since_the_last_reset(pair, kit, topic):
    foo, bar, baz = (f"{topic}-{each}" for each in ("foo", "bar", "baz"))
    create_topics(kit.bootstrap, foo, bar)
    wait_topics(pair, foo)  # there is no such connector
    for name in (foo, bar):  # each source writes to the topic of its name
        pair.put(name, pair.source(name, name, tasks_max="2"))
        pair.wait_running(name, 2)
        wait_topics(pair, name, name)
    pair.put(baz, pair.sink(baz, f"{foo},{bar}", tasks_max="2"))
    pair.wait_running(baz, 2)
    wait_topics(pair, baz, foo, bar)
    pair.delete(bar)
    wait_topics(pair, bar)
    # Once the source has stopped and the sink has read the topic's end, nothing uses that topic.
    pair.wait_until(lambda: {event["task"] for event in pair.events(bar, "stop")} == {None, 0, 1})
    count = len(kit.read(bar))
    pair.wait_until(lambda: len(read_of(pair, baz, bar)) >= count)
    assert reset(pair, pair.urls[0], baz) == (202, None)
    wait_topics(pair, baz, foo)
    for name in (foo, baz):
        pair.delete(name)
        wait_topics(pair, name)


def read_of(pair: WorkerScript, sink: str, topic: str) -> list[dict[str, Any]]:
    return [event for event in pair.events(sink, "put") if event["topic"] == topic]


def test_a_worker_may_refuse_resets(pair, kit, topic):
    source, sink = f"{topic}-source", f"{topic}-sink"
    create_topics(kit.bootstrap, topic)
    pair.put(source, pair.source(source, topic))
    pair.put(sink, pair.sink(sink, topic))
    for name in (source, sink):
        wait_topics(pair, name, topic)
    pair.delete(source)
    wait_topics(pair, source)
    status, answer = reset(pair, pair.urls[1], sink)
    assert (status, answer["message"]) == (403, "Topic tracking reset is disabled.")
    wait_topics(pair, sink, topic)
    pair.delete(sink)
