"""The report to the controller of this broker's failed log directories, and of the partitions in them.

Each report is complete. It is sent to each new controller, after each registration, and when a directory
fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from kafka_client.backoff import Backoff
from kafka_client.errors import MillstreamError, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.private.broker_report import BrokerReportRequest, ReportedTopic
from logd.broker.work.periodic import report

BACKOFF_S: Final = (0.05, 1.0)

log = logging.getLogger("logd.cluster")


class AskController(Protocol):
    """A function that asks the current controller; it raises MillstreamError."""

    async def __call__(self, message: Message, *, lane: str = "") -> Any: ...


class FailedLogDirs:
    """`own` are this broker's id and epoch; `failed` are the directories' paths, `lost` the partitions."""

    def __init__(
        self,
        ask: AskController,
        *,
        own: Callable[[], tuple[int, int]],
        failed: Callable[[], list[str]],
        lost: Callable[[], Iterable[TopicPartition]],
    ) -> None:
        self._ask = ask
        self._own = own
        self._failed = failed
        self._lost = lost
        self._news = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="failed log directories")

    def report(self) -> None:
        """Say it, if there is anything to say."""
        if self._failed():
            self._news.set()

    async def stop(self) -> None:
        """Say nothing more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        backoff = Backoff(*BACKOFF_S)
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._say()
                backoff.reset()
            except MillstreamError as error:
                log.info("the controller is not told of log directories that failed: %s", error)
                self._news.set()
                await asyncio.sleep(backoff.next())
            except Exception as error:
                report("telling the controller of log directories that failed", error)
                self._news.set()
                await asyncio.sleep(backoff.next())

    async def _say(self) -> None:
        broker, epoch = self._own()
        topics: dict[str, ReportedTopic] = {}
        for tp in sorted(self._lost()):
            topic = topics.setdefault(tp.topic, ReportedTopic(name=tp.topic, partitions=[]))
            topic.partitions.append(tp.partition)
        answer = await self._ask(
            BrokerReportRequest(
                broker_id=broker,
                broker_epoch=epoch,
                offline_log_dirs=self._failed(),
                offline=list(topics.values()),
            )
        )
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message or "BrokerReport")
