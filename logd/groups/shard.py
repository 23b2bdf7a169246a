"""The group coordinator of one partition, without sockets, threads or clocks.

A request that may have to wait comes with a `waiter`, any object of the caller. This call or a later one
returns an `Answer` with that waiter. Records are appended to the log before requests that depend on them are
answered.

    load(entry)... loaded() ──▶ join / sync / leave / tick ──▶ [Answer, ...]
                                 heartbeat / commit / fetch / ... ──▶ a response
                                 end_transaction: the log has the marker
    next_deadline_ms: when to call tick, if nothing else happens
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_groups import DeletableGroupResult
from kafka_client.wire.messages.describe_groups import DescribedGroup
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_client.wire.messages.leave_group import LeaveGroupRequest
from kafka_client.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from kafka_client.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafka_client.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafka_client.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from logd.groups.admin import AdminHandler
from logd.groups.join import JoinHandler, Joining
from logd.groups.leave import LeaveHandler
from logd.groups.member import Waiter
from logd.groups.offsets import OffsetHandler
from logd.groups.rebalance import Answer, Rebalancer, refused_join
from logd.groups.settings import GroupSettings
from logd.groups.states import GroupState
from logd.groups.store import GroupStore, LogEntry, RecordLog
from logd.groups.sync import SyncHandler
from logd.groups.txn_offsets import TxnOffsetHandler


class GroupShard:
    """The groups and offsets of one partition of `__consumer_offsets`."""

    def __init__(self, log: RecordLog, settings: GroupSettings) -> None:
        self.store = GroupStore(log)
        self._rebalancer = Rebalancer(self.store, settings)
        self._joins = JoinHandler(self._rebalancer)
        self._syncs = SyncHandler(self._rebalancer)
        self._leaves = LeaveHandler(self._rebalancer)
        self._offsets = OffsetHandler(self._rebalancer)
        self._txn_offsets = TxnOffsetHandler(self.store, settings)
        self._admin = AdminHandler(self.store, settings)
        self._settings = settings

    # Life

    def load(self, entry: LogEntry) -> None:
        """Replay one entry of the log; call `loaded` after the last."""
        self.store.load(entry)

    def loaded(self, now_ms: int) -> None:
        """End the replay of the log: sessions of the restored members start now."""
        self.store.loaded(now_ms)
        for group in self.store.groups.values():
            for member in group.members.values():
                self._rebalancer.renew_session(group, member, now_ms)
            if len(group.members) > self._settings.group_max_size:
                self._rebalancer.prepare(group, "more members than group.max.size", now_ms)

    def unload(self, now_ms: int) -> list[Answer]:
        """Answer all waiting requests with NOT_COORDINATOR: this broker no longer coordinates the
        partition.
        """
        for group in self.store.groups.values():
            group.become(GroupState.DEAD, now_ms)
            for member in group.members.values():
                response = refused_join(ErrorCode.NOT_COORDINATOR, member.member_id)
                self._rebalancer.answer_join(group, member, response)
                self._rebalancer.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
        self.store.groups.clear()
        return self._take_answers()

    def tick(self, now_ms: int) -> list[Answer]:
        """Handle all deadlines that have passed."""
        # One by one: handling one may move the next, for example by answering a waiting request.
        for key in self._rebalancer.deadlines.due(now_ms):
            self._rebalancer.deadline_passed(key, now_ms)
        return self._take_answers()

    def clock_set(self, by_ms: int) -> None:
        """Move all deadlines after the clock was set by ``by_ms``: sessions and rebalances keep their
        lengths.
        """
        self._rebalancer.deadlines.shift(by_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """The latest time of the next call to `tick`; None if there is no deadline."""
        return self._rebalancer.deadlines.next_ms

    # Requests that may wait

    def join(self, joining: Joining, now_ms: int) -> list[Answer]:
        """Handle JoinGroup."""
        self._joins.join(joining, now_ms)
        return self._take_answers()

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> list[Answer]:
        """Handle SyncGroup."""
        self._syncs.sync(request, waiter, now_ms)
        return self._take_answers()

    def leave(self, request: LeaveGroupRequest, waiter: Waiter, now_ms: int) -> list[Answer]:
        """Handle LeaveGroup; the members are in `request.members` in every version."""
        self._leaves.leave(request, waiter, now_ms)
        return self._take_answers()

    # Requests answered at once

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
        """Handle Heartbeat."""
        return self._syncs.heartbeat(request, now_ms)

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> OffsetCommitResponse:
        """Handle OffsetCommit; every topic must have its name."""
        return self._offsets.commit(request, version, now_ms)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> TxnOffsetCommitResponse:
        """Handle TxnOffsetCommit."""
        return self._txn_offsets.commit(request, version, now_ms)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Apply the marker in this partition's log that ends the producer's transaction."""
        self.store.end_transaction(producer_id, committed)

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """Handle OffsetFetch for one group; every topic must have its name."""
        return self._offsets.fetch(request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, now_ms: int) -> OffsetDeleteResponse:
        """Handle OffsetDelete."""
        return self._offsets.delete(request, now_ms)

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """Handle DescribeGroups for one group."""
        return self._admin.describe(group_id, version)

    def matching(self, request: ListGroupsRequest) -> Iterator[ListedGroup]:
        """Handle ListGroups for this partition."""
        return self._admin.matching(request)

    def delete(self, group_id: str, now_ms: int) -> DeletableGroupResult:
        """Handle DeleteGroups for one group."""
        return self._admin.delete(group_id, now_ms)

    # Housekeeping

    def topics_deleted(self, topics: Iterable[str], now_ms: int) -> ErrorCode:
        """Remove the offsets of these topics."""
        return self._admin.topics_deleted(topics, now_ms)

    def expire(self, now_ms: int) -> ErrorCode:
        """Remove offsets past their retention; call it every offsets.retention.check.interval.ms."""
        return self._admin.expire(now_ms)

    def _take_answers(self) -> list[Answer]:
        answers = self._rebalancer.answers
        self._rebalancer.answers = []
        return answers
