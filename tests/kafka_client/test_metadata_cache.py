"""A client caches topics' metadata and forgets topics that are not used."""

from __future__ import annotations

import pytest

from kafka_client import Client
from kafka_client.cluster import cluster
from kafka_client.cluster.metadata_cache import IDLE_SECONDS, MetadataCache
from kafka_client.errors import ErrorCode
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafka_client.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.kafka_client.running import run

AGE = 60.0


async def test_topics_that_nobody_asks_about_are_forgotten() -> None:
    """Long-lived clients kept every topic they had ever asked about, and every name without a topic."""
    now = [0.0]

    async def ask(topics: set[str] | None) -> MetadataResponse:
        answered = []
        for name in sorted(topics or ()):
            is_there = not name.startswith("missing")
            answered.append(
                MetadataResponseTopic(
                    error_code=0 if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    name=name,
                    topic_id=bytes(16),
                    partitions=[MetadataResponsePartition(leader_id=1)],
                )
            )
        return MetadataResponse(cluster_id="c", controller_id=1, topics=answered)

    cache = MetadataCache(ask, max_age=AGE, clock=lambda: now[0])
    for number in range(100):
        now[0] += AGE / 5
        await cache.refresh(["used", f"once-{number}", f"missing-{number}"])
        assert cache.cluster.topics.keys() >= {"used", f"once-{number}"}
        assert cache.errors[f"missing-{number}"]
    lately = int((AGE + IDLE_SECONDS) / (AGE / 5)) + 1
    assert cache.remembered == 1 + 2 * lately
    assert set(cache.errors) == {f"missing-{number}" for number in range(100 - lately, 100)}
    assert cache.stale(["once-0"])[0], "and asked about again"


def test_coordinators_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with FakeBroker() as broker, Client(broker.bootstrap) as client:

            def find(request: ReceivedRequest) -> FindCoordinatorResponse:
                return FindCoordinatorResponse(
                    coordinators=[
                        Coordinator(key=key, node_id=broker.node_id, host="127.0.0.1", port=broker.port)
                        for key in request.message.coordinator_keys
                    ],
                    node_id=broker.node_id,
                    host="127.0.0.1",
                    port=broker.port,
                )

            broker.on(ApiKey.FIND_COORDINATOR, find)
            for number in range(10):
                assert await client.coordinator(f"g{number}") == broker.node_id
                assert client.statistics()["remembered_coordinators"] == min(number + 1, 3)
            request = len(broker.requests)
            await client.coordinator("g9")
            assert len(broker.requests) == request, "it is remembered"
            await client.coordinator("g0")
            assert len(broker.requests) == request + 1

    monkeypatch.setattr(cluster, "COORDINATORS_MAX", 3)
    run(main())
