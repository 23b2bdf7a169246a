"""Transactions keep their guarantees with every client library."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.interop.transactions.clients.base import SECONDS, Fenced, Library, MustAbort
from tests.interop.transactions.conftest import Broker
from tests.support.depth import deep
from tests.support.topics import create_topic


@pytest.fixture
def topic(broker: Broker, new_name: Callable[..., str]) -> str:
    return create_topic(broker, new_name("transactions"), partitions=3)


def expect(library: Library, broker: Broker, topic: str, *, committed: list[bytes], all: list[bytes]) -> None:
    """Wait until readers of committed and of uncommitted records see these values.

    A commit is acknowledged before its markers are written.
    """

    def read(*, committed: bool) -> list[bytes]:
        return library.read(broker.bootstrap, topic, 3, committed=committed)

    until(lambda: read(committed=True), sorted(committed))
    until(lambda: read(committed=False), sorted(all))


def until(look: Callable[[], object], expected: object) -> None:
    """Look until what is expected is there."""
    deadline = time.monotonic() + SECONDS
    while (state := look()) != expected:
        assert time.monotonic() < deadline, f"{state} instead of {expected}"


@deep
def test_commit_and_abort(library: Library, broker: Broker, topic: str) -> None:
    """Committed readers see a transaction in all partitions or in none; other readers see all records."""
    producer = library.producer(broker.bootstrap, topic)
    for name, end in ((b"a", producer.commit), (b"b", producer.abort), (b"c", producer.commit)):
        producer.begin()
        for partition in range(3):
            producer.send(topic, b"%s%d" % (name, partition), partition)
        producer.flush()
        end()
    committed = [b"a0", b"a1", b"a2", b"c0", b"c1", b"c2"]
    expect(library, broker, topic, committed=committed, all=[*committed, b"b0", b"b1", b"b2"])
    producer.close()


@deep
def test_open(library: Library, broker: Broker, topic: str) -> None:
    """Records after the start of an open transaction are not stable, not even another producer's."""
    first, second = (library.producer(broker.bootstrap, f"{topic}-{name}") for name in "ab")
    first.begin()
    first.send(topic, b"open", 0)
    first.flush()
    second.begin()
    second.send(topic, b"behind", 0)
    second.send(topic, b"elsewhere", 1)
    second.commit()
    values = [b"behind", b"elsewhere", b"open"]
    expect(library, broker, topic, committed=[b"elsewhere"], all=values)
    first.abort()
    expect(library, broker, topic, committed=[b"behind", b"elsewhere"], all=values)
    first.close()
    second.close()


@deep
def test_fencing(library: Library, broker: Broker, topic: str) -> None:
    """Starting a second producer of a transactional id aborts the first one's transaction and fences it."""
    zombie = library.producer(broker.bootstrap, topic)
    zombie.begin()
    zombie.send(topic, b"zombie", 0)
    zombie.flush()
    heir = library.producer(broker.bootstrap, topic)
    heir.begin()
    heir.send(topic, b"heir", 0)
    heir.flush()
    with pytest.raises(Fenced):
        zombie.commit()
    heir.commit()
    expect(library, broker, topic, committed=[b"heir"], all=[b"heir", b"zombie"])
    zombie.close()
    heir.close()


@deep
def test_timeout(library: Library, broker: Broker, topic: str) -> None:
    """Transactions that take too long are aborted, and their producer cannot commit them any more."""
    slow = library.producer(broker.bootstrap, topic, timeout_ms=4000)
    other = library.producer(broker.bootstrap, f"{topic}-other")
    slow.begin()
    slow.send(topic, b"slow", 0)
    slow.flush()
    other.begin()
    other.send(topic, b"other", 0)
    other.commit()
    expect(library, broker, topic, committed=[b"other"], all=[b"other", b"slow"])
    with pytest.raises((Fenced, MustAbort)):
        slow.commit()
    expect(library, broker, topic, committed=[b"other"], all=[b"other", b"slow"])
    slow.close()
    other.close()


@deep
def test_offsets(library: Library, broker: Broker, topic: str) -> None:
    """Offsets belong to the transaction as records do."""
    producer = library.producer(broker.bootstrap, topic)
    producer.begin()
    for number in range(10):
        producer.send(topic, b"%d" % number, 0)
    producer.commit()
    consumer = library.consumer(broker.bootstrap, f"group-{topic}", topic)
    received: list[tuple[int, int, bytes]] = []
    deadline = time.monotonic() + SECONDS
    while len(received) < 10:
        assert time.monotonic() < deadline
        received += consumer.poll()
    for end, expected in ((producer.abort, {}), (producer.commit, {0: 10})):
        producer.begin()
        producer.send(topic, b"result", 1)
        producer.flush()  # an abort drops what has not been sent yet
        producer.send_offsets(consumer)
        end()
        until(lambda: consumer.committed(1), expected)
    consumer.close()
    producer.close()
    values = [b"%d" % number for number in range(10)]
    expect(library, broker, topic, committed=[*values, b"result"], all=[*values, b"result", b"result"])
