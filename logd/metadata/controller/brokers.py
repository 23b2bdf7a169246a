"""Brokers that come, go or lose a log directory: the partitions they hold follow.

What a decision costs depends on what those brokers hold, never on what there is. A broker that has started
anew, by its epoch, counts as behind: after a power loss its log may be shorter, whatever it acknowledged. It
leaves every ISR in which somebody else is online, until its leader finds that it has caught up.
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
"""Partitions to be checked, each with those of its replicas that have started again."""


def change_brokers(
    image: ClusterImage,
    *,
    came: Iterable[BrokerImage] = (),
    gone: Iterable[int] = (),
    unclean_allowed: UncleanAllowed,
) -> Decision[None]:
    """Brokers registered, and brokers whose registration is gone; both at once, as they were seen.

    One that is known under a lower epoch has been away in between. One known under a higher epoch is old
    news; one under the same epoch has changed its endpoints or rack at most, or shuts down.
    """
    changes: list[Change] = []
    brokers: dict[int, BrokerImage | None] = {}
    live = Liveness(image, brokers=brokers)
    touched: Touched = {}
    for broker in gone:
        if broker in image.brokers:
            brokers[broker] = None
            changes.append(broker_gone(broker))
            _touch(touched, image.holds(broker))
    for new in came:
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
    """A new controller's first decision, on an image just loaded with the brokers that are alive.

    Brokers have to say again what they hold in log directories that failed.
    Brokers may have gone while there was no controller; partitions without a leader, and reassignments, are
    gone on with. ``restarted`` by broker: partitions whose state may be from before the broker registered,
    so that it may be behind. A store that keeps ``broker`` changes knows exactly: everything held by those
    that are registered under another epoch. Else it is what was last written before the registration (in
    ZooKeeper: the state's mzxid is below the broker's czxid); a state that the last controller wrote after a
    registration it had not seen yet is then missed.
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
    """Take partitions offline after log directories of a broker failed, until the broker starts again.

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
    """Return the broker's image. Raises KafkaError(STALE_BROKER_EPOCH) for an unknown one or other epoch."""
    current = image.brokers.get(broker)
    if current is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker} says its epoch is {epoch}, but it is not registered: register it first",
        )
    if epoch != current.epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker} says its epoch is {epoch}, but it is registered with {current.epoch}: "
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
    """Take those that started anew out of the ISR, but for one of them where no one else in it is online.

    Two that started anew may have lost different records: only one of them can be in sync. It is the leader
    if it can, which has what was not acknowledged yet as well.
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
