"""Producers that number what they write, and note what was acknowledged: librdkafka's and our own.

Number n goes to partition n modulo their count. `acknowledged`: by number, where it is, as the broker said.
The offset is None for what was there already when it was sent again, and the broker has forgotten where.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from kafka_client import BatchProducer, Client
from tests.support.waiting import SECONDS, wait_for

PARTITIONS = 6
DELIVERY_MS = 180_000
"""Longer than any fault lasts."""
AT_ONCE = 20
PAUSE_S = 0.03
"""Between so many records: brokers are to be disturbed, not kept busy."""
NICE = 10
"""The niceness of librdkafka's threads: others go first."""
IN_FLIGHT = 3
"""Batches to a broker that has not answered; with more librdkafka turns without a rest until it has."""
SKIPPED = re.compile(r"skipped sequence numbers .* caused by previous failed request \(.*MsgNotPersisted")
"""A message of librdkafka before it begins a new epoch for refused records, and not for lost ones."""
SILENT_S = 20
"""How long librdkafka waits for an answer; by default it is a minute. A leader whose packets are lost
holds up all partitions so long, once `UNACKNOWLEDGED_MAX` records wait for it.
"""
UNACKNOWLEDGED_MAX = 2000
"""Records; with more a writer waits."""
STILL_S = 2.0
"""A writer to which nothing is acknowledged for so long stands still."""


class Writer(ABC):
    """Writes in a thread, from the beginning of the context to `finish`, or to its end.

    `is_idempotent`: no record is there twice; all are in order.
    """

    is_idempotent = True

    def __init__(self, bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.sent = 0
        self.acknowledged: dict[int, tuple[int, int | None]] = {}
        self.failed: list[object] = []
        self.notes: deque[str] = deque(maxlen=200)
        """The client's messages about its sequences, for the report of a failure."""
        self.may_repeat = False
        """Whether the client has done by itself what may write records twice."""
        self.is_over = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"writes {topic}", daemon=True)

    def _guarded(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failed.append(error)
            raise

    @abstractmethod
    def run(self) -> None:
        """Write until `is_over`, and then wait for what is not acknowledged."""

    def noted(self, number: int, partition: int, offset: int | None) -> None:
        """Note that a record is acknowledged."""
        assert number not in self.acknowledged, f"{number} is acknowledged twice"
        self.acknowledged[number] = partition, offset

    def goes_on(self, records: int = 1000) -> None:
        """Wait until so many more are acknowledged."""
        before = len(self.acknowledged)
        try:
            wait_for(lambda: len(self.acknowledged) >= before + records or bool(self.failed))
        except AssertionError as error:
            progress = (
                f"{self.topic}: {before}, then {len(self.acknowledged)} of {self.sent} are acknowledged"
            )
            raise AssertionError("\n".join([f"{error}; {progress}", *self.notes])) from error
        assert not self.failed, self.failed[0]

    def stands_still(self) -> None:
        """Wait until nothing is acknowledged for a while."""
        before = -1
        deadline = time.monotonic() + SECONDS
        while before != len(self.acknowledged):
            assert time.monotonic() < deadline, f"{self.topic}: records are acknowledged all the time"
            before = len(self.acknowledged)
            time.sleep(STILL_S)
        assert not self.failed, self.failed[0]

    def finish(self) -> None:
        """Write no more; every record is acknowledged then."""
        self.is_over.set()
        self._thread.join(200)
        assert not self._thread.is_alive(), (
            f"{self.topic}: {len(self.acknowledged)} of {self.sent} records are acknowledged"
        )
        assert not self.failed, self.failed[0]
        assert self.acknowledged.keys() == set(range(self.sent))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_over.set()
        if error is None:
            self.finish()


class ConfluentWriter(Writer):
    """librdkafka's idempotent producer.

    Of two batches under way the first may be refused for want of replicas, and the second, when there are
    enough again, for its sequence, by Apache Kafka as well. It begins a new epoch in all partitions then, and
    sends again what is perhaps there in others (librdkafka #4953).
    """

    def run(self) -> None:
        from confluent_kafka import Producer

        # Its threads are as nice as this one.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "max.in.flight.requests.per.connection": IN_FLIGHT,
                "socket.timeout.ms": SILENT_S * 1000,
                "batch.num.messages": 10,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "debug": "eos",
            },
            logger=self._noting(),
        )
        while not self.is_over.is_set():
            for _ in range(AT_ONCE):
                where = self.sent % self.partitions
                producer.produce(self.topic, b"%d" % self.sent, partition=where, on_delivery=self._delivered)
                self.sent += 1
            while producer.poll(0) or len(producer) > UNACKNOWLEDGED_MAX:
                time.sleep(PAUSE_S)
            time.sleep(PAUSE_S)
        producer.flush(180)

    def _noting(self) -> logging.Logger:
        """Return a logger that keeps librdkafka's debug messages about producer epochs."""
        logger = logging.Logger("librdkafka", logging.DEBUG)
        handler = logging.Handler()
        handler.emit = lambda record: self._note(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        return logger

    def _note(self, text: str) -> None:
        if any(word in text for word in ("bump", "desync", "PID{")):
            self.notes.append(text)
        if SKIPPED.search(text):
            self.may_repeat = True

    def _delivered(self, error: object, message: Any) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.noted(int(message.value()), message.partition(), message.offset())


class OwnWriter(Writer):
    """Our own idempotent producer."""

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self.bootstrap))
            producer = BatchProducer(client, linger_ms=1, delivery_timeout_ms=DELIVERY_MS)
            # A broker that is cut off from the controller has no producer ids to give, for a minute at most.
            await client.retrying(producer.start, timeout_ms=DELIVERY_MS)
            stack.push_async_callback(producer.close)
            waiting: set[asyncio.Task[None]] = set()
            while not self.is_over.is_set():
                for _ in range(AT_ONCE // 5):
                    number, where = self.sent, self.sent % self.partitions
                    self.sent += 1
                    record = (1, None, b"%d" % number, ())
                    acknowledged = await producer.send(self.topic, where, [record])
                    task = asyncio.ensure_future(self._note(number, where, acknowledged))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
                if len(waiting) > UNACKNOWLEDGED_MAX:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(PAUSE_S)
            await producer.flush()
            await asyncio.gather(*waiting)

    async def _note(self, number: int, where: int, acknowledged: asyncio.Future[int | None]) -> None:
        try:
            offset = await acknowledged
        except Exception as error:
            self.failed.append(error)
        else:
            self.noted(number, where, offset)
