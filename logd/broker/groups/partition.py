"""A coordinator partition of groups: the core, its log, its timer and the waiting requests.

Everything runs in the event loop; the core's answers complete the futures that requests wait for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar, cast

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.message import Message
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from logd.broker.coordinators.coordinator_log import Loader
from logd.broker.groups.log import GroupLog
from logd.groups import Answer, GroupSettings, GroupShard, Joining, TransactionEnd

if TYPE_CHECKING:
    from logd.storage import Appended

EARLIEST_WAKE_S = 0.001

R = TypeVar("R")

log = logging.getLogger("logd.broker")


class GroupPartition:
    """`shard` is the core; it may be used once `loaded`.

    `broke` is called with an error of the timer's work: the core's state may differ from the log then.
    `deposed` is called when another broker turns out to lead the partition.
    """

    def __init__(
        self,
        index: int,
        group_log: GroupLog,
        settings: GroupSettings,
        now_ms: Callable[[], int],
        broke: Callable[[GroupPartition, Exception], None],
        deposed: Callable[[GroupPartition], None],
    ) -> None:
        self.index = index
        self._log = group_log
        group_log.on_deposed(lambda: deposed(self))
        self.shard = GroupShard(group_log, settings)
        self.now_ms = now_ms
        self._broke = broke
        self._loader = Loader(
            group_log.read,
            self.shard.load,
            is_empty=lambda: group_log.is_empty,
            on_loaded=self._loaded,
        )
        self._deleted_topics: frozenset[str] = frozenset()
        self._ended_transactions: list[TransactionEnd] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_ms = 0

    @property
    def loaded(self) -> bool:
        """True if the core is what the log says."""
        return self._loader.is_loaded

    async def load(self) -> None:
        """Replay the partition, in slices. KafkaError(KAFKA_STORAGE_ERROR) when it cannot be read."""
        count = await self._loader.load()
        if count is not None:
            groups = len(self.shard.store.groups)
            log.info("groups of partition %d loaded: %d records, %d groups", self.index, count, groups)

    def load_if_empty(self) -> bool:
        """Mark a partition without records as loaded. Return True if the partition is ready."""
        return self._loader.load_if_empty()

    def _loaded(self) -> None:
        # Markers written while the log was read may stand behind the end of the reading. One that was read as
        # well is applied twice, which does no harm: no other transaction can have begun here in between.
        for ended in self._ended_transactions:
            self.shard.end_transaction(*ended)
        self.shard.loaded(self.now_ms())
        self.topics_deleted(self._deleted_topics)
        self._arm()

    async def flushed(self) -> None:
        """Return once what was appended so far may be acknowledged and shown: at once, but for
        flush.messages, flush.ms and replicas. KafkaError: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE.
        """
        waiting = self._log.flushed()
        if waiting is not None:
            try:
                await waiting
            except KafkaError as failure:
                if failure.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    raise
                raise KafkaError(ErrorCode.NOT_COORDINATOR, failure.message) from failure

    def topics_deleted(self, topics: frozenset[str]) -> None:
        """Forget offsets of these topics, now or once they are loaded."""
        if self.loaded:
            self.shard.topics_deleted(topics, self.now_ms())
        else:
            self._deleted_topics |= topics

    def transaction_ended(self, producer_id: int, committed: bool, marker: Appended) -> None:
        """Commit or drop the transaction's offsets, now or once they are loaded: the marker is in the log."""
        self._log.marked(marker)
        if self.loaded:
            self.shard.end_transaction(producer_id, committed)
        else:
            self._ended_transactions.append(TransactionEnd(producer_id, committed))

    def close(self) -> None:
        """Stop coordinating; waiting requests are answered that the client look for the coordinator again."""
        self._loader.close()
        self._log.close()
        if self._timer is not None:
            self._timer.cancel()
        self._deliver(self.shard.unload(self.now_ms()))

    # Requests that wait

    async def join(
        self, request: JoinGroupRequest, version: int, client_id: str, host: str, new_id: str
    ) -> JoinGroupResponse:
        """Answer JoinGroup. A member without an id gets `new_id`."""
        waiter: asyncio.Future[JoinGroupResponse] = self._loop.create_future()
        joining = Joining(
            request=request,
            version=version,
            client_id=client_id,
            client_host=host,
            new_member_id=new_id,
            waiter=waiter,
        )
        before = self._log.last
        self._deliver(self.shard.join(joining, self.now_ms()))
        if self._log.last is not before:  # that a static member's process is another one now
            await self.flushed()
        return await self._answered(waiter)

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Answer SyncGroup. Raises KafkaError as `flushed` does."""
        waiter: asyncio.Future[SyncGroupResponse] = self._loop.create_future()
        self._deliver(self.shard.sync(request, waiter, self.now_ms()))
        response = await self._answered(waiter)
        await self.flushed()
        return response

    async def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Answer LeaveGroup."""
        waiter: asyncio.Future[LeaveGroupResponse] = self._loop.create_future()
        self._deliver(self.shard.leave(request, waiter, self.now_ms()))
        return await self._answered(waiter)

    async def _answered(self, waiter: asyncio.Future[R]) -> R:
        """Wait for the core's answer. Raises KafkaError(NOT_COORDINATOR) where another broker may coordinate
        the group by then.
        """
        response = await waiter
        self._log.check_lease()
        return response

    def _deliver(self, answers: Iterable[Answer]) -> None:
        for waiter, response in answers:
            future = cast("asyncio.Future[Message]", waiter)
            # A client that closed its connection took its request with it.
            if not future.done():
                future.set_result(response)
        if self.loaded:
            self._arm()

    # Time

    def clock_set(self, by_ms: int) -> None:
        """See `GroupShard.clock_set`."""
        self.shard.clock_set(by_ms)
        self._arm(again=True)

    def _arm(self, *, again: bool = False) -> None:
        """Have the timer go off at the next deadline, or earlier, since heartbeats mostly move it away."""
        next_ms = self.shard.next_deadline_ms
        if next_ms is None:
            return
        if self._timer is not None and self._wakes_ms <= next_ms and not again:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_ms = next_ms
        delay_s = max((next_ms - self.now_ms()) / 1000, EARLIEST_WAKE_S)
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        try:
            self._deliver(self.shard.tick(self.now_ms()))
        except Exception as error:
            self._broke(self, error)
