"""Updates of the controller about a topic that is created and deleted.

The simulation of clusters found a broker that had been away for a moment. Its update had both a partition's
new state and the deletion of the topic. The broker looked for the partition in an image without the topic,
and applied the update only in part. It could neither apply the rest nor create a new topic of that name.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kafka_client.topic_partition import TopicPartition
from logd.broker.topics.catalog import TopicCatalog
from logd.broker.topics.cluster_view import ClusterView
from logd.config.topic import TopicConfig
from logd.metadata.image import ClusterImage, PartitionImage, TopicImage

T0 = TopicPartition("t", 0)


class NoReplicas:
    """A catalog's replicas: none is hosted, and changes of topics are recorded."""

    def __init__(self) -> None:
        self.lost: set[TopicPartition] = set()
        self.ended: list[str] = []

    async def begin(self, topic: Any, indexes: Any) -> None:
        assert not list(indexes)

    def end(self, topic: Any) -> None:
        self.ended.append(topic.topic_id.hex()[:2])

    async def room(self) -> None:
        pass


def topic(first: int) -> dict[str, Any]:
    return TopicImage(name="t", topic_id=bytes([first]) * 16, partitions=1).as_change()


def state(epoch: int) -> dict[str, Any]:
    state = PartitionImage(replicas=(2,), isr=(2,), leader=2, leader_epoch=epoch, partition_epoch=epoch)
    return state.as_change(T0)


def followed(*messages: list[dict[str, Any]]) -> tuple[TopicCatalog, NoReplicas, ClusterImage]:
    """Return a broker's catalog, replicas and image after these updates, applied in order."""
    image, replicas = ClusterImage(), NoReplicas()

    async def run() -> TopicCatalog:
        made: Any = TopicCatalog
        catalog: TopicCatalog = made(
            None,
            image,
            replicas,
            cluster=ClusterView(image, 1, None),
            defaults=TopicConfig(),
            settings_changed=lambda: None,
        )
        assigned: Any = SimpleNamespace(node_id=1)
        catalog.join(assigned, topics_deleted=lambda names: None)
        for changes in messages:
            await catalog.follow(changes)
        return catalog

    return asyncio.run(run()), replicas, image


DELETED = {"type": "topic-deleted", "name": "t"}


def test_moved_and_deleted() -> None:
    catalog, replicas, image = followed([topic(1), state(0)], [state(1), DELETED])
    assert not catalog.topics and not image.partitions
    assert replicas.ended == ["01"]


def test_moved_deleted_and_made_again() -> None:
    catalog, replicas, image = followed([topic(1), state(0)], [state(1), DELETED, topic(2), state(0)])
    assert catalog.topics["t"].topic_id == bytes([2]) * 16
    assert image.partitions[T0].leader_epoch == 0
    assert replicas.ended == ["01"]
