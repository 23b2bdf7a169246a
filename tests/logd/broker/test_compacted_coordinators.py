"""Coordinators that load from internal topics their own broker's cleaner has compacted.

`__consumer_offsets` and `__transaction_state` have small segments. They get repeated commits of offsets,
plain and in transactions, deleted groups, and transactions both ended and open. Then the cleaner compacts
what it can and the broker is killed. Afterwards every response to a client has to be as before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import Writer
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

pytestmark = deep

SETTINGS = {
    "offsets.topic.segment.bytes": 3_000,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.segment.bytes": 3_000,
    "transaction.state.log.num.partitions": 2,
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.delete.retention.ms": 0,
    "log.cleaner.dedupe.buffer.size": 2_000_000,
    "log.segment.delete.delay.ms": 10,
    "millstream.flush.interval.ms": 30,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_600_000,
}
GROUPS = tuple(f"group-{number}" for number in range(6))
DELETED = GROUPS[4:]
IDS = tuple(f"writer-{number}" for number in range(4))
ROUNDS = 40
INTERNAL = ("__consumer_offsets", "__transaction_state")


def commit(client: RawClient, group: str, offset: int) -> None:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset + index, committed_metadata=f"{group}@{offset}"
        )
        for index in range(2)
    ]
    topic_row = OffsetCommitRequestTopic(name="t", partitions=partitions)
    (topic,) = client.request(OffsetCommitRequest(group_id=group, topics=[topic_row]), 8).topics
    assert [partition.error_code for partition in topic.partitions] == [0, 0]


def fill(client: RawClient, number: int) -> None:
    """Commit every group's offsets and one transaction of every writer, with every third transaction
    aborted.
    """
    fill_plainly(client, number)
    for position, tid in enumerate(IDS):
        writer = Writer.begin(client, tid)
        writer.add_partition("t", position % 2)
        assert writer.produce("t", position % 2) == 0
        group = f"group-of-{tid}"
        writer.add_group(group)
        assert writer.commit_offsets(group, "t", {0: number, 1: number + 1}) == [0, 0]
        writer.end(commit=(number + position) % 3 != 0)


def fill_plainly(client: RawClient, number: int) -> None:
    """Commit every group's offsets."""
    for group in GROUPS:
        commit(client, group, number * 10)


def left_open(client: RawClient) -> list[Writer]:
    """Return transactions that are open, with pending offsets."""
    writers = [Writer.begin(client, tid) for tid in IDS[:2]]
    for index, writer in enumerate(writers):
        writer.add_partition("t", index)
        assert writer.produce("t", index) == 0
        writer.add_group(f"group-of-{writer.tid}")
        assert writer.commit_offsets(f"group-of-{writer.tid}", "t", {0: 7_000, 1: 7_001}) == [0, 0]
    return writers


def state(client: RawClient) -> dict[str, Any]:
    """Return what the coordinators describe of all groups and transactions."""
    facts_by_name: dict[str, Any] = {}
    for tid in IDS:
        wait_for(lambda tid=tid: described(client, tid).error_code != LOADING)  # type: ignore[misc]
        row = described(client, tid)
        topics = sorted((topic.topic, tuple(topic.partitions)) for topic in row.topics)
        facts = (row.transaction_state, row.producer_id, row.producer_epoch, row.transaction_timeout_ms)
        facts_by_name[tid] = (row.error_code, *facts, topics)
    for group in (*GROUPS, *(f"group-of-{tid}" for tid in IDS)):
        for stable in (False, True):
            wait_for(lambda group=group: fetched(client, group, False)[0] != LOADING)  # type: ignore[misc]
            facts_by_name[f"{group}, stable={stable}"] = fetched(client, group, stable)
    return facts_by_name


LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def described(client: RawClient, tid: str) -> Any:
    client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=[tid]), 6)
    return client.request(DescribeTransactionsRequest(transactional_ids=[tid]), 0).transaction_states[0]


def fetched(client: RawClient, group: str, stable: bool) -> tuple[int, list[Any]]:
    client.request(FindCoordinatorRequest(coordinator_keys=[group]), 6)
    request = OffsetFetchRequestGroup(group_id=group, topics=None)
    (answer,) = client.request(OffsetFetchRequest(groups=[request], require_stable=stable), 8).groups
    offsets = sorted(
        (topic.name, each.partition_index, each.committed_offset, each.metadata, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    )
    return answer.error_code, offsets


def compacted_to(logd: LogdProcess, name: str) -> int:
    offsets = re.findall(rf"compacted {name} up to offset (\d+)", logd.log)
    return int(offsets[-1]) if offsets else 0


def partitions() -> list[str]:
    return [f"{topic}-{index}" for topic in INTERNAL for index in range(2)]


def wait_until_compacted(logd: LogdProcess) -> None:
    """Wait until the cleaner has compacted all but the active segments."""
    for name in partitions():
        folder = logd.folder / "data" / name

        def is_done(folder: Path = folder, name: str = name) -> bool:
            active = max(int(path.stem) for path in folder.glob("*.log"))
            return compacted_to(logd, name) == active > 0

        wait_for(is_done)


def size(logd: LogdProcess, topic: str) -> int:
    return sum(path.stat().st_size for path in (logd.folder / "data").glob(f"{topic}-*/*.log"))


def test_everything_is_as_before(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {**SETTINGS, "log.cleaner.enable": "false"}) as logd:
        create_topic(logd, "t", partitions=2)
        with RawClient(logd.port) as client:
            wait_for(lambda: fetched(client, GROUPS[0], False)[0] == 0)  # the topic is made when asked for
            for number in range(ROUNDS):
                fill(client, number)
            for number in range(ROUNDS):  # aborted offsets get into segments that are cleaned
                fill_plainly(client, number)
            deletions = client.request(DeleteGroupsRequest(groups_names=list(DELETED)), 2).results
            assert [result.error_code for result in deletions] == [0] * len(DELETED)
            writers = left_open(client)
            before = state(client)
        full = {topic: size(logd, topic) for topic in INTERNAL}
        logd.kill()
        logd.overrides["log.cleaner.enable"] = "true"
        for life in range(2):
            logd.start()
            wait_until_compacted(logd)
            logd.kill()
            assert all(size(logd, topic) < full[topic] / 2 for topic in INTERNAL), "nothing was compacted"
            logd.start()
            with RawClient(logd.port) as client:
                assert state(client) == before, f"life {life}"
            logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            end(client, writers)
        assert "Traceback" not in logd.log


def end(client: RawClient, writers: list[Writer]) -> None:
    """End the open transactions and check that their offsets count, or do not."""
    state(client)  # everything is loaded
    offsets = fetched(client, f"group-of-{writers[1].tid}", False)
    for writer, is_committed in zip(writers, (True, False), strict=True):
        writer._replace(client=client).end(commit=is_committed)
    first, second = (f"group-of-{writer.tid}" for writer in writers)
    wait_for(lambda: [row[2] for row in fetched(client, first, True)[1]] == [7_000, 7_001])
    wait_for(lambda: fetched(client, second, True) == offsets)
    for index in range(2):
        fetched_end = client.fetch("t", 0, partition=index, max_wait_ms=1)
        wait_for(lambda index=index, high=fetched_end.high_watermark: is_over(client, index, high))  # type: ignore[misc]


def is_over(client: RawClient, index: int, high: int) -> bool:
    answer = client.fetch("t", high, partition=index, max_wait_ms=1)
    return bool(answer.last_stable_offset == answer.high_watermark)
