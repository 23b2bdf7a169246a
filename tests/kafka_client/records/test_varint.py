"""Zigzag varints outside of records."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_client.records.varint import read_zigzag, varint


@given(value=st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_number_is_read_as_it_was_written(value: int) -> None:
    written = varint(value)
    assert read_zigzag(written + b"\x01", 0) == (2 * value if value >= 0 else -2 * value - 1, len(written))


def test_known_numbers() -> None:
    assert [varint(n) for n in (0, -1, 1, 63, 64, -65)] == [
        b"\0", b"\1", b"\2", b"\x7e", b"\x80\1", b"\x81\1",
    ]  # fmt: skip
