"""Thousands of random histories of one log against a model of it in memory, which `Ledger` keeps.

Produce (plain, idempotent, transactional), commit, abort, DeleteRecords, retention, compaction, flushes,
clean and unclean restarts: after every few steps all records, the producers, the transactions and what a
reader of committed records sees are compared with the model. A failing seed is in the message.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.audit import audit
from tests.faults.bundle import play_bundle
from tests.faults.history import History
from tests.faults.ledger import COMPACTED, CONFIG, Ledger
from tests.support import depth

BUNDLES = 40
HISTORIES = 50
"""In each bundle."""
STEPS = 16
AUDIT_EVERY = 4


@pytest.mark.parametrize("bundle", depth.seeds(BUNDLES))
def test_histories(bundle: int, tmp_path: Path) -> None:
    play_bundle(play, bundle, HISTORIES, tmp_path)


@depth.deep
def test_histories_come_to_something(tmp_path: Path) -> None:
    """Else the model would be compared with nothing."""
    ledgers = [play(seed, tmp_path / str(seed)) for seed in range(40)]
    assert any(
        len(ledger.audited_offsets) < ledger.log.log_end_offset - ledger.log.log_start_offset
        for ledger in ledgers
    )
    assert any(ledger.log.reader.aborted(0, ledger.log.log_end_offset) for ledger in ledgers)
    assert any(ledger.log.log_start_offset > 0 for ledger in ledgers)
    assert any(len(ledger.log.epochs.entries) > 1 for ledger in ledgers)


def play(seed: int, folder: Path) -> Ledger:
    """Play a history, and return the log's ledger at its end."""
    rng = random.Random(seed)
    config = rng.choice((CONFIG, COMPACTED)).replaced(
        segment_bytes=rng.choice((2_000, 3_000, 6_000)),
        index_interval_bytes=rng.choice((0, 200, 4_096)),
        delete_retention_ms=rng.choice((0, 86_400_000)),
    )
    ledger = Ledger(folder, seed, config)
    try:
        history = History(ledger, rng)
        for number in range(1, STEPS + 1):
            history.step()
            if number % AUDIT_EVERY == 0:
                ledger.audited_offsets = audit(ledger, ledger.log)
    finally:
        ledger.let_go()
    return ledger
