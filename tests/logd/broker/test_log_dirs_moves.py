"""Partitions moving between log directories while they serve; crashes, failures and changes of mind."""

from __future__ import annotations

import resource
import shutil
import threading
import time
import uuid
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch, decode_records, iter_batches
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.logd.broker.log_dirs import (
    alter,
    described,
    fill,
    home,
    logd_in,
    places,
    read,
    state,
    wait_until_in,
)
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

SLOWLY = {"replica.alter.log.dirs.io.max.bytes.per.second": 1}
"""Settings for a move that never ends; its first chunk is copied at once."""


@deep
@pytest.mark.parametrize("kill", [False, True])
def test_moving_while_records_come_and_go(tmp_path: Path, kill: bool) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", {"segment.bytes": "50000", "index.interval.bytes": "100"})
        with RawClient(logd.port) as client:
            fill(client, "t", range(200), size=1000)
            written = 200
            stop = threading.Event()

            def write() -> None:
                nonlocal written
                with RawClient(logd.port) as writer:
                    while not stop.wait(0.002):
                        fill(writer, "t", range(written, written + 1), size=1000)
                        written += 1

            writer = threading.Thread(target=write)
            writer.start()
            try:
                for target in ("b", "a", "b") if kill else ("b",):
                    before = written
                    assert alter(client, tmp_path / target, "t", 0) == [0]
                    wait_until_in(client, target, "t")
                    wait_for(lambda before=before: written > before + 20)  # type: ignore[misc]
                    numbers = read(client, "t")
                    assert numbers == list(range(len(numbers)))
                    assert len(numbers) >= before
            finally:
                stop.set()
                writer.join()
            assert read(client, "t", start=150) == list(range(150, written))
        wait_for(lambda: not list((tmp_path / "a").glob("t-*")))
        assert home(tmp_path, "t-0") == "b"
        logd.kill() if kill else logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert read(client, "t") == list(range(written))
            fill(client, "t", range(written, written + 3))
            assert places(client, "t") == {"b": False}
        assert "Traceback" not in logd.log
        assert "damaged" not in logd.log


def slow_move(tmp_path: Path, *names: str) -> LogdProcess:
    """Return a broker, not started yet, whose moves between log directories are slow."""
    return logd_in(tmp_path, *names, settings=SLOWLY)


def begin(logd: LogdProcess, client: RawClient, tmp_path: Path) -> None:
    create_topic(logd, "t")
    fill(client, "t", range(50), size=500)
    assert home(tmp_path, "t-0") == "a"
    assert alter(client, tmp_path / "b", "t", 0) == [0]
    wait_for(lambda: places(client, "t") == {"a": False, "b": True})


def futures(tmp_path: Path) -> list[str]:
    return sorted(path.parent.name for path in tmp_path.glob("*/*-future"))


@deep
def test_what_is_shown_of_a_move_and_calling_it_off(tmp_path: Path) -> None:
    with slow_move(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        begin(logd, client, tmp_path)
        wait_for(lambda: described(client)["b"].topics[0].partitions[0].partition_size > 0)
        fill(client, "t", range(50, 60))
        (row,) = described(client)["b"].topics[0].partitions
        assert row.is_future_key
        assert row.offset_lag >= 10
        assert futures(tmp_path) == ["b"]
        assert alter(client, tmp_path / "b", "t", 0) == [0]  # the same again changes nothing
        assert futures(tmp_path) == ["b"]
        assert alter(client, tmp_path / "a", "t", 0) == [0]
        assert places(client, "t") == {"a": False}
        wait_for(lambda: not list((tmp_path / "b").glob("*-delete")))
        assert futures(tmp_path) == []
        assert alter(client, tmp_path / "a", "t", 0) == [0]
        assert read(client, "t") == list(range(60))


def test_another_folder_while_moving(tmp_path: Path) -> None:
    with slow_move(tmp_path, "a", "b", "c") as logd, RawClient(logd.port) as client:
        begin(logd, client, tmp_path)
        assert alter(client, tmp_path / "c", "t", 0) == [0]
        assert places(client, "t") == {"a": False, "c": True}
        wait_for(lambda: futures(tmp_path) == ["c"])


@deep
def test_a_topic_deleted_while_moving(tmp_path: Path) -> None:
    with slow_move(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        begin(logd, client, tmp_path)
        client.request(DeleteTopicsRequest(topic_names=["t"]), 5)
        assert places(client, "t") == {}
        create_topic(logd, "t")
        fill(client, "t", range(5))
        assert read(client, "t") == [0, 1, 2, 3, 4]
        wait_for(lambda: not futures(tmp_path))
        logd.kill()
        (tmp_path / "b" / f"t-0.{uuid.uuid4().hex}-future").mkdir()  # as if it had not come to that
        logd.start()
        wait_for(lambda: not futures(tmp_path))
        with RawClient(logd.port) as again:
            assert read(again, "t") == [0, 1, 2, 3, 4]


@deep
@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_in_the_middle_begins_again(tmp_path: Path, kill: bool) -> None:
    logd = slow_move(tmp_path, "a", "b")
    with logd:
        with RawClient(logd.port) as client:
            begin(logd, client, tmp_path)
        logd.kill() if kill else logd.stop()
        assert futures(tmp_path) == ["b"]
        del logd.overrides["replica.alter.log.dirs.io.max.bytes.per.second"]
        logd.start()
        with RawClient(logd.port) as client:
            wait_until_in(client, "b", "t")
            assert read(client, "t") == list(range(50))
        wait_for(lambda: not futures(tmp_path) and not list((tmp_path / "a").glob("t-*")))


def as_after_a_crash_between_the_renames(tmp_path: Path) -> None:
    """Rename folders as a crash leaves them: the old folder renamed away, the new one not yet in place."""
    unique = uuid.uuid4().hex
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / f"t-0.{unique}-future")
    (tmp_path / "a" / "t-0").rename(tmp_path / "a" / f"t-0.{unique}-delete")


@deep
def test_a_crash_between_the_two_renames(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t")
        with RawClient(logd.port) as client:
            fill(client, "t", range(30))
        logd.kill()
        as_after_a_crash_between_the_renames(tmp_path)
        logd.start()
        with RawClient(logd.port) as client:
            assert places(client, "t") == {"b": False}
            assert read(client, "t") == list(range(30))
            fill(client, "t", range(30, 33))
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert read(client, "t") == list(range(33))
        wait_for(lambda: not list((tmp_path / "a").glob("t-*")))


@deep
def test_such_a_crash_and_then_a_folder_away(tmp_path: Path) -> None:
    """Future replicas are kept but not served while the other log directory is away: it may have more."""
    logd = logd_in(tmp_path, "c", "a", "b")
    with logd:
        for number in range(2):
            create_topic(logd, "t" if number else "first")
        with RawClient(logd.port) as client:
            fill(client, "t", range(3))
        assert home(tmp_path, "t-0") == "a"
        logd.kill()
        shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / f"t-0.{uuid.uuid4().hex}-future")
        (tmp_path / "a").rename(tmp_path / "away")
        (tmp_path / "a").touch()
        logd.start()
        with RawClient(logd.port) as client:
            assert state(client, "t") == [(ErrorCode.LEADER_NOT_AVAILABLE, -1)]
        assert futures(tmp_path) == ["b"]
        logd.stop()
        (tmp_path / "a").unlink()
        (tmp_path / "away").rename(tmp_path / "a")
        logd.start()
        with RawClient(logd.port) as client:
            wait_until_in(client, "b", "t")
            assert read(client, "t") == [0, 1, 2]


@deep
def test_a_partition_found_twice_is_served_by_the_longer_log(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t")
        with RawClient(logd.port) as client:
            fill(client, "t", range(3))
            logd.stop()
            shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
            (tmp_path / "b" / "t-0").rename(tmp_path / "kept")
        logd.start()
        with RawClient(logd.port) as client:
            fill(client, "t", range(3, 6))
        logd.stop()
        (tmp_path / "kept").rename(tmp_path / "b" / "t-0")
        logd.start()
        with RawClient(logd.port) as client:
            assert places(client, "t") == {"a": False}
            assert read(client, "t") == list(range(6))
        assert len(list((tmp_path / "b").glob("t-0.*-stray"))) == 1
        assert "was found twice" in logd.log


@deep
@pytest.mark.parametrize("version", [1, 2])
def test_moves_that_are_refused(tmp_path: Path, version: int) -> None:
    with logd_in(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t", partitions=2)
        long = "x" * 230
        invalid = [ErrorCode.INVALID_TOPIC_EXCEPTION]
        create_topic(logd, long)
        elsewhere = tmp_path / "elsewhere"
        assert alter(client, elsewhere, "t", 0, 1, version=version) == [ErrorCode.LOG_DIR_NOT_FOUND] * 2
        assert alter(client, tmp_path / "a", "t", 2, version=version) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        assert alter(client, tmp_path / "a", "u", 0, version=version) == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        assert alter(client, tmp_path / "a", "?", 0, version=version) == invalid
        other = "b" if home(tmp_path, f"{long}-0") == "a" else "a"
        assert alter(client, tmp_path / other, long, 0, version=version) == [
            ErrorCode.INVALID_TOPIC_EXCEPTION
        ]
        bad = home(tmp_path, "t-0")
        hard = resource.prlimit(logd.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (1000, hard))
        client.produce("t", [(1, None, bytes(2000), ())])
        (good,) = {"a", "b"} - {bad}
        storage_error = [ErrorCode.KAFKA_STORAGE_ERROR]
        assert alter(client, tmp_path / bad, "t", 1, version=version) == storage_error
        assert alter(client, tmp_path / good, "t", 0, version=version) == storage_error


def test_a_target_that_fills_up_ends_the_move_and_nothing_else(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t")
        create_topic(logd, "in-b")
        fill(client, "t", range(100), size=1000)
        hard = resource.prlimit(logd.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (50_000, hard))
        assert alter(client, tmp_path / "b", "t", 0) == [0]
        logd.wait_for_log("stays in")
        resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert "raise the limit of file sizes" in logd.log
        assert places(client, "t") == {"a": False}
        assert state(client, "in-b") == [(0, 1)]
        assert futures(tmp_path) == []
        fill(client, "t", range(100, 110))
        assert alter(client, tmp_path / "b", "t", 0) == [0]
        wait_until_in(client, "b", "t")
        assert read(client, "t") == list(range(110))
        assert "Traceback" not in logd.log


@deep
def test_the_log_start_offset_and_producers_move_along(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t")
        with RawClient(logd.port) as client:
            producer = client.request(InitProducerIdRequest(transactional_id=None), 4)
            facts = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
            batches = [
                build_batch([(1, b"k", b"%d:" % number, ())], base_sequence=number, **facts)
                for number in range(6)
            ]
            for batch in batches[:5]:
                assert client.produce("t", batch).error_code == 0
            partition = DeleteRecordsPartition(partition_index=0, offset=3)
            topics = [DeleteRecordsTopic(name="t", partitions=[partition])]
            client.request(DeleteRecordsRequest(topics=topics), 2)
            alter(client, tmp_path / "b", "t", 0)
            wait_until_in(client, "b", "t")
            assert client.produce("t", batches[4]).base_offset == 4  # again: no duplicate
            logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert client.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert read(client, "t", start=3) == [3, 4]
            assert client.produce("t", batches[4]).base_offset == 4
            assert client.produce("t", batches[5]).base_offset == 5


@deep
def test_many_partitions_at_once(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b", "c") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t", partitions=12)
        for index in range(12):
            fill(client, "t", range(3), partition=index)
        assert alter(client, tmp_path / "c", "t", *range(12)) == [0] * 12
        for index in range(12):
            wait_until_in(client, "c", "t", index)
            assert read(client, "t", partition=index) == [0, 1, 2]
        fill(client, "t", range(3, 5), partition=11)


@deep
def test_the_rate_is_changed_while_moving(tmp_path: Path) -> None:
    from logd.broker.topics.configs import Operation
    from tests.logd.api.test_configs import BROKER
    from tests.logd.api.test_configs import alter as change

    with slow_move(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        begin(logd, client, tmp_path)
        (key,) = SLOWLY
        assert change(client, BROKER, "", (key, Operation.SET, "1000000000")).error_code == 0
        wait_until_in(client, "b", "t")


@deep
def test_acknowledgements_that_wait_for_the_disk_go_on(tmp_path: Path) -> None:
    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t", {"flush.messages": "1"})
        with RawClient(logd.port) as client:
            stop, written = threading.Event(), 0

            def write() -> None:
                nonlocal written
                with RawClient(logd.port) as writer:
                    while not stop.is_set():
                        fill(writer, "t", range(written, written + 1))
                        written += 1

            writer = threading.Thread(target=write)
            writer.start()
            try:
                wait_for(lambda: written > 20)
                for target in ("b", "a"):
                    assert alter(client, tmp_path / target, "t", 0) == [0]
                    wait_until_in(client, target, "t")
            finally:
                stop.set()
                writer.join()
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert read(client, "t") == list(range(written))


@deep
def test_groups_do_not_notice(tmp_path: Path) -> None:
    from logd.broker.coordinators.coordinator import partition_for
    from tests.logd.broker.test_log_dirs import commit, coordinator_code

    logd = logd_in(tmp_path, "a", "b")
    with logd:
        create_topic(logd, "t")
        index = partition_for("g", 5)
        with RawClient(logd.port) as client:
            wait_for(lambda: coordinator_code(client, "g") == 0)
            assert commit(client, "g", 1) == 0
            target = "b" if home(tmp_path, f"__consumer_offsets-{index}") == "a" else "a"
            assert alter(client, tmp_path / target, "__consumer_offsets", index) == [0]
            wait_for(
                lambda: (
                    commit(client, "g", 2) == 0
                    and places(client, "__consumer_offsets", index) == {target: False}
                )
            )
            assert commit(client, "g", 3) == 0
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            wait_for(lambda: committed(client, "g") == 3)


def committed(client: RawClient, group: str) -> int:
    request = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    answer = client.request(OffsetFetchRequest(groups=[request]), 8).groups[0]
    if answer.error_code:
        return -1
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@deep
def test_a_compacted_topic_moves_while_it_is_compacted(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": 20}
    logd = logd_in(tmp_path, "a", "b", settings=settings)
    configs = {"cleanup.policy": "compact", "segment.bytes": "5000", "min.cleanable.dirty.ratio": "0.01"}
    with logd:
        create_topic(logd, "t", configs)
        written = 0
        with RawClient(logd.port) as client:

            def write(count: int) -> None:
                nonlocal written
                for _ in range(count):
                    record = (
                        int(time.time() * 1000),
                        b"k%d" % (written % 7),
                        b"%d:" % written + bytes(100),
                        (),
                    )
                    assert client.produce("t", [record]).base_offset == written
                    written += 1

            write(300)
            for target in ("b", "a", "b"):
                assert alter(client, tmp_path / target, "t", 0) == [0]
                while places(client, "t") != {target: False}:
                    write(10)
            logd.wait_for_log("compacted t-0")
            assert last_values(client) == expected(written)
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert last_values(client) == expected(written)
        assert "Traceback" not in logd.log
        assert "is offline" not in logd.log


def last_values(client: RawClient) -> dict[bytes, int]:
    """Return each key's last value."""
    values: dict[bytes, int] = {}
    start = 0
    while (fetched := client.fetch("t", start, max_wait_ms=1, partition_max_bytes=1 << 22)).records:
        assert fetched.error_code == 0
        for position, header in iter_batches(fetched.records):
            for record in decode_records(fetched.records, position):
                values[record[2] or b""] = int((record[3] or b"").partition(b":")[0])
            start = header.next_offset
    return values


def expected(written: int) -> dict[bytes, int]:
    return {b"k%d" % (number % 7): number for number in range(written - 7, written)}
