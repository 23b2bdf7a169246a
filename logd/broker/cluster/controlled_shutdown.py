"""Controlled shutdown: a broker hands over the partitions that it leads while it still serves (`hand_over`).

It asks the controller repeatedly, since replicas may come in sync meanwhile. A controller resigns first. The
shutdown is noted in the broker's registration as well, so that the next controller knows of it. If all
brokers stop at the same time, there is nobody to ask until one of them is elected and finds that no broker
stays.

There is a time limit on how long the controller may leave partitions with this broker, or be missing. A
controller that hangs has a limit of its own: it is the controller until its session is over, and then the
next one is asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kafka_client.backoff import Backoff
from kafka_client.errors import MillstreamError, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.private.broker_report import BrokerReportRequest, BrokerReportResponse
from logd.broker.work.periodic import report

if TYPE_CHECKING:
    from logd.broker.cluster.member import Member
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.config.replication import ReplicationConfig

FIRST_BACKOFF_S: Final = 0.05
NOBODY_S: Final = 1.0
"""An election takes far less: without a controller for so long there is no other broker that would be it."""
HANGING_SESSIONS: Final = 1.5
"""For how many session timeouts answers are waited for, in all: ZooKeeper counts in ticks."""

log = logging.getLogger("logd.cluster")


class ControlledShutdown:
    """The controlled shutdown of one broker, done once."""

    def __init__(self, member: Member, leading: LedPartitions, config: ReplicationConfig) -> None:
        self._member = member
        self._leading = leading
        self._backoff_s = config.controlled_shutdown_retry_backoff_ms / 1000
        self._patience_s = config.controlled_shutdown_max_retries * self._backoff_s
        self._limit = asyncio.timeout(self._patience_s)
        self._unanswered_s = HANGING_SESSIONS * member.session.settings.session_timeout_ms / 1000
        """How much longer answers are waited for."""

    async def run(self) -> None:
        """Move leadership to other brokers. Return when none is left to move, or after the time limit."""
        try:
            async with self._limit:
                await self._until_relieved()
        except TimeoutError:
            log.warning(
                "broker %d stops and leads %d partitions still: controlled.shutdown.max.retries are over",
                self._member.node_id,
                len(self._leading.led),
            )
        except MillstreamError as error:
            log.warning(
                "broker %d stops without handing over its partitions: %s", self._member.node_id, error
            )
        except Exception as error:
            report("handing over", error)  # the logs are to be closed all the same

    async def _until_relieved(self) -> None:
        member = self._member
        backoff = Backoff(min(FIRST_BACKOFF_S, self._backoff_s), self._backoff_s)
        missed_since: float | None = None
        has_stood_down = False
        while await self._is_connected() and await member.others_stay():
            if not has_stood_down:
                has_stood_down = True
                await member.stand_down()
                await member.say_leaving()
            try:
                remaining = await self._ask()
            except MillstreamError as error:
                log.info("broker %d wants to stop: %s", member.node_id, error)
            else:
                if not remaining:
                    await self._until_told()
                    return
                log.info("broker %d alone can lead %s", member.node_id, ", ".join(map(str, remaining)))
            pause = backoff.next()
            missed_since = self._stand_if_none_elected(missed_since)
            await asyncio.sleep(pause if missed_since is None else min(pause, NOBODY_S))

    def _stand_if_none_elected(self, missed_since: float | None) -> float | None:
        """Become a candidate for controller if there has been no controller for `NOBODY_S`.

        Return the time since which there has been none, or None while there is one.
        """
        now = asyncio.get_running_loop().time()
        if self._member.controller_id >= 0:
            return None
        if missed_since is not None and now - missed_since >= NOBODY_S:
            self._member.stand()
        return now if missed_since is None else missed_since

    async def _is_connected(self) -> bool:
        """Return True if ZooKeeper is connected, or is soon: no controller can be elected without it."""
        try:
            async with asyncio.timeout(self._backoff_s):
                await self._member.session.connected()
        except TimeoutError:
            log.warning("broker %d stops without handing over: ZooKeeper is away", self._member.node_id)
            return False
        return True

    async def _ask(self) -> list[TopicPartition]:
        member = self._member
        request = BrokerReportRequest(
            broker_id=member.node_id, broker_epoch=member.epoch, is_shutting_down=True
        )
        with self._outside_the_limit():
            answer: BrokerReportResponse = await member.ask_controller(request)
        if answer.error_code:
            raise error_for(answer.error_code, answer.error_message or "BrokerReport")
        return [TopicPartition(topic.name, index) for topic in answer.remaining for index in topic.partitions]

    @contextmanager
    def _outside_the_limit(self) -> Iterator[None]:
        """Leave the wait for an answer out of the time limit, within a bound of its own."""
        began = asyncio.get_running_loop().time()
        before = self._limit.when()
        assert before is not None
        self._limit.reschedule(before + self._unanswered_s)
        try:
            yield
        finally:
            waited = min(asyncio.get_running_loop().time() - began, self._unanswered_s)
            self._unanswered_s -= waited
            if not self._limit.expired():
                self._limit.reschedule(before + waited)

    async def _until_told(self) -> None:
        """Wait for the controller's changes that name the other leaders."""
        backoff = Backoff(FIRST_BACKOFF_S, FIRST_BACKOFF_S)
        while any(len(led.core.replicas) > 1 for led in self._leading.led.values()):  # noqa: ASYNC110
            await asyncio.sleep(backoff.next())
