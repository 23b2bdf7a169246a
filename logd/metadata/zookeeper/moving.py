"""The move of a standalone broker's metadata into a chroot, so that other brokers can join it there.

    /cluster/id        the broker's own cluster id
    /millstream/move   the owner of the move; created in one `multi` with the id, and deleted when the broker
                       itself has noted that its metadata is here

While `/millstream/move` exists no broker starts, and none is a candidate for controller. So everything in the
chroot was written by this move. A move that runs again may replace it by the journal's current contents,
which count until the move is complete. Writing needs the controller's role, which fences one run from the
next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final

from kafka_client.topic_partition import TopicPartition
from logd.metadata.differences import differences
from logd.metadata.image import Change, ClusterImage, PartitionImage
from logd.metadata.zookeeper import cluster
from logd.metadata.zookeeper.election import Elected, elect, resign
from logd.metadata.zookeeper.errors import ChrootTaken, ConnectionLost, NoNode, UnfinishedMove
from logd.metadata.zookeeper.session.operations import Create, MultiFailed
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.store import ZooKeeperStore
from logd.metadata.zookeeper.watches import Watch
from logd.metadata.zookeeper.znodes import paths, znodes
from logd.metadata.zookeeper.znodes.znodes import MoveZnode

WAITED_PART: Final = 1.5
"""The wait for the controller's role, which a killed run may hold, in multiples of a session's timeout."""
EMPTY: Final = "give an empty chroot"


class Standing(Enum):
    """The state of a move into a chroot."""

    EMPTY = "empty"
    BEGUN = "begun"
    DONE = "done"


async def refuse_unfinished(session: Session) -> None:
    """Raise UnfinishedMove if the move into this chroot is not complete.

    Brokers call it at their start.
    """
    value = await session.find(paths.MOVE)
    if value is not None:
        raise UnfinishedMove(session.settings.connect, znodes.decode_move(value[0]).broker_id)


async def standing(session: Session, move: MoveZnode) -> Standing:
    """Return how far this move has come. Raises BadZnode, and ChrootTaken for another cluster's chroot."""
    await session.sync()
    cluster_value = await session.find(paths.CLUSTER_ID)
    move_value = await session.find(paths.MOVE)
    connect = session.settings.connect
    if move_value is not None and (whose := znodes.decode_move(move_value[0])) != move:
        raise ChrootTaken(
            connect, f"broker {whose.broker_id} of cluster {whose.cluster_id} is being moved there; {EMPTY}"
        )
    if cluster_value is None:
        topics, brokers = await session.find_children(paths.TOPICS), await _brokers(session)
        if topics or brokers:
            there = f"{len(topics)} topics and {len(brokers)} brokers"
            raise ChrootTaken(connect, f"it has {there} already; {EMPTY}")
        return Standing.EMPTY
    cluster_id = znodes.decode_cluster_id(cluster_value[0])
    if cluster_id != move.cluster_id:
        raise ChrootTaken(
            connect,
            f"it is of cluster {cluster_id}, "
            f"and the log directories are of cluster {move.cluster_id}; {EMPTY}",
        )
    return Standing.DONE if move_value is None else Standing.BEGUN


async def begin(session: Session, move: MoveZnode) -> None:
    """Mark the chroot as the target of this move, unless it is marked already. Raises ChrootTaken."""
    while (state := await standing(session, move)) is Standing.EMPTY:
        await cluster.prepare(session)
        await session.ensure(path.rpartition("/")[0] for path in (paths.CLUSTER_ID, paths.MOVE))
        writes = (
            Create(paths.CLUSTER_ID, znodes.encode_cluster_id(move.cluster_id)),
            Create(paths.MOVE, znodes.encode_move(move)),
        )
        try:
            await session.multi(writes)
        except (MultiFailed, ConnectionLost):
            # Another run wrote first, or this write was carried out: `standing` reads which.
            await session.connected()
    if state is Standing.DONE:
        raise ChrootTaken(
            session.settings.connect,
            f"cluster {move.cluster_id} was moved there before, and the journal here may be older; {EMPTY}",
        )
    if brokers := await _brokers(session):
        raise ChrootTaken(session.settings.connect, f"stop what runs on it first: {', '.join(brokers)}")


async def write(
    session: Session, move: MoveZnode, target: ClusterImage, wall_clock_ms: Callable[[], int]
) -> None:
    """Write ``target``, which has a state of every partition, to the chroot; call `begin` first.

    After writing, it reads the metadata again and compares it with ``target``. Raises ChrootTaken,
    ControllerMoved, ConnectionLost or NotAllowed. A part may be written then, and the next run continues from
    there.
    """
    await cluster.prepare(session, with_acls=bool(target.acls))
    elected = await _elected(session, move.broker_id, wall_clock_ms)
    try:
        store = ZooKeeperStore(session, elected)
        while changes := steps(ClusterImage.of(await store.load()), target):
            await store.write(changes)
    finally:
        await resign(session, elected)


async def end(session: Session) -> None:
    """Delete the mark of the move: brokers may start with the metadata here."""
    while True:
        try:
            await session.delete(paths.MOVE)
        except NoNode:
            return
        except ConnectionLost:
            await session.connected()
        else:
            return


def steps(there: ClusterImage, target: ClusterImage) -> list[Change]:
    """Return the changes that turn ``there`` into ``target``.

    The partition epochs of ``target`` are ignored; the new ones follow those in ``there``.
    """
    after = ClusterImage()
    for change in target.as_changes():
        if change["type"] != "partition":
            after.apply(change)
    for tp, state in target.partitions.items():
        after.apply(_following(there, target, tp, state).as_change(tp))
    for broker in there.brokers.values():
        after.apply(broker.as_change())
    return differences(there, after)


def _following(
    there: ClusterImage, target: ClusterImage, tp: TopicPartition, state: PartitionImage
) -> PartitionImage:
    topic, written = there.topics.get(tp.topic), there.partitions.get(tp)
    if topic is None or written is None or topic.topic_id != target.topics[tp.topic].topic_id:
        return replace(state, partition_epoch=0)
    same = replace(state, partition_epoch=written.partition_epoch)
    return same if same == written else replace(state, partition_epoch=written.partition_epoch + 1)


async def _brokers(session: Session) -> list[str]:
    return await session.find_children(paths.BROKER_IDS)


async def _elected(session: Session, broker_id: int, wall_clock_ms: Callable[[], int]) -> Elected:
    """Wait until this run is elected controller, and return the election.

    An earlier run may hold the role until its session ends. Raises ChrootTaken if it does not end in time.
    """
    try:
        async with asyncio.timeout(session.settings.session_timeout_ms / 1000 * WAITED_PART):
            with Watch(session) as watch:
                while True:
                    try:
                        elected = await elect(session, broker_id, wall_clock_ms())
                    except ConnectionLost:
                        await session.connected()
                        continue
                    if elected is not None:
                        return elected
                    if await watch.find(paths.CONTROLLER) is not None:
                        await watch.changed()
    except TimeoutError:
        raise ChrootTaken(
            session.settings.connect, "somebody else holds the controller's role: is the move run twice?"
        ) from None
