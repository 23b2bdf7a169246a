"""Statuses that come back from a topic on a real broker, and which one replaces which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect.stores import (
    InternalTopic,
    StatusTopic,
    StoredStatus,
    TopicUse,
    json_documents,
)
from connect.stores.status_topic import _Waiting
from kafka_client import Client


def status(state: str = "RUNNING", worker: str = "w1:8083", generation: int = 1, **more: str) -> StoredStatus:
    return StoredStatus(state=state, worker_id=worker, generation=generation, **more)


USE = TopicUse(topic="t", connector="a", task=0, discovered_ms=5)


@pytest.fixture
def topic(topic: InternalTopic) -> InternalTopic:
    return replace(topic, setting="status.storage.topic", partitions=5)


async def test_statuses_are_read_by_other_workers_and_at_the_next_start(client: Client, topic: InternalTopic):
    one = await StatusTopic.open(client, topic)
    failed = status("FAILED", trace="trace \U0001f600", version="1.0")
    one.put("a", status())
    one.put("a", failed, task=0)
    one.put("a", status("PAUSED"), task=1)
    one.put("a", status("UNASSIGNED"), task=1)
    one.put_topic(USE)
    await one.flush()
    two = await StatusTopic.open(client, topic)
    for store in (one, two):
        assert store.get("a") == status()
        assert store.tasks("a") == {0: failed, 1: status("UNASSIGNED")}
        assert store.connectors() == {"a"}
        assert store.topics("a") == [USE]
    one.delete("a")
    one.delete_topic("a", "t")
    await one.flush()
    await two.flush()
    for store in (one, two):
        assert (store.get("a"), store.tasks("a"), store.topics("a"), store.connectors()) == (
            None,
            {},
            [],
            set(),
        )
        await store.close()


async def test_a_status_of_a_newer_generation_stays(client: Client, topic: InternalTopic):
    old, new = await StatusTopic.open(client, topic), await StatusTopic.open(client, topic)
    new.put("a", status(worker="w2:8083", generation=2), task=0)
    await new.flush()
    await old.flush()
    old.put_safe("a", status("UNASSIGNED"), task=0)
    await old.flush()
    await new.flush()
    assert old.get("a", 0) == new.get("a", 0) == status(worker="w2:8083", generation=2)
    old.put_safe("a", status("RUNNING", generation=3), task=0)
    await old.flush()
    assert old.get("a", 0) == status("RUNNING", generation=3)
    await old.close()
    await new.close()


async def test_what_waits_for_a_broker_is_looked_at_again_before_it_is_sent(
    client: Client, topic: InternalTopic
):
    """Check that a worker that was cut off does not report its former tasks as its own."""
    store = await StatusTopic.open(client, topic)
    store.put("a", status(), task=0)
    await store.flush()
    store.put("b", status(generation=2))
    unsent = {}
    for task, generation in enumerate((1, 2)):
        value = json_documents.encode(status("UNASSIGNED", generation=generation).value())
        unsent[f"status-task-a-{task}"] = _Waiting(value, generation, lambda: True)
    store._put_back(unsent)
    await store.flush()
    assert store.get("a", 0) == status(), "of a former generation"
    assert store.get("a", 1) == status("UNASSIGNED", generation=2)
    await store.close()


async def test_many_statuses_of_one_task_wait_as_one(client: Client, topic: InternalTopic):
    store = await StatusTopic.open(client, topic)
    for number in range(1000):
        store.put("a", status(generation=number))
    assert len(store._waiting) == 1
    await store.flush()
    assert store.get("a") == status(generation=999)
    await store.close()


async def test_closing_stores_what_was_put(client: Client, topic: InternalTopic):
    store = await StatusTopic.open(client, topic)
    store.put("a", status("UNASSIGNED"))
    await store.close()
    again = await StatusTopic.open(client, topic)
    assert again.get("a") == status("UNASSIGNED")
    await again.close()
