"""The blackhole sink counts what it drops."""

from connect.api import SinkRecord, TopicPartition
from connect.testing import SinkRun
from plugins.blackhole import BlackholeSink


def test_records_are_counted_and_their_offsets_may_be_committed():
    with SinkRun(BlackholeSink, {}) as sink:
        sink.put([SinkRecord("t", 0, 0, value=b"a"), SinkRecord("t", 0, 1, value=None)])
        sink.put([SinkRecord("t", 1, 7, value=b"b")])
        assert sink.task.statistics() == {"records": 3, "tombstones": 1, "batches": 2}
        assert sink.flush() == {TopicPartition("t", 0): 2, TopicPartition("t", 1): 8}
