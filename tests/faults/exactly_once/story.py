"""Three workers, a broker, and what happens to them until the time is up; then the audit.

Fault model: SIGKILL of a worker, of the broker, or of both at any moment; the disk keeps what was written,
and the killed are started again, a worker under its transactional id. SIGSTOP of a worker until the group has
given it up, or until a process under its id has taken over; then SIGCONT.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from kafka_client import Admin, Client, NewTopic
from kafka_client.cluster.cluster import is_retriable
from kafka_client.errors import MillstreamError
from tests.faults.exactly_once.audit import audit, uncommitted
from tests.faults.exactly_once.feeder import Feeder
from tests.faults.exactly_once.names import (
    FENCED,
    GROUP,
    INPUT,
    INPUT_PARTITIONS,
    OUTPUT,
    OUTPUT_PARTITIONS,
    PATIENCE_MS,
    SESSION_MS,
)
from tests.faults.exactly_once.process import PATIENCE, WorkerProcess
from tests.support.broker_process import BrokerProcess

WORKERS = 3
SETTINGS = {
    "group.min.session.timeout.ms": SESSION_MS,
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
}
PAUSE_SECONDS = 1.0
"""The longest from one thing that happens to the next."""
PER_SECOND = 400
"""Records of the input."""


class Story:
    """`run` it with a broker that is started. `figures` counts what has happened; print it."""

    def __init__(self, broker: BrokerProcess, folder: Path, seed: int) -> None:
        self.figures: Counter[str] = Counter()
        self._broker = broker
        self._folder = folder
        self._seed = seed
        self._random = random.Random(seed)
        self._workers: list[WorkerProcess] = []
        self._ended: list[WorkerProcess] = []
        self._starts = itertools.count(seed)

    async def run(self, seconds: float) -> None:
        """Let each kind of event happen in turn, then any of them until so many seconds are over.

        Raises AssertionError if the audit fails.
        """
        patient = {"connect_timeout_ms": PATIENCE_MS, "missing_topic_wait_ms": PATIENCE_MS}
        async with Client(self._broker.bootstrap, **patient) as client:
            await Admin(client).create_topics(
                [NewTopic(INPUT, INPUT_PARTITIONS), NewTopic(OUTPUT, OUTPUT_PARTITIONS)]
            )
            feeder = Feeder(self._seed, PER_SECOND)
            feeding = asyncio.create_task(feeder.feed(client))
            try:
                await self._happen(client, time.monotonic() + seconds)
                feeder.stop()
                await feeding
                await self._come_to_the_end(client)
                self.figures.update(await audit(client, feeder.written))
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
                for worker in self._workers + self._ended:
                    worker.kill()
        for worker in self._ended + self._workers:
            self.figures.update({f"workers told: {step}": count for step, count in worker.steps.items()})
            self.figures["records they told to be committed"] += worker.records

    async def _come_to_the_end(self, client: Client) -> None:
        async with asyncio.timeout(PATIENCE):
            while await uncommitted(client):
                self._check_workers()
                await asyncio.sleep(0.1)
        for worker in self._workers:
            await worker.until_told("started")  # before that SIGTERM is its end
            worker.leave()
        for worker in self._workers:
            status = await worker.ended()
            assert status == 0, f"{worker.name} left with status {status}: {worker.log}"

    # --- what happens ---

    async def _happen(self, client: Client, end: float) -> None:
        for number in range(WORKERS):
            self._workers.append(self._start(f"worker-{number}"))
        for worker in self._workers:
            await worker.until_told("committed")
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._kill_worker,
            self._kill_broker,
            self._kill_both,
            lambda: self._stop_worker(Admin(client)),
            self._replace_worker,
        ]
        planned = self._random.sample(kinds, len(kinds))
        while planned or time.monotonic() < end:
            happen = planned.pop() if planned else self._random.choice(kinds)
            await happen()
            self._check_workers()
            await self._pause()

    async def _kill_worker(self) -> None:
        worker = await self._pick("SIGKILL of a worker")
        worker.kill()
        self._follow(worker)

    async def _kill_broker(self) -> None:
        self.figures["SIGKILL of the broker"] += 1
        await asyncio.to_thread(self._broker.kill)
        await self._pause()
        await asyncio.to_thread(self._broker.start)

    async def _kill_both(self) -> None:
        worker = await self._pick("SIGKILL of both")
        await asyncio.to_thread(self._broker.kill)
        worker.kill()
        self._follow(worker)
        await asyncio.to_thread(self._broker.start)

    async def _stop_worker(self, admin: Admin) -> None:
        """Stop a worker until its session is over. Its transaction is refused then, and it joins again."""
        worker = await self._pick("SIGSTOP of a worker until its session is over")
        worker.stop()
        async with asyncio.timeout(PATIENCE):
            while True:
                if not await self._is_member(admin, worker):
                    break
                await asyncio.sleep(0.1)
        await self._pause()
        joined = worker.steps["joined"]
        worker.go_on()
        await worker.until_told("joined", more_than=joined)

    async def _replace_worker(self) -> None:
        """Another process takes its transactional id while it is stopped: fenced as soon as it writes."""
        worker = await self._pick("SIGSTOP of a worker until another has its id")
        worker.stop()
        self._follow(worker)
        await self._workers[-1].until_told("started")
        worker.go_on()
        status = await worker.ended()
        assert status == FENCED, f"{worker.name}, replaced, ended with status {status}: {worker.log}"
        self.figures["zombies fenced by the transactional id"] += 1

    # --- how ---

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.random() * PAUSE_SECONDS)

    async def _is_member(self, admin: Admin, worker: WorkerProcess) -> bool:
        try:
            (group,) = (await admin.describe_groups([GROUP])).values()
        except MillstreamError as error:
            if not is_retriable(error):
                raise
            return True
        return any(member.client_id == worker.name for member in group.members)

    async def _pick(self, what: str) -> WorkerProcess:
        """Return the worker that the event happens to, once all are at work."""
        worker = self._random.choice(self._workers)
        await worker.until_told("joined")
        self.figures[what] += 1
        self.figures[f"… right after: {worker.last}"] += 1
        return worker

    def _start(self, name: str) -> WorkerProcess:
        log = self._folder / f"{name}.log"
        # Assignors do not change within a group, so the seed's parity stays.
        seed = self._seed + 2 * next(self._starts)
        return WorkerProcess(self._broker.bootstrap, name, seed, log)

    def _follow(self, worker: WorkerProcess) -> None:
        """Start another in its place."""
        self._ended.append(worker)
        self._workers.remove(worker)
        self._workers.append(self._start(worker.name))

    def _check_workers(self) -> None:
        for worker in self._workers:
            assert worker.status is None, f"{worker.name} ended with status {worker.status}: {worker.log}"
