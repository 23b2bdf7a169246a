"""Static members (KIP-345) of every client keep their partitions while the broker is killed and restarted.

As with Apache Kafka the group is restored with its members, which go on with their partitions without a
rebalance. A member that returns under its instance id gets its own partitions; the other does not notice.
"""

from __future__ import annotations

from pathlib import Path

from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.interop.clients.base import Client, Member, wait_until
from tests.interop.test_groups import PARTITIONS, fill, shared_out
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

GROUP, TOPIC = "g", "t"
COUNT, KILLS = 20, 2
Received = set[tuple[int, int]]


def members_of(logd: LogdProcess) -> tuple[str, dict[str | None, str]]:
    """Return the group's state, and the broker's member ids by instance id."""
    with RawClient(logd.port) as raw:
        raw.request(FindCoordinatorRequest(coordinator_keys=[GROUP]), 6)
        (group,) = raw.request(DescribeGroupsRequest(groups=[GROUP]), 5).groups
        return group.group_state, {each.group_instance_id: each.member_id for each in group.members}


def read(received: Received, upto: int, *members: Member) -> None:
    """Poll until all records before `upto` of each partition are there, and commit."""
    expected = {(partition, offset) for partition in PARTITIONS for offset in range(upto)}

    def has_come() -> bool:
        for member in members:
            received.update((partition, record[0]) for partition, record in member.poll())
        return expected <= received

    wait_for(has_come)
    for member in members:
        member.commit()


@deep
def test_they_go_on_and_come_back(tmp_path: Path, client: Client) -> None:
    received: Received = set()
    with LogdProcess(tmp_path) as logd:
        create_topic(logd, TOPIC, partitions=len(PARTITIONS))
        stays = client.member(logd.bootstrap, GROUP, TOPIC, instance="stays")
        # One after the other: a leader of kafka-python that joins before it has the topic's metadata gives
        # nobody anything, and is slow to notice.
        wait_until(lambda: len(stays.assigned) == len(PARTITIONS), stays)
        goes = client.member(logd.bootstrap, GROUP, TOPIC, instance="goes")
        try:
            wait_until(lambda: shared_out(stays, goes), stays, goes)
            fill(logd, TOPIC, 0, COUNT)
            read(received, COUNT, stays, goes)
            before, assignments = (stays.assigned, goes.assigned), (stays.assignments, goes.assignments)
            state, first_ids = members_of(logd)
            assert (state, set(first_ids)) == ("Stable", {"stays", "goes"})
            for kill in range(1, KILLS + 1):
                logd.kill()
                logd.start()
                fill(logd, TOPIC, kill * COUNT, COUNT)
                read(received, (kill + 1) * COUNT, stays, goes)
                assert (stays.assigned, goes.assigned) == before
                assert (stays.assignments, goes.assignments) == assignments, "there was a rebalance"
                assert members_of(logd) == ("Stable", first_ids)
            goes.close()
            logd.kill()
            logd.start()
            goes = client.member(logd.bootstrap, GROUP, TOPIC, instance="goes")
            wait_until(lambda: bool(goes.assigned), stays, goes)
            assert (stays.assigned, goes.assigned) == before
            fill(logd, TOPIC, (KILLS + 1) * COUNT, COUNT)
            read(received, (KILLS + 2) * COUNT, stays, goes)
            assert stays.assignments == assignments[0], "the one that stayed was given partitions again"
            state, now_known = members_of(logd)
            assert (state, now_known["stays"]) == ("Stable", first_ids["stays"])
        finally:
            stays.close()
            goes.close()
        assert "Traceback" not in logd.log
