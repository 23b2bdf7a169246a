from __future__ import annotations

import pytest

from kafka_client import Fetched, TopicPartition
from kafka_client.errors import CorruptRecordBatch
from kafka_client.fetcher.fetched import owned, whole_batches
from kafka_client.records import ABORT, COMMIT, Codec, assign_offset, build_batch, build_end_marker

TP = TopicPartition("t", 0)


def data(offset: int, *values: bytes, producer_id: int = -1, codec: Codec = Codec.NONE) -> bytes:
    return build_batch(
        [(0, None, value, ()) for value in values],
        base_offset=offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
    )


def marker(kind: int, offset: int, producer_id: int) -> bytes:
    return build_end_marker(
        kind,
        timestamp_ms=0,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        base_offset=offset,
    )


def fetched(
    *batches: bytes, position: int = 0, aborted: tuple[tuple[int, int], ...] | None = None
) -> Fetched:
    buffer = memoryview(b"".join(batches))
    whole = whole_batches(buffer)
    return Fetched(
        TP,
        position,
        whole.next_offset,
        buffer,
        record_count=whole.record_count,
        leader_epoch=whole.leader_epoch,
        aborted=aborted or (),
        committed_only=aborted is not None,
    )


def values(of: Fetched) -> list[bytes | None]:
    return [record[3] for record in of.records()]


def test_records_before_the_position_are_dropped() -> None:
    of = fetched(data(0, b"a", b"b", b"c"), data(3, b"d"), position=2)
    assert [(record[0], record[3]) for record in of.records()] == [(2, b"c"), (3, b"d")]
    assert of.next_offset == 4


def test_batches_are_handed_on_as_they_came() -> None:
    first, second = data(0, b"a" * 100, codec=Codec.LZ4), data(1, b"b")
    batches = list(fetched(first, second).batches())
    assert [bytes(batch) for _, batch in batches] == [first, second]
    assert [header.codec for header, _ in batches] == [Codec.LZ4, Codec.NONE]


def test_control_batches_are_shown_on_request_only() -> None:
    of = fetched(data(0, b"a", producer_id=1), marker(COMMIT, 1, 1), data(2, b"b"))
    assert values(of) == [b"a", b"b"]
    assert len(list(of.batches())) == 2
    assert len(list(of.batches(control=True))) == 3


def test_aborted_transactions_are_left_out_for_read_committed() -> None:
    batches = (
        data(0, b"kept 1", producer_id=1),
        data(1, b"dropped 1", producer_id=2),
        data(2, b"plain"),
        data(3, b"dropped 2", producer_id=2),
        marker(ABORT, 4, 2),
        data(5, b"kept 2", producer_id=2),
        marker(COMMIT, 6, 1),
        marker(COMMIT, 7, 2),
    )
    assert values(fetched(*batches, aborted=((2, 1),))) == [b"kept 1", b"plain", b"kept 2"]
    assert len(values(fetched(*batches))) == 5
    assert len(list(fetched(*batches, aborted=((2, 1),)).batches())) == 3


def test_a_producer_may_abort_twice_in_one_answer() -> None:
    batches = (
        data(0, b"no", producer_id=2),
        marker(ABORT, 1, 2),
        data(2, b"yes", producer_id=2),
        marker(COMMIT, 3, 2),
        data(4, b"no", producer_id=2),
        marker(ABORT, 5, 2),
    )
    assert values(fetched(*batches, aborted=((2, 4), (2, 0)))) == [b"yes"]


def test_a_transaction_aborted_before_the_first_batch_counts() -> None:
    batches = (data(10, b"no", producer_id=2), marker(ABORT, 11, 2), data(12, b"yes"))
    assert values(fetched(*batches, position=10, aborted=((2, 3),))) == [b"yes"]


def test_a_wrong_crc_is_found_when_records_are_read() -> None:
    broken = bytearray(data(0, b"value"))
    broken[-3] ^= 1
    of = fetched(bytes(broken))
    assert len(list(of.batches())) == 1
    with pytest.raises(CorruptRecordBatch, match="CRC"):
        of.records()


@pytest.mark.parametrize("cut", [1, 30, 61, 65])
def test_only_whole_batches_count(cut: int) -> None:
    whole, last = data(5, b"a", b"b"), data(7, b"cccc")
    assert whole_batches(memoryview(whole + last[:-cut]))[:2] == (len(whole), 7)
    assert whole_batches(memoryview(last[:-cut]))[:2] == (0, -1)
    assert whole_batches(memoryview(whole + last))[:2] == (len(whole + last), 8)


def test_a_nonsense_length_ends_the_whole_batches() -> None:
    nonsense = (5).to_bytes(8, "big") + (-1).to_bytes(4, "big", signed=True) + bytes(60)
    assert whole_batches(memoryview(nonsense))[:2] == (0, -1)


def test_batches_tell_how_many_records_they_hold_and_of_which_epoch() -> None:
    first, second = data(5, b"a", b"b"), bytearray(data(7, b"c"))
    assign_offset(second, 7, 3)
    assert whole_batches(memoryview(first + second))[2:] == (3, 3)


def pieces(of: Fetched, *, max_bytes: int = 1 << 20, max_records: int = 1 << 20) -> list[Fetched]:
    taken_pieces = []
    rest: Fetched | None = of
    while rest is not None:
        piece, rest = rest.cut(max_bytes, max_records)
        taken_pieces.append(piece)
    return taken_pieces


def test_a_fetch_is_cut_between_batches_and_nothing_of_it_lost() -> None:
    """Decoding a whole fetch at once filled the memory of a caller that asked for a few records."""
    batches = [data(3 * n, b"a", b"b", b"c") for n in range(5)]
    of = fetched(*batches, position=1)
    of.next_offset = 20  # after the last batch there may be a gap
    parts = pieces(of, max_records=7)
    assert [part.record_count for part in parts] == [6, 6, 3]
    assert [part.position for part in parts] == [1, 6, 12]
    assert [part.next_offset for part in parts] == [6, 12, 20]
    assert [record[0] for part in parts for record in part.records()] == list(range(1, 15))
    assert [len(part.buffer) for part in pieces(of, max_bytes=1)] == [len(batch) for batch in batches]
    assert pieces(of) == [of]


def test_what_is_aborted_stays_so_in_every_piece() -> None:
    batches = (
        data(0, b"no", producer_id=2),
        data(1, b"no", producer_id=3),
        marker(ABORT, 2, 2),
        data(3, b"yes", producer_id=2),
        data(4, b"no", producer_id=3),
        marker(COMMIT, 5, 2),
        marker(ABORT, 6, 3),
        data(7, b"yes", producer_id=3),
        data(8, b"no", producer_id=2),
    )
    of = fetched(*batches, aborted=((2, 0), (3, 1), (2, 8)))
    for max_records in range(1, 10):
        parts = pieces(of, max_records=max_records)
        assert [value for part in parts for value in values(part)] == [b"yes", b"yes"], max_records


def test_a_small_slice_owns_its_bytes() -> None:
    """Small slices are copied: each kept a whole response of 50 MB in memory."""
    response = memoryview(bytes(50_000))
    assert owned(response[:100]).obj is not response.obj
    assert owned(response[:25_000]).obj is response.obj
