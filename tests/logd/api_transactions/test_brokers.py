"""Settings that concern transactions, tested with brokers of their own."""

from __future__ import annotations

from pathlib import Path

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.logd.api_transactions.producers import RawProducer, committed_values, make_topic
from tests.logd.broker.log_dirs import home
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


def state_of(client: RawClient, transactional_id: str) -> str | ErrorCode:
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    state = client.request(request, 0).transaction_states[0]
    return ErrorCode(state.error_code) if state.error_code else str(state.transaction_state)


def test_with_an_fsync_for_every_message(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"log.flush.interval.messages": 1}) as logd, RawClient(logd.port) as client:
        topic = make_topic(client, "t", 2)
        for version in (0, 2):
            producer = RawProducer(client, f"x{version}", version=version)
            assert producer.init() == 0
            for value, commit in (("a", True), ("b", False), ("c", True)):
                for partition in (0, 1):
                    assert producer.produce(topic, value, partition=partition) == 0
                assert producer.end(commit).error_code == 0
                wait_for(lambda name=producer.transactional_id: state_of(client, name).startswith("Complete"))
        assert committed_values(client, topic) == committed_values(client, topic, 1) == ["a", "c", "a", "c"]


@deep
def test_a_transaction_in_many_partitions(tmp_path: Path) -> None:
    with LogdProcess(tmp_path) as logd, RawClient(logd.port) as client:
        topic = make_topic(client, "t", 250)
        producer = RawProducer(client, "x", version=0)
        assert producer.init() == 0
        everywhere = [(topic, index) for index in range(250)]
        assert set(producer.add(*everywhere).values()) == {0}
        for index in (0, 120, 249):
            assert producer.produce(topic, "a", partition=index, version=11) == 0
        assert producer.end(True).error_code == 0
        wait_for(lambda: state_of(client, "x") == "CompleteCommit")
        assert committed_values(client, topic, 249) == ["a"]
        assert client.fetch(topic, partition=7).high_watermark == 1, "a marker alone"


@deep
def test_an_id_expires(tmp_path: Path) -> None:
    settings = {
        "transactional.id.expiration.ms": 1,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 20,
    }
    with LogdProcess(tmp_path, settings) as logd, RawClient(logd.port) as client:
        topic = make_topic(client, "t")
        producer = RawProducer(client, "x", version=0)
        assert producer.init() == 0
        wait_for(lambda: state_of(client, "x") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        assert producer.add((topic, 0)) == {(topic, 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        logd.stop()
        logd.start()
        with RawClient(logd.port) as again:
            wait_for(lambda: state_of(again, "x") is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            assert state_of(again, "x") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_without_verification_a_batch_may_open_a_transaction(tmp_path: Path) -> None:
    settings = {"transaction.partition.verification.enable": "false"}
    with LogdProcess(tmp_path, settings) as logd, RawClient(logd.port) as client:
        topic = make_topic(client, "t")
        producer = RawProducer(client, "x", version=0)
        assert producer.init() == 0
        assert producer.produce(topic, "a", version=11) == 0


def test_producer_ids_are_given_once(tmp_path: Path) -> None:
    with LogdProcess(tmp_path) as logd:
        producer_ids = set()
        for _ in range(2):
            with RawClient(logd.port) as client:
                for name in ("x", "y"):
                    producer = RawProducer(client, f"{name}{len(producer_ids)}")
                    assert producer.init() == 0
                    producer_ids.add(producer.producer_id)
            logd.kill()
            logd.start()
        assert len(producer_ids) == 4


@deep
def test_a_marker_waits_for_a_folder_that_is_away(tmp_path: Path) -> None:
    """Transactions commit while a partition's log directory is away; the partition gets the marker once it
    is back.
    """
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    settings = {"log.dirs": folders, "transaction.state.log.num.partitions": 1}
    with LogdProcess(tmp_path, settings) as logd:
        with RawClient(logd.port) as client:
            producer = RawProducer(client, "x")
            assert producer.init() == 0
            make_topic(client, "t", 3)
            homes = {index: home(tmp_path, f"t-{index}") for index in range(3)}
            (coordinator,) = tmp_path.glob("*/__transaction_state-0")
            away = next(index for index, home in homes.items() if home != coordinator.parent.name == "a")
            here = next(index for index, home in homes.items() if home == "a")
            for index in (away, here):
                assert producer.produce("t", "v", partition=index) == 0
        logd.stop()
        folder, elsewhere = tmp_path / "b", tmp_path / "elsewhere"
        folder.rename(elsewhere)
        folder.touch()
        logd.start()
        with RawClient(logd.port) as client:
            producer.client = client
            wait_for(lambda: state_of(client, "x") == "Ongoing")
            assert producer.end(True).error_code == 0
            assert committed_values(client, "t", here) == ["v"]
            assert state_of(client, "x") == "PrepareCommit"
            assert producer.init_once() == ErrorCode.CONCURRENT_TRANSACTIONS
        logd.stop()
        folder.unlink()
        elsewhere.rename(folder)
        logd.start()
        with RawClient(logd.port) as client:
            wait_for(lambda: state_of(client, "x") == "CompleteCommit")
            assert committed_values(client, "t", here) == committed_values(client, "t", away) == ["v"]
        assert "Traceback" not in logd.log
