"""The registration of a broker in `/brokers/ids`, in each session again, under the broker's own id.

The epoch of a registration is the czxid of its znode. It fences requests from before the registration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from logd.metadata.zookeeper.errors import (
    ConnectionLost,
    DuplicateBrokerId,
    ForeignBroker,
    NodeExists,
    ZooKeeperError,
)
from logd.metadata.zookeeper.session.lease import Lease
from logd.metadata.zookeeper.session.session import Event, Session, State
from logd.metadata.zookeeper.watches import Watch, report
from logd.metadata.zookeeper.znodes import paths, znodes
from logd.metadata.zookeeper.znodes.znodes import Registration

WAITED_PART: Final = 1.5
"""The wait for an earlier registration of this broker to end, as a multiple of a session's timeout."""
AGAIN_S: Final = 1.0

log = logging.getLogger("logd.zookeeper")


@dataclass(frozen=True, slots=True)
class Registered:
    """A broker's registration; while `lease` is held, no other broker has this id and epoch."""

    broker_id: int
    epoch: int
    lease: Lease


async def register(
    session: Session, broker_id: int, registration: Registration, now_ms: int, *, wait_s: float | None = None
) -> Registered:
    """Register the broker in the current session, and return the registration.

    If another session has registered the broker, wait for that session's end. A broker that was killed finds
    its last registration there until that session ends. Raises DuplicateBrokerId if it has not ended after
    `wait_s` seconds (default: one and a half sessions). The wait starts again with each connection. No
    session ends while ZooKeeper is unreachable, and each session has its whole timeout again afterwards.
    """
    if wait_s is None:
        wait_s = session.settings.session_timeout_ms / 1000 * WAITED_PART
    data = znodes.encode_registration(registration, now_ms)
    while True:
        try:
            async with asyncio.timeout(wait_s) as limit:
                with _waiting_while_connected(session, limit, wait_s):
                    return await _registered(session, broker_id, data)
        except TimeoutError:
            value = await session.find(paths.broker(broker_id))
            if value is not None and value[1].ephemeral_owner != session.session_id:
                raise DuplicateBrokerId(broker_id, _shown(broker_id, value[0])) from None


@contextmanager
def _waiting_while_connected(session: Session, limit: asyncio.Timeout, wait_s: float) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def watch_connection(event: Event) -> None:
        if not limit.expired():
            is_connected = event in (Event.RESUMED, Event.ESTABLISHED)
            limit.reschedule(loop.time() + wait_s if is_connected else None)

    forget = session.add_listener(watch_connection)
    try:
        yield
    finally:
        forget()


async def _registered(session: Session, broker_id: int, data: bytes) -> Registered:
    path = paths.broker(broker_id)
    with Watch(session) as watch:
        while True:
            lease = session.lease
            try:
                await session.create(path, data, ephemeral=True)
            except (NodeExists, ConnectionLost):
                await session.connected()
            value = await watch.find(path)
            if value is None:
                continue
            if value[1].ephemeral_owner == session.session_id and session.lease is lease:
                if value[0] != data:
                    await session.set(path, data)
                return Registered(broker_id, value[1].czxid, lease)
            if value[1].ephemeral_owner != session.session_id:
                log.warning(
                    "broker.id=%d is registered already (%s): waiting for that session to end",
                    broker_id,
                    _shown(broker_id, value[0]),
                )
                await watch.changed()


async def registrations(session: Session) -> dict[int, Registration]:
    """Return the registrations of all brokers by id. Raises BadZnode if one cannot be decoded."""
    ids = sorted(int(name) for name in await session.find_children(paths.BROKER_IDS) if name.isdecimal())
    values = await session.find_all([paths.broker(broker_id) for broker_id in ids])
    return {
        broker_id: znodes.decode_registration(broker_id, value[0])
        for broker_id, value in zip(ids, values, strict=True)
        if value is not None
    }


async def refuse_foreign_brokers(session: Session) -> None:
    """Raise ForeignBroker if a broker of Apache Kafka is registered.

    Raises BadZnode if a registration cannot be decoded.
    """
    for broker_id, broker in (await registrations(session)).items():
        if not broker.is_logd:
            raise ForeignBroker(session.settings.connect, broker_id, _endpoints_text(broker))


def _shown(broker_id: int, data: bytes) -> str:
    try:
        return _endpoints_text(znodes.decode_registration(broker_id, data))
    except ZooKeeperError:
        return data.decode("utf-8", "replace")


def _endpoints_text(broker: Registration) -> str:
    return (
        ", ".join(f"{each.listener}://{each.host}:{each.port}" for each in broker.endpoints)
        or "without a listener"
    )


class Registrar:
    """A task that registers the broker at the start, and again in each later session.

    It calls `registered` with each registration, in the loop. Between two registrations the broker has none:
    the lease of the last one is over. It calls `failed` if another broker has taken the id in between.
    """

    def __init__(
        self,
        session: Session,
        broker_id: int,
        registration: Callable[[], Registration],
        wall_clock_ms: Callable[[], int],
        registered: Callable[[Registered], None],
        failed: Callable[[ZooKeeperError], None],
    ) -> None:
        self._session = session
        self._broker_id = broker_id
        self._registration = registration
        self._wall_clock_ms = wall_clock_ms
        self._registered = registered
        self._failed = failed
        self._last: Registered | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Registered:
        """Register for the first time, and return the registration. Raises errors as `register`."""
        first = await self._register()
        self._registered(first)
        self._task = asyncio.get_running_loop().create_task(self._run(first), name="the registration")
        self._task.add_done_callback(report)
        return first

    async def say_again(self) -> None:
        """Write the registration again after its data has changed. Raises ZooKeeperError."""
        if self._last is not None and self._last.lease is self._session.lease:
            data = znodes.encode_registration(self._registration(), self._wall_clock_ms())
            await self._session.set(paths.broker(self._broker_id), data)

    async def stop(self) -> None:
        """Stop registering, and delete the registration."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._last is None or self._last.lease is not self._session.lease:
            return
        try:
            # Do not read who owns the znode: reads wait for a connection, and `stop` must not.
            await self._session.delete(paths.broker(self._broker_id))
        except ZooKeeperError as error:
            log.info("the registration goes with its session: %s", error)

    async def _run(self, last: Registered) -> None:
        with Watch(self._session) as watch:
            while True:
                try:
                    await self._session.connected()
                    if self._session.lease is last.lease and await self._is_there(watch, last):
                        await watch.changed()
                        continue
                    last = await self._register()
                except ConnectionLost:
                    continue
                except DuplicateBrokerId as error:
                    self._failed(error)
                    return
                except ZooKeeperError as error:
                    if self._session.state is State.CLOSED:
                        return
                    log.error("broker.id=%d cannot be registered: %s", self._broker_id, error)
                    await asyncio.sleep(AGAIN_S)
                except Exception as error:
                    log.error("broker.id=%d: unexpected %r", self._broker_id, error, exc_info=error)
                    await asyncio.sleep(AGAIN_S)
                else:
                    self._registered(last)

    async def _is_there(self, watch: Watch, last: Registered) -> bool:
        """Return True if the last registration still exists: another client may have deleted the znode."""
        value = await watch.find(paths.broker(self._broker_id))
        return value is not None and value[1].czxid == last.epoch

    async def _register(self) -> Registered:
        registration = self._registration()
        self._last = await register(self._session, self._broker_id, registration, self._wall_clock_ms())
        return self._last
