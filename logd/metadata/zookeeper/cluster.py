"""Data that the brokers of a cluster share besides its metadata: id, secret, blocks of producer ids."""

from __future__ import annotations

from collections.abc import Callable

from logd.metadata.image import PRODUCER_ID_BLOCK
from logd.metadata.zookeeper.errors import BadVersion, ConnectionLost, NodeExists
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import acl_znodes, paths, znodes
from logd.metadata.zookeeper.znodes.cluster_secret import decode_cluster_secret, encode_cluster_secret
from logd.metadata.zookeeper.znodes.znodes import ProducerIdBlock


async def prepare(session: Session, *, with_acls: bool = False) -> None:
    """Create the znodes that each of Kafka's brokers creates at its start, if they are missing.

    Those of ACLs are created `with_acls`, as by a broker with an authorizer.
    """
    await session.ensure(paths.PERSISTENT)
    if with_acls:
        await session.ensure(acl_znodes.PERSISTENT)


async def find_cluster_id(session: Session) -> str | None:
    """Return the id of the cluster in ZooKeeper, or None. Raises BadZnode."""
    value = await session.find(paths.CLUSTER_ID)
    return None if value is None else znodes.decode_cluster_id(value[0])


async def cluster_id(session: Session, new_id: Callable[[], str]) -> str:
    """Return the id of the cluster in ZooKeeper, writing a new one if there is none yet. Raises BadZnode."""
    data = await _first(session, paths.CLUSTER_ID, lambda: znodes.encode_cluster_id(new_id()))
    return znodes.decode_cluster_id(data)


async def cluster_secret(session: Session, new_secret: Callable[[], str]) -> str:
    """Return the secret by which the cluster's brokers log in to each other, writing a new one if there is
    none yet. Raises BadZnode.
    """
    data = await _first(session, paths.CLUSTER_SECRET, lambda: encode_cluster_secret(new_secret()))
    return decode_cluster_secret(data)


async def _first(session: Session, path: str, new_value: Callable[[], bytes]) -> bytes:
    """Return a znode's value, which the first broker of the cluster writes."""
    while True:
        value = await session.find(path)
        if value is not None:
            return value[0]
        await session.ensure([path.rpartition("/")[0]])
        try:
            await session.create(path, new_value())
        except (NodeExists, ConnectionLost):
            # Another broker may have written it first, or this one whose answer was lost: read it.
            await session.connected()


async def controller_epoch(session: Session) -> int:
    """Return the epoch of the last elected controller, as all of ZooKeeper knows it; 0 before the first."""
    await session.sync()
    value = await session.find(paths.CONTROLLER_EPOCH)
    return 0 if value is None else znodes.decode_number(paths.CONTROLLER_EPOCH, value[0])


async def next_producer_ids(session: Session, broker_id: int) -> ProducerIdBlock:
    """Return a block of producer ids that no broker had before. Raises BadZnode.

    No controller is needed. If the answer is lost, the block may be lost as well, and the next block is
    tried.
    """
    await session.ensure([paths.PRODUCER_ID_BLOCK])
    while True:
        data, stat = await session.get(paths.PRODUCER_ID_BLOCK)
        start = znodes.decode_producer_ids(data).end + 1 if data else 0
        block = ProducerIdBlock(broker_id, start, start + PRODUCER_ID_BLOCK - 1)
        try:
            await session.set(paths.PRODUCER_ID_BLOCK, znodes.encode_producer_ids(block), stat.version)
        except BadVersion:
            continue
        except ConnectionLost:
            await session.connected()
            continue
        return block
