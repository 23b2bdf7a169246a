"""Interface to every foreign client, so that one test can run with all of them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import pytest

from kafka_client.records import NewRecord, Record

SECONDS = 100.0
"""Limit of every wait: far more than any wait takes, even on a busy machine."""
SESSION_MS = 30_000
"""Session timeout of a group's member: longer than the broker or the client ever stalls."""

LIBRARIES = {"confluent": "confluent_kafka", "aio": "aiokafka", "python": "kafka"}
"""Modules beside this one, and the library each is for."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Refused(Exception):
    """The broker did not take a record; ``code`` is Kafka's."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Member(Protocol):
    """A member of a consumer group that reads one topic from its beginning and commits only when told."""

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions it holds."""

    @property
    def assignments(self) -> int:
        """How often it was given partitions."""

    def poll(self) -> list[tuple[int, Record]]:
        """Keep the membership alive and return (partition, record) that have come; waits a little."""

    def commit(self) -> None:
        """Commit the positions of all partitions, and wait."""

    def close(self) -> None:
        """Leave the group (a static member: only go)."""


class Client(Protocol):
    """A client library; ``name`` is what it is called on PyPI."""

    name: str
    strategies: Sequence[str]
    """Assignment strategies it offers, by their names in the protocol."""

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Iterable[NewRecord],
        codec: str = "none",
        partition: int = 0,
    ) -> None:
        """Write to one partition, in order; a timestamp of -1 is left to the client. Raises Refused."""

    def consume(self, bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Record]:
        """Read the first ``count`` records of a partition."""

    def offset_for_time(self, bootstrap: str, topic: str, timestamp: int) -> int | None:
        """Return the first offset of partition 0 at or after a time; None if there is none."""

    def member(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        strategy: str = "range",
        *,
        instance: str | None = None,
    ) -> Member:
        """Join a group."""


def load(name: str) -> Client:
    """Return a client of ``tests.interop.clients``; skip the test if its library is not installed."""
    pytest.importorskip(LIBRARIES[name])
    return importlib.import_module(f"tests.interop.clients.{name}")  # type: ignore[return-value]


def wait_until(
    condition: Callable[[], bool], *members: Member, seconds: float = SECONDS
) -> list[tuple[int, Record]]:
    """Poll all members until ``condition`` holds; what they received meanwhile."""
    deadline = time.monotonic() + seconds
    received: list[tuple[int, Record]] = []
    while not condition():
        assigned = [sorted(member.assigned) for member in members]
        assert time.monotonic() < deadline, f"not in {seconds} s; held: {assigned}, received {len(received)}"
        for member in members:
            received += member.poll()
    return received
