"""Clients that behave badly in time: slow, deaf, fickle and far too many of them."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client.records import build_batch
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.sample_requests import sample_frame
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("bystander")

CROWD = 3000
OPEN_AT_ONCE = 400


def open_files(logd: LogdProcess) -> int:
    """Return how many descriptors the broker has once it has accepted all connections."""
    with RawClient(logd.port) as client:
        client.send(sample_frame(18, 0))
        client.receive_frame()
        return len(os.listdir(f"/proc/{logd.pid}/fd"))


def tcp_buffer_bytes_max() -> int:
    """Return how many bytes of a connection the kernel may buffer, at both ends and in both directions."""
    limits = [Path(f"/proc/sys/net/ipv4/tcp_{way}mem").read_text().split()[2] for way in "rw"]
    return 2 * sum(map(int, limits))


def test_a_byte_at_a_time(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("slow"))
    with RawClient(logd.port) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send, client.send = client.send, lambda data: [send(data[i : i + 1]) for i in range(len(data))]  # type: ignore[method-assign,assignment]
        assert client.produce(topic, [(1, b"k", b"v" * 500, ())]).base_offset == 0
        assert client.fetch(topic).high_watermark == 1


def test_deaf_clients(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    """Twenty clients ask for 20 GB together and read nothing."""
    topic = create_topic(logd, new_name("deaf"))
    with RawClient(logd.port) as client:
        for _ in range(10):
            assert client.produce(topic, build_batch([(1, None, os.urandom(1_000_000), ())])).error_code == 0
    with contextlib.ExitStack() as stack:
        deaf = [stack.enter_context(RawClient(logd.port)) for _ in range(20)]
        for client in deaf:
            client.socket.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                for _ in range(100):
                    client.send_fetch(topic, partition_max_bytes=1 << 26)


@deep
def test_deaf_clients_that_ask_for_small_things(logd: LogdProcess) -> None:
    """Questions by the hundred thousand, until the broker stops reading and the kernel's buffers are full."""
    requests = sample_frame(18, 0) * 2000
    buffers = tcp_buffer_bytes_max()
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            client = stack.enter_context(RawClient(logd.port))
            client.socket.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                for _ in range(3 * buffers // len(requests)):
                    client.send(requests)
                pytest.fail("the broker takes whatever comes")


@deep
def test_many_connections_opened_and_dropped(logd: LogdProcess) -> None:
    """Connections send nothing, half a request, or a whole one whose answer they do not read."""
    whole = sample_frame(3, 9)
    says = [b"", whole[:2], whole[:15], whole, struct.pack(">i", 50_000_000) + bytes(200), whole * 20]
    before = open_files(logd)
    for number in range(CROWD):
        with socket.create_connection(("127.0.0.1", logd.port)) as sock:
            sock.sendall(says[number % len(says)])
            if number % 2:  # reset instead of closing
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_for(lambda: open_files(logd) <= before)


def test_many_connections_at_once(logd: LogdProcess) -> None:
    before = open_files(logd)
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(RawClient(logd.port)) for _ in range(OPEN_AT_ONCE)]
        for client in crowd:
            client.send(sample_frame(3, 9))
        for client in crowd:
            assert client.receive(3, 9).brokers
    wait_for(lambda: open_files(logd) <= before)


def test_long_polls_that_are_abandoned(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("abandoned"))
    with RawClient(logd.port) as client:
        assert client.produce(topic, [(1, None, b"v", ())]).base_offset == 0
        before = open_files(logd)
        for _ in range(300):
            with RawClient(logd.port) as waiting:
                waiting.send_fetch(topic, 1, max_wait_ms=600_000, min_bytes=1 << 20)
        wait_for(lambda: open_files(logd) <= before)
        assert client.produce(topic, [(1, None, b"v", ())]).base_offset == 1
