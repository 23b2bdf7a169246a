"""What tools and operators ask the controller for by a znode, as those before Kafka 2.4 do.

Watch the paths with `watches.each_children` or `each_value`, and read here what is wanted. Znodes by which
Kafka's brokers tell each other (`/isr_change_notification`, `/log_dir_event_notification`) are made sure of
and left alone: our brokers ask the controller by AlterPartition and in their messages.
"""

from __future__ import annotations

from logd.metadata.zookeeper import paths, znodes
from logd.metadata.zookeeper.batches import write_all
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.errors import NoNode
from logd.metadata.zookeeper.operations import Delete
from logd.metadata.zookeeper.session import Session
from logd.topic_partition import TopicPartition


async def wanted_deletions(session: Session) -> list[str]:
    """Topics to be deleted; also those whose deletion was interrupted. There may be none of that name."""
    return await session.find_children(paths.DELETE_TOPICS)


async def wanted_reassignments(session: Session) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that partitions are to have; nothing where none is wanted. BadZnode."""
    found = await session.find(paths.REASSIGN_PARTITIONS)
    return {} if found is None else znodes.decode_reassignments(found[0])


async def wanted_preferred_elections(session: Session) -> set[TopicPartition]:
    """Partitions that their preferred replica is to lead. BadZnode."""
    found = await session.find(paths.PREFERRED_REPLICA_ELECTION)
    if found is None:
        return set()
    return znodes.decode_partitions(paths.PREFERRED_REPLICA_ELECTION, found[0])


async def changed_configs(session: Session) -> list[str]:
    """Entities whose settings were changed, `topics/T`, oldest first, also by ourselves: read them again."""
    names = await session.find_children(paths.CONFIG_CHANGES)
    all_paths = [f"{paths.CONFIG_CHANGES}/{name}" for name in names]
    found = zip(all_paths, await session.find_all(all_paths), strict=True)
    return [znodes.decode_config_change(path, value[0]) for path, value in found if value is not None]


async def answered(session: Session, elected: Elected, path: str) -> None:
    """What was asked for by this znode is done, or refused: take it away. ControllerMoved."""
    try:
        await write_all(session, elected, [Delete(path)])
    except NoNode:
        # Whoever asked has taken it back.
        return
