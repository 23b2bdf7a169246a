"""The low watermark of a partition led here: the smallest log start offset of its replicas that are alive.

What is before it is gone everywhere. DeleteRecords waits for it, since a follower that is elected must not
bring back what was deleted (KIP-107).
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.broker.cluster.replication.led_partition import LedPartition


class LowWatermarks:
    """`alive` are the brokers there are. False while nobody waits.

    `look` is to be called when a follower has told where its log begins, and for all that are `awaited` when
    a broker has come or gone.
    """

    def __init__(self, alive: Container[int]) -> None:
        self._alive = alive
        self._waiting: dict[TopicPartition, dict[asyncio.Future[int], int]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def awaited(self) -> tuple[TopicPartition, ...]:
        """The partitions somebody waits for."""
        return tuple(self._waiting)

    def of(self, led: LedPartition) -> int:
        """Return the low watermark, or -1 as long as a follower has not reported its own."""
        lowest = led.partition.log_start_offset
        for follower in led.core.followers:
            if follower.log_start_offset < lowest and follower.broker_id in self._alive:
                lowest = follower.log_start_offset
        return lowest

    def reach(self, led: LedPartition, offset: int) -> asyncio.Future[int]:
        """Return a future of the low watermark, done once it has reached ``offset``.

        The future fails with KafkaError(NOT_LEADER_OR_FOLLOWER) if the partition is led elsewhere by then.
        The caller cancels it when it waits no longer.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(led.tp, {})[future] = offset
        future.add_done_callback(lambda _: self._forget(led.tp, future))
        self.look(led)
        return future

    def look(self, led: LedPartition) -> None:
        """Complete the waiting futures; call it when the low watermark may have risen."""
        waiting = self._waiting.get(led.tp)
        if waiting is None:
            return
        low_watermark = self.of(led)
        for future, offset in waiting.items():
            if low_watermark >= offset and not future.done():
                future.set_result(low_watermark)

    def fail_waiting(self, tp: TopicPartition) -> None:
        """Fail the waiting futures of a partition that is not led here any more."""
        for future in self._waiting.get(tp, ()):
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{tp} is led elsewhere"))

    def _forget(self, tp: TopicPartition, future: asyncio.Future[int]) -> None:
        waiting = self._waiting[tp]
        del waiting[future]
        if not waiting:
            del self._waiting[tp]
