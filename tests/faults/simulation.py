"""A whole broker in one thread, on a disk that may die.

Time of the event loop passes at once. The pool's jobs run in the loop, one after another and a little later,
so that a seed gives the same history again.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import random
import selectors
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from kafka_client.wire.produce import encode_produce_request
from logd.api.dispatch.dispatch import serve
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint
from tests.support.power_loss import Crashed, PowerLossDisk

T = TypeVar("T")

NOW = 1_700_000_000_000
DELAYS_S = (0.0, 0.0, 0.0, 0.002, 0.005)
"""How much later a job of the pool may run."""
ENDPOINT = Endpoint("PLAINTEXT", "127.0.0.1", 9092)
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.cleaner.enable": "false",  # it is another process, which writes past the disk
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.segment.bytes": "3000",
    "transaction.state.log.segment.bytes": "3000",
    "log.segment.bytes": "2500",
    "log.index.interval.bytes": "200",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "50",
    "millstream.flush.interval.ms": "400",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class _NoWait(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Nobody but the clock wakes this loop, so the clock is what is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits for ever"
        self.passed += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once when there is nothing to do."""

    def __init__(self, is_over: Callable[[], bool] = lambda: False) -> None:
        self._clock = _NoWait()
        super().__init__(self._clock)
        self.set_exception_handler(self._report)
        self.reported: list[dict[str, Any]] = []
        """Errors that no other code handled before the life was over; a dead broker's errors do not count.
        """
        self._is_over = is_over

    def time(self) -> float:
        """See `asyncio.AbstractEventLoop.time`."""
        return self._clock.passed

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), Crashed) and not self._is_over():
            self.reported.append(context)


class LoopExecutor(Executor):
    """Runs jobs in the loop, in the order in which they came."""

    def __init__(self, loop: asyncio.AbstractEventLoop, rng: random.Random) -> None:
        self._loop = loop
        self._rng = rng
        self._next_at = 0.0

    def submit(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """See `Executor.submit`."""
        future: Future[T] = Future()
        self._next_at = max(self._next_at + 1e-6, self._loop.time() + self._rng.choice(DELAYS_S))
        self._loop.call_at(self._next_at, self._work, future, job, args, kwargs)
        return future

    def _work(self, future: Future[T], job: Callable[..., T], args: Any, kwargs: Any) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = job(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


class SimulatedBroker(Broker):
    """A broker that goes by the loop's time."""

    began_ms = NOW

    def __init__(self, config: BrokerConfig, **arguments: Any) -> None:
        super().__init__(config, now_ms=self._loop_ms, **arguments)

    def _loop_ms(self) -> int:
        return self.began_ms + int(asyncio.get_event_loop().time() * 1000)

    def let_go(self) -> None:
        """End as a killed process does."""
        for folder in self.directories:
            for log in folder.logs.values():
                log.release()
            folder.unlock()
        if hasattr(self, "_store"):  # else it died before there was one
            self._store.close()


class Client:
    """A connection to the broker, without a socket: one request at a time."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._context = RequestContext(broker, endpoint=ENDPOINT)

    async def request(self, message: Message, version: int) -> Any:
        """Send a request; its response."""
        frame = await self._serve(encode_request(message, version, 7, "client"))
        return self._decode(message.API_KEY, version, frame)

    async def produce(
        self, topic: str, index: int, batch: bytes, *, version: int = 9, transactional_id: str | None = None
    ) -> Any:
        """Produce one batch; the answer for its partition."""
        chunks = encode_produce_request(
            [(topic, [(index, batch)])], version, 7, "client", transactional_id=transactional_id
        )
        frame = await self._serve(b"".join(bytes(chunk) for chunk in chunks))
        return self._decode(0, version, frame).responses[0].partition_responses[0]

    async def _serve(self, request: bytes) -> bytes:
        answer = serve(memoryview(request), 4, len(request), self._context)
        while inspect.isawaitable(answer):  # a coroutine may give a future of the response
            answer = await answer
        assert isinstance(answer, bytes)
        return answer[4:]

    @staticmethod
    def _decode(key: int, version: int, frame: bytes) -> Any:
        _, pos = decode_response_header(key, version, frame)
        return decode(response_class(key), version, frame, pos)


class MistakesLogged(logging.Handler):
    """The exceptions that a broker has logged before its disk died, and gone on, as its rounds do."""

    def __init__(self, disk: PowerLossDisk) -> None:
        super().__init__()
        self._disk = disk
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, Crashed) and not self._disk.crashed:
            self.errors.append(error)

    def __enter__(self) -> MistakesLogged:
        logging.getLogger("logd").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("logd").removeHandler(self)

    def check(self) -> None:
        """Raise the first one, of which the others are notes."""
        if self.errors:
            first, *others = self.errors
            first.add_note(f"logged by the broker, which went on; {len(others)} more: {others[:5]}")
            raise first


class Life:
    """A life of a broker, from its start to its end. Call `run` once."""

    def __init__(self, disk: PowerLossDisk, rng: random.Random, *, began_ms: int, **settings: str) -> None:
        self.disk = disk
        self._rng = rng
        self._settings = {**SETTINGS, "log.dirs": str(disk.root), **settings}
        self.ended_ms = began_ms
        self.broker: SimulatedBroker

    def run(self, work: Callable[[SimulatedBroker], Coroutine[Any, Any, None]]) -> None:
        """Start the broker, have the work done, and stop the broker cleanly; Crashed if the machine dies.

        However it ends: what the broker only logged, or nobody was told, is raised.
        """
        with MistakesLogged(self.disk) as mistakes:
            loop = VirtualLoop(lambda: self.disk.crashed)
            try:
                self._run(loop, work)
            finally:
                mistakes.check()
                assert not loop.reported, loop.reported

    def _run(self, loop: VirtualLoop, work: Callable[[SimulatedBroker], Coroutine[Any, Any, None]]) -> None:
        asyncio.set_event_loop(loop)
        self.broker = SimulatedBroker(
            BrokerConfig.of(self._settings), disk=self.disk, executor=LoopExecutor(loop, self._rng)
        )
        self.broker.began_ms = self.ended_ms
        self.broker.endpoints.append(ENDPOINT)
        try:
            loop.run_until_complete(self._live(work))
        finally:
            self.ended_ms += int(loop.time() * 1000) + 1
            self.disk.crashed = True  # nothing gets to the disk any more
            self._end(loop)
            self.broker.let_go()
            asyncio.set_event_loop(None)

    async def _live(self, work: Callable[[SimulatedBroker], Coroutine[Any, Any, None]]) -> None:
        await self.broker.start()
        await work(self.broker)
        if self.disk.crashed:
            raise Crashed(self.disk.died_at)
        await self.broker.stop()

    @staticmethod
    def _end(loop: asyncio.AbstractEventLoop) -> None:
        tasks = asyncio.all_tasks(loop)
        for _ in range(3):
            for task in tasks:
                task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        loop.close()


@contextmanager
def repeatable(seed: int, deaths: Sequence[str] = ()) -> Iterator[None]:
    """Whatever the broker draws for itself comes from the seed; and no threads where it would use some.

    What fails says the seed, and of which deaths the machine had died by then.
    """
    rng = random.Random(seed)
    numbers = itertools.count(1)

    def topic_id() -> bytes:
        return uuid.UUID(int=rng.getrandbits(96) << 32 | next(numbers)).bytes

    with (
        mock.patch("uuid.uuid4", side_effect=lambda: uuid.UUID(int=rng.getrandbits(128), version=4)),
        mock.patch("logd.storage.log_directory.new_uuid", side_effect=lambda: rng.randbytes(16)),
        mock.patch("logd.storage.names.unique", side_effect=lambda: rng.randbytes(16).hex()),
        mock.patch("logd.broker.topics.catalog.new_topic_id", topic_id),
        mock.patch("logd.broker.broker.new_topic_id", topic_id),
        mock.patch("logd.storage.log_directory.CLOSED_AT_ONCE", 1 << 30),
        mock.patch("logd.storage.log_directory.read_ahead", lambda folders: folders),
        mock.patch("logd.metadata.journal_store.COMPACT_AT_LINES", 12),
    ):
        try:
            yield
        except BaseException as error:
            error.add_note(f"seed {seed}; deaths: {list(deaths)}")
            raise


def new_disk(path: Path, rng: random.Random) -> PowerLossDisk:
    """Return an empty disk."""
    path.mkdir(parents=True)
    return PowerLossDisk(path, rng)


async def run_together(
    works: Sequence[Coroutine[Any, Any, None]],
    disk: PowerLossDisk,
    *,
    refusal: type[BaseException],
    lenient: bool = False,
) -> None:
    """Run all works at once. Raises Crashed as soon as the machine dies, and every other error.

    A work that ends by a `refusal` just ends if the machine is dead or `lenient` is set.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        waiting = set(tasks)
        while waiting:
            done, waiting = await asyncio.wait(waiting, timeout=0.5, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                error = task.exception()
                if error is None or isinstance(error, Crashed):
                    continue
                if not (isinstance(error, refusal) and (disk.crashed or lenient)):
                    raise error
            if disk.crashed:
                raise Crashed(disk.died_at)
    finally:
        for task in tasks:
            task.cancel()
