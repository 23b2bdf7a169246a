"""A classic group in memory: its members, generation and state, and its invariants.

It makes no decisions about time or the log: `rebalance`, `join`, `sync` and `leave` do, and call its methods.
"""

from __future__ import annotations

from collections import Counter

from kafka_client.errors import ErrorCode, MalformedMessage
from kafka_client.wire.messages.join_group import JoinGroupResponseMember
from logd.groups.member import Member, Protocols, Waiter
from logd.groups.records import GroupMetadataKey, GroupMetadataValue, GroupRecord, MemberMetadata
from logd.groups.states import PREVIOUS_STATES, GroupState
from logd.groups.subscription import CONSUMER, subscribed_topics


class Group:
    """A consumer group of the classic protocol.

    Invariants: a member id is in `members` or in `pending_joins`, never in both. Each instance id maps to a
    member. There is a leader exactly if there are members. `joining_count` is the number of members whose
    JoinGroup waits.
    """

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.log_fields = {"group": group_id}
        """Fields for the log's messages about the group."""
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.pending_joins: set[str] = set()
        """Member ids assigned with MEMBER_ID_REQUIRED whose members have not joined yet (KIP-394)."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.new_member_added = False
        """True if a member has joined during the initial rebalance delay, which then is extended (KIP-134).
        """
        self.initial_delay_ms = 0
        self.initial_delay_left_ms = 0
        self.subscribed: frozenset[str] | None = None
        """The topics of this generation's subscriptions; None if unknown."""
        self.joining_count = 0
        self._support: Counter[str] = Counter()

    # State

    def become(self, state: GroupState, now_ms: int) -> None:
        """Change the state; the transition must be in the table in `states`."""
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} cannot become {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance may start now."""
        return self.state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def begin_generation(self, now_ms: int) -> None:
        """Start the next generation from the members that have joined, with a protocol; Empty without
        members.
        """
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.choose_protocol() if self.members else None
        self.subscribed = self._subscribed_topics()
        self.become(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    # Members

    def add(self, member: Member, joining: Waiter | None = None) -> None:
        """Add a member; the first one becomes leader. `joining` is its waiting JoinGroup, if any."""
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending_joins.discard(member.member_id)
        self.set_joining(member, joining)

    def remove(self, member_id: str) -> None:
        """Remove a member, or a pending member id; if it was the leader, the member with the longest
        membership leads.
        """
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self.set_joining(member, None)
        self._count(member.protocols, -1)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, member: Member, new_member_id: str) -> None:
        """Give a static member a new member id, after its instance came back; nothing else changes
        (KIP-345).
        """
        assert member.instance_id is not None
        del self.members[member.member_id]
        self.pending_syncs.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = new_member_id
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[member.instance_id] = new_member_id

    def update(
        self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """Replace the member's protocols and timeouts by those of its latest JoinGroup."""
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def set_joining(self, member: Member, waiter: Waiter | None) -> None:
        """Set or clear the member's waiting JoinGroup."""
        self.joining_count += (waiter is not None) - (member.joining is not None)
        member.joining = waiter

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return NONE for a current member, else the error of its request."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    @property
    def all_joined(self) -> bool:
        """True if the JoinGroup of every member waits, and no member id is pending."""
        return self.joining_count == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined, else make the first joined member leader; return False if nobody
        joined.
        """
        if self.leader is None:
            return False
        if self.members[self.leader].joining is None:
            joined = (member.member_id for member in self.members.values() if member.joining is not None)
            new_leader = next(joined, None)
            if new_leader is None:
                return False
            self.leader = new_leader
        return True

    # Protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return True if a member with these protocols fits into the group: at least one is supported by
        all.
        """
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(self._support[name] == len(self.members) for name, _ in protocols)

    def choose_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support.

        On a tie, the vote of the member with the longest membership decides.
        """
        candidates = {name for name, count in self._support.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])

    @property
    def is_consumer_group(self) -> bool:
        """True if the group's protocol type is that of consumers."""
        return self.protocol_type == CONSUMER

    def subscribes_to(self, topic: str) -> bool:
        """Return True if the members may consume `topic`.

        A consumer group whose subscriptions cannot be read counts as subscribed to all topics.
        """
        return self.is_consumer_group if self.subscribed is None else topic in self.subscribed

    def member_list(self) -> list[JoinGroupResponseMember]:
        """Return the members with their metadata, for the leader that assigns partitions."""
        assert self.protocol is not None
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    def _count(self, protocols: Protocols, by: int) -> None:
        for name in {name for name, _ in protocols}:
            self._support[name] += by
            if not self._support[name]:
                del self._support[name]

    # The log

    def to_record(self, assignments: dict[str, bytes]) -> GroupRecord:
        """Return the record of the generation with these assignments; every member must have one."""
        members = [
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=b"" if self.protocol is None else member.metadata(self.protocol),
                assignment=assignments[member.member_id],
            )
            for member in self.members.values()
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=members,
        )
        return GroupRecord(GroupMetadataKey(group=self.group_id), value)

    def empty_record(self) -> GroupRecord:
        """Return the record of a group before its first generation."""
        value = GroupMetadataValue(current_state_timestamp=self.state_since_ms)
        return GroupRecord(GroupMetadataKey(group=self.group_id), value)

    def take_assignments(self, value: GroupMetadataValue) -> None:
        """Apply a stored generation: set its members' assignments, and add members that are not in the group
        yet.
        """
        for stored in value.members:
            member = self.members.get(stored.member_id)
            if member is None:
                member = _restored_member(stored, value.protocol or "")
                self.add(member)
            member.assignment = stored.assignment

    @classmethod
    def restored(cls, group_id: str, value: GroupMetadataValue) -> Group:
        """Return the group of a stored record: Stable, or Empty without members; no request waits."""
        group = cls(group_id, value.current_state_timestamp)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.take_assignments(value)
        if value.leader in group.members:
            group.leader = value.leader
        if group.members:
            group.state = group.previous_state = GroupState.STABLE
        group.subscribed = group._subscribed_topics()
        return group

    def _subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if self.protocol is None:
            return None if self.members else frozenset()
        try:
            return subscribed_topics(member.metadata(self.protocol) for member in self.members.values())
        except MalformedMessage:
            return None


def _restored_member(stored: MemberMetadata, protocol: str) -> Member:
    rebalance_timeout = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
    return Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=rebalance_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols=[(protocol, stored.subscription)],
    )
