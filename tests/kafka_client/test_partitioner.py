from __future__ import annotations

from kafka_client.producer.partitioner import StickyPartitioner


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
