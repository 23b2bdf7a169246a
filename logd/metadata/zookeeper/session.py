"""ZooKeeper from a loop: sessions that follow one another, each with its lease, and what can be asked.

When a session has expired another one begins by itself. What was ephemeral is gone then, and is made again by
whoever made it, on the event ESTABLISHED. Watches are gone after each loss of the connection: `watches` reads
again on ESTABLISHED and on RESUMED.

Reads wait for a connection, and are repeated when it is lost. Writes are not: ConnectionLost says that nobody
knows, and who wrote finds out by reading.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

from logd.metadata.zookeeper.client import Client, Heard
from logd.metadata.zookeeper.clock import boottime
from logd.metadata.zookeeper.errors import (
    ConnectionLost,
    NodeExists,
    NoNode,
    NotAllowed,
    SessionExpired,
    Unreachable,
    ZooKeeperError,
)
from logd.metadata.zookeeper.lease import Lease
from logd.metadata.zookeeper.operations import (
    ANY_VERSION,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    MultiFailed,
    Read,
    SetData,
    Stat,
    Sync,
    Triggered,
    Write,
)
from logd.metadata.zookeeper.pipeline import Pipeline
from logd.metadata.zookeeper.settings import ZooKeeperSettings

RENEWALS_PER_TIMEOUT: Final = 6
"""How often a lease is renewed where nothing else is asked."""
REFUSED_AGAIN_S: Final = 1.0
"""How long after refused credentials another session is tried, where there has been one."""

NOTHING: Final = Multi((Check("/", ANY_VERSION),))
"""A write that changes nothing, and is answered once a majority has it."""

T = TypeVar("T")
log = logging.getLogger("logd.zookeeper")


class State(Enum):
    """Of a `Session`; only in CONNECTED something can be written."""

    CONNECTING = "CONNECTING"
    CONNECTED = "CONNECTED"
    SUSPENDED = "SUSPENDED"
    CLOSED = "CLOSED"


class Event(Enum):
    """What listeners hear, in the loop."""

    ESTABLISHED = "established"
    """A new session: nothing ephemeral of ours is there, and no watch."""
    SUSPENDED = "suspended"
    """The connection is lost; the session may live. Watches are gone."""
    RESUMED = "resumed"
    """Connected again, in the same session."""
    EXPIRED = "expired"
    """The session is over, and its ephemeral znodes are gone; ESTABLISHED follows."""


Listener: TypeAlias = Callable[[Event], None]


class Session:
    """`await Session(settings).open()`; `close` it last. All of it in one loop.

    `lease` is that of the session there is now. A write raises what its operation names, ConnectionLost where
    the outcome is unknown, and NotAllowed.
    """

    def __init__(self, settings: ZooKeeperSettings, *, clock: Callable[[], float] = boottime) -> None:
        self.settings = settings
        self.clock = clock
        self.state = State.CLOSED
        self.lease = Lease()
        self.disconnects = 0
        self.expires = 0
        self._listeners: dict[int, Listener] = {}
        self._numbers = itertools.count()
        self._connected = asyncio.Event()
        self._refused: NotAllowed | None = None
        self._client: Client | None = None
        self._connections = 0
        self._pipeline = Pipeline(settings.max_in_flight_requests, clock, self._written)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    # Its life

    async def open(self) -> Session:
        """Have a session, and the chroot created if it is missing, as Kafka does at its start.

        Unreachable after `zookeeper.connection.timeout.ms`; NotAllowed.
        """
        self.state = State.CONNECTING
        self._begin()
        try:
            async with asyncio.timeout(self.settings.connection_timeout_s):
                await self._connected.wait()
                if self._refused is not None:
                    raise self._refused
                await self._ensure_chroot()
        except TimeoutError:
            why = self._client.last_error if self._client is not None else ""
            await self.close()
            raise Unreachable(
                f"no ZooKeeper at {self.settings.connect} within {self.settings.connection_timeout_s:g} s"
                + (f" ({why})" if why else "")
                + ": start it, correct zookeeper.connect, or raise zookeeper.connection.timeout.ms"
            ) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once. Requests without an answer fail."""
        self.state = State.CLOSED
        self.lease.end()
        self._connected.set()
        client, self._client = self._client, None
        if client is not None:
            await self._retire(client)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def session_id(self) -> int:
        """Of the session there is; 0 if there is none."""
        return self.lease.session_id

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called on each event; what is returned takes it away again."""
        number = next(self._numbers)
        self._listeners[number] = listener

        def forget() -> None:
            self._listeners.pop(number, None)

        return forget

    def statistics(self) -> dict[str, int | str]:
        """The state, counters since the start, and how many requests there are now."""
        return {
            "state": self.state.value,
            "requests": self._pipeline.sent,
            "in_flight": self._pipeline.in_flight,
            "waiting": self._pipeline.waiting,
            "disconnects": self.disconnects,
            "expires": self.expires,
        }

    # Reads wait for a connection, and are repeated

    async def get(self, path: str, triggered: Triggered | None = None) -> tuple[bytes, Stat]:
        """The value and what is told of the znode; NoNode."""
        found: tuple[bytes, Stat] = await self._read(Get(path, triggered))
        return found

    async def find(self, path: str) -> tuple[bytes, Stat] | None:
        """As `get`; None if there is no such znode."""
        try:
            return await self.get(path)
        except NoNode:
            return None

    async def exists(self, path: str, triggered: Triggered | None = None) -> Stat | None:
        """What is told of the znode; None if there is none."""
        found: Stat | None = await self._read(Exists(path, triggered))
        return found

    async def children(self, path: str, triggered: Triggered | None = None) -> list[str]:
        """Their names, sorted; NoNode."""
        names: list[str] = await self._read(Children(path, triggered))
        return sorted(names)

    async def find_children(self, path: str) -> list[str]:
        """As `children`; none of a znode that is not there."""
        try:
            return await self.children(path)
        except NoNode:
            return []

    async def sync(self) -> None:
        """Wait until the server that is asked knows all that was written before, by anybody."""
        await self._read(Sync())

    async def find_all(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """As `find` of each, in order; as many are asked for at once as may be in flight."""
        return await self._each(paths, self.find)

    async def children_of_all(self, paths: Sequence[str]) -> list[list[str]]:
        """As `find_children` of each, in order."""
        return await self._each(paths, self.find_children)

    # Writes

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Its path; NodeExists, NoNode for its parent."""
        created: str = await self.write(Create(path, data, ephemeral, sequential))
        return created

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """What is told of it then; NoNode, BadVersion."""
        stat: Stat = await self.write(SetData(path, data, version))
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """NoNode, BadVersion, NotEmpty."""
        await self.write(Delete(path, version))

    async def multi(self, operations: Sequence[Write | Check]) -> list[Any]:
        """All or none of them: what each would have answered. MultiFailed says which one did not."""
        answers: list[Any] = await self.write(Multi(tuple(operations)))
        return answers

    async def ensure(self, paths: Iterable[str]) -> None:
        """Have these znodes there, with their parents; those that are made are empty."""
        for path in paths:
            await self._ensure(path)

    async def write(self, operation: Write | Multi) -> Any:
        """Send it once, in the session there is."""
        client = self._client
        if client is None or self.state is not State.CONNECTED:
            raise ConnectionLost(f"there is no connection to ZooKeeper at {self.settings.connect}")
        return await self._pipeline.ask(client, operation)

    async def connected(self) -> None:
        """Wait for a connection. ZooKeeperError when the session is closed."""
        await self._connected.wait()
        if self.state is State.CLOSED:
            raise ZooKeeperError("the session with ZooKeeper has been closed")

    async def _read(self, operation: Read) -> Any:
        while True:
            await self.connected()
            client = self._client
            assert client is not None
            try:
                return await self._pipeline.ask(client, operation)
            except SessionExpired:
                # The loop may not have heard yet; it does so behind this answer.
                await asyncio.sleep(0)
            except ConnectionLost:
                await asyncio.sleep(0)

    async def _each(self, paths: Sequence[str], ask: Callable[[str], Awaitable[T]]) -> list[T]:
        answers: list[Any] = [None] * len(paths)
        left = iter(enumerate(paths))

        async def work() -> None:
            for index, path in left:
                answers[index] = await ask(path)

        workers = min(self.settings.max_in_flight_requests, len(paths))
        tasks = [self._loop.create_task(work()) for _ in range(workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return answers

    async def _ensure(self, path: str, above_chroot: bool = False) -> None:
        while True:
            try:
                await self.write(Create(path, above_chroot=above_chroot))
            except NodeExists:
                return
            except NoNode:
                await self._ensure(path.rpartition("/")[0], above_chroot)
            except ConnectionLost:
                await self.connected()
            else:
                return

    async def _ensure_chroot(self) -> None:
        chroot = self.settings.chroot
        if chroot and await self.exists("/") is None:
            log.info("zookeeper.connect=%s: creating the chroot", self.settings.connect)
            await self._ensure(chroot, above_chroot=True)

    # What is heard of the connection

    def _begin(self) -> None:
        self._client = Client(self.settings, self.clock, self._heard_in_thread)
        self._client.start()

    def _heard_in_thread(self, client: Client, heard: Heard) -> None:
        try:
            self._loop.call_soon_threadsafe(self._heard, client, heard)
        except RuntimeError:
            # The loop is closed: nobody listens any more.
            return

    def _heard(self, client: Client, heard: Heard) -> None:
        if client is not self._client:
            return
        self._connections += 1
        match heard:
            case Heard.CONNECTED:
                self._go_on(client)
            case Heard.SUSPENDED:
                self._suspend()
            case Heard.EXPIRED:
                self._expire(client)
            case Heard.NOT_ALLOWED:
                self._run(self._refuse(client))

    def _go_on(self, client: Client) -> None:
        is_new = client.session_id != self.lease.session_id
        if is_new:
            self.lease = Lease(client.session_id, client.begun_at, client.timeout_ms / 1000)
        log.info(
            "ZooKeeper at %s: session 0x%x %s, its timeout is %d ms",
            self.settings.connect,
            self.session_id,
            "begins" if is_new else "goes on",
            client.timeout_ms,
        )
        self.state = State.CONNECTED
        self._connected.set()
        self._run(self._renew(client, self._connections))
        self._tell(Event.ESTABLISHED if is_new else Event.RESUMED)

    async def _renew(self, client: Client, connection: int) -> None:
        """Renew the lease while this connection holds, by a write that changes nothing."""
        while connection == self._connections and self.state is State.CONNECTED:
            try:
                await self._pipeline.ask_at_once(client, NOTHING)
            except MultiFailed:
                # The chroot is not there yet, or no more; that is told by whatever else is asked.
                pass
            except ZooKeeperError:
                return
            await asyncio.sleep(client.timeout_ms / 1000 / RENEWALS_PER_TIMEOUT)

    def _written(self, client: Client, sent_at: float) -> None:
        if client is self._client:
            self.lease.renew(sent_at)

    def _suspend(self) -> None:
        self._connected.clear()
        if self.state is State.CONNECTED:
            self.state = State.SUSPENDED
            self.disconnects += 1
            log.warning("ZooKeeper at %s: the connection is lost", self.settings.connect)
            self._tell(Event.SUSPENDED)

    def _expire(self, client: Client) -> None:
        self._suspend()
        self.expires += 1
        log.warning("ZooKeeper at %s: session 0x%x has expired", self.settings.connect, self.session_id)
        self._end(client)
        self._begin()

    async def _refuse(self, client: Client) -> None:
        refused = NotAllowed("ZooKeeper does not accept the credentials of millstream.zookeeper.digest")
        log.error("ZooKeeper at %s: %s", self.settings.connect, refused)
        if self.state is State.CONNECTING and not self.expires:
            self._refused = refused
            self._connected.set()
            return
        self._suspend()
        self._end(client)
        await asyncio.sleep(REFUSED_AGAIN_S)
        self._begin()

    def _end(self, client: Client) -> None:
        self.lease.end()
        self.state = State.CONNECTING
        self._client = None
        self._run(self._retire(client))
        self._tell(Event.EXPIRED)

    async def _retire(self, client: Client) -> None:
        await asyncio.to_thread(client.close)
        self._pipeline.fail(client)

    def _tell(self, event: Event) -> None:
        for listener in list(self._listeners.values()):
            listener(event)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
