"""Changes of in-sync replicas that leaders here propose to the controller (AlterPartition, KIP-497).

One request is under way at a time, and takes along all proposals made meanwhile. A proposal without an answer
is sent again: it may hold or not, and the leader allows for both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from kafka_client.backoff import Backoff
from kafka_client.errors import ErrorCode, MillstreamError, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionRequestTopic,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    BrokerState,
)
from logd.broker.cluster.replication.led_partition import LedPartition
from logd.broker.work.periodic import report
from logd.replication import Proposal

BACKOFF_S: Final = (0.05, 1.0)
LANE: Final = "alter-partition"

log = logging.getLogger("logd.replication")


class AskController(Protocol):
    """A function that asks the controller; MillstreamError if there is none, or it does not answer."""

    async def __call__(self, message: Message, *, lane: str) -> AlterPartitionResponse: ...


class _Sent(NamedTuple):
    led: LedPartition
    proposal: Proposal
    size: int
    """The size of the ISR before: the change may be applied before its answer comes."""


class IsrChanges:
    """`own` are this broker's id and epoch; `look` is called with a partition whose ISR or high watermark may
    have changed.
    """

    def __init__(
        self,
        ask: AskController,
        *,
        own: Callable[[], tuple[int, int]],
        now_ms: Callable[[], int],
        look: Callable[[LedPartition], None],
    ) -> None:
        self._ask = ask
        self._own = own
        self._now_ms = now_ms
        self._look = look
        self.shrinks = self.expansions = self.refusals = 0
        """How many ISRs became smaller or larger, and how many changes the controller refused."""
        self._waiting: dict[TopicPartition, _Sent] = {}
        self._news = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="isr changes")

    def propose(self, led: LedPartition, proposal: Proposal) -> None:
        """Have it sent; a proposal that still waits for the same partition is of an older leader."""
        self._waiting[led.tp] = _Sent(led, proposal, len(led.core.isr))
        self._news.set()

    async def stop(self) -> None:
        """Send nothing any more."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def statistics(self) -> dict[str, int]:
        """Return the count of partitions whose new ISR is to be sent; the bound is the partitions led."""
        return {"waiting": len(self._waiting)}

    async def _run(self) -> None:
        backoff = Backoff(*BACKOFF_S)
        last_error = ""
        while True:
            await self._news.wait()
            self._news.clear()
            sent, self._waiting = self._waiting, {}
            try:
                response = await self._ask(self._request(sent), lane=LANE)
                if response.error_code:
                    raise error_for(response.error_code, "AlterPartition")
                self._take(sent, response)
                if self._waiting.keys() & sent.keys():  # refused for something that passes
                    await asyncio.sleep(backoff.next())
                else:
                    backoff.reset()
                    last_error = ""
            except MillstreamError as error:
                if str(error) != last_error:  # once for all the time that there is no controller
                    last_error = str(error)
                    log.info("%d ISR changes are not answered: %s", len(sent), last_error)
                self._unanswered(sent)
                await asyncio.sleep(backoff.next())
            except Exception as error:
                report("ISR changes", error)
                self._unanswered(sent)
                await asyncio.sleep(backoff.next())

    def _request(self, sent: dict[TopicPartition, _Sent]) -> AlterPartitionRequest:
        topics: dict[bytes, AlterPartitionRequestTopic] = {}
        for tp, (led, proposal, _) in sent.items():
            topic_id = led.partition.topic_id
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = AlterPartitionRequestTopic(topic_id=topic_id, partitions=[])
            topic.partitions.append(
                AlterPartitionRequestPartition(
                    partition_index=tp.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=id_, broker_epoch=e) for id_, e in proposal.isr
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        broker, epoch = self._own()
        return AlterPartitionRequest(broker_id=broker, broker_epoch=epoch, topics=list(topics.values()))

    def _take(self, sent: dict[TopicPartition, _Sent], response: AlterPartitionResponse) -> None:
        sent_changes = {(each.led.partition.topic_id, tp.partition): each for tp, each in sent.items()}
        for topic in response.topics:
            for answer in topic.partitions:
                each = sent_changes.pop((topic.topic_id, answer.partition_index), None)
                if each is not None:
                    self._take_one(each, answer)
        self._unanswered({each.led.tp: each for each in sent_changes.values()})

    def _take_one(self, sent: _Sent, answer: AlterPartitionResponsePartition) -> None:
        led, proposal, size = sent
        if answer.error_code:
            log.info("%s: its ISR %s is refused: %s", led.tp, proposal.broker_ids, name_of(answer.error_code))
            self.refusals += 1
            led.core.refused(proposal, answer.error_code, self._now_ms())
        else:
            led.core.accepted(
                proposal,
                tuple(answer.isr),
                leader_epoch=answer.leader_epoch,
                partition_epoch=answer.partition_epoch,
                now_ms=self._now_ms(),
            )
            self.shrinks += len(answer.isr) < size
            self.expansions += len(answer.isr) > size
            log.info("%s: in sync are %s", led.tp, ", ".join(map(str, led.core.isr)))
        self._look(led)

    def _unanswered(self, sent: dict[TopicPartition, _Sent]) -> None:
        for led, proposal, _ in sent.values():
            led.core.unanswered(proposal)
            self._look(led)


def name_of(code: int) -> str:
    """Return an error's name, or its number if the code is unknown."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
