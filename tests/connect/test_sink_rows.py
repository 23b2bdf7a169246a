"""Parts of what was fetched, in pieces of so many bytes."""

from hypothesis import given
from hypothesis import strategies as st

from connect.runtime.sink_rows import bounded
from kafka_client.fetcher.parts import Part

SIZES = st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=40)


@given(SIZES, st.integers(1, 200), st.integers(0, 5))
def test_pieces_have_all_records_in_order_and_no_more_bytes_than_allowed(sizes, max_bytes, behind):
    records = [(i, 0, b"k", None if size is None else b"x" * size, ()) for i, size in enumerate(sizes)]
    pieces = list(bounded(Part(records, len(records) + behind, 0), max_bytes))
    assert [record for piece in pieces for record in piece.records] == records
    assert pieces[-1].next_offset == len(records) + behind
    for piece in pieces:
        assert len(piece.records) <= 1 or sum(1 + len(r[3] or b"") for r in piece.records) <= max_bytes
        assert piece is pieces[-1] or piece.next_offset == piece.records[-1][0] + 1


def test_many_records_near_the_bound_are_measured():
    records = [(i, 0, None, b"x" * 100, ()) for i in range(5000)]
    assert [len(p.records) for p in bounded(Part(records, 5000, 0), 400_000)] == [4000, 1000]
    assert [len(p.records) for p in bounded(Part(records, 5000, 0), 4_000_000)] == [5000]
