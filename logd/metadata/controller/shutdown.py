"""The controlled shutdown of a broker, which hands over its leadership before its connections close.

As in Kafka, it does not wait for partitions with a single replica, which nobody could take over.
"""

from __future__ import annotations

from dataclasses import replace

from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.brokers import registered
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder, UncleanAllowed
from logd.metadata.image import ClusterImage, PartitionImage


def shut_down(
    image: ClusterImage, broker: int, epoch: int, *, unclean_allowed: UncleanAllowed
) -> Decision[list[TopicPartition]]:
    """Remove a broker as a leader, and from ISRs that have another replica.

    The answer is the list of partitions that the broker still leads, since no other replica is in sync and
    can lead. The broker asks again after ``controlled.shutdown.retry.backoff.ms``, or stops. It is not
    elected as a leader until it registers again. Raises KafkaError(STALE_BROKER_EPOCH).
    """
    current = registered(image, broker, epoch)
    leaving = replace(current, is_shutting_down=True)
    changes = [leaving.as_change()] if leaving != current else []
    settling = PartitionChangeBuilder(image, Liveness(image, brokers={broker: leaving}), unclean_allowed)
    remaining = []
    for tp in sorted(image.holds(broker)):
        after = settling.settle(tp, _relieved(tp, image.partitions[tp], broker, settling.live))
        if after.leader == broker and len(after.replicas) > 1:
            remaining.append(tp)
    return Decision(settling.changes + changes, remaining, tuple(settling.unclean))


def _relieved(tp: TopicPartition, state: PartitionImage, broker: int, live: Liveness) -> PartitionImage:
    if broker not in state.isr:
        return state
    others = tuple(replica for replica in state.isr if replica != broker)
    if state.leader == broker:
        stays = any(live.can_lead(tp, replica) for replica in others)
    else:
        stays = any(live.is_online(tp, replica) for replica in others)
    return replace(state, isr=others) if stays else state
