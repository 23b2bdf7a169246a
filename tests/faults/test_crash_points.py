"""A crash at every single operation on the disk, in everything a log does.

Each action is carried out on the same prepared log again and again, and dies at its first, second, …
operation on the disk. What a killed process leaves, and several of the things a power loss may leave, are
opened again: nothing promised is lost, nothing read is corrupt, offsets are dense, epochs monotonic,
producers and transactions known as far as the log goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.audit import audit_left
from tests.faults.ledger import COMPACTED, CONFIG, Ledger
from tests.support import depth
from tests.support.power_loss import Crashed

POWER_LOSSES = depth.times(3)
"""Power losses tried for each point."""


def append(ledger: Ledger) -> None:
    ledger.append(3)


def append_acknowledged(ledger: Ledger) -> None:
    """Append as with flush.messages=1."""
    ledger.append(2, producer_id=7)
    ledger.sync()
    ledger.append(2, producer_id=7)
    ledger.sync()


def roll(ledger: Ledger) -> None:
    segments = len(ledger.log.segments.row)
    while len(ledger.log.segments.row) == segments:
        ledger.append(4, producer_id=7)


def flush_and_checkpoint(ledger: Ledger) -> None:
    """Index flush, then recovery point."""
    ledger.append(2)
    ledger.flush()
    ledger.checkpoint()


def flush_of_several_segments(ledger: Ledger) -> None:
    roll(ledger)
    roll(ledger)
    ledger.flush()
    ledger.checkpoint()


def flush_beside_appends(ledger: Ledger) -> None:
    """Flush as the background flusher does, while the log rolls."""
    ledger.append(2)
    ledger.flush_beside(lambda: roll(ledger))
    ledger.checkpoint()
    ledger.flush_beside(lambda: ledger.append(1))


def retention(ledger: Ledger) -> None:
    ledger.configure(retention_bytes=3_000)
    ledger.apply_retention()
    ledger.checkpoint()


def delete_records(ledger: Ledger) -> None:
    ledger.delete_before(ledger.log.log_end_offset // 2)
    ledger.checkpoint()


def snapshot_and_clean_stop(ledger: Ledger) -> None:
    ledger.append(2, producer_id=7)
    ledger.stop()


def markers(ledger: Ledger) -> None:
    ledger.append(2, producer_id=8, transactional=True)
    ledger.append(2, producer_id=9, transactional=True)
    ledger.end_transaction(8, commit=False)
    ledger.append(1)
    ledger.flush()
    ledger.end_transaction(9, commit=True)
    ledger.flush()
    ledger.checkpoint()


def compaction_swap(ledger: Ledger) -> None:
    ledger.flush()
    ledger.compact()
    ledger.append(1)


def second_compaction(ledger: Ledger) -> None:
    """Compact what was compacted before, so that segments are merged."""
    ledger.flush()
    ledger.compact()
    ledger.append(3, tombstones=True)
    roll(ledger)
    ledger.flush()
    ledger.compact()


def compaction_to_nothing(ledger: Ledger) -> None:
    """Write every key again, so that whole segments become empty, those at a group's end among them."""
    ledger.flush()
    for _ in range(8):
        ledger.append(8, 90)
    roll(ledger)
    ledger.flush()
    ledger.compact()
    ledger.append(1)


def new_epoch(ledger: Ledger) -> None:
    """Begin an epoch as after a start that recovered."""
    ledger.folder.begin_epoch([ledger.log])
    assert ledger.log.latest_epoch > ledger.epoch
    ledger.epoch = ledger.log.latest_epoch
    ledger.append(1)
    ledger.flush()
    ledger.checkpoint()


def truncation(ledger: Ledger) -> None:
    """Truncate in the middle of a segment that is not the last one; new records take the offsets."""
    ledger.checkpoint()
    ledger.truncate(ledger.log.segments.row[1].base_offset + 3)
    ledger.append(2, producer_id=7)
    roll(ledger)
    ledger.append(3)


def truncation_to_nothing(ledger: Ledger) -> None:
    """And what is written next looks as what was there before."""
    ledger.checkpoint()
    ledger.truncate(0)
    for _ in range(6):
        ledger.append(1, 90)


def truncation_of_what_is_compacted(ledger: Ledger) -> None:
    """Truncate where the cleaner has left gaps on both sides of the cut."""
    ledger.flush()
    ledger.compact()
    ledger.truncate(ledger.log.segments.row[-1].base_offset - 2)
    ledger.append(2)
    roll(ledger)
    ledger.flush()
    ledger.checkpoint()


def beginning_afresh(ledger: Ledger) -> None:
    """Far behind the log's end, where its leader begins."""
    ledger.checkpoint()
    end = ledger.log.log_end_offset
    ledger.start_afresh(end + 100)
    ledger.append(2, producer_id=7)
    ledger.flush()
    ledger.checkpoint()


def recovery(ledger: Ledger) -> None:
    """Crash during the recovery from a crash."""
    ledger.append(3, producer_id=7)
    ledger.reopen(clean=False)
    ledger.append(1)


ACTIONS: list[Callable[[Ledger], None]] = [
    append,
    append_acknowledged,
    roll,
    flush_and_checkpoint,
    flush_of_several_segments,
    flush_beside_appends,
    retention,
    delete_records,
    snapshot_and_clean_stop,
    markers,
    compaction_swap,
    second_compaction,
    compaction_to_nothing,
    new_epoch,
    truncation,
    truncation_to_nothing,
    truncation_of_what_is_compacted,
    beginning_afresh,
    recovery,
]
LONG = (second_compaction, compaction_to_nothing, truncation_of_what_is_compacted)
"""Hundreds of operations each."""


def prepared(path: Path, seed: int, *, compacted: bool) -> Ledger:
    """Several segments, an idempotent producer, a transaction of each kind; a part of it is flushed."""
    ledger = Ledger(path, seed, COMPACTED if compacted else CONFIG)
    for number in range(12):
        ledger.append(1 + number % 3, 90, producer_id=7 if number % 2 else -1)
        if number == 3:
            ledger.append(2, producer_id=5, transactional=True)
        if number == 5:
            ledger.end_transaction(5, commit=False)
            ledger.append(1, producer_id=6, transactional=True)
        if number == 7:
            ledger.flush()
            ledger.checkpoint()
            ledger.end_transaction(6, commit=True)
    return ledger


@depth.deep
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(action, marks=[depth.deep] if action in LONG else [], id=action.__name__)
        for action in ACTIONS
    ],
)
def test_a_crash_at_every_operation(action: Callable[[Ledger], None], tmp_path: Path) -> None:
    for point in itertools.count():
        compacted = action in (
            compaction_swap,
            second_compaction,
            compaction_to_nothing,
            truncation_of_what_is_compacted,
        )
        ledger = prepared(tmp_path / f"{point}", seed=point, compacted=compacted)
        ledger.disk.crash_at = len(ledger.disk.done) + point
        try:
            action(ledger)
        except Crashed as crash:
            print(f"{action.__name__}, point {point}: {crash}")
        ledger.let_go()
        audit_left(ledger, ledger.disk.after_kill(tmp_path / f"{point}-kill"))
        for number in range(POWER_LOSSES):
            print(f"{action.__name__}, point {point}, power loss {number}")
            audit_left(ledger, ledger.disk.after_power_loss(tmp_path / f"{point}-{number}"))
        if not ledger.disk.crashed:
            assert point > 0, "the action never touches the disk"
            return
