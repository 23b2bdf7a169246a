"""Random histories: what a broker does to a log, one step after another."""

from __future__ import annotations

import random

from tests.faults.ledger import COMPACTED, Ledger

PRODUCERS = range(20, 24)
"""Transactional ones."""


class History:
    """Goes on with `ledger`, randomly; with `acknowledged` all is synced, as flush.messages=1 asks."""

    def __init__(self, ledger: Ledger, rng: random.Random, *, acknowledged: bool = False) -> None:
        self._ledger = ledger
        self._rng = rng
        self._acknowledged = acknowledged
        ways = [
            "plain",
            "idempotent",
            "transactional",
            "end",
            "flush",
            "beside",
            "checkpoint",
            "delete",
            "restart",
        ]
        compacted = ledger.config.cleanup_policy == COMPACTED.cleanup_policy
        self._ways = [*ways, "compact", "compact", "tombstones"] if compacted else [*ways, "retention"]

    def step(self) -> None:
        """Do something."""
        way = self._rng.choice(self._ways)
        if way in ("plain", "idempotent", "transactional", "tombstones"):
            self._append(way)
        else:
            self._keep_house(way)
        if self._acknowledged:
            self._ledger.sync()

    def _append(self, way: str) -> None:
        rng = self._rng
        producer_id = {"idempotent": 7, "transactional": rng.choice(PRODUCERS)}.get(way, -1)
        self._ledger.append(
            rng.randint(1, 5),
            rng.randint(10, 300),
            producer_id=producer_id,
            transactional=way == "transactional",
            tombstones=way == "tombstones",
        )

    def _keep_house(self, way: str) -> None:
        ledger, rng, log = self._ledger, self._rng, self._ledger.log
        if way == "end":
            producers = log.producers.producers
            if open_producers := [
                number
                for number in PRODUCERS
                if number in producers and producers[number].txn_first_offset >= 0
            ]:
                ledger.end_transaction(rng.choice(open_producers), commit=rng.random() < 0.5)
        elif way == "flush":
            ledger.flush()
        elif way == "beside":
            ledger.flush_beside(lambda: self._append("plain"))
        elif way == "checkpoint":
            ledger.checkpoint()
        elif way == "delete":
            ledger.delete_before(rng.randint(log.log_start_offset, log.log_end_offset))
        elif way == "retention":
            ledger.configure(retention_bytes=rng.randint(2_000, 8_000))
            ledger.apply_retention()
        elif way == "compact":
            ledger.flush()
            ledger.compact()
        elif way == "restart":
            ledger.reopen(clean=rng.random() < 0.5)
