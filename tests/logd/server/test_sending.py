"""The way out: sendfile and copying, clients that do not read, connections that are closed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafka_client.records import build_batch, decode_records, iter_batches
from kafka_client.wire import encode_request
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

VALUE_BYTES = 500_000
BATCHES = 20


@pytest.fixture(scope="module", params=["sendfile", "copy"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def filled(way: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker with a topic ``t`` of 10 MB that sends either way, for all tests
    that leave it as it is.
    """
    with sending(tmp_path_factory.mktemp(way), way) as logd:
        yield logd


@pytest.fixture
def impatient(way: str, tmp_path: Path) -> Iterator[LogdProcess]:
    """Yield a broker like ``filled``, for one test. It closes connections that idle for two seconds, but not
    while it is filled.
    """
    with sending(tmp_path, way) as logd:
        assert logd.stop() == 0
        logd.overrides["connections.max.idle.ms"] = 2000
        logd.start()
        yield logd


@contextmanager
def sending(folder: Path, way: str) -> Iterator[LogdProcess]:
    with LogdProcess(folder, {"millstream.fetch.send": way}) as logd:
        with RawClient(logd.port) as client:
            client.request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
            for number in range(BATCHES):
                value = bytes([number]) * VALUE_BYTES
                assert client.produce("t", build_batch([(number, None, value, ())])).error_code == 0
        yield logd


def kernel_queues(broker: int, client: int) -> int:
    """Return the bytes that the broker's port has sent to the client's and that are not read: those in both
    kernels' queues.
    """
    queued = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        ports = int(local.rpartition(":")[2], 16), int(remote.rpartition(":")[2], 16)
        to_send, to_read = (int(size, 16) for size in queues.split(":"))
        queued += to_send if ports == (broker, client) else to_read if ports == (client, broker) else 0
    return queued


def waits(broker: LogdProcess, client: int) -> bool:
    """Return True if a whole response has left the broker and waits for its client."""
    return kernel_queues(broker.port, client) > VALUE_BYTES


def test_a_response_larger_than_every_buffer_arrives_whole(filled: LogdProcess) -> None:
    with RawClient(filled.port) as client:
        records = client.fetch("t", partition_max_bytes=1 << 26).records
        values = [decode_records(records, pos)[0][3] for pos, _ in iter_batches(records)]
        assert values == [bytes([number]) * VALUE_BYTES for number in range(BATCHES)]


def test_an_answer_leaves_at_once_before_its_client_reads(filled: LogdProcess) -> None:
    """Responses leave at once, before their client reads. With Apache Kafka's send buffer of 102,400 bytes
    the broker woke up five times for a fetch of 1 MB.
    """
    with RawClient(filled.port) as client, RawClient(filled.port) as other:
        client.send_fetch("t", partition_max_bytes=1)
        port = client.socket.getsockname()[1]
        wait_for(lambda: bool(other.request(MetadataRequest(topics=[]), 9)) and waits(filled, port))


def test_many_responses_stay_in_order_behind_a_slow_reader(filled: LogdProcess) -> None:
    with RawClient(filled.port) as client:
        for offset in range(BATCHES):
            client.send_fetch("t", offset, partition_max_bytes=1)
            client.send(encode_request(MetadataRequest(topics=[]), 9, 7, "raw"))
        for offset in range(BATCHES):
            records = client.receive(1, 12).responses[0].partitions[0].records
            assert decode_records(records)[0][:1] == (offset,)
            assert client.receive(3, 9).brokers


@deep
def test_a_client_that_never_reads_costs_little_and_is_closed(impatient: LogdProcess) -> None:
    with RawClient(impatient.port) as reader:
        reader.fetch("t")
    before = impatient.forget_peak()
    with RawClient(impatient.port) as greedy:
        with suppress(ConnectionError):  # it may be closed before it has asked for all
            for _ in range(200):
                greedy.send_fetch("t", partition_max_bytes=1 << 26)
        with RawClient(impatient.port) as reader:
            reader.fetch("t", max_wait_ms=10)
        assert impatient.peak_bytes - before < 20_000_000
        impatient.wait_for_log("the client does not read")


@deep
def test_an_idle_connection_is_closed(impatient: LogdProcess) -> None:
    with RawClient(impatient.port) as client:
        assert client.is_closed_by_peer()
    impatient.wait_for_log("idle for")


@deep
def test_clients_that_leave_in_the_middle(filled: LogdProcess) -> None:
    descriptors = Path(f"/proc/{filled.pid}/fd")
    with RawClient(filled.port) as reader:
        reader.fetch("t")
        before = len(os.listdir(descriptors))
        for _ in range(30):
            with RawClient(filled.port) as client:
                client.send_fetch("t", partition_max_bytes=1 << 26)
            with RawClient(filled.port) as waiting:
                waiting.send_fetch("t", BATCHES, max_wait_ms=100_000)
        wait_for(lambda: len(os.listdir(descriptors)) <= before)
    assert "Traceback" not in filled.log


@deep
def test_a_topic_deleted_while_it_is_being_sent(way: str, tmp_path: Path) -> None:
    from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest

    with sending(tmp_path, way) as logd, RawClient(logd.port) as reader, RawClient(logd.port) as admin:
        reader.send_fetch("t", partition_max_bytes=1 << 26)
        assert admin.request(DeleteTopicsRequest(topic_names=["t"]), 5).responses[0].error_code == 0
        records = reader.receive(1, 12).responses[0].partitions[0].records
        assert len(list(iter_batches(records))) == BATCHES


def test_too_many_connections(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"max.connections.per.ip": "2"}) as logd:
        first, second, third = (RawClient(logd.port) for _ in range(3))
        assert third.is_closed_by_peer()
        third.close()
        first.close()
        for _ in range(1000):
            with RawClient(logd.port) as again:
                again.send(encode_request(MetadataRequest(topics=[]), 9, 7, "raw"))
                if again.receive_frame() is not None:
                    break
        else:
            pytest.fail("the place of a connection that left is not given again")
        second.close()
        logd.wait_for_log("max.connections.per.ip=2")
