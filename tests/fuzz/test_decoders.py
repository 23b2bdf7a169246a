"""Whatever the bytes: a request decoder gives a message or raises MalformedMessage, and allocates little."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch, KafkaError, MalformedMessage
from kafka_client.records import check_produced, decode_records
from kafka_client.wire import decode, decode_request_header, request_class
from kafka_client.wire.fetch import decode_fetch_request
from kafka_client.wire.produce import decode_produce_request
from tests.fuzz.mutations import SERVED, frames
from tests.support import depth

FUZZ = settings(
    max_examples=depth.times(40),
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
BYTES_MAX = 1_000_000
"""Bytes that decoding a request of a few hundred bytes may allocate."""


def decode_as_the_broker_does(frame: bytes, key: int, version: int) -> None:
    """Raises MalformedMessage."""
    request = frame[4:]
    body = decode_request_header(request).body
    if key == 0:
        for _, partitions in decode_produce_request(request, version, body).topics:
            for _, records in partitions:
                decode_batch(records)
    elif key == 1:
        decode_fetch_request(request, version, body)
    else:
        decode(request_class(key), version, request, body)


def decode_batch(records: memoryview) -> None:
    try:
        check_produced(records)
        decode_records(records)
    except (KafkaError, CorruptRecordBatch):
        pass


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Decoders are compiled at first use: not on the clock and not in the memory of the first example."""
    from tests.support.sample_requests import sample_frame

    for key, version in SERVED:
        decode_as_the_broker_does(sample_frame(key, version), key, version)


@pytest.mark.parametrize("key", sorted({key for key, _ in SERVED}))
@FUZZ
@given(data=st.data())
def test_only_malformed_message(key: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([version for served, version in SERVED if served == key]))
    frame = data.draw(frames(key, version))
    tracemalloc.start()
    try:
        decode_as_the_broker_does(frame, key, version)
    except MalformedMessage:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < BYTES_MAX


@settings(max_examples=depth.times(500), database=None)
@given(data=st.binary(max_size=200), served=st.sampled_from(SERVED))
def test_noise_behind_a_key_and_a_version(data: bytes, served: tuple[int, int]) -> None:
    key, version = served
    frame = bytes(4) + key.to_bytes(2, "big") + version.to_bytes(2, "big") + data
    try:
        decode_as_the_broker_does(frame, key, version)
    except MalformedMessage:
        pass
