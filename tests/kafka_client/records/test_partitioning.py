"""Kafka's hash of keys, and the split of records by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiokafka.partitioner import murmur2 as untyped
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.records import NewRecord
from kafka_client.records.partitioning import murmur2, partition_for_key, split_by_partition

reference: Callable[[bytes], int] = untyped
keys = st.none() | st.integers(0, 70).flatmap(lambda size: st.binary(min_size=size, max_size=size))


@given(st.binary(max_size=100))
def test_murmur2_is_kafkas(key: bytes) -> None:
    assert murmur2(key) == reference(key) & 0xFFFF_FFFF
    assert partition_for_key(key, 7) == (reference(key) & 0x7FFF_FFFF) % 7


@pytest.mark.parametrize(
    ("key", "signed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-longer-string", -1486304829)],
)
def test_values_of_kafkas_own_test(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFF_FFFF


@given(st.lists(keys, max_size=50), st.integers(1, 5), st.integers(0, 4))
def test_a_list_goes_where_its_records_would_go_one_by_one(
    keys: list[bytes | None], count: int, sticky: int
) -> None:
    sticky %= count
    calls: list[int] = []

    def partition_of_keyless() -> int:
        calls.append(sticky)
        return sticky

    records: list[NewRecord] = [(n, key, None, ()) for n, key in enumerate(keys)]
    expected: dict[int, list[NewRecord]] = {}
    for record in records:
        partition = sticky if record[1] is None else partition_for_key(record[1], count)
        expected.setdefault(partition, []).append(record)
    assert split_by_partition(records, count, partition_of_keyless) == expected
    assert len(calls) == (None in keys)


def test_what_cannot_be_placed_raises() -> None:
    records: list[NewRecord] = [(0, b"k", None, ()), (0, None, None, ())]
    with pytest.raises(ZeroDivisionError):
        split_by_partition(records, 2, lambda: 1 // 0)
    for partition in (2, -1):
        with pytest.raises(IndexError):
            split_by_partition(records, 2, lambda partition=partition: partition)  # type: ignore[misc]
    with pytest.raises(TypeError):
        murmur2("text")  # type: ignore[arg-type]
