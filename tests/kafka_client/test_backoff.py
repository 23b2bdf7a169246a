"""Waiting longer each time."""

from __future__ import annotations

import pytest

from kafka_client.backoff import Backoff


def test_backoff_doubles_up_to_its_limit_with_jitter() -> None:
    low, high = Backoff(0.1, 0.5, lambda: 0.0), Backoff(0.1, 0.5, lambda: 1.0)
    assert [round(low.next(), 3) for _ in range(4)] == [0.05, 0.1, 0.2, 0.25]
    assert [round(high.next(), 3) for _ in range(4)] == [0.1, 0.2, 0.4, 0.5]
    high.reset()
    assert high.next() == pytest.approx(0.1)
