"""Interface to every client library for the tests of transactions."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol

import pytest

SECONDS = 100.0
"""Limit of every call: far more than any call takes, even on a busy machine."""
SESSION_MS = 6_000
"""How long a group waits for a member that was killed."""

LIBRARIES = {"confluent": "confluent_kafka", "aio": "aiokafka", "python": "kafka"}
"""Modules beside this one, and the library each is for."""

TIMEOUT_MS = 60_000


class Fenced(Exception):
    """Another producer has the transactional id now."""


class MustAbort(Exception):
    """The transaction cannot be committed."""


class Producer(Protocol):
    """A transactional producer. Every method raises Fenced or MustAbort; `begin` and `abort` only Fenced."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, topic: str, value: bytes, partition: int) -> None:
        """Write a record; it may still be on its way."""

    def flush(self) -> None:
        """Wait until all records are written."""

    def send_offsets(self, consumer: Consumer) -> None:
        """Make the consumer's positions part of the transaction."""

    def commit(self) -> None:
        """Commit, and wait."""

    def abort(self) -> None:
        """Abort, and wait."""

    def close(self) -> None:
        """Close the client; an open transaction stays open."""


class Consumer(Protocol):
    """A member of a group that reads committed records of one topic and commits nothing by itself."""

    def poll(self) -> list[tuple[int, int, bytes]]:
        """Return some (partition, offset, value), or none after a short time."""

    def committed(self, partitions: int) -> Mapping[int, int]:
        """Return the group's committed offsets by partition; partitions without one are left out."""

    def rewind(self) -> None:
        """Go back to the committed offsets."""

    def close(self) -> None:
        """Leave the group."""


class Library(Protocol):
    """A module beside this one."""

    def producer(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> Producer:
        """Return a producer that has fenced earlier ones of its transactional id."""

    def consumer(self, bootstrap: str, group: str, topic: str) -> Consumer:
        """Join a group."""

    def read(self, bootstrap: str, topic: str, partitions: int, *, committed: bool) -> list[bytes]:
        """Return all values readable at an isolation level, sorted."""


def load(name: str) -> Library:
    """Return a library; skip the test if it is not installed."""
    pytest.importorskip(LIBRARIES[name])
    return importlib.import_module(f"tests.interop.transactions.clients.{name}")  # type: ignore[return-value]
