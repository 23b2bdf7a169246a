"""Decisions for brokers that join, leave or lose a log directory, about the partitions with replicas there.

The cost of a decision depends on the replicas of those brokers, never on the size of the cluster. A broker
that has restarted, by its epoch, counts as out of sync. After a power loss its log may be shorter, whatever
it acknowledged. It leaves every ISR that has another replica online, until its leader finds that it has
caught up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder, UncleanAllowed
from logd.metadata.image import (
    BrokerImage,
    Change,
    ClusterImage,
    PartitionImage,
    broker_gone,
    replicas_offline,
)

Touched: TypeAlias = dict[TopicPartition, set[int]]
"""The partitions to check, each with its replicas that have restarted."""


def change_brokers(
    image: ClusterImage,
    *,
    arrived: Iterable[BrokerImage] = (),
    departed: Iterable[int] = (),
    unclean_allowed: UncleanAllowed,
) -> Decision[None]:
    """Decide about brokers that have registered and brokers whose registrations have ended, both at once.

    If the image has the broker with a lower epoch, the broker has restarted. If the image has a higher epoch,
    the registration is outdated and ignored. With the same epoch, the broker's endpoints or rack may have
    changed, or the broker is shutting down.
    """
    changes: list[Change] = []
    brokers: dict[int, BrokerImage | None] = {}
    live = Liveness(image, brokers=brokers)
    touched: Touched = {}
    for broker in departed:
        if broker in image.brokers:
            brokers[broker] = None
            changes.append(broker_gone(broker))
            _touch(touched, image.holds(broker))
    for new in arrived:
        current = live.broker(new.id)
        if current is None or new.epoch > current.epoch:
            brokers[new.id] = new
            changes.append(new.as_change())
            _touch(touched, image.holds(new.id), new.id)
        elif new.epoch == current.epoch:
            updated = replace(
                new,
                is_shutting_down=current.is_shutting_down or new.is_shutting_down,
                offline_log_dirs=current.offline_log_dirs,
            )
            changes += [updated.as_change()] if updated != current else []
    return _settled(image, changes, touched, live, unclean_allowed)


def take_over(
    image: ClusterImage,
    restarted: Mapping[int, Collection[TopicPartition]],
    *,
    unclean_allowed: UncleanAllowed,
) -> Decision[None]:
    """Make a new controller's first decision, on an image just loaded with the brokers that are alive.

    Brokers may have stopped while there was no controller: they leave the ISRs. Leaders are elected for
    partitions without one, and reassignments are continued. Brokers report again which partitions they have
    lost with failed log directories.

    ``restarted`` has, by broker, the partitions whose state may be older than the broker's registration, so
    that the broker may be out of sync. A store that keeps ``broker`` changes knows these exactly: all
    replicas of brokers that are registered with another epoch. Otherwise they are the states written before
    the registration (in ZooKeeper: the state's mzxid is below the broker's czxid). That misses a state which
    the last controller wrote after a registration that it had not yet seen.
    """
    touched: Touched = {}
    for broker in image.broker_index.brokers:
        if broker not in image.brokers:
            _touch(touched, image.holds(broker))
    _touch(touched, image.broker_index.leaderless)
    _touch(touched, image.broker_index.reassigning)
    for broker, partitions in restarted.items():
        _touch(touched, image.holds(broker) & set(partitions), broker)
    return _settled(image, [], touched, Liveness(image), unclean_allowed)


def fail_log_dirs(
    image: ClusterImage,
    broker: int,
    epoch: int,
    *,
    log_dirs: Collection[str],
    partitions: Collection[TopicPartition],
    unclean_allowed: UncleanAllowed,
) -> Decision[None]:
    """Take partitions offline after log directories of a broker failed, until the broker restarts.

    Raises KafkaError(STALE_BROKER_EPOCH).
    """
    current = registered(image, broker, epoch)
    offline = set(image.offline_of(broker))
    lost = {tp for tp in partitions if tp in image.holds(broker)} - offline
    failed = (*current.offline_log_dirs, *sorted(set(log_dirs) - set(current.offline_log_dirs)))
    changes: list[Change] = []
    if failed != current.offline_log_dirs:
        changes.append(replace(current, offline_log_dirs=failed).as_change())
    if lost:
        changes.append(replicas_offline(broker, lost))
    live = Liveness(image, offline={broker: lost | offline})
    touched: Touched = {}
    _touch(touched, lost)
    return _settled(image, changes, touched, live, unclean_allowed)


def registered(image: ClusterImage, broker: int, epoch: int) -> BrokerImage:
    """Return the broker's image.

    Raises KafkaError(STALE_BROKER_EPOCH) if the broker is not alive, or has another epoch.
    """
    current = image.brokers.get(broker)
    if current is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker} says its epoch is {epoch}, but it is not registered: register it first",
        )
    if epoch != current.epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker} says its epoch is {epoch}, but it is registered with another: "
            "ask again with the epoch of its last registration",
        )
    return current


def _touch(touched: Touched, partitions: Iterable[TopicPartition], restarted: int | None = None) -> None:
    for tp in partitions:
        anew = touched.setdefault(tp, set())
        if restarted is not None:
            anew.add(restarted)


def _settled(
    image: ClusterImage,
    changes: list[Change],
    touched: Touched,
    live: Liveness,
    unclean_allowed: UncleanAllowed,
) -> Decision[None]:
    settling = PartitionChangeBuilder(image, live, unclean_allowed)
    for tp in sorted(touched):
        state, anew = image.partitions[tp], touched[tp]
        settling.settle(tp, _without_restarted(tp, state, anew, live), begins_anew=state.leader in anew)
    return Decision(settling.changes + changes, None, tuple(settling.unclean))


def _without_restarted(
    tp: TopicPartition, state: PartitionImage, restarted: Collection[int], live: Liveness
) -> PartitionImage:
    """Remove restarted replicas from the ISR; keep one of them if no other replica in the ISR is online.

    Two restarted replicas may have lost different records, so only one of them can be in sync. The leader is
    kept if possible, since it also has records that were not acknowledged yet.
    """
    if not restarted:
        return state
    steady = tuple(replica for replica in state.isr if replica not in restarted)
    if any(live.is_online(tp, replica) for replica in steady):
        return replace(state, isr=steady)
    back = [replica for replica in state.replicas if replica in state.isr and live.can_lead(tp, replica)]
    if not back:
        return state
    return replace(state, isr=(state.leader if state.leader in back else back[0],))
