"""A connection has a buffer of its own only while received bytes are left over."""

from __future__ import annotations

import mmap

import pytest

from logd.server.receive_buffer import BUFFER_BYTES, LENGTH, ReceiveBuffer
from logd.server.receive_buffers import READ_WINDOW, ReceiveBuffers


def receive(received: ReceiveBuffer, data: bytes, *, may_receive: bool = True) -> None:
    """Receive as much as there is room for, again and again. Nothing is served meanwhile."""
    while data:
        room = received.room() if received.filled else received.view
        size = min(len(room), len(data))
        room[:size] = data[:size]
        received.filled += size
        received.keep(may_receive)
        data = data[size:]


def frame(size: int) -> bytes:
    """Return a request of `size` bytes, after its length."""
    return LENGTH.pack(size) + bytes(number % 251 for number in range(size))


def content(received: ReceiveBuffer) -> bytes:
    return bytes(received.view[received.start : received.filled])


@pytest.mark.parametrize("size", [1, 3, 100, BUFFER_BYTES, BUFFER_BYTES + 1, READ_WINDOW, 200_000])
def test_what_is_left_survives_what_others_receive(size: int) -> None:
    lender = ReceiveBuffers()
    first, second = ReceiveBuffer(lender), ReceiveBuffer(lender)
    data = frame(300_000)[:size]
    receive(first, data)
    receive(second, b"x" * READ_WINDOW)
    assert content(first) == data
    assert first.is_lent == (size >= READ_WINDOW)
    assert len(first.buffer) >= BUFFER_BYTES


def test_nothing_of_its_own_stays_when_all_is_served() -> None:
    lender = ReceiveBuffers()
    received = ReceiveBuffer(lender)
    for size in (100, 40_000, 1_000_000):
        receive(received, frame(size))
        assert content(received) == frame(size)
        assert received.buffer is not lender.window
        assert received.served(received.filled) == (size > READ_WINDOW)
        assert received.buffer is lender.window and not received.filled
        assert lender.statistics()["lent_bytes"] == 0


def test_a_lent_buffer_goes_back_when_the_rest_is_small() -> None:
    lender = ReceiveBuffers()
    received = ReceiveBuffer(lender)
    large = frame(1_000_000)
    receive(received, large + frame(100)[:50])
    assert isinstance(received.buffer, mmap.mmap)
    assert received.served(len(large))
    assert isinstance(received.buffer, bytearray)
    assert content(received) == frame(100)[:50]
    receive(received, frame(100)[50:])
    assert content(received) == frame(100)


def test_a_lent_buffer_stays_for_the_next_large_request() -> None:
    lender = ReceiveBuffers()
    received = ReceiveBuffer(lender)
    large = frame(1_000_000)
    receive(received, large + large[:70_000])
    assert not received.served(len(large))
    assert isinstance(received.buffer, mmap.mmap)
    assert content(received) == large[:70_000]


def test_who_may_not_receive_more_is_lent_nothing() -> None:
    lender = ReceiveBuffers()
    received = ReceiveBuffer(lender)
    receive(received, frame(1_000_000)[:READ_WINDOW], may_receive=False)
    assert len(received.buffer) == READ_WINDOW and not received.is_lent
    received.close()
    assert received.buffer is lender.window
