"""Damaged requests sent to one live broker, which goes on serving, writes no traceback and does not grow."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.metadata import MetadataRequest
from tests.fuzz.mutations import streams
from tests.support import depth
from tests.support.connections import hang_up
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.sample_requests import sample_frame, served
from tests.support.topics import create_topic

GROWTH_MAX = 24_000_000


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker with a topic of the samples' name, and send it every request once."""
    with LogdProcess(tmp_path_factory.mktemp("fuzz"), {"auto.create.topics.enable": "false"}) as process:
        create_topic(process, "sample", partitions=2)
        for key, version in served():
            with RawClient(process.port) as client:
                client.send(sample_frame(key, version))
                assert client.receive_frame() is not None
        yield process


def test_the_broker_survives(logd: LogdProcess) -> None:
    before, low = logd.rss_bytes, logd.forget_peak()

    @settings(
        max_examples=depth.times(400),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(sent=streams())
    def fuzz(sent: bytes) -> None:
        start = len(logd.log)
        exchange(logd.port, sent)
        assert logd.is_running, logd.log[start:]
        assert "Traceback" not in logd.log[start:], logd.log[start:]

    fuzz()
    with RawClient(logd.port) as client:
        assert client.request(ApiVersionsRequest(), 0).error_code == 0
        assert client.request(MetadataRequest(topics=[]), 12).brokers
    assert logd.rss_bytes - before < GROWTH_MAX
    assert logd.peak_bytes - low < GROWTH_MAX, "while the clients were there"


def exchange(port: int, sent: bytes) -> None:
    """Send, hang up, and read to the end: the broker has dealt with everything then."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        try:
            sock.sendall(sent)
            hang_up(sock)
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
