"""Fetches served by a broker in this process, without a connection, so that their reads can be counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_client.records import build_batch
from kafka_client.records.slice import FileSlice
from kafka_client.wire import encode_request
from kafka_client.wire.fetched import FetchedResponse, PartitionRecords, decode_fetch_response
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from logd.api.dispatch.dispatch import serve
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.fetching.delayed import Delayed
from logd.broker.fetching.fetch_session import FetchSession
from logd.broker.partition.partition import Partition
from logd.config.listeners import Endpoint
from logd.config.load import from_properties
from logd.storage.disk import read_slice

VERSION = 12
LONG = 60_000
HEAD = 9
"""Bytes before the response's body: length, correlation id and the header's tagged fields."""


class Bench:
    """A broker whose event loop runs only within `run`."""

    def __init__(self, runner: asyncio.Runner, broker: Broker) -> None:
        self.runner = runner
        self.broker = broker

    def create(self, topic: str, partitions: int = 1) -> None:
        self.runner.run(self.broker.catalog.create(topic, partitions, {}))

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.broker.catalog.find(topic).partition(index)

    def append(self, topic: str = "t", index: int = 0, *, size: int = 1) -> None:
        self.partition(topic, index).append(build_batch([(1, b"k", b"v" * size, ())]), 1)

    def serve(self, request: FetchRequest) -> Any:
        """Return the response, or a `Delayed` if the request has to wait."""
        frame = encode_request(request, VERSION, 7, "test")[4:]
        context = RequestContext(self.broker, is_broker=request.replica_id >= 0)
        return serve(memoryview(frame), 0, len(frame), context)

    def wait(self, request: FetchRequest, answers: list[Any]) -> Delayed[Any]:
        """Serve a request that has to wait; its response or failure is added to ``answers``."""
        answer = self.serve(request)
        assert isinstance(answer, Delayed)
        answer.start(lambda answer: answers.append(decoded(answer)), answers.append)
        return answer


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Bench]:
    """Start a broker; settings are Kafka's keys with underscores."""
    overrides = {key.replace("_", "."): value for key, value in settings.items()}
    config = from_properties({"log.dirs": str(folder), **overrides}).config
    with asyncio.Runner() as runner:
        broker = Broker(config)

        async def start() -> None:
            await broker.start()

        runner.run(start())
        broker.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
        yield Bench(runner, broker)
        runner.run(broker.stop())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with running(tmp_path / "data") as started:
        yield started


async def turns(count: int = 3) -> None:
    """Let the event loop run a few turns."""
    for _ in range(count):
        await asyncio.sleep(0)


def decoded(answer: Sequence[bytes | FileSlice]) -> FetchedResponse:
    """Decode a response as a client does."""
    frame = b"".join(piece if isinstance(piece, bytes) else read_slice(piece) for piece in answer)
    return decode_fetch_response(frame, VERSION, HEAD)


class Session:
    """A client's side of a session, over partitions by (topic, index)."""

    def __init__(self, bench: Bench, **limits: int) -> None:
        self.bench = bench
        self.id = self.epoch = 0
        self.limits = {"min_bytes": 1, "max_bytes": 1 << 26, "max_wait_ms": 0, **limits}

    @property
    def of_broker(self) -> FetchSession:
        """The session as the broker has it."""
        return self.bench.broker.fetch_sessions._sessions[self.id]

    def request(
        self,
        positions: Mapping[tuple[str, int], int] | None = None,
        forget: Sequence[tuple[str, int]] = (),
        *,
        partition_bytes: int = 1 << 20,
        **changed: int,
    ) -> FetchRequest:
        """Return the session's next request, which has only what changes."""
        topics = [
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_bytes)
                ],
            )
            for (topic, index), offset in (positions or {}).items()
        ]
        request = FetchRequest(
            **{"session_id": self.id, "session_epoch": self.epoch, **self.limits, **changed},
            topics=topics,
            forgotten_topics_data=[
                ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forget
            ],
        )
        self.epoch += 1
        return request

    def fetch(self, *arguments: Any, **changed: Any) -> FetchedResponse:
        """Fetch without a wait and return the response."""
        answer = decoded(self.bench.serve(self.request(*arguments, **changed)))
        self.id = answer.session_id
        return answer

    def partitions(self, *arguments: Any, **changed: Any) -> dict[tuple[str, int], PartitionRecords]:
        """Fetch as `fetch` does, and return the response's partitions."""
        return by_partition(self.fetch(*arguments, **changed))


def by_partition(answer: FetchedResponse) -> dict[tuple[str, int], PartitionRecords]:
    assert answer.error_code == 0
    return {
        (str(topic), fetched.partition): fetched
        for topic, partitions in answer.topics
        for fetched in partitions
    }
