"""Connections to the brokers that Spark's Python workers reuse from task to task.

A worker runs one task after the other, each in a call of its own. So the event loop, the client and the
fetcher stay open between the calls, standing still. The next task with equal settings continues with them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka_client import BatchFetcher, Client

T = TypeVar("T")

IDLE_MAX = 4
"""Idle connections that a process keeps; the one that was used longest ago is closed first."""
IDLE_SECONDS_MAX = 300.0
"""Age at which an idle connection is closed; brokers close theirs after ten minutes by default."""


class WorkerConnection:
    """A client with its event loop, which runs only while a call waits for it."""

    def __init__(self, bootstrap_servers: str, client: Mapping[str, Any], fetch: Mapping[str, Any]) -> None:
        self.settings = (bootstrap_servers, dict(client), dict(fetch))
        self.idle_since = 0.0
        self._runner = asyncio.Runner()
        self._client: Client | None = None
        self._fetcher: BatchFetcher | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the loop until `work` is done, and return its result."""
        return self._runner.run(work)

    async def client(self) -> Client:
        """Return the client, connected. Raises KafkaError if no broker answers."""
        if self._client is None:
            servers, arguments, _ = self.settings
            self._client = await Client(servers, **arguments).connect()
        return self._client

    async def fetcher(self) -> BatchFetcher:
        """Return the fetcher; the caller removes the partitions that it has added."""
        if self._fetcher is None:
            self._fetcher = BatchFetcher(await self.client(), **self.settings[2])
        return self._fetcher

    def close(self) -> None:
        """Close the fetcher, the client and the loop."""
        with contextlib.suppress(Exception):
            self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        if self._fetcher is not None:
            await self._fetcher.close()
        if self._client is not None:
            await self._client.close()


class WorkerConnections:
    """The idle connections of this process, at most `IDLE_MAX`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle: list[WorkerConnection] = []
        self._process = os.getpid()

    @contextmanager
    def borrow(
        self, bootstrap_servers: str, client: Mapping[str, Any], fetch: Mapping[str, Any]
    ) -> Iterator[WorkerConnection]:
        """Return a connection with these settings for a while, a new one if none is idle.

        After an error it is closed, so that the next task begins with nothing of it.
        """
        connection = self._take((bootstrap_servers, dict(client), dict(fetch)))
        if connection is None:
            connection = WorkerConnection(bootstrap_servers, client, fetch)
        try:
            yield connection
        except Exception:
            connection.close()
            raise
        except BaseException:  # the reader of a range stopped early: nothing is wrong with the connection
            self._give_back(connection)
            raise
        else:
            self._give_back(connection)

    @property
    def idle_count(self) -> int:
        """The number of idle connections."""
        return len(self._idle)

    def close(self) -> None:
        """Close all idle connections."""
        if self._process == os.getpid():
            while self._idle:
                self._idle.pop().close()

    def _take(self, settings: tuple[str, dict[str, Any], dict[str, Any]]) -> WorkerConnection | None:
        if self._process != os.getpid():  # a fork's sockets are the parent's: leave them alone
            self._process, self._idle = os.getpid(), []
        oldest = self._clock() - IDLE_SECONDS_MAX
        for connection in [each for each in self._idle if each.idle_since < oldest]:
            self._idle.remove(connection)
            connection.close()
        for connection in reversed(self._idle):
            if connection.settings == settings:
                self._idle.remove(connection)
                return connection
        return None

    def _give_back(self, connection: WorkerConnection) -> None:
        connection.idle_since = self._clock()
        self._idle.append(connection)
        while len(self._idle) > IDLE_MAX:
            self._idle.pop(0).close()


CONNECTIONS = WorkerConnections()
"""The connections of this process. Spark calls a worker's functions one by one, and passes nothing on."""
atexit.register(CONNECTIONS.close)
