"""Names that the worker processes, their driver and the audit share."""

from __future__ import annotations

INPUT, OUTPUT, GROUP = "eo-in", "eo-out", "eo-group"
INPUT_PARTITIONS, OUTPUT_PARTITIONS = 6, 4
KEYS = 60
SESSION_MS = 3_000
"""A member not heard of for so long has lost its partitions."""
TRANSACTION_MS = 300_000
"""Transactions must not end by their age here: a dead worker's successor has its transactional id."""
PATIENCE_MS = 240_000
"""For a broker that is away, on a machine that has much else to do."""
FENCED = 3
"""The exit status of a worker whose transactional id somebody else has."""


def changed(value: bytes) -> bytes:
    """Return the output for an input's value, `NUMBER AMOUNT`."""
    number, amount = value.split()
    return b"%s %d" % (number, 3 * int(amount) + 1)
