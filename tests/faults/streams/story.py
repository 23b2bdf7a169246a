"""Three instances of an application, and what happens to them until the time is up; then the audit.

Fault model: SIGKILL of an instance at any moment, or of two at once; it is started again over the state it
had, over none, or after others have taken over. SIGSTOP of an instance until the group has given it up, then
SIGCONT. SIGTERM, then a start. With ``kills_broker``, SIGKILL of the broker; its disk keeps what was written.
With ``beside``, what that does to the brokers meanwhile: `leaders`.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord
from streams import KafkaStreams
from tests.faults.streams import summing
from tests.faults.streams.audit import audit
from tests.faults.streams.instance import Instance
from tests.support.tracebacks import assert_no_tracebacks
from tests.support.waiting import until

INSTANCES = 3
PARTITIONS = 12
PREFIX = "random-kills"
PAUSE_SECONDS = 4.0
"""The longest from one thing that happens to the next."""
FEED_SECONDS = 0.05
PATIENCE_SECONDS = 240.0
BROKER_SETTINGS: Mapping[str, object] = {
    "group.min.session.timeout.ms": 500,
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}
SETTINGS: Mapping[str, object] = {
    "transaction.timeout.ms": 5000,
    "num.standby.replicas": 1,
    "rocksdb.write.buffer.bytes": 1 << 20,
}
ENVIRONMENT = {summing.PADDING: "1000"}
"""With so little room for what is so large, RocksDB writes files between two kills."""


class Broker(Protocol):
    """A broker, or several."""

    @property
    def bootstrap(self) -> str:
        """``host:port``, several divided by commas."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def start(self) -> object:
        """Start it again, and wait until it serves."""
        ...


class Story:
    """`run` it with a broker that is started, or several. `figures` counts what has happened; print it.

    ``beside`` does something to the brokers, in a thread, and says what; again and again.
    """

    def __init__(
        self,
        broker: Broker,
        folder: Path,
        seed: int,
        *,
        per_second: int = 400,
        partitions: int = PARTITIONS,
        kills_broker: bool = False,
        beside: Callable[[], str] | None = None,
    ) -> None:
        self.figures: Counter[str] = Counter()
        self._broker = broker
        self._folder = folder
        self._random = random.Random(seed)
        self._per_second = per_second
        self._partitions = partitions
        self._kills_broker = kills_broker
        self._beside = beside
        self._instances: dict[str, Instance] = {}
        self._fed = 0
        self._stopped = asyncio.Event()

    async def run(self, seconds: float) -> None:
        """AssertionError if the audit finds anything, or an instance ends by itself."""
        patient = int(PATIENCE_SECONDS * 1000)
        async with Client(self._broker.bootstrap, connect_timeout_ms=patient) as client:
            await summing.prepare(client, PREFIX, self._partitions)
            feeding = asyncio.create_task(self._feed(client))
            try:
                await self._start_all()
                end = time.monotonic() + seconds
                await asyncio.gather(self._happen(end), self._happen_beside(end))
                self._stopped.set()
                await feeding
                await self._end()
                self.figures.update(await audit(client, PREFIX, self._partitions))
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
                for instance in self._instances.values():
                    instance.send(signal.SIGCONT)
                    instance.kill()

    async def _feed(self, client: Client) -> None:
        """Write numbers, each once, in idempotent batches."""
        topic = f"{PREFIX}-{summing.NUMBERS}"
        async with BatchProducer(client, linger_ms=0, delivery_timeout_ms=2**31 - 1) as producer:
            while not self._stopped.is_set():
                partitions: dict[int, list[NewRecord]] = {}
                now = int(time.time() * 1000)
                count = max(1, round(self._per_second * FEED_SECONDS))
                for number in range(self._fed, self._fed + count):
                    key = summing.row(number)[0].encode()
                    partition = producer.partition_for(topic, key, self._partitions)
                    partitions.setdefault(partition, []).append((now, key, number.to_bytes(8, "big"), ()))
                self._fed += count
                sent = [await producer.send(topic, *each) for each in partitions.items()]
                await asyncio.gather(*sent)
                await asyncio.sleep(FEED_SECONDS)

    # -- what happens

    async def _start_all(self) -> None:
        """Start all instances while all brokers run: internal topics get each replica on another broker."""
        for number in range(INSTANCES):
            await self._start(f"instance-{number}")
        await self._until_all_run()

    async def _happen(self, end: float) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [
            *(self._kill_one, self._kill_one, self._kill_and_wipe, self._kill_two),
            *(self._kill_until_others_run, self._stop_one, self._end_one),
            *([self._kill_broker] if self._kills_broker else []),
        ]
        planned = self._random.sample(kinds, len(kinds))
        while time.monotonic() < end:
            await (planned.pop() if planned else self._random.choice(kinds))()
            await self._pause()
            for instance in self._instances.values():
                assert instance.is_alive, f"{instance.folder.name} ended: {instance.log[-5000:]}"
                assert_no_tracebacks(instance.log)

    async def _happen_beside(self, end: float) -> None:
        while self._beside is not None and time.monotonic() < end:
            self.figures[await asyncio.to_thread(self._beside)] += 1
            await self._pause()

    async def _kill_one(self) -> None:
        name = self._pick("SIGKILL of an instance")
        self._instances[name].kill()
        await self._start(name)

    async def _kill_and_wipe(self) -> None:
        name = self._pick("SIGKILL of an instance, and its state lost")
        instance = self._instances[name]
        instance.kill()
        shutil.rmtree(instance.folder, ignore_errors=True)  # It may be killed before it makes it.
        await self._start(name)

    async def _kill_two(self) -> None:
        names = self._random.sample(list(self._instances), 2)
        self.figures["SIGKILL of two instances at once"] += 1
        for name in names:
            self._instances[name].kill()
        for name in names:
            await self._start(name)

    async def _kill_until_others_run(self) -> None:
        """Others take its tasks over before it is back, with older state."""
        name = self._pick("SIGKILL of an instance, its tasks taken over")
        self._instances[name].kill()
        others = {each: self._instances[each].records_in for each in self._instances if each != name}
        await self._until(
            lambda: all(self._instances[each].records_in > count for each, count in others.items()),
            "the others go on",
        )
        await self._pause()
        await self._start(name)

    async def _stop_one(self) -> None:
        """Stop an instance until its session is over. Its transaction is refused then, and it joins again."""
        name = self._pick("SIGSTOP of an instance beyond its session")
        self._instances[name].send(signal.SIGSTOP)
        await asyncio.sleep(4 + self._random.random() * PAUSE_SECONDS)
        self._instances[name].send(signal.SIGCONT)

    async def _end_one(self) -> None:
        name = self._pick("SIGTERM of an instance")
        instance = self._instances[name]
        await self._until(lambda: instance.states["RUNNING"] > 0, f"{name} runs")
        instance.send(signal.SIGTERM)
        status = await asyncio.to_thread(instance.wait, PATIENCE_SECONDS)
        assert status == 0, f"{name} left with status {status}: {instance.log[-5000:]}"
        await self._start(name)

    async def _kill_broker(self) -> None:
        self.figures["SIGKILL of the broker"] += 1
        await asyncio.to_thread(self._broker.kill)
        await asyncio.sleep(self._random.random())
        await asyncio.to_thread(self._broker.start)

    # -- how

    def _pick(self, what: str) -> str:
        self.figures[what] += 1
        return self._random.choice(list(self._instances))

    async def _start(self, name: str) -> None:
        self._instances[name] = Instance(
            self._broker.bootstrap,
            self._folder / name,
            prefix=PREFIX,
            settings=SETTINGS,
            environment=ENVIRONMENT,
        )

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.random() * PAUSE_SECONDS)

    async def _until_all_run(self) -> None:
        await self._until(self._all_run, "all instances run")

    def _all_run(self) -> bool:
        for instance in self._instances.values():
            assert instance.is_alive, f"{instance.folder.name} ended: {instance.log[-5000:]}"
        return all(each.states["RUNNING"] > 0 for each in self._instances.values())

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            await until(condition, PATIENCE_SECONDS)
        except AssertionError as error:
            logs = [each.log[-2000:] for each in self._instances.values()]
            error.add_note(f"waited until {what}; {logs}")
            raise

    async def _end(self) -> None:
        """Let all instances leave; another one without their state comes to the end of the inputs."""
        await self._until_all_run()
        for name, instance in self._instances.items():
            instance.send(signal.SIGTERM)
            status = await asyncio.to_thread(instance.wait, PATIENCE_SECONDS)
            assert status == 0, f"{name} left with status {status}: {instance.log[-5000:]}"
            assert_no_tracebacks(instance.log)
            self.figures["tasks restored after an error"] += instance.log.count("tasks are restored")
        app = KafkaStreams(
            summing.topology(PREFIX),
            application_id=f"{PREFIX}-app",
            bootstrap_servers=self._broker.bootstrap,
            state_dir=str(self._folder / "last"),
            processing_guarantee="exactly_once_v2",
        )
        async with app, asyncio.timeout(PATIENCE_SECONDS):
            await app.wait_until_caught_up()
