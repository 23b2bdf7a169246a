"""A test's broker in its event loop, and the commands that the test sends.

A process (`child`) or a thread (`in_process`) has one. Commands and results are limited to JSON, since they
may be sent through a pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logd.broker_server import BrokerServer, membership_of
from logd.config.load import from_properties
from logd.server.errors import CannotListen
from logd.storage.disk import remove_folder
from millstream.free_ports import candidates
from millstream.testing.clock import ClockedLoop
from millstream.testing.disk import TroubledDisk
from millstream.testing.errors import BrokerError
from millstream.testing.requests import Requests
from millstream.testing.settings import broker_settings

FOLDER_FAILED = "its log folder failed"
TURNS = 10
"""The turns of the event loop in which due timers complete their work, unless that waits."""


class Served:
    """A broker with its commands. Call `start` first and `stop` at the end.

    A broker without a working log directory is stopped, as logd would be; `do("restart")` starts it again.
    `folder` holds the data unless `config`, Kafka's keys, sets another directory.
    """

    def __init__(self, loop: ClockedLoop, folder: Path, config: Mapping[str, object]) -> None:
        self._loop = loop
        self._folder = folder
        self._config = config
        self._disk = TroubledDisk()
        self._requests = Requests(loop.now_ms)
        self._broker: BrokerServer | None = None
        self._why_died = "it was not started"
        self._ending: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> int:
        """Start the broker, at its old port if it has one.

        Return the port. Raises MillstreamError or OSError if it does not start.
        """
        for port in [self.port] if self.port else candidates():
            try:
                broker = await self._started(port)
            except CannotListen:
                if not port or self.port or "listeners" in self._config:
                    raise
            else:
                self._broker = broker
                self.port = broker.broker.endpoint.port
                break
        return self.port

    async def _started(self, port: int) -> BrokerServer:
        config = from_properties(broker_settings(self._config, self._folder / "data", port)).config
        membership = membership_of(config, lambda error: self._died(broker, str(error)))
        broker = BrokerServer(
            config,
            on_dead=lambda: self._died(broker, FOLDER_FAILED),
            now_ms=self._loop.now_ms,
            disk=self._disk,
            membership=membership,
        )
        await broker.start()
        broker.intercept(self._requests.wrap)
        self._requests.omits_brokers = membership is not None
        if membership is None:  # in a cluster the controller chooses the coordinators
            self._requests.coordinator_found = broker.elected
        return broker

    async def stop(self) -> None:
        """Stop the broker cleanly, if it runs."""
        if self._broker is not None:
            broker, self._broker = self._broker, None
            await broker.stop()
        if self._ending is not None:
            await self._ending
            self._ending = None

    def _died(self, broker: BrokerServer, why: str) -> None:
        if broker is self._broker:  # otherwise it is being stopped
            self._broker, self._why_died = None, why
            self._ending = self._loop.create_task(broker.stop())

    async def do(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a command, a `do_` method of this class.

        Raises MillstreamError or OSError if it fails.
        """
        return await getattr(self, f"do_{command}")(**arguments)

    @property
    def _running(self) -> BrokerServer:
        if self._broker is None:
            raise BrokerError(f"the broker has stopped, since {self._why_died}: restart() brings it back")
        return self._broker

    # Commands

    async def do_create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic."""
        await self._running.create_topic(name, partitions, configs)

    async def do_ends(self) -> list[list[Any]]:
        """Return a row for each partition: topic, index, first offset, high watermark, last stable offset."""
        return [list(ends) for ends in self._running.ends()]

    async def do_view(self) -> dict[str, Any] | None:
        """Return a cluster broker's view of the cluster for `view.View`; None if the broker has stopped."""
        broker = self._broker
        if broker is None:
            return None
        return {
            "alive": broker.alive,
            "controller": broker.controller_id,
            "topics": broker.topics,
            "states": [list(state) for state in broker.states()],
            "is_harmed": broker.has_own_settings or self._disk.was_used,
        }

    async def do_forget(self) -> None:
        """Forget all requests, and lose no more responses."""
        self._requests.forget()

    async def do_requests(self) -> list[list[Any]]:
        """Return the last requests: milliseconds since 1970, client id, API, version."""
        return [list(request) for request in self._requests.received()]

    async def do_clean(self) -> int:
        """Reset the broker, without closing connections if possible. Return the port."""
        self._requests.forget()
        if self._broker is None or self._loop.ahead_s or self._disk.was_used or self._broker.has_own_settings:
            await self._begin_again()
        else:
            await self._broker.delete_all_topics()
        return self.port

    async def _begin_again(self) -> None:
        self._disk.heal(forget=True)
        await self.stop()
        self._loop.ahead_s = 0.0
        remove_folder(self._folder / "data", ignore_errors=True)
        await self.start()

    async def do_restart(self) -> int:
        """Stop cleanly and start again, in the same folder, with a healthy disk."""
        self._disk.heal()
        await self.stop()
        return await self.start()

    async def do_advance(self, seconds: float) -> None:
        """Put the clock forward and carry out what is due then."""
        broker = self._running
        self._loop.ahead_s += seconds
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await broker.apply_retention()

    async def do_drop_connections(self) -> None:
        """Close every connection."""
        self._running.drop_connections()

    async def do_lose_answers(self, api: str, count: int) -> None:
        """Carry out the next `count` requests of an API, and close the connection instead of answering."""
        self._requests.lose_answers(api, count)

    async def do_move_coordinators(self) -> None:
        """Resign as coordinator until a client looks for one."""
        self._running.resign()

    async def do_fence(self, transactional_id: str) -> int:
        """Fence the producer of that id. Return the new epoch."""
        return await self._running.fence(transactional_id)

    async def do_slow_disk(self, seconds: float) -> None:
        """Delay each write by `seconds`."""
        self._disk.slow(seconds)

    async def do_full_disk(self, room: int) -> None:
        """Let `room` more bytes be written."""
        self._disk.fill_up(room)

    async def do_heal_disk(self) -> None:
        """Remove the faults of the disk."""
        self._disk.heal()
