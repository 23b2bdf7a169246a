"""The connection to ZooKeeper: a series of sessions, each with its lease and a client of its own.

When a session has expired, a new one begins by itself. Ephemeral znodes are gone then, and their creators
create them again on the event ESTABLISHED. Watches are gone after each loss of the connection: `watches`
reads again on ESTABLISHED and on RESUMED.

Reads wait for a connection, and are repeated if it is lost. Writes are not repeated: after ConnectionLost the
caller reads to find out whether the write was carried out.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final, TypeAlias

from logd.metadata.zookeeper.errors import ConnectionLost, NotAllowed, Unreachable, ZooKeeperError
from logd.metadata.zookeeper.session.client import Client, ClientEvent
from logd.metadata.zookeeper.session.lease import Lease
from logd.metadata.zookeeper.session.operations import ANY_VERSION, Check, Multi, MultiFailed, Read, Write
from logd.metadata.zookeeper.session.pipeline import WAITING_MAX, Pipeline
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings

RENEWALS_PER_TIMEOUT: Final = 6
"""How many times a lease is renewed in a session's timeout, if nothing else is written."""
REFUSED_AGAIN_S: Final = 1.0
"""Seconds until another session is tried, if ZooKeeper refuses credentials that it accepted before."""
NOTHING: Final = Multi((Check("/", ANY_VERSION),))
"""A write that changes nothing, and is answered once a majority has it."""

log = logging.getLogger("logd.zookeeper")


class State(Enum):
    """The states of a `Session`; writes need CONNECTED."""

    CONNECTING = "CONNECTING"
    CONNECTED = "CONNECTED"
    SUSPENDED = "SUSPENDED"
    CLOSED = "CLOSED"


class Event(Enum):
    """The events of a session; listeners are called in the loop."""

    ESTABLISHED = "established"
    """A new session has begun: it has no ephemeral znodes and no watches."""
    SUSPENDED = "suspended"
    """The connection is lost; the session may still be alive. Watches are gone."""
    RESUMED = "resumed"
    """The connection is back, with the session as it was before."""
    EXPIRED = "expired"
    """The session is over, and its ephemeral znodes are gone; ESTABLISHED follows."""


Listener: TypeAlias = Callable[[Event], None]


class Connection:
    """A connection for one loop: call `begin`, then `wait`, and at last `close`.

    `patience_s`: seconds that `wait` waits for a lost connection; None for no limit.
    """

    def __init__(
        self, settings: ZooKeeperSettings, clock: Callable[[], float], patience_s: float | None = None
    ) -> None:
        self.settings = settings
        self._patience_s = patience_s
        self.state = State.CLOSED
        self.lease = Lease()
        """The lease of the current session; between sessions the last lease, which is over."""
        self.client: Client | None = None
        self.disconnects = 0
        self.expires = 0
        self._clock = clock
        self._changes = 0
        """How many times the connection was established or lost."""
        self._connected = asyncio.Event()
        self._refused: NotAllowed | None = None
        self._listeners: dict[int, Listener] = {}
        self._numbers = itertools.count()
        self._pipeline = Pipeline(settings.max_in_flight_requests, clock, self._written)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Begin a session, and retry until it is established."""
        self.state = State.CONNECTING
        self.client = Client(self.settings, self._clock, self._notify_in_thread)
        self.client.start()

    async def wait(self) -> None:
        """Wait until the connection is established.

        Raises ZooKeeperError if it is closed, and NotAllowed if ZooKeeper refused the credentials. Raises
        Unreachable if a lost connection is not back after `patience_s`.
        """
        had_session = self.lease.session_id != 0
        try:
            async with asyncio.timeout(self._patience_s if had_session else None):
                await self._connected.wait()
        except TimeoutError:
            raise Unreachable(
                f"ZooKeeper at {self.settings.connect} went away, and has not come back for "
                f"{self._patience_s:g} s: start it, and try again"
            ) from None
        if self._refused is not None:
            raise self._refused
        if self.state is State.CLOSED:
            raise ZooKeeperError("the session with ZooKeeper has been closed")

    async def close(self) -> None:
        """End the session; ZooKeeper deletes its ephemeral znodes at once. Pending requests fail."""
        self.state = State.CLOSED
        self.lease.end()
        self._connected.set()
        client, self.client = self.client, None
        if client is not None:
            await self._retire(client)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` on each event from now on; return a function that removes it."""
        number = next(self._numbers)
        self._listeners[number] = listener

        def forget() -> None:
            self._listeners.pop(number, None)

        return forget

    async def read(self, operation: Read) -> Any:
        """Return the answer to a read, which is repeated on each new connection until it is answered.

        Raises the operation's errors, and NotAllowed.
        """
        while True:
            await self.wait()
            client = self.client
            assert client is not None
            try:
                return await self._pipeline.ask(client, operation)
            except ConnectionLost:
                # The event of the lost connection reaches the loop directly after this answer.
                await asyncio.sleep(0)

    async def write(self, operation: Write | Multi) -> Any:
        """Return the answer to one write, which is sent once, in the current session.

        Raises the operation's errors. Raises ConnectionLost if there is no connection, or if it ends before
        the answer.
        """
        client = self.client
        if client is None or self.state is not State.CONNECTED:
            raise ConnectionLost(f"there is no connection to ZooKeeper at {self.settings.connect}")
        return await self._pipeline.ask(client, operation)

    def statistics(self) -> dict[str, int | str]:
        """Return the state, the counters since the start, and the number of current requests."""
        return {
            "state": self.state.value,
            "requests": self._pipeline.sent,
            "in_flight": self._pipeline.in_flight,
            "in_flight_max": self.settings.max_in_flight_requests,
            "waiting": self._pipeline.waiting,
            "waiting_max": WAITING_MAX,
            "disconnects": self.disconnects,
            "expires": self.expires,
        }

    def _notify_in_thread(self, client: Client, event: ClientEvent) -> None:
        try:
            self._loop.call_soon_threadsafe(self._client_changed, client, event)
        except RuntimeError:
            # The loop is closed, so there are no listeners.
            return

    def _client_changed(self, client: Client, event: ClientEvent) -> None:
        if client is not self.client:
            return
        self._changes += 1
        match event:
            case ClientEvent.CONNECTED:
                self._go_on(client)
            case ClientEvent.SUSPENDED:
                self._suspend()
            case ClientEvent.EXPIRED:
                self._expire(client)
            case ClientEvent.NOT_ALLOWED:
                self._run(self._refuse(client))

    def _go_on(self, client: Client) -> None:
        is_new = client.session_id != self.lease.session_id
        if is_new:
            self.lease = Lease(client.session_id, client.begun_at, client.timeout_ms / 1000)
        log.info(
            "ZooKeeper at %s: session 0x%x %s, its timeout is %d ms",
            self.settings.connect,
            self.lease.session_id,
            "begins" if is_new else "goes on",
            client.timeout_ms,
        )
        self.state = State.CONNECTED
        self._connected.set()
        self._run(self._renew(client, self._changes))
        self._tell(Event.ESTABLISHED if is_new else Event.RESUMED)

    async def _renew(self, client: Client, connection: int) -> None:
        """Renew the lease while this connection holds, by a write that changes nothing."""
        while connection == self._changes and self.state is State.CONNECTED:
            try:
                await self._pipeline.ask_at_once(client, NOTHING)
            except MultiFailed:
                # The chroot does not exist; other requests report that.
                pass
            except ConnectionLost:
                return
            except ZooKeeperError as error:
                # A server may be overloaded: the session is alive, and the next attempt may succeed.
                log.warning("ZooKeeper at %s does not renew the lease: %s", self.settings.connect, error)
            except Exception as error:
                log.error("renewing the lease: unexpected %r", error, exc_info=error)
            await asyncio.sleep(client.timeout_ms / 1000 / RENEWALS_PER_TIMEOUT)

    def _written(self, client: Client, sent_at: float) -> None:
        if client is self.client:
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
        log.warning("ZooKeeper at %s: session 0x%x has expired", self.settings.connect, self.lease.session_id)
        self._end(client)
        self.begin()

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
        self.begin()

    def _end(self, client: Client) -> None:
        self.lease.end()
        self.state = State.CONNECTING
        self.client = None
        self._run(self._retire(client))
        self._tell(Event.EXPIRED)

    async def _retire(self, client: Client) -> None:
        await asyncio.to_thread(client.close)
        self._pipeline.fail(client)

    def _tell(self, event: Event) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(event)
            except Exception as error:  # call the other listeners nevertheless
                log.error("told that the session is %s: unexpected %r", event.name, error, exc_info=error)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
