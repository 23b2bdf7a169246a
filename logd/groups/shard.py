"""One partition's coordinator: what the shell calls, nothing behind it knows sockets, threads or clocks.

A request that may have to wait comes with a `waiter`, any object of the shell's; sooner or later an `Answer`
with it comes out, of that call or of a later one. Records are appended, by the log handed in, before anything
that depends on them is answered.

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
        """Replay one entry of the log; `loaded` follows after the last."""
        self.store.load(entry)

    def loaded(self, now_ms: int) -> None:
        """The log is read: sessions of the members found in it begin now."""
        self.store.loaded(now_ms)
        for group in self.store.groups.values():
            for member in group.members.values():
                self._rebalancer.heard_from(group, member, now_ms)
            if len(group.members) > self._settings.group_max_size:
                self._rebalancer.prepare(group, "more members than group.max.size", now_ms)

    def unload(self, now_ms: int) -> list[Answer]:
        """This node is not the coordinator any more: waiting requests are answered NOT_COORDINATOR."""
        for group in self.store.groups.values():
            group.become(GroupState.DEAD, now_ms)
            for member in group.members.values():
                response = refused_join(ErrorCode.NOT_COORDINATOR, member.member_id)
                self._rebalancer.answer_join(group, member, response)
                self._rebalancer.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
        self.store.groups.clear()
        return self._take_answers()

    def tick(self, now_ms: int) -> list[Answer]:
        """Do what is due."""
        # One by one: what the first does may move the next, as when it answers a request that was waiting.
        for key in self._rebalancer.deadlines.due(now_ms):
            self._rebalancer.deadline_passed(key, now_ms)
        return self._take_answers()

    def clock_set(self, by_ms: int) -> None:
        """The clock was set, by so much: sessions and rebalances last as long as they would have."""
        self._rebalancer.deadlines.shift(by_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `tick` at the latest; None if nothing is awaited."""
        return self._rebalancer.deadlines.next_ms

    # Requests that may wait

    def join(self, joining: Joining, now_ms: int) -> list[Answer]:
        """JoinGroup."""
        self._joins.join(joining, now_ms)
        return self._take_answers()

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> list[Answer]:
        """SyncGroup."""
        self._syncs.sync(request, waiter, now_ms)
        return self._take_answers()

    def leave(self, request: LeaveGroupRequest, waiter: Waiter, now_ms: int) -> list[Answer]:
        """LeaveGroup, with the members in `request.members` whatever the version."""
        self._leaves.leave(request, waiter, now_ms)
        return self._take_answers()

    # Requests answered at once

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
        """Heartbeat."""
        return self._syncs.heartbeat(request, now_ms)

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> OffsetCommitResponse:
        """OffsetCommit, every topic with its name."""
        return self._offsets.commit(request, version, now_ms)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> TxnOffsetCommitResponse:
        """TxnOffsetCommit."""
        return self._txn_offsets.commit(request, version, now_ms)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """The marker that ends the producer's transaction is in this partition's log."""
        self.store.end_transaction(producer_id, committed)

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch for one group, every topic with its name."""
        return self._offsets.fetch(request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, now_ms: int) -> OffsetDeleteResponse:
        """OffsetDelete."""
        return self._offsets.delete(request, now_ms)

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """One group of DescribeGroups."""
        return self._admin.describe(group_id, version)

    def matching(self, request: ListGroupsRequest) -> Iterator[ListedGroup]:
        """This partition's part of ListGroups."""
        return self._admin.matching(request)

    def delete(self, group_id: str, now_ms: int) -> DeletableGroupResult:
        """One group of DeleteGroups."""
        return self._admin.delete(group_id, now_ms)

    # Housekeeping

    def topics_deleted(self, topics: Iterable[str], now_ms: int) -> ErrorCode:
        """Forget the offsets of these topics."""
        return self._admin.topics_deleted(topics, now_ms)

    def expire(self, now_ms: int) -> ErrorCode:
        """Forget offsets past their retention; to be called every offsets.retention.check.interval.ms."""
        return self._admin.expire(now_ms)

    def _take_answers(self) -> list[Answer]:
        answers = self._rebalancer.answers
        self._rebalancer.answers = []
        return answers
