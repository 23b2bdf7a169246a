"""A coordinator partition with a clock and a log of its own, and the scripts that drive it.

A script is a text of commands, each followed by `----`, what came out, and an empty line; `#` begins a
comment:

    join a protocols=range,roundrobin
    ----
    a joins: MEMBER_ID_REQUIRED, id a1

A person is called by a name; the n-th member id it is given is the name and n. The last generation and member
id a person was given are what it uses next, unless the command says otherwise. `REWRITE=1` in the environment
writes what came out into the scripts: read the difference before you believe it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records.header import NO_PRODUCER_ID
from kafka_client.wire.message import Message
from kafka_client.wire.messages.heartbeat import HeartbeatRequest
from kafka_client.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_client.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from logd.groups import (
    Answer,
    CoordinatorRecord,
    GroupSettings,
    GroupShard,
    Joining,
    LogEntry,
    Producing,
    Stored,
    TransactionEnd,
)
from logd.groups.records import OffsetRecord
from tests.support.scripts import check_script, milliseconds

Options = dict[str, str]


class ListLog:
    """A log in memory; the next append fails with `failure` if that is set."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.failure: ErrorCode | None = None

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        return self._append(records, NO_PRODUCER_ID)

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        return self._append(records, producing.producer_id)

    def _append(self, records: Sequence[CoordinatorRecord], producer_id: int) -> int:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise KafkaError(failure)
        first = len(self.entries)
        self.entries += [Stored(first + at, record, producer_id) for at, record in enumerate(records)]
        return first


class Person:
    """A client with the member id and generation of its last responses."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids = 0
        self.member_id = ""
        self.generation = -1
        self.instance: str | None = None


class Script:
    """A runner of commands against one shard, which prints their results."""

    def __init__(self) -> None:
        self.settings = {"group_initial_rebalance_delay_ms": 0}
        self.log = ListLog()
        self.now_ms = 0
        self.people: dict[str, Person] = {}
        self.out: list[str] = []
        self.shown = 0
        self.shard = GroupShard(self.log, GroupSettings(**self.settings))

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.out = []
        getattr(self, f"do_{name}")(plain, options)
        return self.out or ["(nothing)"]

    # What the world does

    def do_config(self, _: list[str], options: Options) -> None:
        self.settings.update((key, int(value)) for key, value in options.items())
        self.do_restart([], {})

    def do_restart(self, _: list[str], options: Options) -> None:
        self.shard = GroupShard(self.log, GroupSettings(**self.settings))
        for entry in self.log.entries:
            self.shard.load(entry)
        self.shard.loaded(self.now_ms)

    def do_unload(self, _: list[str], options: Options) -> None:
        self.hear(self.shard.unload(self.now_ms))

    def do_fail(self, plain: list[str], options: Options) -> None:
        self.log.failure = ErrorCode[plain[0]]

    def do_wait(self, plain: list[str], options: Options) -> None:
        """Let time pass, with a stop wherever the shard wants to be woken."""
        until = self.now_ms + milliseconds(plain[0])
        while (next_ms := self.shard.next_deadline_ms) is not None and next_ms <= until:
            self.now_ms = max(self.now_ms, next_ms)
            self.hear(self.shard.tick(self.now_ms))
        self.now_ms = until

    def do_expire(self, _: list[str], options: Options) -> None:
        self.shard.expire(self.now_ms)

    def do_deleted(self, plain: list[str], options: Options) -> None:
        self.shard.topics_deleted(plain, self.now_ms)

    def do_log(self, _: list[str], options: Options) -> None:
        """Print the records appended since the last `log`."""
        self.out += [told_entry(entry) for entry in self.log.entries[self.shown :]]
        self.shown = len(self.log.entries)

    # What people do

    def do_join(self, plain: list[str], options: Options) -> None:
        person = self.person(plain[0], options)
        names = options.get("protocols", "range").split(",")
        pairs = [name.partition(":")[::2] for name in names if name]
        request = JoinGroupRequest(
            group_id=options.get("group", "g"),
            session_timeout_ms=milliseconds(options.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(options.get("rebalance", "60s")),
            member_id=options.get("id", person.member_id),
            group_instance_id=person.instance,
            protocol_type=options.get("type", "test"),
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata.encode()) for name, metadata in pairs
            ],
        )
        joining = Joining(
            request=request,
            version=int(options.get("v", "9")),
            client_id=person.name,
            client_host="/host",
            new_member_id=f"{person.name}{person.ids + 1}",
            waiter=(person, "joins"),
        )
        self.hear(self.shard.join(joining, self.now_ms))

    def do_sync(self, plain: list[str], options: Options) -> None:
        person = self.person(plain[0], options)
        pairs = [pair.split(":") for pair in options.get("assign", "").split(",") if pair]
        request = SyncGroupRequest(
            group_id=options.get("group", "g"),
            generation_id=int(options.get("gen", person.generation)),
            member_id=options.get("id", person.member_id),
            group_instance_id=person.instance,
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self.people[name].member_id, assignment=what.encode())
                for name, what in pairs
            ],
        )
        self.hear(self.shard.sync(request, (person, "syncs"), self.now_ms))

    def do_heartbeat(self, plain: list[str], options: Options) -> None:
        for name in plain:
            person = self.person(name, options)
            request = HeartbeatRequest(
                group_id=options.get("group", "g"),
                generation_id=int(options.get("gen", person.generation)),
                member_id=options.get("id", person.member_id),
                group_instance_id=person.instance,
            )
            response = self.shard.heartbeat(request, self.now_ms)
            self.out.append(f"{name}: {error_name(response.error_code)}")

    def do_leave(self, plain: list[str], options: Options) -> None:
        members = [
            MemberIdentity(member_id=options.get("id", person.member_id), group_instance_id=person.instance)
            for person in (self.person(name, options) for name in plain)
        ]
        request = LeaveGroupRequest(group_id=options.get("group", "g"), members=members)
        self.hear(self.shard.leave(request, (self.people[plain[0]], "leaves"), self.now_ms))

    def do_commit(self, plain: list[str], options: Options) -> None:
        """`commit a t-0:5 t-1:7`, by a member; `commit - t-0:5 group=x` without membership."""
        person = Person("-") if plain[0] == "-" else self.person(plain[0], options)
        partitions: dict[str, list[OffsetCommitRequestPartition]] = {}
        for word in plain[1:]:
            where, offset = word.split(":")
            topic, index = where.rsplit("-", 1)
            partition = OffsetCommitRequestPartition(
                partition_index=int(index),
                committed_offset=int(offset),
                committed_metadata=options.get("metadata"),
            )
            partitions.setdefault(topic, []).append(partition)
        request = OffsetCommitRequest(
            group_id=options.get("group", "g"),
            generation_id_or_member_epoch=int(options.get("gen", person.generation)),
            member_id=options.get("id", person.member_id),
            group_instance_id=person.instance,
            retention_time_ms=milliseconds(options["retention"]) if "retention" in options else -1,
            topics=[
                OffsetCommitRequestTopic(name=name, partitions=some) for name, some in partitions.items()
            ],
        )
        response = self.shard.commit(request, int(options.get("v", "9")), self.now_ms)
        self.out += [
            f"{topic.name}-{partition.partition_index}: {error_name(partition.error_code)}"
            for topic in response.topics
            for partition in topic.partitions
        ]

    def do_txn(self, plain: list[str], options: Options) -> None:
        """`txn 7 t-0:5`: producer 7 commits in its transaction, for `by=a` or without membership."""
        person = self.people[options["by"]] if "by" in options else Person("-")
        request = TxnOffsetCommitRequest(
            transactional_id=f"txn-{plain[0]}",
            group_id=options.get("group", "g"),
            producer_id=int(plain[0]),
            generation_id=int(options.get("gen", person.generation)),
            member_id=options.get("id", person.member_id),
            group_instance_id=options.get("instance", person.instance),
        )
        for word in plain[1:]:
            where, offset = word.split(":")
            topic, index = where.rsplit("-", 1)
            partition = TxnOffsetCommitRequestPartition(
                partition_index=int(index),
                committed_offset=int(offset),
                committed_metadata=options.get("metadata"),
            )
            request.topics.append(TxnOffsetCommitRequestTopic(name=topic, partitions=[partition]))
        response = self.shard.commit_in_transaction(request, int(options.get("v", "5")), self.now_ms)
        self.out += [
            f"{topic.name}-{partition.partition_index}: {error_name(partition.error_code)}"
            for topic in response.topics
            for partition in topic.partitions
        ]

    def do_end(self, plain: list[str], options: Options) -> None:
        """`end 7 commit` or `end 7 abort`: the marker is written."""
        end = TransactionEnd(int(plain[0]), committed=plain[1] == "commit")
        self.log.entries.append(end)
        self.shard.end_transaction(*end)

    def do_fetch(self, plain: list[str], options: Options) -> None:
        topics = None
        if plain:
            places = [word.rsplit("-", 1) for word in plain]
            topics = [
                OffsetFetchRequestTopics(name=name, partition_indexes=[int(index)]) for name, index in places
            ]
        response = self.shard.fetch(
            OffsetFetchRequestGroup(group_id=options.get("group", "g"), topics=topics),
            require_stable="stable" in options,
        )
        self.out += [
            f"{topic.name}-{partition.partition_index}: {partition.committed_offset}"
            + (f" {error_name(partition.error_code)}" if partition.error_code else "")
            + (f" {partition.metadata!r}" if partition.metadata else "")
            for topic in response.topics
            for partition in topic.partitions
        ]

    def do_forget(self, plain: list[str], options: Options) -> None:
        places = [word.rsplit("-", 1) for word in plain]
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=int(index))]
            )
            for name, index in places
        ]
        request = OffsetDeleteRequest(group_id=options.get("group", "g"), topics=topics)
        response = self.shard.delete_offsets(request, self.now_ms)
        if response.error_code:
            self.out.append(error_name(response.error_code))
        self.out += [
            f"{topic.name}-{partition.partition_index}: {error_name(partition.error_code)}"
            for topic in response.topics
            for partition in topic.partitions
        ]

    def do_describe(self, plain: list[str], options: Options) -> None:
        group = self.shard.describe(plain[0] if plain else "g", int(options.get("v", "6")))
        error = f" {error_name(group.error_code)}" if group.error_code else ""
        self.out.append(f"{group.group_state} {group.protocol_type!r} {group.protocol_data!r}{error}")
        self.out += [
            f"  {member.member_id} {member.client_id}@{member.client_host}"
            f" {member.member_metadata.decode()!r} {member.member_assignment.decode()!r}"
            for member in group.members
        ]

    def do_list(self, _: list[str], options: Options) -> None:
        states = options["states"].split(",") if "states" in options else []
        types = options["types"].split(",") if "types" in options else []
        for group in self.shard.matching(ListGroupsRequest(states_filter=states, types_filter=types)):
            self.out.append(
                f"{group.group_id}: {group.group_state} {group.group_type} {group.protocol_type!r}"
            )

    def do_delete(self, plain: list[str], options: Options) -> None:
        for group_id in plain:
            self.out.append(f"{group_id}: {error_name(self.shard.delete(group_id, self.now_ms).error_code)}")

    # Telling

    def person(self, name: str, options: Options) -> Person:
        person = self.people.setdefault(name, Person(name))
        if "instance" in options:
            person.instance = options["instance"]
        if options.get("id") == "new":
            options["id"] = ""
        return person

    def hear(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            waiter: Any = answer.waiter
            person, doing = waiter
            self.out.append(f"{person.name} {doing}: {self.tell(person, answer.response)}")

    def tell(self, person: Person, response: Message) -> str:
        if isinstance(response, JoinGroupResponse):
            return told_join(person, response)
        if isinstance(response, SyncGroupResponse):
            if response.error_code:
                return error_name(response.error_code)
            return f"{response.protocol_name} {response.assignment!r}"
        assert isinstance(response, LeaveGroupResponse)
        if response.error_code:
            return error_name(response.error_code)
        return ", ".join(
            f"{member.member_id or member.group_instance_id} {error_name(member.error_code)}"
            for member in response.members
        )


def told_join(person: Person, response: JoinGroupResponse) -> str:
    error = response.error_code
    if error in (0, ErrorCode.MEMBER_ID_REQUIRED) and response.member_id != person.member_id:
        person.member_id = response.member_id
        person.ids += 1
    if error:
        suffix = f", id {response.member_id}" if error == ErrorCode.MEMBER_ID_REQUIRED else ""
        return error_name(error) + suffix
    person.generation = response.generation_id
    members = ", ".join(f"{member.member_id} {member.metadata.decode()!r}" for member in response.members)
    facts = [
        f"{response.member_id} in generation {response.generation_id}",
        f"{response.protocol_name}",
        f"leader {response.leader}",
        f"members {members}" if members else "",
        "skip assignment" if response.skip_assignment else "",
    ]
    return ", ".join(filter(None, facts))


def told_entry(entry: LogEntry) -> str:
    if isinstance(entry, TransactionEnd):
        return f"producer {entry.producer_id} {'commits' if entry.committed else 'aborts'}"
    writer = "" if entry.producer_id == NO_PRODUCER_ID else f", by producer {entry.producer_id}"
    return told_record(entry.record) + writer


def told_record(record: CoordinatorRecord) -> str:
    value: Any = record.value
    if isinstance(record, OffsetRecord):
        where = f"{record.key.group} {record.key.topic}-{record.key.partition}"
        return f"{where} = {value.offset} at {value.commit_timestamp}" if value else f"{where} gone"
    if value is None:
        return f"{record.key.group} gone"
    members = " ".join(f"{member.member_id}={member.assignment.decode()!r}" for member in value.members)
    return f"{record.key.group} generation {value.generation} {value.protocol} {members}".rstrip()


def error_name(code: int) -> str:
    return ErrorCode(code).name if code else "ok"


@pytest.fixture
def script_checker() -> Callable[[Path], None]:
    return lambda path: check_script(path, Script().run)


@pytest.fixture
def script() -> Script:
    return Script()
