"""Records are found by time in batches that a thread has to decompress, or that nobody can read."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import Codec, read_header
from kafka_client.records.build import seal
from logd.storage.timestamp_search import NotSearched


def searched(reader: Any, timestamp: int, limit: int) -> tuple[list[int], Any]:
    """Return the base offsets of the batches that a thread has to search, and the final result."""
    start, batches = 0, []
    while True:
        try:
            return batches, reader.offset_for_timestamp(timestamp, start, decompressed_max=limit)
        except NotSearched as long:
            search = long.search
        batches.append(search.header.base_offset)
        result = search.run()
        if result is not None:
            return batches, result
        start = search.header.next_offset


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_long_batches_are_searched_one_after_the_other(store: Any, batch: Any, codec: Codec) -> None:
    for first in (100, 200, 300):
        values, times = ["x" * 1000] * 50, range(first, first + 50)
        store.log.writer.append(batch(*values, timestamps=list(times), codec=codec), 0, 0)
    reader = store.log.reader
    assert searched(reader, 220, 100_000) == ([], (220, 70, 0))
    assert searched(reader, 220, 10_000) == ([50], (220, 70))
    assert searched(reader, 250, 10_000) == ([100], (300, 100))
    assert searched(reader, 350, 10_000) == ([], None)
    assert reader.offset_of_max_timestamp() == (349, 149, 0)


def test_a_header_that_promises_more_than_the_batch_has(store: Any, batch: Any) -> None:
    """Searches by time go on after a batch whose header promises a later timestamp than its records have.
    Such batches are from before headers were corrected.
    """
    sent = batch(*["x" * 1000] * 50, timestamps=[100] * 50, codec=Codec.GZIP)
    lying = seal(read_header(sent)._replace(max_timestamp=10_000), sent[61:])
    store.log.writer.append(lying, 0, 0)
    store.log.writer.append(batch("later", timestamps=[900]), 0, 0)
    assert searched(store.log.reader, 800, 10_000) == ([0], (900, 50, 0))


def test_a_batch_that_cannot_be_read_is_named(store: Any, batch: Any) -> None:
    sent = batch("a", "b", timestamps=[1, 2], codec=Codec.GZIP)
    garbage = seal(read_header(sent)._replace(batch_length=49 + 20), b"\x1f\x8b" + b"garbage" * 2 + b"....")
    store.log.writer.append(batch("fine", timestamps=[0]), 0, 0)
    store.log.writer.append(garbage, 0, 0)
    with pytest.raises(KafkaError, match=r"offsets 1 to 2 cannot be read: gzip") as caught:
        store.log.reader.offset_for_timestamp(1)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_a_record_larger_than_allowed(store: Any, batch: Any) -> None:
    store.log.writer.append(batch("x" * 1000, timestamps=[1], codec=Codec.ZSTD), 0, 0)
    store.log.writer.append(batch("x" * 1000, timestamps=[2]), 0, 0)
    store.configure(max_decompressed_message_bytes=500)
    with pytest.raises(KafkaError, match="longer than a record may be"):
        store.log.reader.offset_for_timestamp(1)
    assert store.log.reader.offset_for_timestamp(2) == (2, 1, 0), (
        "it holds for compressed batches, as Kafka's"
    )
