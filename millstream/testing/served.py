"""The broker of a test in its event loop, and the commands it is given there.

A process (`child`) or a thread (`in_process`) has one. Commands and their results are what JSON can
say, since they may come through a pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logd.config.load import from_properties
from logd.embedded import EmbeddedBroker, membership_of
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
"""Turns of the loop after which whatever a timer does without waiting is done."""


class Served:
    """Call `start`, in the end `stop`. A broker that has lost its last log folder is stopped, as logd would
    be; `do("restart")` brings it back.

    `folder` is where the data goes unless `config`, Kafka's keys, says otherwise.
    """

    def __init__(self, loop: ClockedLoop, folder: Path, config: Mapping[str, object]) -> None:
        self._loop = loop
        self._folder = folder
        self._config = config
        self._disk = TroubledDisk()
        self._requests = Requests(loop.now_ms)
        self._broker: EmbeddedBroker | None = None
        self._why_died = "it was not started"
        self._ending: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> int:
        """Open the broker, at the port it had before if it had one; the port. MillstreamError, OSError."""
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

    async def _started(self, port: int) -> EmbeddedBroker:
        config = from_properties(broker_settings(self._config, self._folder / "data", port)).config
        membership = membership_of(config, lambda error: self._died(broker, str(error)))
        broker = EmbeddedBroker(
            config,
            on_dead=lambda: self._died(broker, FOLDER_FAILED),
            now_ms=self._loop.now_ms,
            disk=self._disk,
            membership=membership,
        )
        await broker.start()
        broker.intercept(self._requests.wrap)
        self._requests.omits_brokers = membership is not None
        if membership is None:  # else the controller says who coordinates
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

    def _died(self, broker: EmbeddedBroker, why: str) -> None:
        if broker is self._broker:  # else it is being stopped
            self._broker, self._why_died = None, why
            self._ending = self._loop.create_task(broker.stop())

    async def do(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a command: a public method of this class. MillstreamError, OSError."""
        return await getattr(self, f"do_{command}")(**arguments)

    @property
    def _running(self) -> EmbeddedBroker:
        if self._broker is None:
            raise BrokerError(f"the broker has stopped, since {self._why_died}: restart() brings it back")
        return self._broker

    # Commands

    async def do_create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic."""
        await self._running.create_topic(name, partitions, configs)

    async def do_ends(self) -> list[list[Any]]:
        """Of each partition: topic, index, first offset, high watermark, last stable offset."""
        return [list(ends) for ends in self._running.ends()]

    async def do_view(self) -> dict[str, Any] | None:
        """What a broker among others has been told of them; see `view.View`. None: it has stopped."""
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
        """Know of no requests, and lose no answers."""
        self._requests.forget()

    async def do_requests(self) -> list[list[Any]]:
        """The last requests: milliseconds since 1970, client id, API, version."""
        return [list(request) for request in self._requests.seen()]

    async def do_clean(self) -> int:
        """Have everything as new, and clients stay connected where that can be; the port."""
        self._requests.forget()
        if self._broker is None or self._loop.ahead_s or self._disk.was_used or self._broker.has_own_settings:
            await self._begin_anew()
        else:
            await self._broker.delete_all_topics()
        return self.port

    async def _begin_anew(self) -> None:
        self._disk.heal(forget=True)
        await self.stop()
        self._loop.ahead_s = 0.0
        remove_folder(self._folder / "data", ignore_errors=True)
        await self.start()

    async def do_restart(self) -> int:
        """Stop cleanly and start again, in the same folder, with a disk in order."""
        self._disk.heal()
        await self.stop()
        return await self.start()

    async def do_advance(self, seconds: float) -> None:
        """Put the clock forward, and have done what is due then."""
        broker = self._running
        self._loop.ahead_s += seconds
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await broker.apply_retention()

    async def do_drop_connections(self) -> None:
        """Close every connection."""
        self._running.drop_connections()

    async def do_lose_answers(self, api: str, count: int) -> None:
        """Of the next requests of an API, carry out so many and close the connection instead of answering."""
        self._requests.lose_answers(api, count)

    async def do_move_coordinators(self) -> None:
        """No coordinator here until a client has looked for one again."""
        self._running.resign()

    async def do_fence(self, transactional_id: str) -> int:
        """Fence the producer of that id; the epoch that it is fenced by."""
        return await self._running.fence(transactional_id)

    async def do_slow_disk(self, seconds: float) -> None:
        """Have each write take so much longer."""
        self._disk.slow(seconds)

    async def do_full_disk(self, room: int) -> None:
        """Let so many bytes more be written."""
        self._disk.fill_up(room)

    async def do_heal_disk(self) -> None:
        """Take the disk's faults back."""
        self._disk.heal()
