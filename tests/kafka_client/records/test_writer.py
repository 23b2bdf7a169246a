"""The encoder takes keys and values from any buffer, and never writes past the room it made."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from kafka_client.records import build_batch, decode_records


class Growing(list[Any]):
    """Headers that have another value each time they are iterated over, as if another thread changed them."""

    def __iter__(self) -> Any:
        self.append(("name", b"v" * 1000 * len(self)))
        return super().__iter__()


@pytest.mark.parametrize("make", [bytearray, memoryview, lambda data: array("b", data)])
def test_any_buffer_is_a_value(make: Any) -> None:
    data = bytes(range(100))
    (record,) = decode_records(build_batch([(0, make(data), make(data), (("h", make(data)),))]))
    assert record == (0, 0, data, data, (("h", data),))


@pytest.mark.parametrize("place", ["key", "value", "header"])
def test_elements_of_several_bytes_are_counted_by_their_bytes(place: str) -> None:
    longs: Any = array("q", range(100_000))
    record = {
        "key": (0, longs, None, ()),
        "value": (0, None, longs, ()),
        "header": (0, None, None, (("h", longs),)),
    }[place]
    (read,) = decode_records(build_batch([record]))
    assert longs.tobytes() in (read[2], read[3], *(data for _, data in read[4]))


def test_a_record_that_grows_meanwhile_is_refused() -> None:
    headers: Any = Growing([("name", b"")])
    with pytest.raises(BufferError, match="grew"):
        build_batch([(0, b"k", b"v" * 10, headers), (0, b"k", b"v" * 10, ())])


def test_text_is_no_value() -> None:
    with pytest.raises(TypeError):
        build_batch([(0, None, "text", ())])  # type: ignore[list-item]
