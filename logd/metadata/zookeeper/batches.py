"""Many writes in a few `multi`s: each one is fenced, small enough for ZooKeeper, and has a known outcome.

A packet to ZooKeeper has at most `jute.maxbuffer` bytes, 1 MB by default. ZooKeeper closes the connection
after a larger one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from logd.metadata.zookeeper.election import Elected, fenced
from logd.metadata.zookeeper.errors import ConnectionLost, ControllerMoved, ZooKeeperError
from logd.metadata.zookeeper.session.operations import Create, Delete, MultiFailed, SetData, Write
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import paths

BATCH_BYTES_MAX: Final = 512 * 1024
"""The most bytes of one `multi`: half of ZooKeeper's limit, since its servers add data of their own."""
BATCH_OPERATIONS_MAX: Final = 500
"""Most operations of one `multi`: ZooKeeper does nothing else meanwhile, and kazoo packs it in one go."""
OPERATION_BYTES_MAX: Final = 1_000_000
OVERHEAD_BYTES: Final = 64
"""Bytes of an operation besides path and value: headers, lengths and the ACL."""

log = logging.getLogger("logd.zookeeper")


async def write_all(session: Session, elected: Elected, operations: Iterable[Write]) -> None:
    """Carry out the operations in order, in batches; all or none of a batch is carried out.

    Raises ControllerMoved or NotAllowed. Raises BadVersion, NodeExists, NoNode or NotEmpty if an operation
    does not fit the current znodes. The batches before the failed one are written.
    """
    for batch in batches(operations, len(session.settings.chroot)):
        await _write(session, elected, batch)


def batches(operations: Iterable[Write], chroot_length: int = 0) -> Iterator[list[Write]]:
    """Yield the operations in batches within the bounds.

    Raises ZooKeeperError if an operation is too large for ZooKeeper.
    """
    batch: list[Write] = []
    total = 0
    for operation in operations:
        size = len(operation.path) + chroot_length + OVERHEAD_BYTES
        if isinstance(operation, Create | SetData):
            size += len(operation.data)
        if size > OPERATION_BYTES_MAX:
            raise ZooKeeperError(
                f"{operation.path} would have {size} bytes, and ZooKeeper takes {OPERATION_BYTES_MAX} "
                "(jute.maxbuffer): have fewer partitions in the topic"
            )
        if batch and (total + size > BATCH_BYTES_MAX or len(batch) >= BATCH_OPERATIONS_MAX):
            yield batch
            batch, total = [], 0
        batch.append(operation)
        total += size
    if batch:
        yield batch


async def _write(session: Session, elected: Elected, batch: Sequence[Write]) -> None:
    while True:
        try:
            await fenced(session, elected, batch)
        except MultiFailed as failed:
            # An earlier attempt, whose answer was lost, may have been carried out and make this one fail.
            if not await _is_written(session, elected, batch):
                raise failed.error from None
        except ConnectionLost as lost:
            log.info("whether %d znodes were written is to be found out: %s", len(batch), lost)
            await session.connected()
            if not await _is_written(session, elected, batch):
                continue
        return


async def _is_written(session: Session, elected: Elected, batch: Sequence[Write]) -> bool:
    """Return True if this batch was written.

    One of its writes shows that, since all or none were carried out. After a `sync`, no request of an earlier
    connection can arrive any more. Raises ControllerMoved.
    """
    await session.sync()
    witness = _witness(batch)
    value = await session.find(witness.path)
    epoch = await session.exists(paths.CONTROLLER_EPOCH)
    if epoch is None or epoch.version != elected.epoch_version:
        raise ControllerMoved(elected.epoch)
    if isinstance(witness, Create):
        return value is not None and value[0] == witness.data
    if isinstance(witness, SetData):
        return value is not None and (value[1].version, value[0]) == (witness.version + 1, witness.data)
    return value is None


def _witness(batch: Sequence[Write]) -> Write:
    """Return an operation whose effect can be seen afterwards.

    No later operation of the batch undoes it. If possible it does not create an empty znode, since an
    operator may have created the same.
    """
    last: dict[str, Write] = {}
    undone = set()
    for each in batch:
        before = last.get(each.path)
        if isinstance(each, Delete) and isinstance(before, Create):
            undone.add(each.path)
        if not (isinstance(each, Create) and each.sequential):
            last[each.path] = each
    witnesses = [each for path, each in last.items() if path not in undone]
    assert witnesses, "such a batch leaves no trace of its own"
    return min(witnesses, key=_doubt)


def _doubt(write: Write) -> int:
    """Return how weak the evidence of a write is: 0 is the strongest."""
    if isinstance(write, Delete):
        return 1
    return 0 if write.data else 2
