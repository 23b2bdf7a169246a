"""Tests of what a peer may do wrong: it costs one log line, and an error or a closed connection. No other
peer is disturbed.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

import pytest

from kafka_client.records import build_batch
from kafka_client.wire import encode_request
from kafka_client.wire.messages.metadata import MetadataRequest
from kafka_client.wire.produce import encode_produce_request
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, client_id: bytes = b"\xff\xff") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client_id


def produce_frame(version: int = 9) -> bytes:
    chunks = encode_produce_request([("t", [(0, build_batch([(1, b"k", b"v", ())]))])], version, 7, "c")
    return b"".join(bytes(chunk) for chunk in chunks)


def still_serves(logd: LogdProcess) -> bool:
    with RawClient(logd.port) as client:
        return bool(client.request(MetadataRequest(topics=[]), 9).brokers)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (struct.pack(">i", -1), "announced a request of -1 bytes"),
        (struct.pack(">i", 104_857_601), "announced a request of 104857601 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "announced a request of 1195725856 bytes"),
        (frame(b""), "too short for a header"),
        (frame(b"\0\0\0"), "too short for a header"),
        (frame(header(3, 9, b"\xff\xfe")), "client id of -2 bytes"),
        (frame(header(3, 9, b"\x7f\xff")), "client id of 32767 bytes"),
        (frame(header(3, 1, b"\0\1\xff") + b"\0\0\0\0"), "malformed request for API 3"),
        (frame(header(9999, 0)), "API 9999 version 0"),
        (frame(header(-1, 0)), "API -1 version 0"),
        (frame(header(3, 99)), "version 99 of API 3"),
        (frame(header(3, -1)), "version -1 of API 3"),
        (frame(header(0, 2) + b"\0" * 20), "version 2 of API 0"),
        (frame(header(0, 14) + b"\0" * 20), "version 14 of API 0"),
        (frame(header(1, 3) + b"\0" * 20), "version 3 of API 1"),
        (frame(header(3, 1) + b"\x7f\xff\xff\xff"), "malformed request for API 3 version 1"),
        (frame(header(3, 9) + b"\0\xff\xff\xff\xff\x0f"), "malformed request for API 3 version 9"),
        (frame(header(0, 9)), "malformed request for API 0"),
        (frame(header(0, 9) + b"\0" + b"\xff" * 30), "malformed request for API 0"),
        (frame(header(1, 12)), "malformed request for API 1"),
        (frame(header(1, 12) + b"\0" + b"\xff" * 60), "malformed request for API 1"),
        (frame(produce_frame()[4:-3]), "malformed request for API 0"),
        (frame(produce_frame()[4:] + b"more"), "malformed request for API 0"),
    ],
)
def test_nonsense_closes_the_connection_with_one_line(logd: LogdProcess, sent: bytes, reason: str) -> None:
    start = len(logd.log)  # the system gives ports again
    with RawClient(logd.port) as client:
        peer = "{}:{}: ".format(*client.socket.getsockname())
        client.send(sent)
        assert client.is_closed_by_peer()
    wait_for(lambda: peer in logd.log[start:])
    lines = [line for line in logd.log[start:].splitlines() if peer in line]
    assert len(lines) == 1
    assert reason in lines[0]
    assert "Traceback" not in logd.log
    assert still_serves(logd)


def test_answers_before_the_nonsense_are_sent(logd: LogdProcess) -> None:
    with RawClient(logd.port) as client:
        client.send(encode_request(MetadataRequest(topics=[]), 9, 7, "raw") + struct.pack(">i", -5))
        assert client.receive(3, 9).brokers
        assert client.is_closed_by_peer()


def test_a_frame_that_never_ends_holds_up_nobody(logd: LogdProcess) -> None:
    with RawClient(logd.port) as half:
        half.send(produce_frame()[:30])
        assert still_serves(logd)
    with RawClient(logd.port) as mute:
        assert still_serves(logd)
        mute.send(b"\0")
        assert still_serves(logd)


def test_an_announced_length_costs_nothing_until_the_bytes_come(logd: LogdProcess) -> None:
    still_serves(logd)
    before = logd.forget_peak()
    clients = [RawClient(logd.port) for _ in range(20)]
    for client in clients:
        client.send(struct.pack(">i", 100_000_000) + b"x" * 1000)
    assert still_serves(logd)
    assert logd.peak_bytes - before < 20_000_000
    for client in clients:
        client.close()


def test_requests_byte_by_byte(logd: LogdProcess) -> None:
    with RawClient(logd.port) as client:
        for byte in encode_request(MetadataRequest(topics=[]), 9, 7, "raw"):
            client.send(bytes([byte]))
        assert client.receive(3, 9).brokers


def test_a_large_request_in_a_small_buffer(logd: LogdProcess, new_name: Callable[..., str]) -> None:
    name = new_name()
    with RawClient(logd.port) as client:
        from kafka_client.wire.messages.metadata import MetadataRequestTopic

        client.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
        values = [os.urandom(900_000) for _ in range(8)]
        for value in values:
            client.send_produce(name, [(1, None, value, ())])
        for offset in range(8):
            answer = client.receive(0, 9).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, offset)


@deep
def test_fuzzed_frames_leave_the_broker_alive(logd: LogdProcess) -> None:
    """Send every third prefix of real requests, and the requests with a byte flipped there. Only the process
    has to survive.
    """
    originals = [
        produce_frame(),
        produce_frame(version=3),
        encode_request(MetadataRequest(topics=None), 12, 7, "raw"),
    ]
    for original in originals:
        body = original[4:]
        for position in range(0, len(body), 3):
            flipped = bytearray(body)
            flipped[position] ^= 0xFF
            for sent in (body[:position], bytes(flipped)):
                with RawClient(logd.port) as client:
                    client.send(frame(sent))
    assert still_serves(logd)
    assert "Traceback" not in logd.log
