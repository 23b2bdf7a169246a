"""A broker killed before or after any record of the coordinator and any marker.

The story: a transaction writes in two partitions and commits a group's offset; somewhere on the way the
broker dies. After its restart all of it is visible or nothing, and nothing hangs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.logd.api_transactions.producers import LOADING, RawProducer, committed_values, make_topic
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.markers import is_stable
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

TOPIC = "t"
GROUP = "g"
SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10,
}
TIMEOUT_MS = 3_000
"""Timeout of the transaction that a crash cuts off; long enough to reach the crash."""


def prepared(client: RawClient) -> None:
    """Create the topic, and the offsets topic by asking for the group's coordinator."""
    make_topic(client, TOPIC, 2)
    assert client.request(FindCoordinatorRequest(coordinator_keys=[GROUP]), 6).coordinators[0].error_code == 0


def transaction(producer: RawProducer, commit: bool) -> None:
    assert producer.produce(TOPIC, "a") == 0
    assert producer.produce(TOPIC, "b", partition=1) == 0
    assert producer.commit_offset(GROUP, TOPIC, 5) == 0
    assert producer.end(commit).error_code == 0


def consumer_view(client: RawClient) -> list[object]:
    """Return a consumer's view, records and committed offset, once no transaction is open any more."""
    topics = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=[topics])])
    request.require_stable = True
    offsets: list[int] = []

    def is_over() -> bool:
        group = client.request(request, 8).groups[0]
        if group.error_code == LOADING or group.topics[0].partitions[0].error_code:
            return False
        offsets.append(group.topics[0].partitions[0].committed_offset)
        return is_stable(client, TOPIC, 0, 1)

    wait_for(is_over)
    return [committed_values(client, TOPIC), committed_values(client, TOPIC, 1), offsets[-1]]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "logd"


DECIDED = 9
"""Steps: two each for the records Empty, three times Ongoing, Prepare; then three markers, then Complete."""
END = 18

CASES = [
    *((step, True, 2) for step in (DECIDED - 1, DECIDED, 12)),
    *((step, False, 0) for step in (DECIDED - 1, DECIDED, 12, END - 2)),
    *((step, True, 2) for step in range(4, END + 1) if step not in (DECIDED - 1, DECIDED, 12)),
]


@depth.deep
@pytest.mark.parametrize(("step", "commit", "version"), depth.first(6, CASES))
def test_killed(folder: Path, step: int, commit: bool, version: int) -> None:
    dying = LogdProcess(folder, SETTINGS, python=("-m", "tests.logd.api_transactions.dying", str(step)))
    try:
        dying.start()
        with RawClient(dying.port) as client:
            prepared(client)
            producer = RawProducer(client, "x", version=version)
            assert producer.init(TIMEOUT_MS) == 0
            with contextlib.suppress(ConnectionError):
                transaction(producer, commit)
        if step < END:
            dying.wait_for_log("killed")  # EndTxn is answered before the markers are written
        else:
            assert "killed" not in dying.log
    finally:
        dying.kill()
    with LogdProcess(folder, SETTINGS) as logd, RawClient(logd.port) as client:
        committed = commit and step >= DECIDED
        assert consumer_view(client) == ([["a"], ["b"], 5] if committed else [[], [], -1])
        # The id is free, and so are the partitions.
        producer = RawProducer(client, "x", version=version)
        assert producer.init() == 0
        transaction(producer, True)
        assert consumer_view(client) == [["a"] * (1 + committed), ["b"] * (1 + committed), 5]
