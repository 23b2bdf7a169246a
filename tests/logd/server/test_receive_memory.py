"""Tests of the memory that connections keep after a large request, measured in a real process."""

from __future__ import annotations

import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_client.wire import encode_request
from kafka_client.wire.messages.metadata import MetadataRequest
from kafka_client.wire.produce import encode_produce_request
from logd.server.receive_buffer import READ_WINDOW
from logd.server.receive_buffers import ReceiveBuffers
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

CONNECTIONS = 200
LARGE = 8 * 1024 * 1024
MB = 1024 * 1024


@pytest.fixture
def logd(tmp_path: Path) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path, {"auto.create.topics.enable": "false"}) as process:
        yield process


@pytest.fixture
def clients(logd: LogdProcess) -> Iterator[list[RawClient]]:
    opened = [RawClient(logd.port) for _ in range(CONNECTIONS)]
    yield opened
    for client in opened:
        client.close()


def large_request() -> bytes:
    """Return a Produce request of LARGE bytes to a topic that does not exist. The broker receives all of it
    and stores none.
    """
    return frame_of(LARGE)


def frame_of(size: int) -> bytes:
    """Return a request like `large_request`, of slightly more than `size` bytes."""
    return b"".join(encode_produce_request([("nowhere", [(0, bytes(size))])], 9, 7, "raw", acks=1))


def small_request() -> bytes:
    return encode_request(MetadataRequest(topics=[]), 9, 7, "raw")


@deep
def test_a_large_request_once_does_not_cost_its_size_for_ever(
    logd: LogdProcess, clients: list[RawClient]
) -> None:
    """Connections that went on with a small request a second were never quiet, so their buffers stayed."""
    request, small = large_request(), small_request()
    for client in clients:
        client.send(small)
        assert client.receive(3, 9).brokers
    before, low = logd.rss_bytes, logd.forget_peak()
    for client in clients:
        client.send(request)
        assert client.receive(0, 9).responses[0].partition_responses[0].error_code == 3
    for client in clients:
        client.send(small)
        assert client.receive(3, 9).brokers
    assert logd.rss_bytes - before < 100 * MB
    assert logd.peak_bytes - low < 100 * MB, "one after the other"


@deep
def test_the_beginning_of_a_small_request_keeps_no_large_buffer(
    logd: LogdProcess, clients: list[RawClient]
) -> None:
    """Bytes of the next request move along into the connection's own buffer."""
    request, small = large_request(), small_request()
    before = logd.forget_peak()
    for client in clients[:50]:
        client.send(request + small[:9])
        assert client.receive(0, 9).responses[0].partition_responses[0].error_code == 3
    assert logd.peak_bytes - before < 100 * MB
    for client in clients[:50]:
        client.send(small[9:])
        assert client.receive(3, 9).brokers


@deep
def test_requests_of_all_sizes_one_behind_the_other(clients: list[RawClient]) -> None:
    client, sizes = clients[0], [10, 17_000, 70_000, 40_000, 300_000, 5, 1_000_000, 65_500, 131_000, 20]
    frames = [frame_of(size) for size in sizes]
    client.send(b"".join(frames * 3))
    for _ in frames * 3:
        assert client.receive(0, 9).responses[0].partition_responses[0].error_code == 3


@deep
@pytest.mark.parametrize("over", [1, 2, 3, 4])
def test_a_request_that_begins_in_the_last_bytes_of_the_buffer(logd: LogdProcess, over: int) -> None:
    """Requests of which fewer than four bytes fit into the buffer are served. Their size is not known yet:
    the connection was aborted.
    """
    with RawClient(logd.port) as client:
        client.send(frame_of(60_000))  # the connection's own buffer is as large as it gets
        client.receive(0, 9)
        fills = frame_of(READ_WINDOW - over - (len(frame_of(60_000)) - 60_000))
        assert len(fills) == READ_WINDOW - over
        for _ in range(10):
            client.send(fills + small_request())
            client.receive(0, 9)
            assert client.receive(3, 9).brokers


@deep
def test_what_is_half_received_is_bounded(tmp_path: Path) -> None:
    """Connections that each send half of a large request wait for their turn, so that memory stays bounded. A
    hundred of them used to cost a hundred halves.
    """
    bound = {"socket.request.max.bytes": 2 * LARGE, "queued.max.request.bytes": 4 * LARGE}
    request, small = large_request(), small_request()
    with LogdProcess(tmp_path, bound) as logd, ExitStack() as stack:
        before = logd.forget_peak()
        clients = [stack.enter_context(RawClient(logd.port)) for _ in range(40)]
        sent = [begin(client, request) for client in clients]
        with RawClient(logd.port) as other:
            for _ in range(20):  # everybody else is served
                assert other.request(MetadataRequest(topics=[]), 9).brokers
        assert logd.peak_bytes - before < 80 * MB
        clients.pop().close()  # one that goes away, waiting or not, is in nobody's way
        with ThreadPoolExecutor(len(clients)) as pool:
            answers = list(pool.map(lambda pair: finish(*pair, request), zip(clients, sent, strict=False)))
        assert answers == [3] * len(clients), "each had its turn"
        assert logd.peak_bytes - before < 80 * MB
        for client in clients:
            client.send(small)
            assert client.receive(3, 9).brokers


def begin(client: RawClient, request: bytes) -> int:
    """Send as much of the first three quarters as is taken; how much that is."""
    client.socket.setblocking(False)
    sent, until = 0, len(request) * 3 // 4
    while sent < until:
        try:
            sent += client.socket.send(memoryview(request)[sent:until])
        except BlockingIOError:
            if not select.select((), (client.socket,), (), 0.05)[1]:
                break
    client.socket.settimeout(300)
    return sent


def finish(client: RawClient, sent: int, request: bytes) -> int:
    """Send the rest; the error code of the answer."""
    client.socket.sendall(memoryview(request)[sent:])
    return int(client.receive(0, 9).responses[0].partition_responses[0].error_code)


def test_large_requests_are_received_in_turn() -> None:
    buffers, turns = ReceiveBuffers(announced_bytes_max=10), []

    def asks(who: str, announced: int) -> bool:
        return buffers.admit(who, announced, lambda: turns.append(who))

    assert asks("a", 9)
    assert asks("b", 100), "there was room: the last one may go beyond the bound"
    assert asks("a", 9), "it is in already"
    assert not asks("c", 1) and not asks("d", 50) and not asks("e", 1)
    assert not asks("c", 1), "it keeps its place"
    counts = buffers.statistics()
    assert (counts["waiting"], counts["announced_bytes"] >= counts["announced_bytes_max"]) == (3, True)
    buffers.dismiss("d")
    buffers.dismiss("a")
    assert turns == []
    buffers.dismiss("b")
    assert turns == ["c", "e"]
    buffers.dismiss("c")
    buffers.dismiss("e")
    buffers.dismiss("nobody")
    assert asks("f", 100) and not asks("g", 1)


def lent_and_kept(buffers: ReceiveBuffers) -> tuple[int, int]:
    """Return how many bytes are lent, and how many are kept."""
    statistics = buffers.statistics()
    return statistics["lent_bytes"], statistics["kept_bytes"]


def test_free_buffers_are_lent_before_new_ones_are_made() -> None:
    buffers = ReceiveBuffers(kept_bytes_max=8 * MB)
    first = buffers.lend(MB, 3 * MB)
    assert len(first) == MB, "what a peer announces is not allocated"
    second = buffers.lend(4 * MB, 4 * MB)
    buffers.give_back(second)
    assert buffers.lend(MB, 3 * MB) is second, "one that has room for all is there"
    assert lent_and_kept(buffers) == (5 * MB, 0)


def test_no_more_is_kept_than_was_needed_lately() -> None:
    buffers = ReceiveBuffers(kept_bytes_max=8 * MB)
    lent = [buffers.lend(4 * MB, 0) for _ in range(3)]
    for buffer in lent:
        buffers.give_back(buffer)
    assert lent_and_kept(buffers) == (0, 8 * MB), "the third one was too much"
    buffers.trim()
    assert buffers.statistics()["kept_bytes"] == 8 * MB, "two were lent at one time since the last call"
    buffers.give_back(buffers.lend(MB, MB))
    buffers.trim()
    assert buffers.statistics()["kept_bytes"] == 4 * MB
    buffers.trim()
    assert lent_and_kept(buffers) == (0, 0)
