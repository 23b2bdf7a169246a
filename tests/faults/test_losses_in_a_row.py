"""A power loss, a start that recovers and flushes, and another power loss.

What recovery had built again, the flush behind it took to be on the disk: the recovery point passed indexes
that only the kernel's cache had. Read as zeros after the second loss they made a segment seem to be of 1970,
and retention deleted it. And a transaction index that recovery was building again was believed when a crash
had left it empty: aborted records were read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.audit import audit_left
from tests.faults.ledger import CONFIG, Ledger
from tests.support import depth
from tests.support.power_loss import Crashed


@pytest.mark.parametrize("seed", depth.seeds(6))
def test_indexes_that_recovery_built_are_flushed(seed: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "0", seed, CONFIG)
    for _ in range(12):
        ledger.append(3)
        ledger.sync()
    ledger.let_go()
    first = ledger.disk.after_power_loss(tmp_path / "1")
    ledger.revive(first)
    assert len(ledger.log.segments.row) > 1
    ledger.append(1)
    ledger.flush()
    ledger.checkpoint()
    ledger.let_go()
    audit_left(ledger, ledger.disk.after_power_loss(tmp_path / "2"))


@depth.deep
def test_a_crash_while_a_transaction_index_is_built_again(tmp_path: Path) -> None:
    for point in range(200):
        ledger = Ledger(tmp_path / f"{point}", point, CONFIG)
        for _ in range(2):
            ledger.append(1, producer_id=20, transactional=True)
            ledger.end_transaction(20, commit=False)
        ledger.flush()
        ledger.checkpoint()
        (index,) = ledger.log.directory.glob("*.txnindex")
        ledger.let_go()
        ledger.disk.open(index).write(index.stat().st_size, [b"torn"])
        ledger.disk.crash_at = len(ledger.disk.done) + point
        try:
            ledger.reopen(clean=False)
        except Crashed:
            ledger.disk.crashed = False
        else:
            ledger.let_go()
        ledger.folder.unlock()
        for number in range(4):
            audit_left(ledger, ledger.disk.after_power_loss(tmp_path / f"{point}-{number}"))
        if len(ledger.disk.done) < (ledger.disk.crash_at or 0):
            assert point > 3
            return
    raise AssertionError("opening never ends")
