"""The changes that lead from one image of the cluster to another.

A broker applies these changes when it receives a snapshot. So it opens and closes the same logs as if it had
received the single changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from logd.metadata.image import (
    Change,
    ClusterImage,
    broker_gone,
    entity_configs,
    replicas_offline,
    user_configs,
)


def differences(before: ClusterImage, after: ClusterImage) -> list[Change]:
    """Return the changes that turn ``before`` into ``after``.

    Ids of deleted topics and keys of decoys are not compared.
    """
    lost = _topics_lost(before, after)
    changes: list[Change] = [{"type": "topic-deleted", "name": name} for name in sorted(lost)]
    changes += (
        topic.as_change()
        for name, topic in after.topics.items()
        if name in lost or topic != before.topics.get(name)
    )
    changes += _configs(before, after)
    changes += _acls(before, after)
    changes += (
        state.as_change(tp)
        for tp, state in after.partitions.items()
        if tp.topic in lost or state != before.partitions.get(tp)
    )
    changes += _brokers(before, after)
    if after.next_producer_id > before.next_producer_id:
        changes.append({"type": "producer-ids", "next": after.next_producer_id})
    return changes


def _topics_lost(before: ClusterImage, after: ClusterImage) -> set[str]:
    """Return the topics that were deleted, or were replaced by another topic of the same name."""
    ids = {name: topic.topic_id for name, topic in after.topics.items()}
    return {name for name, topic in before.topics.items() if ids.get(name) != topic.topic_id}


def _configs(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for broker in {**before.broker_configs, **after.broker_configs}:
        configs = after.broker_configs.get(broker, {})
        if configs != before.broker_configs.get(broker):
            yield {"type": "broker-configs", "broker": broker, "configs": configs}
    for user in {**before.user_configs, **after.user_configs}:
        configs = after.user_configs.get(user, {})
        if configs != before.user_configs.get(user, {}):
            yield user_configs(user, configs)
    for path in {**before.entity_configs, **after.entity_configs}:
        configs = after.entity_configs.get(path, {})
        if configs != before.entity_configs.get(path, {}):
            yield entity_configs(path, configs)


def _acls(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    if before.acls == after.acls:
        return
    from logd.metadata.acls import acls_change

    for pattern in {**before.acls, **after.acls}:
        entries = after.acls.get(pattern, ())
        if entries != before.acls.get(pattern, ()):
            yield acls_change(pattern, entries)


def _brokers(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for number in sorted(before.brokers.keys() - after.brokers.keys()):
        yield broker_gone(number)
    for number, broker in sorted(after.brokers.items()):
        old = before.brokers.get(number)
        had = set(before.offline_of(number)) if old and old.epoch == broker.epoch else set()
        offline = set(after.offline_of(number))
        if had - offline:
            yield broker_gone(number)  # no change adds a replica again, so add the broker again
            had, old = set(), None
        if broker != old:
            yield broker.as_change()
        if offline - had:
            yield replicas_offline(number, offline - had)
