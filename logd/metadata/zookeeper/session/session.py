"""The requests to ZooKeeper from a loop, in the sessions of one `Connection`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from logd.metadata.zookeeper.errors import ConnectionLost, NodeExists, NoNode, Unreachable
from logd.metadata.zookeeper.session.clock import boottime
from logd.metadata.zookeeper.session.connection import Connection, Event, Listener, State
from logd.metadata.zookeeper.session.lease import Lease
from logd.metadata.zookeeper.session.operations import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    SetData,
    Stat,
    Sync,
    Triggered,
    Write,
)
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings

__all__ = ["Event", "Session", "State"]

T = TypeVar("T")
log = logging.getLogger("logd.zookeeper")


class Session:
    """A session with ZooKeeper for one loop: `await Session(settings).open()`; call `close` last.

    Reads wait for a connection, and are repeated if it is lost. Writes wait for no connection and are sent
    once: ConnectionLost means that the outcome is unknown. Both raise the errors that their methods name, and
    NotAllowed.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        *,
        clock: Callable[[], float] = boottime,
        patience_s: float | None = None,
    ) -> None:
        """Create a session that is not open yet.

        `patience_s`: seconds that reads wait for a lost connection; they raise Unreachable after that. None,
        which brokers use, means no limit.
        """
        self.settings = settings
        self.clock = clock
        self._connection = Connection(settings, clock, patience_s)

    async def open(self, *, create_chroot: bool = True) -> Session:
        """Open the session, and create the chroot if it is missing, as Kafka does at its start.

        Callers that only read pass `create_chroot=False`. Raises Unreachable after
        `zookeeper.connection.timeout.ms`, and NotAllowed.
        """
        self._connection.begin()
        seconds = self.settings.connection_timeout_s
        try:
            async with asyncio.timeout(seconds):
                await self._connection.wait()
                if create_chroot:
                    await self.ensure_chroot()
        except TimeoutError:
            client = self._connection.client
            why = f" ({client.last_error})" if client is not None and client.last_error else ""
            await self.close()
            raise Unreachable(
                f"no ZooKeeper at {self.settings.connect} within {seconds:g} s{why}: start it, correct "
                "zookeeper.connect, or raise zookeeper.connection.timeout.ms"
            ) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the session; ZooKeeper deletes its ephemeral znodes at once. Pending requests fail."""
        await self._connection.close()

    @property
    def state(self) -> State:
        """The state of the session; writes need CONNECTED."""
        return self._connection.state

    @property
    def lease(self) -> Lease:
        """The lease of the current session; between sessions the last lease, which is over."""
        return self._connection.lease

    @property
    def session_id(self) -> int:
        """The id of the session that `lease` belongs to; 0 before the first session."""
        return self._connection.lease.session_id

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` on each event from now on; return a function that removes it."""
        return self._connection.add_listener(listener)

    async def connected(self) -> None:
        """Wait for a connection. Raises ZooKeeperError if the session is closed."""
        await self._connection.wait()

    def statistics(self) -> dict[str, int | str]:
        """Return the state, counters since the start, and the number of current requests."""
        return self._connection.statistics()

    # Reads

    async def get(self, path: str, triggered: Triggered | None = None) -> tuple[bytes, Stat]:
        """Return the value and the stat of the znode. Raises NoNode."""
        value: tuple[bytes, Stat] = await self._connection.read(Get(path, triggered))
        return value

    async def find(self, path: str) -> tuple[bytes, Stat] | None:
        """Return the value and the stat as `get`, or None if there is no such znode."""
        try:
            return await self.get(path)
        except NoNode:
            return None

    async def exists(self, path: str, triggered: Triggered | None = None) -> Stat | None:
        """Return the stat of the znode, or None if there is none."""
        stat: Stat | None = await self._connection.read(Exists(path, triggered))
        return stat

    async def children(self, path: str, triggered: Triggered | None = None) -> list[str]:
        """Return the names of the znode's children, sorted. Raises NoNode if the znode does not exist."""
        names: list[str] = await self._connection.read(Children(path, triggered))
        return sorted(names)

    async def find_children(self, path: str) -> list[str]:
        """Return the names of the znode's children, sorted; none if the znode does not exist."""
        try:
            return await self.children(path)
        except NoNode:
            return []

    async def sync(self) -> None:
        """Wait until the server has caught up with all writes that ZooKeeper completed before this call."""
        await self._connection.read(Sync())

    async def find_all(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Return the result of `find` for each path, in order; the reads are pipelined."""
        return await self._each(paths, self.find)

    async def children_of_all(self, paths: Sequence[str]) -> list[list[str]]:
        """Return the result of `find_children` for each path, in order."""
        return await self._each(paths, self.find_children)

    # Writes

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a znode, and return its path.

        Raises NodeExists if the znode exists, and NoNode if its parent does not exist.
        """
        created: str = await self._connection.write(Create(path, data, ephemeral, sequential))
        return created

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Set the value. Return the znode's new stat. Raises NoNode or BadVersion."""
        stat: Stat = await self._connection.write(SetData(path, data, version))
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a znode that has this version and no children. Raises NoNode, BadVersion or NotEmpty."""
        await self._connection.write(Delete(path, version))

    async def multi(self, operations: Sequence[Write | Check]) -> list[Any]:
        """Carry out all or none of the operations; return the result of each one.

        Raises MultiFailed with the index and error of the operation that failed.
        """
        answers: list[Any] = await self._connection.write(Multi(tuple(operations)))
        return answers

    async def ensure(self, paths: Iterable[str]) -> None:
        """Create those of these znodes and their parents that are missing, with empty values."""
        for path in paths:
            await self._ensure(path)

    async def _each(self, paths: Sequence[str], ask: Callable[[str], Awaitable[T]]) -> list[T]:
        answers: list[Any] = [None] * len(paths)
        left = iter(enumerate(paths))

        async def work() -> None:
            for index, path in left:
                answers[index] = await ask(path)

        loop = asyncio.get_running_loop()
        workers = min(self.settings.max_in_flight_requests, len(paths))
        tasks = [loop.create_task(work()) for _ in range(workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return answers

    async def _ensure(self, path: str, above_chroot: bool = False) -> None:
        while True:
            try:
                await self._connection.write(Create(path, above_chroot=above_chroot))
            except NodeExists:
                return
            except NoNode:
                await self._ensure(path.rpartition("/")[0], above_chroot)
            except ConnectionLost:
                await self._connection.wait()
            else:
                return

    async def ensure_chroot(self) -> None:
        """Create the chroot if it is missing, in a session that was opened without creating it."""
        chroot = self.settings.chroot
        if chroot and await self.exists("/") is None:
            log.info("zookeeper.connect=%s: creating the chroot", self.settings.connect)
            await self._ensure(chroot, above_chroot=True)
