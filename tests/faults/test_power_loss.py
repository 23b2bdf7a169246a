"""Random histories on a machine that loses its power again and again.

The fault model is `tests.support.power_loss`. What was acknowledged with ``flush.messages=1``, and what the
background flusher has written, is there after every loss; whatever else is there is what was written,
without a gap. A failing seed is in the test's name.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.audit import audit_left
from tests.faults.history import History
from tests.faults.ledger import COMPACTED, CONFIG, Ledger
from tests.support import depth
from tests.support.power_loss import Crashed

HISTORIES = 120
LOSSES = 4
STEPS = 14


@pytest.mark.parametrize("seed", depth.seeds(HISTORIES))
def test_history(seed: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "0", seed, COMPACTED if seed % 2 else CONFIG)
    rng = random.Random(seed)
    history = History(ledger, rng, acknowledged=seed % 3 == 0)
    for loss in range(1, LOSSES + 1):
        ledger.disk.crash_at = len(ledger.disk.done) + rng.randint(0, 60)
        try:
            for _ in range(STEPS):
                history.step()
        except Crashed:
            pass
        ledger.let_go()
        left = tmp_path / f"{loss}"
        ledger.disk.after_kill(left) if rng.random() < 0.3 else ledger.disk.after_power_loss(left)
        audit_left(ledger, left)
        if loss < LOSSES:
            ledger.revive(left)
