"""Settings of what a broker does by the clock, where only the disk or the log can tell: the broker runs in a
thread of the test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from logd.errors import ErrorCode
from logd.records import build_batch
from logd.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.logd.broker.test_durability import Disk, Running, disk, make
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

__all__ = ["disk"]


@pytest.mark.parametrize(
    "settings", [{"log.flush.interval.ms": "0"}, {"log.flush.scheduler.interval.ms": "1"}]
)
def test_records_are_forced_to_the_disk_in_time(tmp_path: Path, disk: Disk, settings: dict[str, str]) -> None:
    """With 0 ms before the answer, otherwise behind it."""
    with Running(tmp_path, settings) as logd, RawClient(logd.port) as client:
        make(client, "t")
        make(client, "own", flush_ms="3600000")
        before = disk.done
        assert client.produce("own", [(1, None, b"v", ())]).error_code == 0
        assert disk.done == before, "the topic's own setting goes before"
        assert client.produce("t", [(1, None, b"v", ())]).error_code == 0
        if "log.flush.interval.ms" in settings:
            assert disk.done > before
        wait_for(lambda: disk.done > before)


def test_a_silent_producer_is_forgotten_in_time(tmp_path: Path) -> None:
    with Running(tmp_path, {"producer.id.expiration.ms": "1"}) as logd, RawClient(logd.port) as client:
        make(client, "t")
        for sequence in (0, 1):
            batch = build_batch(
                [(1, None, b"v", ())], producer_id=7, producer_epoch=0, base_sequence=sequence
            )
            assert client.produce("t", batch).error_code == ErrorCode.NONE
        assert producers(client) == [7]
        begun = logd.broker.now_ms()
        wait_for(lambda: logd.broker.now_ms() > begun + 1)
        logd.run(logd.broker.housekeeping.expire_producers())
        assert producers(client) == []


def producers(client: RawClient) -> list[int]:
    asked = TopicRequest(name="t", partition_indexes=[0])
    (topic,) = client.request(DescribeProducersRequest(topics=[asked]), 0).topics
    return [each.producer_id for each in topic.partitions[0].active_producers]
