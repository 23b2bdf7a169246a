"""A sync and the end offsets of both logs decide where copying goes on."""

from __future__ import annotations

import pytest

from kafka_client import TopicPartition
from mirror.errors import MirrorError, SourcePurged, SourceRecreated, TargetNotEmpty, TargetTruncated
from mirror.offsets import OffsetSync
from mirror.position import LogEnds, check_sync

TP = TopicPartition("flights", 3)
ID, REMOTE_ID, OTHER_ID = b"\1" * 16, b"\2" * 16, b"\3" * 16
SYNC = OffsetSync(TP, 990, 395, 1000, 400, ID, REMOTE_ID)


def test_records_behind_the_sync_are_counted_by_the_targets_end() -> None:
    assert check_sync(TP, SYNC, ID, REMOTE_ID, LogEnds(0, 2000), LogEnds(0, 450)) == 50
    assert check_sync(TP, SYNC, ID, REMOTE_ID, LogEnds(0, 2000), LogEnds(0, 400)) == 0


def test_without_a_sync_an_empty_target_is_a_beginning() -> None:
    assert check_sync(TP, None, ID, REMOTE_ID, LogEnds(500, 2000), LogEnds(0, 0)) == 0


def test_a_topic_id_that_is_not_known_is_no_other_topic() -> None:
    ends, unknown = (LogEnds(0, 2000), LogEnds(0, 400)), bytes(16)
    noted_without = SYNC._replace(topic_id=unknown, remote_topic_id=unknown)
    assert check_sync(TP, noted_without, ID, REMOTE_ID, *ends) == 0
    assert check_sync(TP, SYNC, unknown, unknown, *ends) == 0


def test_a_purged_source_is_fine_when_everything_behind_the_sync_is_still_to_come() -> None:
    assert check_sync(TP, SYNC, ID, REMOTE_ID, LogEnds(1500, 2000), LogEnds(0, 400)) == 0


@pytest.mark.parametrize(
    ("sync", "topic_id", "source", "target", "error"),
    [
        (None, ID, (0, 10), (0, 5), TargetNotEmpty),
        (SYNC, ID, (0, 2000), (0, 399), TargetTruncated),
        (SYNC, ID, (0, 2000), (0, 0), TargetTruncated),
        (SYNC, OTHER_ID, (0, 2000), (0, 450), SourceRecreated),
        (SYNC, ID, (0, 900), (0, 450), SourceRecreated),
        (SYNC, ID, (1001, 2000), (0, 450), SourcePurged),
    ],
)
def test_what_cannot_be_proved_is_refused(
    sync: OffsetSync | None,
    topic_id: bytes,
    source: tuple[int, int],
    target: tuple[int, int],
    error: type[MirrorError],
) -> None:
    with pytest.raises(error, match="flights-3"):
        check_sync(TP, sync, topic_id, REMOTE_ID, LogEnds(*source), LogEnds(*target))
