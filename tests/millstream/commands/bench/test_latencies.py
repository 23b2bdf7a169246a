"""The latencies and the payloads of benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from millstream.commands.bench.latencies import Latencies
from millstream.commands.bench.payload import file_payloads, random_payloads, slices
from millstream.commands.bench.producing import slice_size
from millstream.terminal.status import UsageError


def test_percentiles_count_records_not_batches() -> None:
    latencies = Latencies()
    latencies.note(1.9, 949)
    latencies.note(20.0, 41)
    latencies.note(300.5, 10)
    assert latencies.count == 1000
    assert latencies.percentiles_ms(0.5, 0.95, 0.99, 0.999) == [1, 20, 20, 300]
    assert latencies.average_ms == pytest.approx((1.9 * 949 + 20 * 41 + 3005) / 1000)
    assert latencies.max_ms == 300.5
    assert Latencies().percentiles_ms(0.5, 0.99) == [0, 0]


def test_payloads(tmp_path: Path) -> None:
    assert {len(each) for each in random_payloads(7)} == {7}
    assert random_payloads(7) == random_payloads(7)
    assert random_payloads(0) == [b""]
    assert list(slices([b"a", b"b", b"c"], 7, 4)) == [[b"a", b"b", b"c", b"a"], [b"b", b"c", b"a"]]
    file = tmp_path / "payloads"
    file.write_bytes(b"x,,y\n,")
    assert file_payloads(file, b",") == [b"x", b"y\n"]
    file.write_bytes(b",")
    with pytest.raises(UsageError, match="no records"):
        file_payloads(file, b",")
    with pytest.raises(ConfigError, match="cannot be read"):
        file_payloads(tmp_path / "none", b",")


def test_slices_are_small_where_records_are_few() -> None:
    assert slice_size([b"x" * 100], -1) == 163
    assert slice_size([b"x" * 100], 1_000) == 10
    assert slice_size([b"x" * 100], 1) == 1
    assert slice_size([b"x" * 100_000], -1) == 1
