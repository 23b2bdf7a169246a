"""Producer ids are unique, whichever broker gave them and whatever happened to the journal.

The next id came from the journal alone. Without the journal a new producer got an id that a log knew already.
Its first record was acknowledged as a duplicate of the other producer's, and never stored.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from logd.broker.coordinators import producer_id_blocks
from logd.broker.coordinators.producer_ids import ProducerIds
from logd.metadata.journal_store import JournalStore
from logd.metadata.recovered_topics import PRODUCER_ID_LEAP, beyond
from logd.storage.checkpoints import read_properties
from logd.storage.disk import PosixDisk
from logd.storage.producers.snapshot import decode_snapshot
from tests.logd.broker.log_dirs import logd_in
from tests.support.depth import deep, sample
from tests.support.kafka_folder import FOLDER
from tests.support.logd_process import LogdProcess
from tests.support.metadata_folder import ADOPT, as_apache_kafka_leaves_it, lose_journal
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

TRANSACTION = 1
COUNT_POSITION = 57
"""Position of a record batch's record count, which is read only when its records are decoded."""


def new_id(client: RawClient, transactional_id: str | None = None) -> int:
    """Return a new producer's id, asking again until the coordinator gives one."""
    if transactional_id is not None:
        client.request(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id]), 4)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    answers: list[Any] = []

    def answered() -> bool:
        answers.append(client.request(request, 4))
        return answers[-1].error_code == ErrorCode.NONE

    wait_for(answered)
    return int(answers[-1].producer_id)


def send(client: RawClient, producer_id: int, value: bytes, topic: str = "t") -> int:
    """Produce a new producer's first record and return its offset."""
    batch = build_batch([(1, b"k", value, ())], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    written = client.produce(topic, batch)
    assert written.error_code == ErrorCode.NONE
    return int(written.base_offset)


@sample(1)
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lost", [True, False], ids=["journal lost", "from Apache Kafka"])
def test_ids_in_logs_are_not_given_again(tmp_path: Path, lost: bool, clean: bool) -> None:
    logd = LogdProcess(tmp_path)
    with logd:
        create_topic(logd, "t")
        with RawClient(logd.port) as client:
            first = new_id(client)
            assert send(client, first, b"first") == 0
        if clean:
            logd.stop()
        else:
            logd.kill()
        if lost:
            lose_journal(tmp_path / "data")
            logd.overrides |= ADOPT
        else:
            as_apache_kafka_leaves_it(tmp_path / "data")
        logd.start()
        with RawClient(logd.port) as client:
            second = new_id(client)
            assert send(client, second, b"second") == 1
            assert second >= first + PRODUCER_ID_LEAP, "another producer may have an id and no record yet"


@deep
def test_ids_found_are_remembered_when_their_log_is_gone(tmp_path: Path) -> None:
    """Ids that were found in a log are remembered after its deletion: their producers may write elsewhere."""
    logd = LogdProcess(tmp_path)
    with logd:
        create_topic(logd, "t")
        with RawClient(logd.port) as client:
            first = new_id(client)
            send(client, first, b"first")
        logd.stop()
        as_apache_kafka_leaves_it(tmp_path / "data")
        logd.start()
        with RawClient(logd.port) as client:
            client.request(DeleteTopicsRequest(topic_names=["t"]), 5)
        logd.stop()
        logd.start()
        with RawClient(logd.port) as client:
            assert new_id(client) > first


@deep
def test_ids_of_transactional_ids_that_wrote_nothing_are_not_given_again(tmp_path: Path) -> None:
    """Ids that only `__transaction_state` has are not given again."""
    logd = LogdProcess(tmp_path, {"transaction.state.log.num.partitions": 3})
    with logd:
        with RawClient(logd.port) as client:
            ids = {new_id(client, f"x{number}") for number in range(5)}
        logd.stop()
        as_apache_kafka_leaves_it(tmp_path / "data")
        logd.start()
        with RawClient(logd.port) as client:
            assert new_id(client) > max(ids)
            assert new_id(client, "x0") in ids


@deep
def test_ids_in_a_folder_that_comes_later_are_not_given_again(tmp_path: Path) -> None:
    """Ids in a log directory that is added later are not given again, also those above the journal's."""
    here, there = logd_in(tmp_path, "a"), logd_in(tmp_path, "b")
    with here:
        with RawClient(here.port) as client:
            assert new_id(client) == 0
        here.stop()
    with there:
        for _ in range(2):  # each start begins a block
            with RawClient(there.port) as client:
                theirs = new_id(client)
            there.stop()
            there.start()
        create_topic(there, "t")
        with RawClient(there.port) as client:
            send(client, theirs, b"first")
        there.stop()
    as_apache_kafka_leaves_it(tmp_path / "b")
    clusters = [read_properties(tmp_path / name / "meta.properties")["cluster.id"] for name in ("a", "b")]
    meta = tmp_path / "b" / "meta.properties"
    meta.write_text(meta.read_text().replace(clusters[1], clusters[0]))
    both = logd_in(tmp_path, "a", "b")
    with both, RawClient(both.port) as client:
        mine = new_id(client)
        assert mine > theirs
        assert send(client, mine, b"second") == 1


@deep
def test_ids_in_a_folder_that_is_away_are_not_given(tmp_path: Path) -> None:
    """Ids in a log directory that is away are not given again.

    No log here has them. The journal's next id was given. When the folder was back, the first record of its
    new owner was acknowledged and never stored.
    """
    here, there = logd_in(tmp_path, "a"), logd_in(tmp_path, "b")
    with here:
        here.stop()
    with there:
        create_topic(there, "t")
        with RawClient(there.port) as client:
            first = new_id(client)
            assert send(client, first, b"first") == 0
        there.stop()
    as_apache_kafka_leaves_it(tmp_path / "b")
    clusters = [read_properties(tmp_path / name / "meta.properties")["cluster.id"] for name in ("a", "b")]
    meta = tmp_path / "b" / "meta.properties"
    meta.write_text(meta.read_text().replace(clusters[1], clusters[0]))
    both = logd_in(tmp_path, "a", "b")
    (tmp_path / "b").rename(tmp_path / "away")
    (tmp_path / "b").write_text("not a folder")
    with both:
        with RawClient(both.port) as client:
            mine = new_id(client)
            assert new_id(client) == mine + 1, "one leap is enough"
        both.stop()
        (tmp_path / "b").unlink()
        (tmp_path / "away").rename(tmp_path / "b")
        both.start()
        with RawClient(both.port) as client:
            assert send(client, mine, b"second") == 1
            assert new_id(client) > mine
        assert f"stands in what could not be read: log directory {tmp_path / 'b'}" in both.log


@deep
def test_ids_of_transactional_ids_that_cannot_be_loaded_are_not_given(tmp_path: Path) -> None:
    """Ids in a partition that cannot be loaded are not given again: their producers may go on with them."""
    settings = {"transaction.state.log.num.partitions": 1}
    logd = LogdProcess(tmp_path, settings, tracebacks=["CorruptRecordBatch: record 2 of 150994945"])
    with logd:
        with RawClient(logd.port) as client:
            ids = {new_id(client, f"x{number}") for number in range(3)}
        logd.stop()
        as_apache_kafka_leaves_it(tmp_path / "data")
        (segment,) = (tmp_path / "data" / "__transaction_state-0").glob("*.log")
        content = bytearray(segment.read_bytes())
        content[COUNT_POSITION] = 9
        segment.write_bytes(content)
        logd.start()
        with RawClient(logd.port) as client:
            assert new_id(client) > max(ids) + PRODUCER_ID_LEAP
        assert "stands in what could not be read: __transaction_state-0" in logd.log


async def test_a_block_that_holds_an_id_met_late_is_left(tmp_path: Path) -> None:
    """Blocks with an id that is met late are left: a partition may be loaded again after a failed start."""
    store = JournalStore(tmp_path, PosixDisk())
    ids = ProducerIds.stored(store, store.load())
    ids.all_met()
    assert [await ids.take(), await ids.take()] == [0, 1]
    ids.met(1)  # one of ours
    assert await ids.take() == 2
    ids.met(4)
    assert not ids.has_reserved
    assert await ids.take() == 1000
    store.close()


def test_ids_that_apache_kafka_gave_are_not_given_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(FOLDER, folder)
    ids = {
        producer_id
        for path in folder.glob("*/*.snapshot")
        for producer_id in decode_snapshot(path.read_bytes()).producers
    }
    assert ids
    with LogdProcess(tmp_path) as logd, RawClient(logd.port) as client:
        assert new_id(client) > max(ids)


@pytest.mark.parametrize(
    ("following", "ids", "expected"),
    [
        (0, [], 0),
        (1000, [0, 999], 1000),
        (1000, [1000], 1001 + PRODUCER_ID_LEAP),
        (0, [7, 3], 8 + PRODUCER_ID_LEAP),
    ],
)
def test_what_follows_the_ids_found(following: int, ids: list[int], expected: int) -> None:
    assert beyond(following, ids) == expected


async def test_no_id_is_given_before_all_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_id_blocks, "WAIT_S", 0.01)
    store = JournalStore(tmp_path, PosixDisk())
    ids = ProducerIds.stored(store, store.load())
    with pytest.raises(KafkaError) as refused:
        await ids.take()
    assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    ids.met(5_000)
    ids.all_met()
    assert await ids.take() == 5_001 + PRODUCER_ID_LEAP
    store.close()
