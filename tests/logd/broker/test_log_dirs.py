"""Several log directories: where partitions go, one folder failing while the others serve, and its coming
back.

A folder is broken for the next start by putting a file in its place, which stops root as well. The kernel's
limit of file sizes plays the disk that fills up.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.heartbeat import HeartbeatRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from logd.broker.coordinators.coordinator import partition_for
from logd.storage.names import CLEAN_SHUTDOWN
from tests.logd.broker.log_dirs import alter, described, fill, home, logd_in, read, state
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

FULL_AT = 200_000
OFFLINE = (ErrorCode.LEADER_NOT_AVAILABLE, -1)
ONLINE = (0, 1)
NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED
NO_PREFERRED = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
NO_ELIGIBLE = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """Rename the folder away, as if its disk were missing, and back at the end."""
    elsewhere = folder.with_name(folder.name + "-elsewhere")
    folder.rename(elsewhere)
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        elsewhere.rename(folder)


def fill_up(logd: LogdProcess, client: RawClient, topic: str, partition: int = 0) -> None:
    """Break the log directory that a partition is in."""
    hard = resource.prlimit(logd.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (FULL_AT, hard))
    answer = client.produce(topic, [(1, None, bytes(FULL_AT), ())], partition=partition)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (hard, hard))


def elected(
    client: RawClient, election_type: int, partitions: dict[str, list[int]] | None
) -> list[tuple[str, int, int]]:
    """Return (topic, partition, error code) of ElectLeaders' response; None asks for all partitions."""
    topics = partitions and [TopicPartitions(topic=name, partitions=p) for name, p in partitions.items()]
    answer = client.request(ElectLeadersRequest(election_type=election_type, topic_partitions=topics), 2)
    return [
        (topic.topic, result.partition_id, result.error_code)
        for topic in answer.replica_election_results
        for result in topic.partition_result
    ]


def test_new_partitions_go_where_fewest_are(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b", "c") as logd:
        create_topic(logd, "t", partitions=6)
        assert sorted(home(tmp_path, f"t-{index}") for index in range(6)) == list("aabbcc")
        with RawClient(logd.port) as client:
            client.request(DeleteTopicsRequest(topic_names=["t"]), 5)
            create_topic(logd, "one")
            assert home(tmp_path, "one-0") == "a"
            grown = CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="one", count=3, assignments=None)]
            )
            assert client.request(grown, 3).results[0].error_code == 0
        assert sorted(home(tmp_path, f"one-{index}") for index in range(3)) == ["a", "b", "c"]


@deep
def test_a_folder_that_is_gone_at_the_start_keeps_its_partitions(tmp_path: Path) -> None:
    """Partitions of a log directory that is missing at the start are offline.

    They used to be created again, empty, in the remaining log directories.
    """
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=2)
        with RawClient(logd.port) as client:
            for partition in (0, 1):
                fill(client, "t", range(3), partition=partition)
        assert (home(tmp_path, "t-0"), home(tmp_path, "t-1")) == ("a", "b")
        logd.stop()
        with away(tmp_path / "b"):
            logd.start()
            with RawClient(logd.port) as client:
                assert state(client, "t") == [ONLINE, OFFLINE]
                assert read(client, "t", partition=0) == [0, 1, 2]
                refused = client.produce("t", [(1, b"k", b"v", ())], partition=1)
                assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                assert client.fetch("t", partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
                assert elected(client, 0, {"t": [0, 1]}) == [("t", 0, NOT_NEEDED), ("t", 1, NO_PREFERRED)]
                assert elected(client, 1, {"t": [0, 1]}) == [("t", 0, NOT_NEEDED), ("t", 1, NO_ELIGIBLE)]
                create_topic(logd, "new", partitions=2)
                assert state(client, "new") == [ONLINE, ONLINE]
                assert elected(client, 0, None) == [("t", 1, NO_PREFERRED)]
                fill(client, "t", range(3, 5), partition=0)
            assert not (tmp_path / "a" / "t-1").exists()
            assert f"log directory {tmp_path / 'b'}" in logd.log
            logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == [ONLINE, ONLINE]
            assert read(client, "t", partition=0) == [0, 1, 2, 3, 4]
            assert read(client, "t", partition=1) == [0, 1, 2]
            fill(client, "t", range(3, 5), partition=1)
        assert "Traceback" not in logd.log


@deep
def test_a_topic_deleted_while_its_folder_was_away_stays_deleted(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=2)
        logd.stop()
        with away(tmp_path / "b"):
            logd.start()
            with RawClient(logd.port) as client:
                assert client.request(DeleteTopicsRequest(topic_names=["t"]), 5).responses[0].error_code == 0
            logd.stop()
            logd.start()  # another start without it
            logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == []
            create_topic(logd, "t", partitions=2)
            assert [read(client, "t", partition=index) for index in (0, 1)] == [[], []]


@deep
def test_a_folder_failing_while_the_others_serve(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=4)
        with RawClient(logd.port) as client, RawClient(logd.port) as waiting:
            for partition in range(4):
                fill(client, "t", range(2), partition=partition)
            bad = home(tmp_path, "t-0")
            at = {index: home(tmp_path, f"t-{index}") == bad for index in range(4)}
            other = next(index for index in range(1, 4) if at[index])
            waiting.send_fetch("t", 2, partition=other, max_wait_ms=9_000)
            fill_up(logd, client, "t")
            # A fetch that waits in the same folder is answered at once.
            answer = waiting.receive(1, 12).responses[0].partitions[0]
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert state(client, "t") == [OFFLINE if at[index] else ONLINE for index in range(4)]
            assert elected(client, 1, None) == [("t", index, NO_ELIGIBLE) for index in range(4) if at[index]]
            for index in range(4):
                produced = client.produce("t", [(1, b"k", b"2:", ())], partition=index)
                assert produced.error_code == (ErrorCode.KAFKA_STORAGE_ERROR if at[index] else 0)
            create_topic(logd, "new", partitions=2)
            assert state(client, "new") == [ONLINE, ONLINE]
            folders = described(client)
            assert folders[bad].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert folders[bad].topics == []
            (good,) = {"a", "b"} - {bad}
            assert {topic.name for topic in folders[good].topics} == {"t", "new"}
        assert f"what to do about {tmp_path / bad}: raise the limit of file sizes" in logd.log
        logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == [ONLINE] * 4
            for index in range(4):
                assert read(client, "t", partition=index) == ([0, 1] if at[index] else [0, 1, 2])
    assert "Traceback" not in logd.log


def group_in(logd: LogdProcess, tmp_path: Path, folder: str) -> str:
    """Return a group whose partition of `__consumer_offsets` is in a log directory."""
    names = (f"g{number}" for number in range(1000))
    return next(
        name for name in names if home(tmp_path, f"__consumer_offsets-{partition_for(name, 5)}") == folder
    )


def coordinator_code(client: RawClient, group: str, kind: int = 0) -> int:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[group])
    code: int = client.request(request, 4).coordinators[0].error_code
    return code


def commit(client: RawClient, group: str, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    code: int = client.request(request, 8).topics[0].partitions[0].error_code
    return code


GONE = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


@deep
@pytest.mark.parametrize("restarted", [False, True])
def test_groups_of_a_folder_that_failed_have_no_coordinator(tmp_path: Path, restarted: bool) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=4)
        with RawClient(logd.port) as client:
            wait_for(lambda: coordinator_code(client, "any") == 0)
            bad, good = group_in(logd, tmp_path, "b"), group_in(logd, tmp_path, "a")
            assert [commit(client, group, 1) for group in (bad, good)] == [0, 0]
            if not restarted:
                victim = next(index for index in range(4) if home(tmp_path, f"t-{index}") == "b")
                fill_up(logd, client, "t", victim)
                assert_groups(client, bad, good)
                return
        logd.stop()
        with away(tmp_path / "b"):
            logd.start()
            with RawClient(logd.port) as client:
                wait_for(lambda: commit(client, good, 2) == 0)
                assert_groups(client, bad, good)
            logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            wait_for(lambda: commit(client, bad, 2) == 0)


def assert_groups(client: RawClient, bad: str, good: str) -> None:
    assert coordinator_code(client, bad) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator_code(client, good) == 0
    assert commit(client, bad, 2) in GONE
    assert client.request(HeartbeatRequest(group_id=bad, member_id="m"), 4).error_code in GONE
    assert commit(client, good, 3) == 0
    wait_for(lambda: client.request(ListGroupsRequest(), 4).error_code == 0)  # all that are left are loaded
    assert [group.group_id for group in client.request(ListGroupsRequest(), 4).groups] == [good]


@deep
@pytest.mark.parametrize("restarted", [False, True])
def test_transactions_of_a_folder_that_failed_have_no_coordinator(tmp_path: Path, restarted: bool) -> None:
    logd = logd_in(tmp_path, "a", "b", settings={"transaction.state.log.num.partitions": 6})
    with logd:
        create_topic(logd, "t", partitions=4)
        with RawClient(logd.port) as client:
            wait_for(lambda: coordinator_code(client, "any", 1) == 0)
            names = [f"x{number}" for number in range(100)]
            at = {name: home(tmp_path, f"__transaction_state-{partition_for(name, 6)}") for name in names}
            bad, good = (next(name for name in names if at[name] == folder) for folder in "ba")
            assert [init(client, name) for name in (bad, good)] == [0, 0]
            if not restarted:
                victim = next(index for index in range(4) if home(tmp_path, f"t-{index}") == "b")
                fill_up(logd, client, "t", victim)
                assert_transactions(client, bad, good)
                return
        logd.stop()
        with away(tmp_path / "b"):
            logd.start()
            with RawClient(logd.port) as client:
                wait_for(lambda: init(client, good) == 0)
                assert_transactions(client, bad, good)
            logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            wait_for(lambda: init(client, bad) == 0)


def init(client: RawClient, transactional_id: str) -> int:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000)
    code: int = client.request(request, 4).error_code
    return code


def assert_transactions(client: RawClient, bad: str, good: str) -> None:
    assert coordinator_code(client, bad, 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator_code(client, good, 1) == 0
    assert init(client, bad) in GONE
    assert init(client, good) == 0


@deep
def test_folders_opened_before_one_that_is_refused_end_clean(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=2)
        logd.stop()
        meta = tmp_path / "b" / "meta.properties"
        text = meta.read_text()
        meta.write_text(text.replace("node.id=1", "node.id=7"))
        logd.spawn()
        assert logd.wait() == 1
        assert "belongs to node 7" in logd.log
        assert (tmp_path / "a" / CLEAN_SHUTDOWN).exists()
        meta.write_text(text)
        logd.start()


@deep
def test_the_first_folder_holds_the_metadata_and_is_needed(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", partitions=2)
        logd.stop()
        with away(tmp_path / "a"):
            logd.spawn()
            assert logd.wait() == 1
            assert logd.log.count(f"log directory {tmp_path / 'a'}: ") == 1
        logd.start()


def test_a_folder_cannot_be_named_twice(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path, {"log.dirs": f"{tmp_path}/a,{tmp_path}/a/"})
    logd.spawn()
    assert logd.wait() == 2
    assert "log.dirs" in logd.log


@deep
@pytest.mark.parametrize("version", range(1, 6))
def test_describing_the_folders(tmp_path: Path, version: int) -> None:
    from kafka_client.wire.messages.describe_log_dirs import DescribableLogDirTopic

    with logd_in(tmp_path, "a", "b") as logd:
        create_topic(logd, "t", partitions=2)
        create_topic(logd, "u", partitions=1)
        with RawClient(logd.port) as client:
            fill(client, "t", range(5), partition=0, size=100)
            folders = described(client, version=version)
            assert set(folders) == {"a", "b"}
            rows = {
                (topic.name, row.partition_index): row
                for result in folders.values()
                for topic in result.topics
                for row in topic.partitions
            }
            assert set(rows) == {("t", 0), ("t", 1), ("u", 0)}
            size = (tmp_path / home(tmp_path, "t-0") / "t-0" / f"{0:020}.log").stat().st_size
            assert (rows["t", 0].partition_size, rows["t", 1].partition_size) == (size, 0)
            assert all((row.offset_lag, row.is_future_key) == (0, False) for row in rows.values())
            for result in folders.values():
                assert (result.total_bytes >= result.usable_bytes > 0) == (version >= 4)
            topics = [DescribableLogDirTopic(topic="t", partitions=[1, 9])]
            only = described(client, topics, version=version)
            assert [topic.name for result in only.values() for topic in result.topics] == ["t"]
            nothing = described(client, [], version=version)
            assert not any(result.topics for result in nothing.values())


def test_a_partition_is_made_in_the_folder_it_was_wished_for(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b", "c") as logd, RawClient(logd.port) as client:
        assert alter(client, tmp_path / "c", "t", 0, 1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
        create_topic(logd, "t", partitions=2)
        assert [home(tmp_path, f"t-{index}") for index in (0, 1)] == ["c", "c"]
