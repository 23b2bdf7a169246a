from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from aiokafka.partitioner import murmur2 as untyped
from hypothesis import given
from hypothesis import strategies as st

from logd.client.producer import partitioner
from logd.client.producer.murmur2 import murmur2
from logd.client.producer.partitioner import (
    KNOWN_KEYS_MAX,
    LEARNT_AT_ONCE_MIN,
    KeyPartitions,
    StickyPartitioner,
    partition_for_key,
)

reference: Callable[[bytes], int] = untyped


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


@given(st.lists(st.none() | st.binary(max_size=2)), st.integers(1, 5), st.integers(0, 4))
def test_a_list_goes_where_its_records_would_go_one_by_one(
    keys: list[bytes | None], count: int, sticky: int
) -> None:
    sticky %= count
    records = [(n, key, None, ()) for n, key in enumerate(keys)]
    expected: dict[int, list[object]] = {}
    for record in records:
        partition = sticky if record[1] is None else partition_for_key(record[1], count)
        expected.setdefault(partition, []).append(record)
    assert KeyPartitions(count).group(records, lambda: sticky) == expected


@given(
    st.lists(st.integers(0, 70).flatmap(lambda size: st.binary(min_size=size, max_size=size)), max_size=50)
)
def test_murmur2_of_many(keys: list[bytes]) -> None:
    pytest.importorskip("numpy")
    from logd.client.producer.murmur2_vectors import murmur2_many

    many = [key[:size] + bytes([n]) for key in keys for size in (3, 4, 11) for n in range(30)]
    for some in (keys, many):
        assert sorted(murmur2_many(some)) == sorted((key, murmur2(key)) for key in some)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_keys_that_are_all_new_are_learnt_at_once(is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_loaded:
        pytest.importorskip("numpy")
    else:
        monkeypatch.delitem(sys.modules, "numpy", raising=False)
    alone: list[bytes] = []

    def counting(key: bytes, count: int) -> int:
        alone.append(key)
        return murmur2(key) % (1 << 31) % count

    monkeypatch.setattr(partitioner, "_partition", counting)
    partition_for_key.cache_clear()
    known, size = KeyPartitions(3), 2 * LEARNT_AT_ONCE_MIN
    for begin in (0, size, 2 * size, 0, 3 * size):
        keys = [None if n % 10 == 0 else b"key %d" % n for n in range(begin, begin + size)]
        records = [(0, key, None, ()) for key in keys]
        for partition, grouped in known.group(records, lambda: 1).items():
            keyed = [key for _, key, _, _ in grouped if key is not None]
            assert [
                key for key in keys if key is not None and murmur2(key) % (1 << 31) % 3 == partition
            ] == keyed
    learnt = {int(key.split()[1]) // size for key in alone}
    assert learnt == ({0, 3} if is_loaded else {0, 1, 2, 3}), "what is known is no reason to look at the next"


def test_what_is_learnt_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setattr(partitioner, "KNOWN_KEYS_MAX", 500)
    known = KeyPartitions(3)
    for begin in range(0, 5000, 600):
        records = [(0, b"key %d" % n, None, ()) for n in range(begin, begin + 600)]
        grouped = known.group(records, lambda: 0)
        assert len(known) <= 500
        assert sum(map(len, grouped.values())) == 600


def test_keys_that_are_known_are_bounded() -> None:
    known = KeyPartitions(3)
    for n in range(KNOWN_KEYS_MAX + 10):
        assert known[b"%d" % n] == known[b"%d" % n]
        assert len(known) <= KNOWN_KEYS_MAX
    records = [(n, b"%d" % n, None, ()) for n in range(0, KNOWN_KEYS_MAX, 1000)]
    for partition, grouped in known.group(records, lambda: 0).items():
        assert {partition_for_key(key, 3) for _, key, _, _ in grouped} == {partition}


def test_nothing_is_left_of_a_list_that_cannot_be_placed() -> None:
    known = KeyPartitions(2)
    records = [(0, b"k", None, ()), (0, None, None, ())]
    with pytest.raises(ZeroDivisionError):
        known.group(records, lambda: 1 // 0)
    assert known.group([(1, b"k", None, ())], lambda: 0) == {
        partition_for_key(b"k", 2): [(1, b"k", None, ())]
    }


def test_keyless_records_stay_until_a_batch_is_full() -> None:
    numbers = iter([0.0, 0.99, 0.5, 0.0])
    sticky = StickyPartitioner(lambda: next(numbers))
    assert [sticky.partition("t", 3) for _ in range(4)] == [0, 0, 0, 0]
    sticky.batch_full("t", 2)
    assert sticky.partition("t", 3) == 0
    sticky.batch_full("t", 0)
    assert sticky.partition("t", 3) == 2
    sticky.batch_full("t", 2)
    assert sticky.partition("t", 3) == 1


def test_every_other_partition_can_be_next() -> None:
    chosen = set()
    for step in range(20):
        numbers = iter([0.0, step / 20])
        sticky = StickyPartitioner(lambda numbers=numbers: next(numbers))  # type: ignore[misc]
        assert sticky.partition("t", 4) == 0
        sticky.batch_full("t", 0)
        chosen.add(sticky.partition("t", 4))
    assert chosen == {1, 2, 3}


def test_one_partition_is_always_the_choice() -> None:
    sticky = StickyPartitioner(lambda: 0.7)
    for _ in range(3):
        assert sticky.partition("t", 1) == 0
        sticky.batch_full("t", 0)
