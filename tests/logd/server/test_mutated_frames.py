"""Any bytes at all, in the place of a request: an answer, or `Refused`; never another error."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_client.records import build_batch
from kafka_client.wire import (
    Message,
    decode,
    decode_response_header,
    encode,
    encode_request,
    request_class,
    response_class,
)
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.produce import ProduceRequest
from kafka_client.wire.produce import encode_produce_request
from logd.api.dispatch.dispatch import serve
from logd.api.request.answer import Refused
from logd.api.request.context import RequestContext
from logd.api.table import APIS, PRODUCE
from logd.broker.broker import Broker
from logd.broker.fetching.delayed import Delayed
from logd.config.listeners import Endpoint
from logd.config.load import from_properties
from logd.storage.disk import read_slice
from tests.support.depth import times

LATE = 0.02
"""Seconds the answer to a mutated request is waited for; such a request may rightly wait for longer."""
ANSWER_SECONDS = 100.0
"""The most time for a response to a plain request, on any machine: such a request has no reason to wait."""
CORRELATION_ID = 7


def plain(key: int) -> Message:
    """Return an empty request for which a response is due."""
    return ProduceRequest(acks=1) if key == PRODUCE else request_class(key)()


def originals() -> list[bytes]:
    """Return one plain request of every API and version, and some Produce and Fetch
    requests with partitions.
    """
    requests = [
        encode_request(plain(api.key), version, CORRELATION_ID, "client")[4:]
        for api in APIS.values()
        for version in range(api.serves_from, api.last + 1)
    ]
    batch = build_batch([(1, b"k", b"v", (("h", b"x"),))])
    topic_to_fetch = FetchTopic(topic="t", partitions=[FetchPartition(partition_max_bytes=1000)])
    for version in (3, 9, 13):
        topic = b"?" * 16 if version == 13 else "t"
        chunks = encode_produce_request([(topic, [(0, batch)])], version, CORRELATION_ID, "client")
        requests.append(b"".join(bytes(chunk) for chunk in chunks)[4:])
    requests += [
        encode_request(FetchRequest(topics=[topic_to_fetch]), version, CORRELATION_ID, "client")[4:]
        for version in (4, 12)
    ]
    return requests


ORIGINALS = originals()


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a request with bytes replaced, inserted or cut out, or with its end cut off."""
    data = bytearray(draw(st.sampled_from(ORIGINALS)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 4))
        data[at : at + size] = draw(st.binary(max_size=6))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


class Served:
    """A broker in this process, its loop run for one request at a time."""

    def __init__(self, runner: asyncio.Runner, broker: Broker) -> None:
        self._runner = runner
        # Requests of other brokers are served too, so that their code is reached.
        self.context = RequestContext(broker, is_broker=True)

    def serve(self, request: bytes) -> None:
        self._runner.run(self._serve(request))

    def answer(self, request: bytes) -> bytes:
        """Return the response without its length. Raises Refused, TimeoutError, or any other error of the
        handler.
        """
        return self._runner.run(self._answer(request))

    async def _answer(self, request: bytes) -> bytes:
        answer = serve(memoryview(request), 0, len(request), self.context)
        async with asyncio.timeout(ANSWER_SECONDS):
            if isinstance(answer, Delayed):
                response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                answer.start(response.set_result, response.set_exception)
                answer = await response
            elif inspect.isawaitable(answer):
                answer = await answer
        pieces = [answer] if isinstance(answer, bytes) else answer
        assert isinstance(pieces, list), f"{pieces!r} is no answer"
        data = b"".join(piece if isinstance(piece, bytes) else read_slice(piece) for piece in pieces)
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        return data[4:]

    async def _serve(self, request: bytes) -> None:
        try:
            answer = serve(memoryview(request), 0, len(request), self.context)
            if isinstance(answer, Delayed):
                answer.start(lambda _: None, pytest.fail)
                answer.wake()
                answer.cancel()
            elif inspect.isawaitable(answer):
                async with asyncio.timeout(LATE):
                    await answer
        except (Refused, TimeoutError):
            pass


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("mutated")
    config = from_properties({"log.dirs": str(folder), "offsets.topic.num.partitions": "1"}).config
    with asyncio.Runner() as runner:
        broker = Broker(config)
        runner.run(broker.start())
        broker.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
        runner.run(broker.auto_create("t"))
        yield Served(runner, broker)
        runner.run(broker.stop())


@settings(max_examples=times(600), deadline=None, suppress_health_check=list(HealthCheck))
@given(request=mutated())
def test_mutated_requests(served: Served, request: bytes) -> None:
    served.serve(request)


@settings(max_examples=times(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(key=st.integers(-1, 100), version=st.integers(-1, 20), body=st.binary(max_size=100))
def test_random_bodies(served: Served, key: int, version: int, body: bytes) -> None:
    head = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    served.serve(head + b"\0\0\0\7\xff\xff" + body)


def named(request: bytes) -> tuple[int, int]:
    """Return a request's API key and version."""
    return int.from_bytes(request[:2], "big"), int.from_bytes(request[2:4], "big")


@pytest.mark.parametrize("key", [pytest.param(key, id=api.module) for key, api in APIS.items()])
def test_every_version_of_every_api_is_answered(served: Served, key: int) -> None:
    """By a response of its own shape, correlation id and version."""
    requests = [request for request in ORIGINALS if named(request)[0] == key]
    assert {named(request)[1] for request in requests} == set(
        range(APIS[key].serves_from, APIS[key].last + 1)
    )
    for request in requests:
        _, version = named(request)
        answer = served.answer(request)
        correlation_id, body = decode_response_header(key, version, answer)
        assert correlation_id == CORRELATION_ID
        response = decode(response_class(key), version, answer, body)
        assert encode(response, version) == answer[body:], f"version {version}"
