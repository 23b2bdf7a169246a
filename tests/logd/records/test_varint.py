"""The table of small numbers as varints."""

from logd.records.varint import TABLE, TABLE_SIZE, read_zigzag, varint


def test_the_table_has_what_would_be_computed() -> None:
    assert [varint(value) for value in range(TABLE_SIZE)] == TABLE
    assert all(read_zigzag(TABLE[value], 0) == (2 * value, len(TABLE[value])) for value in range(TABLE_SIZE))
