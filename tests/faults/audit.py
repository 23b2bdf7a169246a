"""The promises of a log that a crash left, checked against the ledger of the writes to it."""

from __future__ import annotations

from pathlib import Path

from kafka_client.records import COMMIT, build_batch, decode_records, iter_batches, parse_control
from logd.storage import Log
from logd.storage.scan import scan_headers
from tests.faults.ledger import KEY, Ledger, let_go, open_folder


def audit_left(ledger: Ledger, path: Path) -> None:
    """Open what a crash left in `path`: it is what was written, it can be written to, and a second start
    after that finds the same.
    """
    offsets = _audit_folder(ledger, path)
    assert _audit_folder(ledger, path) == offsets, "a second start finds something else"


def audit(ledger: Ledger, log: Log) -> list[int]:
    """Return the log's offsets.

    Raises AssertionError for records that are lost, corrupt, out of order or forgotten.
    """
    assert log.log_end_offset >= ledger.promised, (
        f"the log ends at {log.log_end_offset}, {ledger.promised} was acknowledged"
    )
    assert ledger.start_promised <= log.log_start_offset <= max(ledger.start_asked, ledger.start_promised)
    log.replicated_to(log.log_end_offset)
    offsets = _audit_records(ledger, log)
    _audit_epochs(ledger, log)
    _audit_times(log)
    _audit_producers(ledger, log)
    _audit_transactions(ledger, log, set(offsets))
    _audit_committed(ledger, log)
    return offsets


def _audit_folder(ledger: Ledger, path: Path) -> list[int]:
    folder = open_folder(path, ledger.config, None)
    try:
        if KEY not in folder.logs:
            assert ledger.promised == 0, "the log is gone"
            return []
        log = folder.logs[KEY]
        offsets = audit(ledger, log)
        _audit_appending(ledger, log)
        return offsets
    finally:
        let_go(folder)


def _audit_records(ledger: Ledger, log: Log) -> list[int]:
    """Check that records are as written, none is missing that must exist, and epochs do not go back."""
    offsets: list[int] = []
    epoch = -1
    for chunk in log.reader.batches(log.log_start_offset):
        for position, header in iter_batches(chunk):
            assert header.partition_leader_epoch >= epoch, "leader epochs go back"
            epoch = header.partition_leader_epoch
            for offset, _, key, value, _ in decode_records(chunk, position):
                written = ledger.records[offset]
                assert epoch == written.leader_epoch
                if written.marker is not None:
                    assert header.is_control and parse_control(key)[1] == (COMMIT if written.marker else 0)
                else:
                    assert (key, value) == (written.key, written.value), (
                        f"offset {offset} holds something else"
                    )
                if offset >= log.log_start_offset:
                    assert not offsets or offset > offsets[-1], "offsets go back"
                    offsets.append(offset)
    missing = set(range(log.log_start_offset, log.log_end_offset)).difference(offsets)
    assert missing <= ledger.may_be_gone(log.log_end_offset), "records are missing"
    for began, start in log.epochs.entries:
        # At the end of an empty log stands the epoch of what was deleted.
        assert start == log.log_end_offset or ledger.records[start].leader_epoch >= began
    return offsets


def _audit_epochs(ledger: Ledger, log: Log) -> None:
    """Check that a reader of records that are lost now can notice the loss (KIP-320)."""
    end = log.log_end_offset
    lost_epochs = [record.leader_epoch for offset, record in ledger.records.items() if offset >= end]
    if lost_epochs:
        assert log.latest_epoch > ledger.epoch, "offsets are used again in the same leader epoch"
    for epoch in {*lost_epochs}:
        assert log.end_offset_for_epoch(epoch)[1] <= end, f"what is lost of epoch {epoch} is not told"


def _audit_times(log: Log) -> None:
    """Check each segment's largest timestamp, without which retention would delete the segment."""
    for segment in log.segments.row:
        headers = [header for _, header in scan_headers(segment.file, 0, segment.size)]
        # A batch that compaction emptied counts for nothing.
        latest = max((header.max_timestamp for header in headers if header.count), default=-1)
        assert segment.largest_timestamp >= latest, f"{segment.file_name} seems to be older than it is"


def _audit_producers(ledger: Ledger, log: Log) -> None:
    """Check that each producer's next sequence follows the last record that is left of the producer."""
    due = {
        record.producer_id: record.sequence + 1
        for offset, record in sorted(ledger.records.items())
        if log.log_start_offset <= offset < log.log_end_offset and record.sequence >= 0
    }
    for producer_id, sequence in due.items():
        assert log.producers.producers[producer_id].next_sequence == sequence, f"producer {producer_id}"


def _audit_transactions(ledger: Ledger, log: Log, offsets: set[int]) -> None:
    """Check that the last stable offset and the aborted transactions are what the records say.

    Of a transaction whose first records were deleted the log may know the beginning or not.
    """
    start, end = log.log_start_offset, log.log_end_offset
    transactions, left = list(ledger.transactions(0, end)), list(ledger.transactions(start, end))
    unstable = [
        min((max(each.records[0], start) for each in some if each.end is None), default=None)
        for some in (transactions, left)
    ]
    assert log.first_unstable_offset in unstable
    aborted_index = {
        (each.producer_id, each.last_offset): each.first_offset for each in log.reader.aborted(start, end)
    }
    aborted = {
        (each.producer_id, each.end): each
        for each in transactions
        if each.end is not None and not each.committed
    }
    assert aborted_index.keys() <= aborted.keys()
    for (producer_id, marker), transaction in aborted.items():
        if remaining := [offset for offset in transaction.records if offset in offsets]:
            assert aborted_index[producer_id, marker] <= remaining[0], "an aborted transaction would be read"


def _audit_committed(ledger: Ledger, log: Log) -> None:
    """Check that a reader of committed records sees each transaction as a whole or not at all."""
    # The consumer's algorithm: KafkaConsumer does the same with what Fetch answers.
    start, end = log.log_start_offset, log.log_end_offset
    stable = end if log.first_unstable_offset is None else log.first_unstable_offset
    waiting = sorted(log.reader.aborted(start, stable), key=lambda each: -each.first_offset)
    aborting: set[int] = set()
    visible: set[int] = set()
    for chunk in log.reader.batches(start, stable):
        for position, header in iter_batches(chunk):
            while waiting and waiting[-1].first_offset <= header.last_offset:
                aborting.add(waiting.pop().producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                visible.update(record[0] for record in decode_records(chunk, position) if record[0] >= start)
    invisible = {
        offset for each in ledger.transactions(0, end) if not each.committed for offset in each.records
    }
    assert not visible & invisible, "records of an aborted or open transaction are read"
    due = {
        offset
        for offset in range(start, stable)
        if offset not in invisible and ledger.records[offset].marker is None
    }
    assert due - visible <= ledger.may_be_gone(end), "committed records are not read"


def _audit_appending(ledger: Ledger, log: Log) -> None:
    """Check that the log can be written to at its end."""
    end = log.log_end_offset
    batch = build_batch([(ledger.now, b"k", b"next", ())])
    assert log.writer.append(batch, max(log.latest_epoch, 0), ledger.now).base_offset == end
    log.shortening.truncate_to(end, ledger.now)
    assert log.log_end_offset == end
