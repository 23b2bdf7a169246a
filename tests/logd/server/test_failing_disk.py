"""A disk that takes no more: an error, one line in the log, and nothing acknowledged that is not there.

The disk is failed by lowering the running broker's limit of file sizes: writes beyond it end in EFBIG.
"""

from __future__ import annotations

import resource
from pathlib import Path

from kafka_client.errors import ErrorCode
from kafka_client.records import iter_batches
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

LIMIT = 300_000
VALUE = b"x" * 10_000


def fill(client: RawClient, partition: int) -> tuple[int, int]:
    """Produce until it fails: (records acknowledged, the error)."""
    for number in range(1000):
        produced = client.produce("t", [(1, b"k", VALUE, ())], partition=partition)
        if produced.error_code:
            assert produced.base_offset == -1
            return number, produced.error_code
    raise AssertionError("the disk never filled")


def make(client: RawClient, partitions: int) -> None:
    topic = CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    assert client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def test_one_folder_fails_and_the_other_goes_on(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}) as logd:
        with RawClient(logd.port) as client:
            make(client, 2)
            resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
            acknowledged, error = fill(client, 0)
            assert acknowledged > 0
            assert error == ErrorCode.KAFKA_STORAGE_ERROR
            assert client.fetch("t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
            other = client.produce("t", [(1, b"k", b"v", ())], partition=1)
            assert (other.error_code, other.base_offset) == (0, 0)
            request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            offline, online = client.request(request, 12).topics[0].partitions
            assert (offline.error_code, offline.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert (online.error_code, online.leader_id) == (0, 1)
        assert logd.log.count("is offline") == 1
        assert "Traceback" not in logd.log


@deep
def test_a_broker_without_a_folder_stops_and_comes_back(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path)
    with logd:
        with RawClient(logd.port) as client:
            make(client, 1)
            resource.prlimit(logd.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
            acknowledged, error = fill(client, 0)
            assert error == ErrorCode.KAFKA_STORAGE_ERROR
        assert logd.wait() == 1
        assert "no log directory is left" in logd.log
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        logd.start()
        with RawClient(logd.port) as client:
            fetched = client.fetch("t", partition_max_bytes=1 << 26)
            assert fetched.high_watermark == acknowledged
            assert len(list(iter_batches(fetched.records))) == acknowledged
    assert "Traceback" not in logd.log
